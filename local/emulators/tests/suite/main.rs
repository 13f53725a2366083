#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod events;
mod mail;
mod objects;
mod payments;
mod search;
