//! Tests of the cashier on an embedded table, with the local payment provider.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod messages;
mod rounds;
mod support;
