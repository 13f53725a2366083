//! Wallets: a customer's balances, one in each currency, and every movement that changes them.
//!
//! A wallet is one item with its balances, and each movement is an entry in the same partition. One
//! transaction writes both. It adds to the stored balance, and never writes a balance that was
//! computed from a read. So concurrent movements are safe, and the sum of a wallet's entries in a
//! currency always equals its balance in that currency. A transfer gives one wallet the amount that
//! it takes from another wallet. Its two entries share the id of the transfer.
//!
//! Each balance is an attribute with the currency's code as its name, because DynamoDB adds only to
//! top-level attributes. A [`Currency`] is a code that ISO 4217 lists. So transfers from other
//! customers cannot make the item too large. An item with every currency has less than 4 KB.
//!
//! # Guarantees of the conditions
//!
//! - A movement in one currency neither depends on nor changes the balance in another currency.
//! - An amount is taken only from a balance that is at least as large. So no balance is ever
//!   negative.
//! - An amount is added to a balance only if the sum is at most [`MAX_BALANCE`], which is far below
//!   the limit of 64 bits.
//! - A transfer also checks that both customers have a profile, and a deposit checks that its
//!   customer has one.

mod patterns;
mod requests;

use std::collections::BTreeMap;
use std::fmt;

use item_model::prelude::*;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::id::{CustomerId, EntryId, OrderId};
use crate::instant::Instant;
use crate::item::Entity;
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::money::{Currency, Money};

pub use patterns::*;
pub use requests::*;

/// The largest balance in one currency, in minor units. It is below 2^53, so that every JSON reader
/// reads it exactly.
pub const MAX_BALANCE: i64 = 9_000_000_000_000_000;

entity! {
    Wallet = "Wallet" {
        fixed {
            customer_id: CustomerId,
            /// The balances in minor units, 0 to [`MAX_BALANCE`]. Each equals the sum of the entries
            /// in its currency.
            #[serde(flatten, deserialize_with = "balances")]
            balances: BTreeMap<Currency, i64>,
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
    #[must_use]
    pub fn balance(&self, currency: Currency) -> Money {
        Money::new(self.balances.get(&currency).copied().unwrap_or(0), currency)
    }

    /// Returns the balances, in the order of the currencies' codes.
    #[must_use]
    pub fn balances(&self) -> Vec<Money> {
        self.balances.iter().map(|(currency, amount)| Money::new(*amount, *currency)).collect()
    }
}

/// Reads the attributes whose names are codes of currencies.
fn balances<'de, D: Deserializer<'de>>(item: D) -> Result<BTreeMap<Currency, i64>, D::Error> {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// Staff paid money in.
    Deposit,
    /// The money was sent to another wallet, or received from another wallet.
    Transfer,
    /// The money paid for an order.
    Payment,
    /// The money was refunded for an order.
    Refund,
}

impl EntryKind {
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
            customer_id: CustomerId,
            /// The id of the movement, which is time-ordered. The two entries of a transfer share
            /// it.
            id: EntryId,
            /// The amount in minor units, negative for money that leaves the wallet.
            amount: i64,
            currency: Currency,
            kind: EntryKind,
            at: Instant,
            #[serde(skip_serializing_if = "Option::is_none", default)]
            counterparty: Option<CustomerId>,
            /// The order that was paid for or refunded.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            order_id: Option<OrderId>,
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    pub id: EntryId,
    pub from: CustomerId,
    /// The customer who receives the money, never the payer.
    pub to: CustomerId,
    /// The amount, above zero.
    pub money: Money,
    pub note: Option<String>,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WalletError {
    /// The wallet has too little money of the movement's currency, or does not exist yet.
    #[error("there is too little money in the wallet")]
    Insufficient,
    /// The wallet would hold more than [`MAX_BALANCE`] of the movement's currency.
    #[error("is too much: a wallet holds at most {MAX_BALANCE} of a currency")]
    TooMuch,
}

/// Returns the balance in the money's currency after the money is added to a wallet. A missing
/// wallet counts as empty.
///
/// # Errors
/// [`WalletError`] when the condition of [`transfer`] or [`credit`] would fail.
pub fn plus(wallet: Option<&Wallet>, money: Money) -> Result<Money, WalletError> {
    let before = wallet.map_or(Money::new(0, money.currency), |wallet| wallet.balance(money.currency));
    before.plus(money).ok().filter(|after| after.amount <= MAX_BALANCE).ok_or(WalletError::TooMuch)
}

/// Returns the balance in the money's currency after the money is subtracted from a wallet.
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

/// A refusal names the action whose condition failed. The variant says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalletAction {
    /// The wallet does not allow the movement. The caller finds the reason in the stored item, with
    /// [`minus`] or [`plus`]. For a deposit, the wallet may also have changed since it was read.
    Wallet(Side),
    /// The customer does not exist.
    Customer(Side),
    /// An entry with the same id already exists.
    Entry,
    /// The idempotency record: an earlier attempt of the request already has a response.
    Idempotency,
    /// The customer has used up the day's quota of transfers.
    Quota,
}
