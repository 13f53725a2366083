//! The table on one machine: an embedded DynamoDB, and faults in front of any DynamoDB.
//!
//! [`EmbeddedTable`] runs `dynoxide` (DynamoDB over SQLite) inside this process and serves it over
//! HTTP, so that functions reach it as they reach AWS. [`FaultProxy`] stands between the functions
//! and a table, embedded or not, and makes happen what no emulator does by itself: throttling,
//! conflicts, unprocessed items, lost answers.

mod embedded;
mod error;
mod faults;
mod files;
mod proxy;
mod stream_store;

pub use embedded::EmbeddedTable;
pub use error::Error;
pub use faults::{Fault, FaultCount, FaultKind, Faults};
pub use proxy::FaultProxy;
