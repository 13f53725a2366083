//! Tests of the searches through their routes, called with the events that API Gateway sends. The
//! index is the embedded one, or the OpenSearch that `SEARCH_ENDPOINT` names.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod orders;
mod products;
mod registry;
mod shop;
