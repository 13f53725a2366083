//! Tests of the requests that this crate sends to a table, and of the cost of every access pattern.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod causes;
mod cost;
mod data;
mod executor;
mod growing;
mod periods;
mod reach;
mod real;
mod security;
mod techniques;
