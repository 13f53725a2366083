//! Wallets: a customer's balances with the shop, one in each currency, and every movement of them.
//!
//! A wallet is one item with its balances, and each movement is an entry in the same partition. One
//! transaction writes both. It adds to the balance instead of setting one that was read. So
//! concurrent movements are safe, and the sum of a wallet's entries in a currency always equals its
//! balance in that currency. A transfer gives one wallet the amount that it takes from another. Its
//! two entries share one id, the transfer's.
//!
//! The balance in the shop's currency is the attribute `amount`. Each other balance is an attribute
//! with the currency's code as its name, because DynamoDB adds only to top-level attributes.
//! Clients can send only listed currencies ([`Currency::is_listed`]). So the money of strangers
//! cannot fill an item: with every currency it has less than 4 KB.
//!
//! # Guarantees of the conditions
//!
//! - Money of one currency neither needs nor changes the balance in another currency.
//! - Money is taken only from a balance of at least that amount. So no balance is ever negative.
//! - Money is given only to a balance with enough room. So no balance is ever above
//!   [`MAX_BALANCE`], which is far below the limit of 64 bits.
//! - Both customers of a transfer, and the customer of a deposit, have a profile in the same
//!   transaction.
//!
//! # Wallets of earlier versions
//!
//! In earlier versions the first money set the only currency of a wallet for good. If this was not
//! the shop's currency, then `currency` and `amount` still hold that balance. Every reader accepts
//! this. A movement in that currency, or into the wallet, is refused. [`convert`] then moves the
//! balance to its own attribute, and the caller repeats the movement. Code of an earlier version
//! reads every wallet and knows only the balance in `currency`.
//!
//! Amounts in the arguments are positive. [`EntryKind`] and [`Side`] decide the sign in the entry.

use std::collections::BTreeMap;
use std::fmt;

use item_model::prelude::*;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::change::Change;
use crate::customer;
use crate::entity::AnyEntity;
use crate::expression::{Compare, Condition, number, value};
use crate::id::{CustomerId, EntryId, OrderId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::money::{Currency, Money};
use crate::pattern::Consistency;
use crate::request::{BatchGet, Get, Guarded, Query, Range, Single, Transaction};

/// The largest balance in one currency, in minor units. It is below 2^53, so that every JSON reader
/// reads it exactly.
pub const MAX_BALANCE: i64 = 9_000_000_000_000_000;

entity! {
    /// The balances of a customer.
    Wallet = "Wallet" {
        fixed {
            /// The customer who owns the wallet.
            customer_id: CustomerId,
            /// The currency of `amount`: the shop's, or another one in a wallet that an earlier
            /// version opened.
            currency: Currency,
            /// The balance in `currency`, in minor units, 0 to [`MAX_BALANCE`]. It equals the sum
            /// of the entries in this currency.
            amount: i64,
            /// The balances in other currencies, under the same rules.
            #[serde(flatten, deserialize_with = "others")]
            others: BTreeMap<Currency, i64>,
        }
        mutable {}
    }
}

impl Entity for Wallet {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.customer_id)
    }
}

impl Wallet {
    /// Returns the balance in a currency.
    #[must_use]
    pub fn balance(&self, currency: Currency) -> Money {
        Money::new(self.amount_in(currency).unwrap_or(0), currency)
    }

    /// Returns the balances, in the order of the currencies' codes.
    #[must_use]
    pub fn balances(&self) -> Vec<Money> {
        let mut all = vec![Money::new(self.amount, self.currency)];
        all.extend(self.others.iter().map(|(currency, amount)| Money::new(*amount, *currency)));
        all.sort_unstable_by_key(|balance| balance.currency);
        all
    }

    fn amount_in(&self, currency: Currency) -> Option<i64> {
        if currency == self.currency { Some(self.amount) } else { self.others.get(&currency).copied() }
    }
}

/// Reads the attributes whose names are codes of currencies.
fn others<'de, D: Deserializer<'de>>(item: D) -> Result<BTreeMap<Currency, i64>, D::Error> {
    struct Attributes;

    impl<'de> Visitor<'de> for Attributes {
        type Value = BTreeMap<Currency, i64>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the balances of a wallet")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut amounts = BTreeMap::new();
            while let Some(name) = map.next_key::<String>()? {
                match name.parse::<Currency>() {
                    Ok(currency) => drop(amounts.insert(currency, map.next_value()?)),
                    // Another attribute of the item.
                    Err(_) => drop(map.next_value::<IgnoredAny>()?),
                }
            }
            Ok(amounts)
        }
    }

    item.deserialize_map(Attributes)
}

/// The reason of a movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// Staff paid money in.
    Deposit,
    /// The money was sent to another wallet, or received from one.
    Transfer,
    /// The money paid for an order.
    Payment,
    /// The money was refunded for an order.
    Refund,
}

impl EntryKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Deposit, Self::Transfer, Self::Payment, Self::Refund];

    /// Returns the name that clients see.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deposit => "deposit",
            Self::Transfer => "transfer",
            Self::Payment => "payment",
            Self::Refund => "refund",
        }
    }
}

entity! {
    /// One movement of a wallet. It never changes.
    WalletEntry = "WalletEntry" {
        fixed {
            /// The customer who owns the wallet.
            customer_id: CustomerId,
            /// The id of the movement, which is time-ordered. The two entries of a transfer share
            /// it.
            id: EntryId,
            /// The amount in minor units, negative for money that leaves the wallet.
            amount: i64,
            /// The currency of the amount.
            currency: Currency,
            /// The reason of the movement.
            kind: EntryKind,
            /// The instant of the movement.
            at: Instant,
            /// The other customer of a transfer.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            counterparty: Option<CustomerId>,
            /// The order that was paid for or refunded.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            order_id: Option<OrderId>,
            /// The note of the caller.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            note: Option<String>,
        }
        mutable {}
    }
}

impl Entity for WalletEntry {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        Ok(Key { pk: partition(&self.customer_id)?, sk: SortKey::of("ENTRY", &[&self.id])? })
    }
}

fn partition(customer: &CustomerId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("WALLET", &[customer])
}

fn key(customer: &CustomerId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(customer)?, sk: SortKey::new("WALLET")? })
}

/// A transfer of money from one customer to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The id of the transfer and of both its entries.
    pub id: EntryId,
    /// The customer who pays.
    pub from: CustomerId,
    /// The customer who receives the money, never the payer.
    pub to: CustomerId,
    /// The amount, above zero.
    pub money: Money,
    /// The note of the caller.
    pub note: Option<String>,
    /// The instant of the transfer.
    pub at: Instant,
}

impl Transfer {
    /// Returns the payer's entry, then the receiver's.
    fn entries(&self) -> [WalletEntry; 2] {
        let entry = |customer_id: &CustomerId, counterparty: &CustomerId, amount| WalletEntry {
            customer_id: customer_id.clone(),
            id: self.id.clone(),
            amount,
            currency: self.money.currency,
            kind: EntryKind::Transfer,
            at: self.at,
            counterparty: Some(counterparty.clone()),
            order_id: None,
            note: self.note.clone(),
        };
        [entry(&self.from, &self.to, -self.money.amount), entry(&self.to, &self.from, self.money.amount)]
    }
}

/// The reason why a movement is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WalletError {
    /// The wallet has too little money of this currency, or does not exist yet.
    #[error("there is too little money in the wallet")]
    Insufficient,
    /// The wallet would hold more than [`MAX_BALANCE`] of this currency.
    #[error("is too much: a wallet holds at most {MAX_BALANCE} of a currency")]
    TooMuch,
}

/// Returns the balance in the money's currency after the money was given to a wallet. A missing
/// wallet counts as empty.
///
/// # Errors
/// [`WalletError`] when the condition of [`transfer`] or [`credit`] would fail.
pub fn plus(wallet: Option<&Wallet>, money: Money) -> Result<Money, WalletError> {
    let before = wallet.map_or(Money::new(0, money.currency), |wallet| wallet.balance(money.currency));
    before.plus(money).ok().filter(|after| after.amount <= MAX_BALANCE).ok_or(WalletError::TooMuch)
}

/// Returns the balance in the money's currency after the money was taken from a wallet.
///
/// # Errors
/// [`WalletError`] when the condition of [`transfer`] or [`debit`] would fail.
pub fn minus(wallet: Option<&Wallet>, money: Money) -> Result<Money, WalletError> {
    let before = wallet.ok_or(WalletError::Insufficient)?.balance(money.currency);
    let after = before.amount.checked_sub(money.amount).filter(|after| *after >= 0);
    Ok(Money::new(after.ok_or(WalletError::Insufficient)?, money.currency))
}

/// The payer or the receiver of a movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The customer who pays.
    From,
    /// The customer who receives the money.
    To,
}

/// An action of a wallet transaction, which labels its refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalletAction {
    /// The wallet. For the stored item, [`convert`], then [`minus`] or [`plus`] return the reason.
    /// For a deposit, the wallet may also have changed since it was read.
    Wallet(Side),
    /// The customer does not exist.
    Customer(Side),
    /// An entry with the same id already exists.
    Entry,
    /// The idempotency record: an earlier attempt of the request has a response already.
    Idempotency,
}

patterns! {
    READ {
        id: "wallet.read",
        purpose: "Read a balance",
        request: BatchGetItem,
        key: "PK = CUSTOMER#<id>, SK = PROFILE; PK = WALLET#<id>, SK = WALLET",
        returns: "the customer, and the wallet if it was opened",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    EDIT {
        id: "wallet.edit",
        purpose: "Read a balance before a deposit",
        request: GetItem,
        key: "PK = WALLET#<id>, SK = WALLET",
        returns: "the wallet",
        consistency: Consistency::Strong("the deposit computes the new balance from it and is \
            conditional on it"),
        callers: "staff",
    }
    ENTRIES {
        id: "wallet.entries",
        purpose: "List the movements of a wallet",
        request: Query,
        key: "PK = WALLET#<id>, SK under ENTRY#, backward",
        returns: "the movements, newest first",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    DEPOSIT {
        id: "wallet.deposit",
        purpose: "Pay money into a wallet once",
        request: TransactWriteItems,
        key: "PK = WALLET#<id>, SK = WALLET and ENTRY#<entry>; PK = CUSTOMER#<id>, SK = PROFILE \
            (check); PK = IDEMPOTENCY#<caller>#<key>",
        requires: "the balance in the money's currency is unchanged; the customer exists; the \
            entry and the key are new",
        callers: "staff",
    }
    TRANSFER {
        id: "wallet.transfer",
        purpose: "Move money from one wallet to another once",
        request: TransactWriteItems,
        key: "PK = WALLET#<from> and WALLET#<to>, SK = WALLET and ENTRY#<entry>; PK = \
            CUSTOMER#<from> and CUSTOMER#<to>, SK = PROFILE (check); PK = \
            IDEMPOTENCY#<caller>#<key>",
        requires: "from: enough money of the currency; to: room for money of the currency; both \
            customers exist; the entries and the key are new",
        callers: "owner",
    }
    CONVERT {
        id: "wallet.convert",
        purpose: "Convert a wallet that an earlier version opened in another currency",
        request: UpdateItem,
        key: "PK = WALLET#<id>, SK = WALLET",
        requires: "the wallet's currency is not the shop's, and its amount is unchanged; SET \
            currency, amount, ADD <currency>",
        callers: "owner",
    }
}

/// Reads the profile, then the wallet.
///
/// # Errors
/// [`KeyError`].
pub fn read(customer: &CustomerId) -> Result<BatchGet<AnyEntity>, KeyError> {
    Ok(BatchGet::new(&READ, vec![customer::key(customer)?, key(customer)?]))
}

/// Reads a wallet with strong consistency, before a deposit.
///
/// # Errors
/// [`KeyError`].
pub fn read_for_update(customer: &CustomerId) -> Result<Get<Stored<Wallet>>, KeyError> {
    Ok(Get::new(&EDIT, key(customer)?))
}

/// Lists the movements of a wallet, newest first.
///
/// # Errors
/// [`KeyError`].
pub fn entries(customer: &CustomerId) -> Result<Query<Stored<WalletEntry>>, KeyError> {
    Ok(Query::new(&ENTRIES, partition(customer)?, Range::under("ENTRY")).descending())
}

/// Makes the shop's currency the one of `currency` and `amount`, in a wallet that an earlier
/// version opened in another currency. Returns [`None`] for any other wallet. The conversion
/// changes no balance, so it moves only `rev`. It fails if the wallet has changed since it was
/// read.
///
/// # Errors
/// [`EncodeError`].
pub fn convert(wallet: &Wallet) -> Result<Option<Single<()>>, EncodeError> {
    let Wallet { customer_id, currency, amount, others: _ } = wallet;
    if *currency == Currency::SHOP {
        return Ok(None);
    }
    let unchanged = in_currency(*currency)?.and(Condition::Is("amount", number(amount)));
    let change = Change::<Wallet>::copied()
        .set("currency", Currency::SHOP)?
        .set("amount", 0)?
        .add_named(currency.as_str(), *amount);
    Ok(Some(Single::new(&CONVERT, Guarded::update(key(customer_id)?, change, unchanged))))
}

/// Pays an entry's money into the wallet, on the condition that the balance in its currency is
/// still as it was `seen`. So the balance in the response ([`plus`]) is the stored balance right
/// after this deposit. `claim` is the idempotency record ([`crate::idempotency::claim`]).
///
/// # Errors
/// [`EncodeError`].
pub fn deposit(
    entry: &WalletEntry,
    seen: Option<&Stored<Wallet>>,
    claim: Guarded,
) -> Result<Transaction<WalletAction>, EncodeError> {
    let customer = &entry.customer_id;
    let unchanged = match seen {
        Some(wallet) => in_currency(Currency::SHOP)?.and(match wallet.amount_in(entry.currency) {
            Some(amount) => compared(entry.currency, Compare::Is(number(amount))),
            None => compared(entry.currency, Compare::Lacks),
        }),
        None => Condition::NotExists,
    };
    Ok(Transaction::new(&DEPOSIT)
        .action(WalletAction::Wallet(Side::To), Guarded::update(key(customer)?, receipt(entry)?, unchanged))
        .action(WalletAction::Entry, written(entry)?)
        .action(WalletAction::Customer(Side::To), exists(customer)?)
        .action(WalletAction::Idempotency, claim))
}

/// Moves money from one wallet to another, and opens the receiver's wallet if it is missing.
/// `claim` is the idempotency record ([`crate::idempotency::claim`]).
///
/// # Errors
/// [`EncodeError`].
pub fn transfer(transfer: &Transfer, claim: Guarded) -> Result<Transaction<WalletAction>, EncodeError> {
    let [paid, received] = transfer.entries();
    Ok(Transaction::new(&TRANSFER)
        .action(WalletAction::Wallet(Side::From), taken(&paid)?)
        .action(WalletAction::Wallet(Side::To), given(&received)?)
        .action(WalletAction::Entry, written(&paid)?)
        .action(WalletAction::Entry, written(&received)?)
        .action(WalletAction::Customer(Side::From), exists(&transfer.from)?)
        .action(WalletAction::Customer(Side::To), exists(&transfer.to)?)
        .action(WalletAction::Idempotency, claim))
}

/// Pays for an order. The returned actions belong to the caller's transaction. DynamoDB refuses
/// them if the wallet has too little money of this currency. The refusal has the label
/// [`WalletAction::Wallet`], and [`convert`], then [`minus`] explain it. `money` is at least 0, and
/// `id` is new.
///
/// # Errors
/// [`EncodeError`].
pub fn debit(
    customer: &CustomerId,
    money: Money,
    order: &OrderId,
    id: &EntryId,
    at: Instant,
) -> Result<Vec<(WalletAction, Guarded)>, EncodeError> {
    let entry = for_order(customer, Money::new(-money.amount, money.currency), order, EntryKind::Payment, id, at);
    Ok(vec![(WalletAction::Wallet(Side::From), taken(&entry)?), (WalletAction::Entry, written(&entry)?)])
}

/// Refunds a payment for an order. The returned actions belong to the caller's transaction.
/// DynamoDB refuses them if the wallet has no room for money of this currency. The refusal has the
/// label [`WalletAction::Wallet`], and [`convert`], then [`plus`] explain it. `money` is at least
/// 0, and `id` is new.
///
/// # Errors
/// [`EncodeError`].
pub fn credit(
    customer: &CustomerId,
    money: Money,
    order: &OrderId,
    id: &EntryId,
    at: Instant,
) -> Result<Vec<(WalletAction, Guarded)>, EncodeError> {
    let entry = for_order(customer, money, order, EntryKind::Refund, id, at);
    Ok(vec![(WalletAction::Wallet(Side::To), given(&entry)?), (WalletAction::Entry, written(&entry)?)])
}

fn for_order(
    customer: &CustomerId,
    Money { amount, currency }: Money,
    order: &OrderId,
    kind: EntryKind,
    id: &EntryId,
    at: Instant,
) -> WalletEntry {
    let (customer_id, id, order_id) = (customer.clone(), id.clone(), Some(order.clone()));
    WalletEntry { customer_id, id, amount, currency, kind, at, counterparty: None, order_id, note: None }
}

fn in_currency(currency: Currency) -> Result<Condition, EncodeError> {
    Ok(Condition::Is("currency", value(currency)?))
}

/// Returns the name of the attribute with the balance in a currency.
fn attribute(currency: Currency) -> String {
    if currency == Currency::SHOP { "amount".to_owned() } else { currency.to_string() }
}

fn compared(currency: Currency, compare: Compare) -> Condition {
    Condition::Named(attribute(currency), compare)
}

/// Takes the entry's amount from the wallet, on the condition that the wallet has enough money in
/// the same currency.
fn taken(entry: &WalletEntry) -> Result<Guarded, EncodeError> {
    let enough = in_currency(Currency::SHOP)?.and(compared(entry.currency, Compare::AtLeast(number(-entry.amount))));
    let change = Change::<Wallet>::visible(entry.at).add_named(&attribute(entry.currency), entry.amount);
    Ok(Guarded::update(key(&entry.customer_id)?, change, enough))
}

/// Gives the entry's amount to the wallet, on the condition that the wallet has room for it or is
/// missing.
fn given(entry: &WalletEntry) -> Result<Guarded, EncodeError> {
    let room = compared(entry.currency, Compare::Below(number(MAX_BALANCE - entry.amount + 1)));
    let room = if entry.currency == Currency::SHOP { room } else { compared(entry.currency, Compare::Lacks).or(room) };
    let fits = Condition::NotExists.or(in_currency(Currency::SHOP)?.and(room));
    Ok(Guarded::update(key(&entry.customer_id)?, receipt(entry)?, fits))
}

/// Adds the entry's amount to the wallet, and creates the wallet if it is missing.
fn receipt(entry: &WalletEntry) -> Result<Change<Wallet>, EncodeError> {
    let change = Change::<Wallet>::visible(entry.at)
        .or_create(&entry.id.born(), entry.at)
        .set("customer_id", &entry.customer_id)?
        .set("currency", Currency::SHOP)?
        .add_named(&attribute(entry.currency), entry.amount);
    // Every wallet has an amount in the shop's currency.
    Ok(if entry.currency == Currency::SHOP { change } else { change.add("amount", 0) })
}

fn written(entry: &WalletEntry) -> Result<Guarded, EncodeError> {
    Guarded::put(&Stored::new(entry.clone(), entry.id.born(), entry.at), Condition::NotExists)
}

fn exists(customer: &CustomerId) -> Result<Guarded, EncodeError> {
    Ok(customer::check(customer)?)
}
