//! The suite: what must hold of the whole, against one running system.
//!
//! It runs on the embedded table and search engine with nothing installed but Rust, and on DynamoDB Local and
//! OpenSearch where `AWS_ENDPOINT_URL_DYNAMODB` and `SEARCH_ENDPOINT` name them. `BODEGA_BOOTSTRAPS` names a folder of
//! the functions' own binaries, to run what would be deployed instead of the local program; `BODEGA_RIE` names the Lambda
//! Runtime Interface Emulator, to send the sample events through that.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, missing_docs)]

mod audit;
mod authorization;
mod bad_input;
mod bounds;
mod callers;
mod children;
mod contention;
mod contract;
mod control;
mod correlation;
mod crash_points;
mod crowds;
mod deployment;
mod events;
mod folded;
mod fulfilment;
mod gateway;
mod grants;
mod hot_keys;
mod import;
mod injection;
mod large_orders;
mod manifests;
mod notifications;
mod order_life;
mod paging;
mod payments;
mod pictures;
mod privacy;
mod shared_items;
mod support;
mod template;
