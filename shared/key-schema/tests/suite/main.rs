//! The tests of the schema: the encodings, each entity's stored item, each rendered request, and
//! the generated documents.
//!
//! All tests are in one binary, so that the crate is linked once. `INSTA_UPDATE=always` rewrites
//! the snapshots, and `UPDATE_DOCS=1` rewrites the documents in `docs/`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod categories;
mod codes;
mod decoding;
mod dependencies;
mod diagram;
mod docs;
mod exercises;
mod goldens;
mod keys;
mod leaderboards;
mod mailed_names;
mod projections;
mod ranges;
mod registry;
mod rendering;
mod requests;
mod retirement;
mod rules;
mod series;
mod support;
mod templates;
mod upgrades;
mod values;
mod wallets;
mod workbench;
mod world;
