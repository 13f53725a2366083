use http_api::Invalid;
use http_api::contract::rules::{MOVED_MONEY, MoneyIn, Text, customer, list_of, money, visible_text};
use http_api::contract::{Body, Schema};
use http_api::url::location;
use key_schema::id::{CustomerId, EntryId, OrderId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::{Currency, Money};
use key_schema::wallet::{EntryKind, MAX_BALANCE, Transfer, Wallet, WalletEntry};
use serde::Serialize;

/// A note on a movement, in bytes of UTF-8.
const NOTE: Text = visible_text(1..=200);
const BALANCE: MoneyIn = money(0..=MAX_BALANCE, "Balance", "");

/// Money that staff pays into a wallet.
#[derive(Debug, Body)]
pub struct NewDeposit {
    #[field(rule = MOVED_MONEY, example = {"amount": 5000, "currency": "USD"})]
    pub amount: Money,
    /// Each customer whose wallet the movement changes can read the note.
    #[field(rule = NOTE, example = "gift card")]
    pub note: Option<String>,
}

/// Money that one customer pays to another.
#[derive(Debug, Body)]
#[body(check(from, to) = other_than_payer)]
pub struct NewTransfer {
    /// The customer who pays, or `me` for the caller.
    #[field(rule = customer())]
    pub from: CustomerId,
    /// The customer who receives the money, or `me` for the caller. It must be another customer than
    /// the payer.
    #[field(rule = customer(), example = "bob")]
    pub to: CustomerId,
    #[field(rule = MOVED_MONEY, example = {"amount": 2500, "currency": "USD"})]
    pub amount: Money,
    /// Each customer whose wallet the movement changes can read the note.
    #[field(rule = NOTE, example = "for the ice")]
    pub note: Option<String>,
}

fn other_than_payer(from: &CustomerId, to: &CustomerId) -> Result<(), Invalid> {
    if from == to { Err(Invalid::new("must not be the payer").under("to")) } else { Ok(()) }
}

/// Returns the URL path of the entries of this customer's wallet, which show a movement.
pub fn entries_of(customer: &CustomerId) -> String {
    location(&["customers", customer.as_str(), "wallet", "entries"])
}

#[derive(Serialize, Schema)]
pub struct WalletView<'a> {
    customer_id: &'a CustomerId,
    /// The balance in the shop's currency.
    #[field(rule = BALANCE, example = {"amount": 4500, "currency": "USD"})]
    balance: Money,
    /// The balances above zero, one for each currency, in the order of the currencies' codes.
    #[field(
        rule = list_of(BALANCE, 0..=usize::MAX),
        example = [{"amount": 200, "currency": "EUR"}, {"amount": 4500, "currency": "USD"}],
    )]
    balances: Vec<Money>,
    /// Counts the movements. It is 0 before the first movement. The ETag has the same number.
    #[field(example = 3)]
    version: u64,
}

impl<'a> WalletView<'a> {
    /// Shows a wallet. A missing wallet has no money and version 0.
    pub fn new(customer_id: &'a CustomerId, wallet: Option<&Stored<Wallet>>) -> Self {
        Self {
            customer_id,
            balance: wallet.map_or(Money::new(0, Currency::SHOP), |wallet| wallet.balance(Currency::SHOP)),
            balances: wallet
                .map(|wallet| wallet.balances())
                .unwrap_or_default()
                .into_iter()
                .filter(|balance| balance.amount > 0)
                .collect(),
            version: wallet.map_or(0, |wallet| wallet.meta.version),
        }
    }
}

/// A movement, as the owner of one of its wallets sees it.
#[derive(Serialize, Schema)]
#[schema(name = "WalletEntry")]
pub struct EntryView<'a> {
    id: &'a EntryId,
    /// Positive for incoming money, negative for outgoing money.
    #[field(example = {"amount": -2500, "currency": "USD"})]
    amount: Money,
    #[field(example = "transfer")]
    kind: EntryKind,
    /// The other customer of a transfer.
    #[field(example = "bob")]
    #[serde(skip_serializing_if = "Option::is_none")]
    counterparty: Option<&'a CustomerId>,
    /// The order that was paid or refunded.
    #[serde(skip_serializing_if = "Option::is_none")]
    order_id: Option<&'a OrderId>,
    #[field(rule = NOTE, example = "for the ice")]
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    at: Instant,
}

impl<'a> From<&'a WalletEntry> for EntryView<'a> {
    fn from(entry: &'a WalletEntry) -> Self {
        let WalletEntry { id, amount, currency, kind, at, counterparty, order_id, note, .. } = entry;
        let (counterparty, order_id, note) = (counterparty.as_ref(), order_id.as_ref(), note.as_deref());
        Self { id, amount: Money::new(*amount, *currency), kind: *kind, counterparty, order_id, note, at: *at }
    }
}

/// A deposit, with the new balance in its currency.
#[derive(Serialize, Schema)]
pub struct DepositView<'a> {
    #[serde(flatten)]
    pub entry: EntryView<'a>,
    #[field(rule = BALANCE, example = {"amount": 7000, "currency": "USD"})]
    pub balance: Money,
}

#[derive(Serialize, Schema)]
pub struct TransferView<'a> {
    id: &'a EntryId,
    from: &'a CustomerId,
    #[field(example = "bob")]
    to: &'a CustomerId,
    #[field(rule = MOVED_MONEY, example = {"amount": 2500, "currency": "USD"})]
    amount: Money,
    #[field(rule = NOTE, example = "for the ice")]
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    at: Instant,
}

impl<'a> From<&'a Transfer> for TransferView<'a> {
    fn from(transfer: &'a Transfer) -> Self {
        let Transfer { id, from, to, money, note, at } = transfer;
        Self { id, from, to, amount: *money, note: note.as_deref(), at: *at }
    }
}
