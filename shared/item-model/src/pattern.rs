//! Access patterns: every request to the table, declared once.
//!
//! Only a schema crate can make a request ([`crate::request`]), and each request names its
//! [`Pattern`]. So every request belongs to a pattern in the registry of that crate, and documents
//! that are generated from the registry are complete. Lambda functions declare the patterns that
//! each of their routes uses.

use crate::key::Index;

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
    DeleteItem,
    /// Makes up to 100 writes, all or none.
    TransactWriteItems,
    /// Makes up to 25 unconditional writes, each independent of the others.
    BatchWriteItem,
}

impl Operation {
    /// Returns the IAM actions that the operation needs. Those of a transaction include the action
    /// for condition checks.
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

/// The consistency of a read, and the reason for a strong read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// Eventual consistency, the default. It costs half as much as a strong read, and the data is
    /// usually a few milliseconds old.
    Eventual,
    /// Strong consistency: the read sees every acknowledged write. The text is the reason why this
    /// is worth twice the price.
    Strong(&'static str),
    /// The pattern is a write, which has no consistency.
    Write,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The id, `<area>.<what>`. It is stable, because logs, metrics and the cost snapshot use it.
    pub id: &'static str,
    /// The purpose, in a few words.
    pub purpose: &'static str,
    pub operation: Operation,
    /// The index, or [`None`] for the table itself.
    pub index: Option<Index>,
    /// The key condition, with placeholders such as `<author>`.
    pub key: &'static str,
    /// For a read, the result. For a write, its condition.
    pub detail: &'static str,
    pub consistency: Consistency,
    /// The callers that may cause such a request: `any`, `owner`, `signed in`, `staff` or `system`.
    pub callers: &'static str,
}

/// Declares the patterns of a module, and the list of these patterns. A read has `returns` and
/// `consistency`, and a write has `requires`.
#[macro_export]
macro_rules! patterns {
    ($($name:ident {
        id: $id:literal,
        purpose: $purpose:literal,
        request: $operation:ident $(on $index:path)?,
        key: $key:literal,
        $kind:ident: $detail:literal,
        $(consistency: $consistency:expr,)?
        callers: $callers:literal,
    })*) => {
        $(
            #[doc = $purpose]
            pub const $name: $crate::pattern::Pattern = $crate::pattern::Pattern {
                id: $id,
                purpose: $purpose,
                operation: $crate::pattern::Operation::$operation,
                index: $crate::patterns!(@index $($index)?),
                key: $key,
                detail: $detail,
                consistency: $crate::patterns!(@$kind $($consistency)?),
                callers: $callers,
            };
        )*

        pub static PATTERNS: &[&$crate::pattern::Pattern] = &[$(&$name),*];
    };
    (@index) => { None };
    (@index $index:path) => { Some($index) };
    (@returns $consistency:expr) => { $consistency };
    (@requires) => { $crate::pattern::Consistency::Write };
}
