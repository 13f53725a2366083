use http_api::body::Object;
use http_api::fields::{MAX_AMOUNT, money, visible_text};
use http_api::url::location;
use key_schema::id::{CustomerId, EntryId, OrderId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::{Currency, Money};
use key_schema::wallet::{EntryKind, Transfer, Wallet, WalletEntry};
use serde::Serialize;

/// The longest note, in bytes of UTF-8.
const MAX_NOTE: usize = 200;

/// Reads the fields that every movement has: a positive amount and an optional note.
pub fn movement(body: &mut Object<'_>) -> (Option<Money>, Option<Option<String>>) {
    (body.required("amount", money(1..=MAX_AMOUNT)), body.optional("note", visible_text(1..=MAX_NOTE)))
}

/// Returns the URL path of the entries of this customer's wallet, which show a movement.
pub fn entries_of(customer: &CustomerId) -> String {
    location(&["customers", customer.as_str(), "wallet", "entries"])
}

#[derive(Serialize)]
pub struct WalletView<'a> {
    customer_id: &'a CustomerId,
    /// The balance in the shop's currency.
    balance: Money,
    /// The balances above zero, in the order of the currencies' codes.
    balances: Vec<Money>,
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
#[derive(Serialize)]
pub struct EntryView<'a> {
    id: &'a EntryId,
    amount: Money,
    kind: EntryKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    counterparty: Option<&'a CustomerId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order_id: Option<&'a OrderId>,
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
#[derive(Serialize)]
pub struct DepositView<'a> {
    #[serde(flatten)]
    pub entry: EntryView<'a>,
    pub balance: Money,
}

#[derive(Serialize)]
pub struct TransferView<'a> {
    id: &'a EntryId,
    from: &'a CustomerId,
    to: &'a CustomerId,
    amount: Money,
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
