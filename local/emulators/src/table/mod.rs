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
//! In addition, [`FaultProxy::limit`] puts a model of DynamoDB's limits in front of the table:
//! conflicts of overlapping transactions, and the throughput of partitions ([`Model`]).
//! [`LimitedTable`] is the same without sockets, for simulations.

mod embedded;
mod expiry;
mod files;
mod limited;
mod limits;
mod proxy;
mod stream_store;

use std::io;
use std::path::PathBuf;

pub use crate::faults::{Fault, FaultCount, FaultKind, Faults};
pub use embedded::EmbeddedTable;
pub use files::look_at;
pub use limited::LimitedTable;
pub use limits::{BURST, Counts, Model, SPLIT_AFTER, Schema, Throughput, Times};
pub use proxy::{Call, CallBody, Calls, FaultProxy};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder of the database cannot be created or read.
    #[error("cannot use the folder {}: {source}", path.display())]
    Folder {
        /// Path of the folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// Another process uses this data folder.
    #[error("the data folder {} is in use by another running system", .0.display())]
    InUse(PathBuf),
    /// The file of the database has another format.
    #[error("{} is not a table", .0.display())]
    NoTable(PathBuf),
    /// The DynamoDB engine failed to open the database, to import items or to sweep.
    #[error("the embedded table failed: {0}")]
    Engine(#[from] dynoxide::DynoxideError),
    /// An imported value is not DynamoDB's JSON.
    #[error("not an item in DynamoDB's JSON: {0}")]
    Item(#[source] serde_json::Error),
    /// The connection that this crate opens to the engine's database failed.
    #[error("the database of the embedded table failed: {0}")]
    Database(#[from] rusqlite::Error),
    /// Expired items are left after the second sweep, or the server ended before that sweep.
    #[error("expired items are left: the table grows faster than it can be swept")]
    Unswept,
    /// The engine stores its stream records in a way that this crate does not know.
    #[error(
        "the embedded table keeps its stream in an unknown way (no column `{missing}` in \
         `_stream_records`): this crate is written for dynoxide-rs 3.2.0"
    )]
    UnknownSchema {
        /// Name of the missing column.
        missing: &'static str,
    },
    /// The text is not a sequence number of this table's stream.
    #[error("`{0}` is no sequence number of this stream")]
    SequenceNumber(String),
    /// No port could be opened on the loopback interface, or no thread could be started.
    #[error("cannot serve: {0}")]
    Serve(#[from] io::Error),
    /// The address of the table behind the proxy is not an `http://` URL.
    #[error("`{0}` is no http:// address of a table")]
    Upstream(String),
}
