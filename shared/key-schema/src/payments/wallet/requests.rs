use item_model::prelude::*;

use super::{
    DEPOSIT, EDIT, ENTRIES, EntryKind, MAX_BALANCE, READ, Side, TRANSFER, Transfer, Wallet, WalletAction, WalletEntry,
    key, partition,
};
use crate::change::Change;
use crate::customer::{self, Customer};
use crate::expression::{Compare, Condition, number};
use crate::id::{CustomerId, EntryId, OrderId};
use crate::instant::Instant;
use crate::item::{EncodeError, Stored};
use crate::key::KeyError;
use crate::money::{Currency, Money};
use crate::quota::{self, Quota};
use crate::request::{BatchGet, Get, Guarded, Query, Range, Transaction};

one_of! {
    pub enum WalletItem { Customer Wallet }
}

/// Reads the profile, then the wallet.
pub fn read(customer: &CustomerId) -> Result<BatchGet<WalletItem>, KeyError> {
    Ok(BatchGet::new(&READ, vec![customer::key(customer)?, key(customer)?]))
}

/// Reads a wallet with strong consistency, before a deposit.
pub fn read_for_update(customer: &CustomerId) -> Result<Get<Stored<Wallet>>, KeyError> {
    Ok(Get::new(&EDIT, key(customer)?))
}

/// Lists the movements of a wallet, newest first.
pub fn entries(customer: &CustomerId) -> Result<Query<Stored<WalletEntry>>, KeyError> {
    Ok(Query::new(&ENTRIES, partition(customer)?, Range::under("ENTRY")).descending())
}

/// Pays an entry's money into the wallet. DynamoDB refuses the write if the balance in the entry's
/// currency has changed since the wallet, `seen`, was read. So the balance in the response
/// ([`plus`]) is the stored balance right after this deposit. `claim` writes the idempotency record
/// ([`crate::idempotency::claim`]).
pub fn deposit(
    entry: &WalletEntry,
    seen: Option<&Stored<Wallet>>,
    claim: Guarded,
) -> Result<Transaction<WalletAction>, EncodeError> {
    let customer = &entry.customer_id;
    let unchanged = match seen {
        Some(wallet) => match wallet.balances.get(&entry.currency) {
            Some(amount) => compared(entry.currency, Compare::Is(number(amount))),
            None => compared(entry.currency, Compare::Lacks).and(Condition::Exists),
        },
        None => Condition::NotExists,
    };
    Ok(Transaction::new(&DEPOSIT)
        .action(WalletAction::Wallet(Side::To), Guarded::update(key(customer)?, receipt(entry)?, unchanged))
        .action(WalletAction::Entry, written(entry)?)
        .action(WalletAction::Customer(Side::To), exists(customer)?)
        .action(WalletAction::Idempotency, claim))
}

/// Moves money from one wallet to another, and opens the receiver's wallet if it is missing.
/// `claim` writes the idempotency record ([`crate::idempotency::claim`]). If `counted` is set, the
/// transfer counts toward the payer's quota.
pub fn transfer(transfer: &Transfer, claim: Guarded, counted: bool) -> Result<Transaction<WalletAction>, EncodeError> {
    let [paid, received] = transfer.entries();
    let quota = counted.then(|| quota::count(&transfer.from, Quota::Transfers, transfer.at)).transpose()?;
    Ok(Transaction::new(&TRANSFER)
        .action(WalletAction::Wallet(Side::From), taken(&paid)?)
        .action(WalletAction::Wallet(Side::To), given(&received)?)
        .action(WalletAction::Entry, written(&paid)?)
        .action(WalletAction::Entry, written(&received)?)
        .action(WalletAction::Customer(Side::From), exists(&transfer.from)?)
        .action(WalletAction::Customer(Side::To), exists(&transfer.to)?)
        .action(WalletAction::Idempotency, claim)
        .optional(WalletAction::Quota, quota))
}

/// Pays for an order. The caller adds the returned actions to its transaction. DynamoDB refuses
/// them if the wallet has too little money in the currency of `money`. The refusal has the label
/// [`WalletAction::Wallet`]. The caller finds the reason with [`minus`].
/// `money` must be at least 0, and `id` must be new.
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

/// Refunds a payment for an order. The caller adds the returned actions to its transaction.
/// DynamoDB refuses them if the balance in the currency of `money` would exceed [`MAX_BALANCE`].
/// The refusal has the label [`WalletAction::Wallet`]. The caller finds the reason with [`plus`].
/// `money` must be at least 0, and `id` must be new.
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

fn compared(currency: Currency, compare: Compare) -> Condition {
    Condition::Named(currency.to_string(), compare)
}

/// Takes the entry's amount from the wallet, on the condition that the wallet has enough money in
/// the same currency.
fn taken(entry: &WalletEntry) -> Result<Guarded, EncodeError> {
    let enough = compared(entry.currency, Compare::AtLeast(number(-entry.amount)));
    let change = Change::<Wallet>::visible(entry.at).add_named(entry.currency.as_str(), entry.amount);
    Ok(Guarded::update(key(&entry.customer_id)?, change, enough))
}

/// Gives the entry's amount to the wallet, and creates the wallet if it is missing. The condition
/// is that the balance stays within [`MAX_BALANCE`].
fn given(entry: &WalletEntry) -> Result<Guarded, EncodeError> {
    let room = compared(entry.currency, Compare::Below(number(MAX_BALANCE - entry.amount + 1)));
    let fits = compared(entry.currency, Compare::Lacks).or(room);
    Ok(Guarded::update(key(&entry.customer_id)?, receipt(entry)?, fits))
}

/// Adds the entry's amount to the wallet, and creates the wallet if it is missing.
fn receipt(entry: &WalletEntry) -> Result<Change<Wallet>, EncodeError> {
    Ok(Change::<Wallet>::visible(entry.at)
        .or_create(&entry.id.born(), entry.at)
        .set("customer_id", &entry.customer_id)?
        .add_named(entry.currency.as_str(), entry.amount))
}

fn written(entry: &WalletEntry) -> Result<Guarded, EncodeError> {
    Guarded::put(&Stored::new(entry.clone(), entry.id.born(), entry.at), Condition::NotExists)
}

fn exists(customer: &CustomerId) -> Result<Guarded, EncodeError> {
    Ok(customer::check(customer)?)
}
