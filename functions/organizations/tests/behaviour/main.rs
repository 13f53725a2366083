//! Tests of the function through its routes, over a table that is created from the template.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod access;
mod club;
mod concurrency;
mod ghosts;
mod invitations;
mod lists;
mod members;
mod organizations;
mod registry;
mod room;
mod teams;
