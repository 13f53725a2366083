//! The suite: tests of the whole system, most of them against one running instance.
//!
//! By default the suite uses the embedded table and search engine and needs only Rust. These
//! variables change that:
//!
//! - `AWS_ENDPOINT_URL_DYNAMODB` and `SEARCH_ENDPOINT` name a DynamoDB Local and an OpenSearch to
//!   use.
//! - `BODEGA_BOOTSTRAPS` names a folder with the functions' own binaries. The suite then runs these
//!   programs in place of the local program.
//! - `BODEGA_RIE` names the Lambda Runtime Interface Emulator. The sample events then pass through
//!   it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod agents;
mod audit;
mod authorization;
mod bad_input;
mod bounds;
mod children;
mod contention;
mod contract;
mod control;
mod correlation;
mod crash_points;
mod crowds;
mod deployment;
mod events;
mod fuzzing;
mod gateway;
mod grants;
mod guide;
mod hot_keys;
mod import;
mod injection;
mod lapses;
mod large_orders;
mod leaderboards;
mod maintenance;
mod manifests;
mod memberships;
mod notifications;
mod order_life;
mod pages;
mod paging;
mod parameters;
mod patterns;
mod payments;
mod pictures;
mod privacy;
mod public_pages;
mod shared_items;
mod sign_ins;
mod support;
mod template;
mod webhooks;
