//! Tests of the searches through their routes, like calls of API Gateway, on a real index: the
//! embedded one, or the OpenSearch in `SEARCH_ENDPOINT`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod orders;
mod products;
mod shop;
