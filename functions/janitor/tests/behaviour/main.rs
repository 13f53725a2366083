//! What the janitor makes of orders that were left at every place where work on them can break off.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod category;
mod claims;
mod erasures;
mod failures;
mod objects;
mod orders;
mod support;
