//! Tests of ids, instants, shards and cursors, and of the order of keys.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod cursors;
mod encoding;
mod instants;
mod keys;
mod support;
mod vocabulary;
