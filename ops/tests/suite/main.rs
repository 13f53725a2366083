//! The operations tool against the table and the engines of the tests: the embedded ones, or those that the environment names.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod archive;
mod bucket;
mod events;
mod policy;
mod rebuild;
mod reconcile;
mod redrive;
mod restored;
mod retire;
mod shop;
mod things;
mod usage;
