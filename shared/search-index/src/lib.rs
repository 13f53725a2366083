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
//! document after a minute and would then take an older write for a new document. A tombstone goes
//! when nothing older can arrive any more ([`TOMBSTONE_LIFETIME_DAYS`], [`SearchClient::purge_tombstones`]).
//!
//! # Changing what the index holds
//!
//! A new field is added to the index in use by [`SearchClient::ensure_indices`]; documents have it from their next change on. Everything else
//! (a field of another type, another analyzer, values of another form) takes a rebuild, during which the shop goes on:
//! [`SearchClient::begin_rebuild`] and what follows it. A field that changes its type gets a new name, or the index is rebuilt before
//! the documents change: while they do not fit the mapping they are refused.
//!
//! # OpenSearch Serverless
//!
//! `SEARCH_SERVICE=aoss`. Nothing here was ever run against Serverless. What follows was read in the Amazon OpenSearch Service Developer Guide, in its
//! texts of 2022 to 2024, which may have changed since; whether the index can be used is decided by the probe alone ([`SearchClient::probe`]), which the
//! first [`SearchClient::ensure_indices`] of a client makes.
//!
//! - The collection is to be of type *search*: a time series collection cannot be written to by document id, of which all here depends
//!   (read in "What is Amazon OpenSearch Serverless?", Choosing a collection type).
//! - Signatures are to name the service `aoss`, to come with the header `x-amz-content-sha256`, and not to cover `Content-Length`
//!   (read in "Ingesting data into Amazon OpenSearch Serverless collections", Signing). This client signs every request so, those to the
//!   Service too.
//! - A subset of the calls exists (read in "Supported operations and plugins in Amazon OpenSearch Serverless"). The list had those that create,
//!   describe and delete indices, `_bulk`, `_mget`, `_count`, searches, `POST _aliases`, and calls that describe aliases and index
//!   templates. There are no clusters and nodes ("What is Amazon OpenSearch Serverless?", Comparing), hence no settings of a cluster,
//!   which nothing here asks for. `_refresh` was not in the list: [`SearchClient::refresh`] does nothing there. Nothing here uses delete
//!   by query or a point in time: tombstones are found by a search and deleted one by one, and pages continue after the last document.
//! - Writes become visible to searches after 10 to 30 seconds (read in "What is Amazon OpenSearch Serverless?", Limitations), so a page of a
//!   search or of [`SearchClient::documents`] may be that old. A rebuild is not to be finished before its counts agree.
//! - Of external versions, `require_alias` and deletions on condition nothing was found. So they are tried: the probe fails unless versions
//!   hold, and says what of the rest works.

mod bulk;
mod client;
mod config;
mod document;
mod error;
mod index;
mod layout;
mod outcome;
mod probe;
mod purge;
mod query;
mod rebuild;
mod results;
mod stored;
mod transport;
mod write;

pub use aws::{Limits, Signing};
pub use bulk::BulkOperation;
pub use client::SearchClient;
pub use config::{ConfigError, SearchConfig};
pub use document::{Collection, OrderDocument, ProductDocument, SearchDocument, document_id};
pub use error::SearchError;
pub use layout::IndexState;
pub use outcome::BulkOutcome;
pub use probe::EngineSupport;
pub use purge::{MAX_PURGE, PurgePage, TOMBSTONE_LIFETIME_DAYS};
pub use query::{OrderQuery, ProductQuery, ProductSort, SearchAfter, SearchText, SearchTextError};
pub use rebuild::{CopiedPage, Rebuild};
pub use results::{Facet, Hit, LiveDocument, LivePage, SearchPage, StoredDocument};
pub use stored::{DocumentPage, IndexedDocument, Kind, StoredSource};
