//! The tests of the model: the order of key text, ids, instants, shards and cursors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod cursors;
mod encoding;
mod instants;
mod keys;
mod support;
mod vocabulary;
