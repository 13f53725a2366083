//! Tests of the queue of picking jobs on an embedded table.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod answers;
mod crashes;
mod stations;
mod support;
