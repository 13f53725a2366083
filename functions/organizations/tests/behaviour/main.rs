//! The function's behaviour, through its routes, over a table that is created as the template says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod access;
mod club;
mod concurrency;
mod ghosts;
mod lists;
mod members;
mod organizations;
mod registry;
mod teams;
