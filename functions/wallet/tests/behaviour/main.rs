//! Tests of the function through its routes, over a table that is created from the template.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod bank;
mod concurrency;
mod currencies;
mod deposits;
mod entries;
mod faults;
mod registry;
mod transfers;
