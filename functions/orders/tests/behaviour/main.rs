//! Tests of the function through its routes, over a table that is created from the template. Tests
//! of the whole system are in `tests` and `bench`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod addresses;
mod bounds;
mod checkout;
mod growing;
mod log;
mod payment;
mod place;
mod program;
mod promotion_uses;
mod promotions;
mod quote;
mod records;
mod references;
mod registry;
mod revived;
mod shop;
mod status;
mod variants;
