//! Access patterns: every way in which Bodega reaches its table, written down once ([`crate::registry`] lists them all).
//!
//! A request ([`crate::request`]) can only be made by a function of this crate, and each such function names its
//! [`Pattern`]. So what is not in the registry cannot be asked, and the table in `docs/access-patterns.md`, the NoSQL
//! Workbench model and the cost snapshot are complete because they are generated from it.

use crate::key::Index;

/// What is asked of DynamoDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// One item by key.
    GetItem,
    /// Up to 100 items by key.
    BatchGetItem,
    /// A range of one item collection.
    Query,
    /// The same range of every shard of a list, merged in order.
    ShardedQuery,
    /// One whole item.
    PutItem,
    /// Some attributes of one item.
    UpdateItem,
    /// One item's removal.
    DeleteItem,
    /// Up to 100 writes, all or none.
    TransactWriteItems,
    /// Up to 25 unconditional writes, each on its own.
    BatchWriteItem,
}

impl Operation {
    /// The IAM actions that it needs. A condition check inside a transaction is an action of its own.
    #[must_use]
    pub const fn actions(self) -> &'static [&'static str] {
        match self {
            Self::GetItem => &["dynamodb:GetItem"],
            Self::BatchGetItem => &["dynamodb:BatchGetItem"],
            Self::Query | Self::ShardedQuery => &["dynamodb:Query"],
            Self::PutItem => &["dynamodb:PutItem"],
            Self::UpdateItem => &["dynamodb:UpdateItem"],
            Self::DeleteItem => &["dynamodb:DeleteItem"],
            Self::TransactWriteItems => {
                &["dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:ConditionCheckItem"]
            }
            Self::BatchWriteItem => &["dynamodb:BatchWriteItem"],
        }
    }
}

/// How fresh a read is, and why it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// The default: half the price, usually a few milliseconds behind.
    Eventual,
    /// Sees every acknowledged write; the reason says why that is worth the double price.
    Strong(&'static str),
    /// Writes have none.
    Write,
}

/// One access pattern.
#[derive(Debug, PartialEq, Eq)]
pub struct Pattern {
    /// `<area>.<what>`, stable: logs, metrics and the cost snapshot use it.
    pub id: &'static str,
    /// What it does, in a few words.
    pub purpose: &'static str,
    /// The operation.
    pub operation: Operation,
    /// The index, or the table itself.
    pub index: Option<Index>,
    /// The key condition, in key text.
    pub key: &'static str,
    /// What comes back, or what must hold for a write.
    pub detail: &'static str,
    /// How fresh.
    pub consistency: Consistency,
    /// Who may cause it: `any`, `owner`, `signed in`, `staff` or `system`.
    pub who: &'static str,
    /// The routes or consumers that use it.
    pub routes: &'static [&'static str],
}

/// Declares the patterns of a module and their list.
macro_rules! patterns {
    ($($name:ident = $id:literal: $operation:ident $(on $index:ident)?, $key:literal => $detail:literal, $consistency:expr, $who:literal, $purpose:literal, [$($route:literal),* $(,)?];)*) => {
        $(
            #[doc = $purpose]
            pub static $name: $crate::pattern::Pattern = $crate::pattern::Pattern {
                id: $id,
                purpose: $purpose,
                operation: $crate::pattern::Operation::$operation,
                index: patterns!(@index $($index)?),
                key: $key,
                detail: $detail,
                consistency: $consistency,
                who: $who,
                routes: &[$($route),*],
            };
        )*

        /// Every pattern of this module.
        pub static PATTERNS: &[&$crate::pattern::Pattern] = &[$(&$name),*];
    };
    (@index) => { None };
    (@index $index:ident) => { Some($crate::key::Index::$index) };
}
pub(crate) use patterns;
