//! The table on one machine: an embedded DynamoDB, and faults in front of any DynamoDB.
//!
//! [`EmbeddedTable`] runs `dynoxide` (DynamoDB over SQLite) inside this process and serves it over
//! HTTP, so that functions reach it as they reach AWS. [`FaultProxy`] stands between the functions
//! and a table, embedded or not, and makes happen what no emulator does by itself: throttling,
//! conflicts, unprocessed items, lost answers.
//!
//! # Faults
//!
//! Only the operations on items fail, never those on tables or streams. `throttle` answers 400 `ProvisionedThroughputExceededException`,
//! `error` 500 `InternalServerError`, `reset` closes the connection, all three with nothing done; `slow` answers late, `timeout` does what
//! was asked and never answers. `partial` does half of a `BatchWriteItem` or `BatchGetItem` of two entries or more and returns the rest as
//! `UnprocessedItems` or `UnprocessedKeys`. `conflict` answers a transaction with `TransactionCanceledException` and one reason
//! `TransactionConflict`, a single write with `TransactionConflictException`.
//!
//! Beside these, which strike at random, transactions can be made to take time ([`FaultProxy::let_transactions_take`]): then those conflict that meet.

mod embedded;
mod error;
mod expiry;
mod files;
mod proxy;
mod stream_store;

pub use crate::faults::{Fault, FaultCount, FaultKind, Faults};
pub use embedded::EmbeddedTable;
pub use error::Error;
pub use proxy::{FaultProxy, TransactionTime};
