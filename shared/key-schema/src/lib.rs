//! The schema of Bodega's DynamoDB table, and every request that reaches the table.
//!
//! One table serves the whole shop. This crate contains:
//!
//! - typed ids and keys ([`id`], [`key`], [`encoding`]);
//! - the entities with all their index keys, one module each;
//! - the registry of access patterns ([`pattern`], [`registry`]) and requests as data
//!   ([`request`]);
//! - typed updates that cannot leave an index key stale ([`change`]);
//! - one decoder for stored and streamed items ([`entity::AnyEntity`]);
//! - sealed cursors ([`cursor`]);
//! - the pure rules that derive copies and totals.
//!
//! The crate does no I/O and depends on neither the AWS SDK nor an async runtime. The `table` crate
//! executes its requests.

pub mod archive;
pub mod cart;
pub mod category;
pub mod change;
pub mod code;
pub mod counter;
pub mod cursor;
pub mod customer;
pub mod document;
pub mod encoding;
pub mod entity;
pub mod erasure;
pub mod expiration;
pub mod expression;
pub mod follow;
pub mod graph;
pub mod heartbeat;
pub mod id;
pub mod idempotency;
pub mod instant;
pub mod invoice;
pub mod item;
pub mod key;
pub mod like;
pub mod mail;
pub mod mark;
pub mod media;
pub mod membership;
pub mod metric;
pub mod money;
pub mod order;
pub mod organization;
pub mod pattern;
pub mod picking;
pub mod picture;
pub mod place;
pub mod product;
pub mod question;
pub mod quota;
pub mod reach;
pub mod recipient;
pub mod registry;
pub mod request;
pub mod residence;
pub mod review;
pub mod revocation;
pub mod sales;
pub mod session;
pub mod settings;
pub mod shard;
pub mod text;
pub mod verification;
pub mod wallet;
