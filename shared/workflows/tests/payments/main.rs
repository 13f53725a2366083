//! Tests of card payments: whatever happens between the shop and the provider, every payment ends
//! with the same amounts in both books, and no order keeps money that it is not paid with.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod bank;
mod explore;
mod model;
mod operations;
mod reports;
mod shop;
