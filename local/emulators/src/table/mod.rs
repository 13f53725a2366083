//! Emulates the table: an embedded DynamoDB, and faults in front of any DynamoDB.
//!
//! [`EmbeddedTable`] runs `dynoxide` (DynamoDB over SQLite) in this process and serves it over
//! HTTP, so that functions use it as they use AWS. [`FaultProxy`] is a proxy between the functions
//! and a table, embedded or not. It injects failures that no emulator has: throttling, conflicts,
//! unprocessed items and lost responses.
//!
//! # Faults
//!
//! Only operations on items fail, never those on tables or streams. With these faults the request
//! is not processed:
//! - `throttle` returns 400 `ProvisionedThroughputExceededException`.
//! - `error` returns 500 `InternalServerError`.
//! - `reset` closes the connection.
//! - `conflict` returns `TransactionCanceledException` with one reason `TransactionConflict` to a
//!   transaction, and `TransactionConflictException` to a single write.
//!
//! With these faults the request is processed:
//! - `slow` delays the response.
//! - `timeout` never responds.
//! - `truncate` closes the connection in the middle of the response.
//!
//! `partial` processes half of a `BatchWriteItem` or `BatchGetItem` of at least two entries. It
//! returns the rest as `UnprocessedItems` or `UnprocessedKeys`.
//!
//! Besides these random faults, transactions can take time ([`FaultProxy::let_transactions_take`]).
//! Then overlapping transactions and writes conflict.

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
