//! Tests of the function through its routes, over a table that is created from the template.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod access;
mod addresses;
mod belongings;
mod carts;
mod changes;
mod data;
mod erasure;
mod guest_carts;
mod guests;
mod lists;
mod names;
mod overviews;
mod profiles;
mod registry;
mod sessions;
mod shop;
mod verification;
