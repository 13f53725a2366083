//! Tests the emulated services with requests of their protocols or with Bodega's clients.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod events;
mod mail;
mod objects;
mod search;
