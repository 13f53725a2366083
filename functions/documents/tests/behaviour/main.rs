//! Tests of the function through its routes, over a table that is created from the template.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod access;
mod concurrency;
mod deletion;
mod desk;
mod documents;
mod drafts;
mod editors;
mod ghosts;
mod history;
mod registry;
mod sections;
mod sizes;
