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
//!
//! # What does not compile
//!
//! A request takes the id of its entity, and a change enters an index with every part of the key:
//!
//! ```
//! use key_schema::change::Change;
//! use key_schema::customer::{self, Customer, Tier, TierIndexKey};
//! use key_schema::id::CustomerId;
//! use key_schema::instant::Instant;
//! use key_schema::lists::FIRST;
//!
//! fn read(id: &CustomerId) {
//!     let _ = customer::get(id);
//!     let entry = TierIndexKey { tier: Tier::Gold, created_at: Instant::EPOCH, id, shards: FIRST };
//!     let _ = Change::<Customer>::visible(Instant::EPOCH).enter(&entry);
//! }
//! ```
//!
//! The id of another entity is refused:
//!
//! ```compile_fail,E0308
//! use key_schema::customer;
//! use key_schema::id::OrderId;
//!
//! fn read(id: &OrderId) {
//!     let _ = customer::get(id);
//! }
//! ```
//!
//! The tier is a part of the tier list's key, so no method changes it alone:
//!
//! ```compile_fail,E0599
//! use key_schema::change::Change;
//! use key_schema::customer::{Customer, CustomerChanges as _, Tier};
//! use key_schema::instant::Instant;
//!
//! let _ = Change::<Customer>::visible(Instant::EPOCH).tier(&Tier::Gold);
//! ```
//!
//! An index entry lacks no part of its key:
//!
//! ```compile_fail,E0063
//! use key_schema::change::Change;
//! use key_schema::customer::{Customer, Tier, TierIndexKey};
//! use key_schema::instant::Instant;
//!
//! let _ = Change::<Customer>::visible(Instant::EPOCH).enter(&TierIndexKey { tier: Tier::Gold });
//! ```
//!
//! A change of a customer does not take an index entry of an order:
//!
//! ```compile_fail,E0271
//! use key_schema::change::Change;
//! use key_schema::customer::Customer;
//! use key_schema::id::OrderId;
//! use key_schema::instant::Instant;
//! use key_schema::lists::FIRST;
//! use key_schema::order::{OrderStatus, StatusIndexKey};
//!
//! fn change(id: &OrderId) {
//!     let entry = StatusIndexKey { status: OrderStatus::Paid, placed_at: Instant::EPOCH, id, shards: FIRST };
//!     let _ = Change::<Customer>::visible(Instant::EPOCH).enter(&entry);
//! }
//! ```

mod agents;
mod catalogue;
mod community;
mod content;
mod customers;
mod operations;
mod orders;
mod payments;
mod webhooks;

pub mod entity;
pub mod id;
pub mod index;
pub mod registry;
pub mod text;

pub use agents::*;
pub use catalogue::*;
pub use community::*;
pub use content::*;
pub use customers::*;
pub use item_model::{change, cursor, encoding, expression, instant, item, key, pattern, reach, request, shard};
pub use operations::*;
pub use orders::*;
pub use payments::*;
pub use webhooks::*;
