//! The tests of the schema: properties of the encodings, each entity's stored item, each request as it is rendered, and the documents
//! that are generated from them.
//!
//! One binary, so that the crate is linked once. `INSTA_UPDATE=always` rewrites the snapshots, `UPDATE_DOCS=1` the documents in `docs/`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod categories;
mod compile_fail;
mod cursors;
mod dependencies;
mod docs;
mod encoding;
mod exercises;
mod goldens;
mod keys;
mod projections;
mod ranges;
mod registry;
mod rendering;
mod requests;
mod retirement;
mod series;
mod support;
mod templates;
mod upgrades;
mod values;
mod wallets;
mod workbench;
mod world;
