//! Emulates the table: an embedded DynamoDB, and faults in front of any DynamoDB.
//!
//! [`EmbeddedTable`] runs `dynoxide` (DynamoDB over SQLite) in this process and serves it over
//! HTTP, so that functions call it like AWS. [`FaultProxy`] is a proxy between the functions and a
//! table, embedded or not. It injects failures that emulators lack: throttling, conflicts,
//! unprocessed items and lost responses.
//!
//! # Faults
//!
//! Only operations on items fail, never operations on tables or streams. These faults prevent the
//! processing:
//! - `throttle` returns 400 `ProvisionedThroughputExceededException`.
//! - `error` returns 500 `InternalServerError`.
//! - `reset` closes the connection.
//! - `conflict` returns `TransactionCanceledException` with one reason `TransactionConflict` to a
//!   transaction, and `TransactionConflictException` to a single write.
//!
//! Despite these faults the request is processed:
//! - `slow` delays the response.
//! - `timeout` never responds.
//! - `truncate` closes the connection in the middle of the response.
//!
//! `partial` processes half of a `BatchWriteItem` or `BatchGetItem` of at least two entries. It
//! returns the rest as `UnprocessedItems` or `UnprocessedKeys`.
//!
//! In addition, [`FaultProxy::let_transactions_take`] makes transactions take time, so that
//! overlapping transactions and writes conflict.

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
