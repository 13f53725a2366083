//! Tests of the courier on an embedded table, with an endpoint on this machine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod deliveries;
mod shop;
