//! Access patterns: every request that Bodega makes to its table, declared once.
//! [`crate::registry`] lists them all.
//!
//! Only functions of this crate can make a request ([`crate::request`]), and each function names
//! its [`Pattern`]. So no request exists outside the registry. The table in
//! `docs/access-patterns.md`, the NoSQL Workbench model and the cost snapshot are generated from
//! the registry, so they are complete.

use crate::key::Index;

/// The operation of DynamoDB that a pattern uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Reads one item by key.
    GetItem,
    /// Reads up to 100 items by key.
    BatchGetItem,
    /// Reads a range of one item collection.
    Query,
    /// Reads the same range from every shard of a list and merges the shards in order.
    ShardedQuery,
    /// Writes one whole item.
    PutItem,
    /// Changes some attributes of one item.
    UpdateItem,
    /// Deletes one item.
    DeleteItem,
    /// Makes up to 100 writes, all or none.
    TransactWriteItems,
    /// Makes up to 25 unconditional writes, each independent of the others.
    BatchWriteItem,
}

impl Operation {
    /// Returns the IAM actions that the operation needs. A condition check in a transaction needs
    /// its own IAM action.
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

/// The consistency of a read, and the reason for a strong one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// Eventual consistency, the default: half the price, and usually a few milliseconds behind.
    Eventual,
    /// Strong consistency: sees every acknowledged write. The reason tells why it is worth twice
    /// the price.
    Strong(&'static str),
    /// The pattern is a write, which has no consistency.
    Write,
}

/// One access pattern.
#[derive(Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The id, `<area>.<what>`. It is stable, because logs, metrics and the cost snapshot use it.
    pub id: &'static str,
    /// The purpose, in a few words.
    pub purpose: &'static str,
    /// The operation of DynamoDB.
    pub operation: Operation,
    /// The index, or [`None`] for the table itself.
    pub index: Option<Index>,
    /// The key condition, in key text.
    pub key: &'static str,
    /// The result of a read, or the condition of a write.
    pub detail: &'static str,
    /// The consistency of the read.
    pub consistency: Consistency,
    /// The callers that may cause it: `any`, `owner`, `signed in`, `staff` or `system`.
    pub who: &'static str,
    /// The routes or consumers that use it.
    pub routes: &'static [&'static str],
}

/// Declares the patterns of a module and their list.
macro_rules! patterns {
    ($(
        $name:ident = $id:literal: $operation:ident $(on $index:ident)?, $key:literal => $detail:literal,
        $consistency:expr, $who:literal, $purpose:literal, [$($route:literal),* $(,)?];
    )*) => {
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
