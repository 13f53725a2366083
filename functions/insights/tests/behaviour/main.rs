//! Tests of the function through its routes, over a table that is created from the template.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod audit;
mod batches;
mod counters;
mod crowds;
mod desk;
mod metrics;
mod months;
mod places;
mod registry;
