//! Tests of the function through its routes, over a table that is created from the template.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod answers;
mod concurrency;
mod desk;
mod lists;
mod questions;
mod registry;
