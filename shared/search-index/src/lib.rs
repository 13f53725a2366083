//! The search index: what it holds, and a small OpenSearch client that keeps it and asks it.
//!
//! [`ProductDocument`] and [`OrderDocument`] say what is searchable; [`ProductQuery`] and
//! [`OrderQuery`] what can be asked; [`SearchClient`] carries both over HTTP, signed for Amazon
//! OpenSearch Service or Serverless, plain for a server on this machine.
//!
//! # Keeping the index in step with the table
//!
//! A document is written with the `rev` of its item as external version (`external_gte`), so that
//! writes may arrive twice and in any order: the newest wins, and an older one is answered with a
//! conflict that counts as success ([`BulkOutcome::Stale`]). A removal is a write too: it leaves a
//! tombstone, which every query filters out, because the engine forgets the version of a deleted
//! document after a minute and would then take an older write for a new document.

mod bulk;
mod client;
mod config;
mod document;
mod error;
mod index;
mod query;
mod results;
mod transport;

pub use bulk::{BulkOperation, BulkOutcome};
pub use client::SearchClient;
pub use config::{ConfigError, Limits, SearchConfig, Signing};
pub use document::{Collection, OrderDocument, ProductDocument, SearchDocument, category_prefixes, document_id};
pub use error::SearchError;
pub use query::{OrderQuery, ProductQuery, ProductSort, SearchAfter, SearchText, SearchTextError};
pub use results::{Facet, Hit, LiveDocument, LivePage, SearchPage, StoredDocument};
