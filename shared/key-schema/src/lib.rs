//! The schema of Bodega's DynamoDB table, and every request that reaches the table.
//!
//! One table serves the whole shop. This crate declares, on top of [`item_model`]:
//!
//! - the ids of the shop ([`id`]) and its indexes ([`index`]);
//! - the entities with all their index keys and access patterns, one module each;
//! - the registry of all access patterns ([`registry`]);
//! - one decoder for stored and streamed items ([`entity::AnyEntity`]);
//! - the pure rules that derive copies and totals.
//!
//! It passes the types of `item_model` on to its users, but not the means to make a request
//! ([`item_model::prelude`]). So every request to the table is a function of this crate.

pub mod archive;
pub mod cart;
pub mod category;
pub mod code;
pub mod counter;
pub mod customer;
pub mod document;
pub mod entity;
pub mod erasure;
pub mod expiration;
pub mod follow;
pub mod graph;
pub mod heartbeat;
pub mod id;
pub mod idempotency;
pub mod index;
pub mod invoice;
pub mod like;
pub mod mail;
pub mod mark;
pub mod media;
pub mod membership;
pub mod metric;
pub mod money;
pub mod order;
pub mod organization;
pub mod picking;
pub mod picture;
pub mod place;
pub mod product;
pub mod question;
pub mod quota;
pub mod recipient;
pub mod registry;
pub mod residence;
pub mod review;
pub mod revocation;
pub mod sales;
pub mod session;
pub mod settings;
pub mod text;
pub mod verification;
pub mod wallet;

pub use item_model::{change, cursor, encoding, expression, instant, item, key, pattern, reach, request, shard};
