//! The function's behaviour, through its routes, over a table that is created as the template says.

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
