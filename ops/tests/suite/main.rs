//! Tests of the operations tool against a table and search engines. Table and engine are embedded,
//! unless environment variables name other servers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod archive;
mod capacity;
mod cost;
mod customer;
mod doctor;
mod events;
mod explain;
mod export;
mod feed;
mod hot;
mod item;
mod large;
mod migrate;
mod payments;
mod policy;
mod prewarm;
mod rebuild;
mod reconcile;
mod redrive;
mod restored;
mod retire;
mod rotate;
mod shards;
mod shop;
mod show;
mod things;
mod usage;
mod verify;
