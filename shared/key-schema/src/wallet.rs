//! Wallets: what a customer has with the shop, and every movement of it.
//!
//! A wallet is one item with its balance; beside it lies an entry for each movement. Both are written in one transaction, and the balance is added
//! to rather than computed from one that was read: whatever goes on at the same time, the entries of a wallet come to its balance. A transfer gives
//! one wallet what it takes from another; its two entries have one id, which is the transfer's.
//!
//! # What the conditions hold
//!
//! - A wallet is opened by the first money that it gets, in the currency of that money, and keeps the currency for good.
//! - Money is taken only from a wallet of its currency that has as much: no balance is ever negative.
//! - Money is given only to a wallet of its currency that has room for it: no balance is ever above [`MAX_BALANCE`], far below where 64 bits end.
//! - Who pays in or transfers, and who receives, has a profile in the same transaction.
//!
//! The amounts that come in here are positive; [`EntryKind`] and side decide the sign that an entry shows.

use serde::{Deserialize, Serialize};

use crate::change::{Change, entity};
use crate::customer;
use crate::entity::AnyEntity;
use crate::expression::{Condition, number, value};
use crate::id::{CustomerId, EntryId, OrderId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::money::{Currency, Money};
use crate::pattern::{Consistency, patterns};
use crate::request::{BatchGet, Get, Guarded, Query, Range, Transaction};

/// The most that a wallet can hold, in minor units: below 2^53, so that every JSON reader has it exactly.
pub const MAX_BALANCE: i64 = 9_000_000_000_000_000;

entity! {
    /// What a customer has.
    Wallet = "Wallet" {
        keyed {
            /// Whose it is.
            customer_id: CustomerId,
            /// The currency of the first money that it got, and of all since.
            currency: Currency,
            /// The balance in minor units, 0 to [`MAX_BALANCE`]: what its entries come to.
            amount: i64,
        }
        free {}
    }
}

impl Entity for Wallet {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.customer_id)
    }
}

impl Wallet {
    /// What is in it.
    #[must_use]
    pub const fn balance(&self) -> Money {
        Money::new(self.amount, self.currency)
    }
}

/// Why money moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// It was paid in.
    Deposit,
    /// It went to another wallet, or came from one.
    Transfer,
    /// It paid for an order.
    Payment,
    /// An order that it had paid for was undone.
    Refund,
}

impl EntryKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Deposit, Self::Transfer, Self::Payment, Self::Refund];

    /// The name that clients see.
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
    /// One movement of a wallet. Nothing ever changes it.
    WalletEntry = "WalletEntry" {
        keyed {
            /// Whose wallet.
            customer_id: CustomerId,
            /// The movement; time-ordered. The two entries of a transfer share it.
            id: EntryId,
            /// What came in, or, below 0, what went out, in minor units.
            amount: i64,
            /// The wallet's currency.
            currency: Currency,
            /// Why.
            kind: EntryKind,
            /// When.
            at: Instant,
            /// The other side of a transfer.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            counterparty: Option<CustomerId>,
            /// The order that was paid for or refunded.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            order_id: Option<OrderId>,
            /// What was said about it.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            note: Option<String>,
        }
        free {}
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

/// Money that goes from one customer to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The transfer, and both its entries.
    pub id: EntryId,
    /// Who pays.
    pub from: CustomerId,
    /// Who gets it; not who pays.
    pub to: CustomerId,
    /// How much; more than nothing.
    pub money: Money,
    /// What is said about it.
    pub note: Option<String>,
    /// When.
    pub at: Instant,
}

impl Transfer {
    /// The entries of who pays and who gets it.
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

/// What stands against a movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WalletError {
    /// The wallet has less, or there is none yet.
    #[error("there is too little money in the wallet")]
    Insufficient,
    /// The wallet is in another currency.
    #[error("is not the currency of the wallet")]
    OtherCurrency,
    /// The wallet would hold more than [`MAX_BALANCE`].
    #[error("is more than the wallet has room for: it holds at most {MAX_BALANCE}")]
    TooMuch,
}

/// The balance after money was given to a wallet, which may not have been opened yet.
///
/// # Errors
/// What the condition of [`transfer`] or [`credit`] refuses.
pub fn plus(wallet: Option<&Wallet>, money: Money) -> Result<Money, WalletError> {
    let before = wallet.map_or(Money::new(0, money.currency), Wallet::balance);
    if before.currency != money.currency {
        return Err(WalletError::OtherCurrency);
    }
    before.plus(money).ok().filter(|after| after.amount <= MAX_BALANCE).ok_or(WalletError::TooMuch)
}

/// The balance after money was taken from a wallet.
///
/// # Errors
/// What the condition of [`transfer`] or [`debit`] refuses.
pub fn minus(wallet: Option<&Wallet>, money: Money) -> Result<Money, WalletError> {
    let before = wallet.ok_or(WalletError::Insufficient)?;
    if before.currency != money.currency {
        return Err(WalletError::OtherCurrency);
    }
    let after = before.amount.checked_sub(money.amount).filter(|after| *after >= 0);
    Ok(Money::new(after.ok_or(WalletError::Insufficient)?, money.currency))
}

/// Who pays, or who gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Who pays.
    From,
    /// Who gets it.
    To,
}

/// Which part of a movement was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The wallet: [`minus`] or [`plus`] says why, from the item as it was; or a deposit's is not as it was read.
    Wallet(Side),
    /// There is no such customer.
    Customer(Side),
    /// The entry: its id is taken.
    Entry,
    /// The idempotency record: the same request was answered before.
    Idempotency,
}

patterns! {
    READ = "wallet.read": BatchGetItem, "PK = CUSTOMER#<id>, SK = PROFILE; PK = WALLET#<id>, SK = WALLET" => "the customer, and the wallet if it was opened", Consistency::Eventual, "owner", "Read a balance", ["GET /v1/customers/{id}/wallet"];
    EDIT = "wallet.edit": GetItem, "PK = WALLET#<id>, SK = WALLET" => "the wallet", Consistency::Strong("the balance that a deposit answers is computed from it and conditional on it"), "staff", "Read a balance before paying in", ["POST /v1/customers/{id}/wallet/deposits"];
    ENTRIES = "wallet.entries": Query, "PK = WALLET#<id>, SK under ENTRY#, backward" => "the movements, newest first", Consistency::Eventual, "owner", "List the movements of a wallet", ["GET /v1/customers/{id}/wallet/entries"];
    DEPOSIT = "wallet.deposit": TransactWriteItems, "PK = WALLET#<id>, SK = WALLET and ENTRY#<entry>; PK = CUSTOMER#<id>, SK = PROFILE (check); PK = IDEMPOTENCY#<caller>#<key>" => "the wallet is as it was read, or still not there; the customer exists; the entry and the key are new", Consistency::Write, "staff", "Pay money into a wallet once", ["POST /v1/customers/{id}/wallet/deposits"];
    TRANSFER = "wallet.transfer": TransactWriteItems, "PK = WALLET#<from> and WALLET#<to>, SK = WALLET and ENTRY#<entry>; PK = CUSTOMER#<from> and CUSTOMER#<to>, SK = PROFILE (check); PK = IDEMPOTENCY#<caller>#<key>" => "from: currency = the money's, amount at least the money's; to: not there yet, or currency = the money's and amount below the limit less the money's; both customers exist; the entries and the key are new", Consistency::Write, "owner", "Move money from one wallet to another once", ["POST /v1/transfers"];
}

/// The profile, then the wallet.
///
/// # Errors
/// [`KeyError`].
pub fn read(customer: &CustomerId) -> Result<BatchGet<AnyEntity>, KeyError> {
    Ok(BatchGet::new(&READ, vec![customer::key(customer)?, key(customer)?]))
}

/// Reads a wallet strongly, before a deposit.
///
/// # Errors
/// [`KeyError`].
pub fn edit(customer: &CustomerId) -> Result<Get<Stored<Wallet>>, KeyError> {
    Ok(Get::new(&EDIT, key(customer)?))
}

/// The movements of a wallet, newest first.
///
/// # Errors
/// [`KeyError`].
pub fn entries(customer: &CustomerId) -> Result<Query<Stored<WalletEntry>>, KeyError> {
    Ok(Query::new(&ENTRIES, partition(customer)?, Range::under("ENTRY")).descending())
}

/// Pays an entry's money into the wallet, if that is as it was `seen`: only so is the balance that the caller answers, [`plus`], the one that the
/// table holds after this very deposit. `claim` is the idempotency record ([`crate::idempotency::claim`]).
///
/// # Errors
/// [`EncodeError`].
pub fn deposit(
    entry: &WalletEntry,
    seen: Option<&Stored<Wallet>>,
    claim: Guarded,
) -> Result<Transaction<Part>, EncodeError> {
    let customer = &entry.customer_id;
    let unchanged = match seen {
        Some(wallet) => in_currency(wallet.currency)?.and(Condition::Is("amount", number(wallet.amount))),
        None => Condition::NotExists,
    };
    Ok(Transaction::new(&DEPOSIT)
        .action(Part::Wallet(Side::To), Guarded::update(key(customer)?, receipt(entry)?, unchanged))
        .action(Part::Entry, written(entry)?)
        .action(Part::Customer(Side::To), exists(customer)?)
        .action(Part::Idempotency, claim))
}

/// Moves money from one wallet to the other, which is opened if need be. `claim` is the idempotency record ([`crate::idempotency::claim`]).
///
/// # Errors
/// [`EncodeError`].
pub fn transfer(transfer: &Transfer, claim: Guarded) -> Result<Transaction<Part>, EncodeError> {
    let [paid, received] = transfer.entries();
    Ok(Transaction::new(&TRANSFER)
        .action(Part::Wallet(Side::From), taken(&paid)?)
        .action(Part::Wallet(Side::To), given(&received)?)
        .action(Part::Entry, written(&paid)?)
        .action(Part::Entry, written(&received)?)
        .action(Part::Customer(Side::From), exists(&transfer.from)?)
        .action(Part::Customer(Side::To), exists(&transfer.to)?)
        .action(Part::Idempotency, claim))
}

/// Pays for an order: actions of the caller's transaction, which are refused when the wallet has too little or another currency
/// ([`Part::Wallet`], explained by [`minus`]). `money` is at least 0; `id` is new.
///
/// # Errors
/// [`EncodeError`].
pub fn debit(
    customer: &CustomerId,
    money: Money,
    order: &OrderId,
    id: &EntryId,
    at: Instant,
) -> Result<Vec<(Part, Guarded)>, EncodeError> {
    let entry = for_order(customer, Money::new(-money.amount, money.currency), order, EntryKind::Payment, id, at);
    Ok(vec![(Part::Wallet(Side::From), taken(&entry)?), (Part::Entry, written(&entry)?)])
}

/// Gives back what was paid for an order: actions of the caller's transaction, which are refused when the wallet has no room or another currency
/// ([`Part::Wallet`], explained by [`plus`]). `money` is at least 0; `id` is new.
///
/// # Errors
/// [`EncodeError`].
pub fn credit(
    customer: &CustomerId,
    money: Money,
    order: &OrderId,
    id: &EntryId,
    at: Instant,
) -> Result<Vec<(Part, Guarded)>, EncodeError> {
    let entry = for_order(customer, money, order, EntryKind::Refund, id, at);
    Ok(vec![(Part::Wallet(Side::To), given(&entry)?), (Part::Entry, written(&entry)?)])
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

/// What an entry says went out is taken, if it is there.
fn taken(entry: &WalletEntry) -> Result<Guarded, EncodeError> {
    let enough = in_currency(entry.currency)?.and(Condition::AtLeast("amount", number(-entry.amount)));
    let change = Change::<Wallet>::visible(entry.at).add("amount", entry.amount);
    Ok(Guarded::update(key(&entry.customer_id)?, change, enough))
}

/// What an entry says came in is given, if there is room for it.
fn given(entry: &WalletEntry) -> Result<Guarded, EncodeError> {
    let room = Condition::Below("amount", number(MAX_BALANCE - entry.amount + 1));
    let fits = Condition::NotExists.or(in_currency(entry.currency)?.and(room));
    Ok(Guarded::update(key(&entry.customer_id)?, receipt(entry)?, fits))
}

/// Adds what came in to the wallet, and opens it if it is not there.
fn receipt(entry: &WalletEntry) -> Result<Change<Wallet>, EncodeError> {
    Ok(Change::<Wallet>::visible(entry.at)
        .or_create(&entry.id.born(), entry.at)
        .set("customer_id", &entry.customer_id)?
        .set("currency", entry.currency)?
        .add("amount", entry.amount))
}

fn written(entry: &WalletEntry) -> Result<Guarded, EncodeError> {
    Guarded::put(&Stored::new(entry.clone(), entry.id.born(), entry.at), Condition::NotExists)
}

fn exists(customer: &CustomerId) -> Result<Guarded, EncodeError> {
    Ok(Guarded::check(customer::key(customer)?, Condition::Exists))
}
