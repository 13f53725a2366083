//! Emulates EventBridge's `PutEvents`.
//!
//! [`EventBusServer`] accepts the entries that EventBridge accepts, and rejects others with
//! EventBridge's messages. It keeps accepted events and passes them to its subscribers, which
//! represent rules and targets. The crate `winterbaume-eventbridge` 0.2 is no alternative, because
//! it drops the events.
//!
//! Two rules are stricter than EventBridge's on purpose. The emulator has only the buses that the
//! caller names at the start. A request must be smaller than 256 KB, the limit that AWS documents
//! for all regions, even if a region accepts more.
//!
//! # Faults
//!
//! [`EventBusServer::faults`] makes requests fail. These faults prevent the processing:
//! - `throttle` returns 400 `ThrottlingException`.
//! - `error` returns 500 `InternalException`.
//! - `reset` closes the connection.
//!
//! Despite these faults the events are accepted:
//! - `slow` delays the response.
//! - `timeout` never responds.
//! - `truncate` closes the connection in the middle of the response.
//!
//! `partial` rejects some entries of a request with `ThrottlingException` and accepts the others.
//! `conflict` has no effect.

mod entry;
mod server;

pub use entry::Published;
pub use server::{Accept, EventBusServer, ServiceEvents};
