//! Emulates EventBridge's `PutEvents`.
//!
//! [`EventBusServer`] accepts the entries that EventBridge accepts, and rejects others in its
//! words. It keeps accepted events and passes them to its subscribers, which act as rules and
//! targets. The module replaces `winterbaume-eventbridge` 0.2, which answers `PutEvents` with ids
//! and drops the events.
//!
//! Two rules are stricter than EventBridge's on purpose. Only the buses given at the start exist.
//! The size of an entry counts against the request limit that AWS documents for every region (256
//! KB).
//!
//! # Faults
//!
//! [`EventBusServer::faults`] makes requests fail. With these faults nothing is done:
//! - `throttle` returns 400 `ThrottlingException`.
//! - `error` returns 500 `InternalException`.
//! - `reset` closes the connection.
//!
//! With these faults the events are accepted:
//! - `slow` delays the response.
//! - `timeout` never responds.
//! - `truncate` closes the connection in the middle of the response.
//!
//! `partial` fails some entries of a request with `ThrottlingException` and accepts the others.
//! `conflict` has no meaning here.

mod entry;
mod server;

pub use entry::Published;
pub use server::{Accept, EventBusServer, ServiceEvents};
