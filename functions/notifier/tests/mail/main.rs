//! Tests of the notifier on an embedded table, with a scripted mail service.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod crashes;
mod guests;
mod limits;
mod messages;
mod ses;
mod support;
