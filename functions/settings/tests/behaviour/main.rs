//! Tests of the function through its routes, on a table that is created from the template.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod cache;
mod changes;
mod copies;
mod promotions;
mod rules;
mod shop;
mod webhooks;
