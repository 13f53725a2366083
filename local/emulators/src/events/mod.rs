//! The event bus on one machine: EventBridge's `PutEvents`.
//!
//! [`EventBusServer`] takes what EventBridge takes, refuses entries in its words, keeps what it took, and hands it on to those who
//! subscribed, who do what rules and targets do there. The handlers are our own: `winterbaume-eventbridge` 0.2 answers `PutEvents` with ids and
//! forgets the events.
//!
//! Stricter than EventBridge on purpose: there are only the buses that it is started with, and the size of an entry counts against the limit of
//! the request that AWS documents for every region (256 KB).
//!
//! # Faults
//!
//! [`EventBusServer::faults`] makes requests fail: `throttle` answers 400 `ThrottlingException`, `error` 500 `InternalException`, `reset`
//! closes the connection, all three with nothing done; `slow` answers late, `timeout` takes the events and never answers.
//! `partial` fails some entries of a request with `ThrottlingException` and takes the others. `conflict` has no meaning here.

mod entry;
mod server;

pub use entry::Published;
pub use server::{Accept, EventBusServer};
