//! The searches through their routes, as API Gateway would call them, over a real index: the embedded one, or the OpenSearch that
//! `SEARCH_ENDPOINT` names.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod orders;
mod products;
mod shop;
