//! Tests of the function through its routes, over a table that is created from the template.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod concurrency;
mod faults;
mod following;
mod graph;
mod likes;
mod paging;
mod registry;
mod town;
