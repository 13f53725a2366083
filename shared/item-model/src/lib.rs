//! Single-table design for DynamoDB: keys, items, updates and requests as data.
//!
//! This crate contains nothing that belongs to one application. An application's schema crate
//! declares its entities and access patterns with [`prelude`], and the `table` crate executes the
//! requests.
//!
//! - [`encoding`] and [`key`]: keys whose text sorts like their parts.
//! - [`id`] and [`instant`]: typed parts of keys.
//! - [`item`]: the attributes that every item has, and the decoder of items.
//! - [`change`] and [`expression`]: conditions, and updates that cannot leave an outdated index
//!   key behind.
//! - [`pattern`] and [`request`]: access patterns and requests as data.
//! - [`cursor`]: sealed positions in a list.
//! - [`shard`]: lists that are spread over several partitions.
//!
//! The crate does no I/O and depends on neither the AWS SDK nor an async runtime. The folder
//! `examples/library` has a whole schema, with its tests.
//!
//! # An entity, an access pattern and its request
//!
//! ```
//! use item_model::item::{Entity, Meta, Stored};
//! use item_model::key::{Index, IndexKey, Key, KeyError, PartitionKey, SortKey};
//! use item_model::pattern::Consistency;
//! use item_model::prelude::*;
//! use item_model::request::{Query, Range};
//!
//! const GSI1: Index = Index::new("GSI1", ["GSI1PK", "GSI1SK"], &["entity", "title"], "The list shows titles.");
//!
//! entity! {
//!     /// A note of an author.
//!     Note = "Note" {
//!         fixed { author: String, number: u64, }
//!         mutable by NoteChanges { title: String, }
//!     }
//! }
//!
//! impl Entity for Note {
//!     const NAME: &'static str = Self::ENTITY;
//!
//!     fn key(&self) -> Result<Key, KeyError> {
//!         Ok(Key { pk: PartitionKey::of("AUTHOR", &[&self.author])?, sk: SortKey::of("NOTE", &[&self.number])? })
//!     }
//!
//!     fn index_keys(&self, meta: &Meta) -> Result<Vec<IndexKey>, KeyError> {
//!         let (partition, sort) = (PartitionKey::new("NOTES")?, SortKey::of("AT", &[&meta.created_at])?);
//!         Ok(vec![IndexKey { index: GSI1, partition, sort }])
//!     }
//! }
//!
//! patterns! {
//!     OF_AUTHOR {
//!         id: "notes.of-author",
//!         purpose: "List an author's notes",
//!         request: Query,
//!         key: "PK = AUTHOR#<author>, SK begins with NOTE#",
//!         returns: "the notes, by number",
//!         consistency: Consistency::Eventual,
//!         callers: "any",
//!     }
//! }
//!
//! /// Lists an author's notes by number.
//! fn of_author(author: &str) -> Result<Query<Stored<Note>>, KeyError> {
//!     Ok(Query::new(&OF_AUTHOR, PartitionKey::of("AUTHOR", &[&author])?, Range::under("NOTE")))
//! }
//!
//! let note = Note { author: "ann".into(), number: 12, title: "Keys".into() };
//! let query = of_author("ann").unwrap();
//! assert_eq!(query.partitions(), [note.key().unwrap().pk]);
//! assert!(query.bounds().unwrap().contains(note.key().unwrap().sk.as_str()));
//! ```

pub mod change;
pub mod characters;
pub mod cursor;
pub mod encoding;
pub mod expression;
pub mod id;
pub mod instant;
pub mod item;
pub mod key;
pub mod pattern;
pub mod prelude;
mod query;
pub mod reach;
pub mod request;
pub mod shard;
