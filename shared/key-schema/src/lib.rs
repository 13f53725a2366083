//! The schema of Bodega's DynamoDB table, and every request that Lambda functions send to it.
//!
//! One table stores all data of Bodega. This crate declares, on top of [`item_model`]:
//!
//! - the ids ([`id`]) and the indexes of the table ([`index`]);
//! - the entities with their index keys and access patterns: one module for each entity, in the
//!   folder of its area;
//! - the registry of all access patterns ([`registry`]);
//! - one decoder for stored and streamed items ([`entity::AnyEntity`]);
//! - the pure rules that derive copies and totals.
//!
//! The crate re-exports the types of `item_model`, but not the constructors of requests
//! ([`item_model::prelude`]). So a Lambda function can send only requests that this crate builds.
//! Only the operators' commands build other requests: they scan the table and read any item by its
//! key.

mod catalogue;
mod community;
mod content;
mod customers;
mod operations;
mod orders;
mod payments;

pub mod entity;
pub mod id;
pub mod index;
pub mod registry;
pub mod text;

pub use catalogue::{category, leaderboard, membership, product, review, variant};
pub use community::{follow, graph, like, organization, question};
pub use content::{document, media, picture};
pub use customers::{code, customer, erasure, quota, residence, revocation, session, verification};
pub use item_model::{change, cursor, encoding, expression, instant, item, key, pattern, reach, request, shard};
pub use operations::{
    archive, counter, expiration, heartbeat, idempotency, lists, mail, mark, metric, month, recipient, settings,
};
pub use orders::{cart, guest_cart, invoice, order, picking, place, pricing, promotion, sales};
pub use payments::{money, wallet};
