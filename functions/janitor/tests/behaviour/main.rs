//! Tests of the janitor: abandoned and unpaid orders, moved categories, erased customers and unused
//! objects.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod category;
mod erasures;
mod failures;
mod lapses;
mod objects;
mod orders;
mod removals;
mod support;
