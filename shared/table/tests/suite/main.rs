//! The executor against a table, and what every access pattern costs there.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod causes;
mod cost;
mod data;
mod executor;
mod fuzzing;
mod reach;
mod security;
mod techniques;
