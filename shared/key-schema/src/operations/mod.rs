//! Items for operation: settings, idempotency records, counters, metrics, mail and audit.

pub mod archive;
pub mod counter;
pub mod expiration;
pub mod heartbeat;
pub mod idempotency;
pub mod lists;
pub mod mail;
pub mod mark;
pub mod metric;
pub mod month;
pub mod recipient;
pub mod settings;
