//! The function's behaviour, through its routes, over a table that is created as the template says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod access;
mod callers;
mod concurrency;
mod faults;
mod following;
mod graph;
mod likes;
mod paging;
mod registry;
mod town;
