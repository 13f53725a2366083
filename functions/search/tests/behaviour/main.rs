//! Tests of the searches through their routes, called with the events that API Gateway sends. The
//! tests use the embedded index, or the OpenSearch at `SEARCH_ENDPOINT`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod orders;
mod products;
mod registry;
mod shop;
mod variants;
