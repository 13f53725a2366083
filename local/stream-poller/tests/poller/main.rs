#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;
mod embedded_table;
mod key_order;
mod mapping_rules;
mod roles;
