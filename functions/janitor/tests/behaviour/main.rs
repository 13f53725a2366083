//! Tests of the janitor on orders that were abandoned at every point where work can stop.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod category;
mod claims;
mod erasures;
mod failures;
mod lapses;
mod objects;
mod orders;
mod support;
