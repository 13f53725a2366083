//! Tests of the function that splits throttled counters.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod closed_loop;
mod failures;
mod reports;
mod rounds;
mod watch;
