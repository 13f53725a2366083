//! The function's behaviour, through its routes, over a table that is created as the template says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod audit;
mod batches;
mod counters;
mod crowds;
mod desk;
mod metrics;
mod places;
mod registry;
