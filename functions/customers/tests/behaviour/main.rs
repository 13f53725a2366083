//! The function's behaviour, through its routes, over a table that is created as the template says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod access;
mod addresses;
mod belongings;
mod carts;
mod changes;
mod erasure;
mod lists;
mod names;
mod overviews;
mod profiles;
mod sessions;
mod shop;
