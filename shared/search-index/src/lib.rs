//! The search index: its documents, and a small OpenSearch client that writes and searches them.
//!
//! [`ProductDocument`] and [`OrderDocument`] are the documents. [`ProductQuery`], [`SuggestionQuery`]
//! and [`OrderQuery`] are the queries. [`SearchClient`] sends both over HTTP: signed for Amazon OpenSearch Service or
//! Serverless, unsigned for a server on this machine.
//!
//! # Keeping the index in step with the table
//!
//! A document is written with its item's `rev` as external version (`external_gte`), so writes may
//! arrive twice and in any order. The engine keeps the newest write. An older write gets a
//! conflict, which counts as success ([`BulkOutcome::Stale`]).
//!
//! When an item is removed, its document is replaced by a tombstone, which every query filters out.
//! The engine forgets the version of a deleted document after a minute, and would then accept an
//! older write as a new document. An operator purges a tombstone when no older write can arrive any
//! more ([`TOMBSTONE_LIFETIME_DAYS`], [`SearchClient::purge_tombstones`]).
//!
//! # Changing the fields of the index
//!
//! [`SearchClient::ensure_indices`] adds a new field to the index in use. Documents get the field
//! with their next change. All other changes need a rebuild: a field gets a new type or a new
//! analyzer, or the form of its values changes. [`SearchClient::begin_rebuild`] and the calls after
//! it rebuild the index while searches and writes continue. The index refuses documents that do not
//! fit its mapping. So a field whose type changes also gets a new name, or the index is rebuilt
//! before the documents change.
//!
//! # OpenSearch Serverless
//!
//! `SEARCH_SERVICE=aoss`. This code was never run against Serverless. The following facts are from
//! the Amazon OpenSearch Service Developer Guide, in its versions of 2022 to 2024, and may have
//! changed since. A probe tests whether the engine can be used ([`SearchClient::probe`]). The first
//! [`SearchClient::ensure_indices`] of a client runs it.
//!
//! - The collection must be of type *search*. A time series collection does not accept writes by
//!   document id, which this crate needs (from "What is Amazon OpenSearch Serverless?", Choosing a
//!   collection type).
//! - Signatures must name the service `aoss`, include the header `x-amz-content-sha256`, and not
//!   cover `Content-Length` (from "Ingesting data into Amazon OpenSearch Serverless collections",
//!   Signing). This client signs all requests that way, also those to OpenSearch Service.
//! - Serverless supports a subset of the calls (from "Supported operations and plugins in Amazon
//!   OpenSearch Serverless"). The guide lists all calls that this crate needs except `_refresh`, so
//!   [`SearchClient::refresh`] does nothing there.
//! - There are no cluster settings, because there are no clusters and nodes ("What is Amazon
//!   OpenSearch Serverless?", Comparing). This crate needs no such settings.
//! - This crate needs neither deletion by query nor points in time. It finds tombstones with a
//!   search, deletes each by its id, and starts each page after the last document of the page
//!   before it.
//! - Writes become visible to searches after 10 to 30 seconds (from "What is Amazon OpenSearch
//!   Serverless?", Limitations). A page of a search or of [`SearchClient::documents`] may be that
//!   old. A rebuild must not be finished before its counts agree with the table.
//! - The guide says nothing about external versions, `require_alias` and conditional deletions. The
//!   probe tries all three. It fails if the engine does not respect versions, and reports whether
//!   the other two work.

mod bulk;
mod client;
mod config;
mod document;
mod error;
mod index;
mod layout;
mod outcome;
mod probe;
mod products;
mod purge;
mod query;
mod rebuild;
mod refusal;
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
pub use products::{MAX_WINDOW, PageStart, ProductQuery, ProductSort, SuggestionQuery};
pub use purge::{MAX_PURGE, PurgePage, TOMBSTONE_LIFETIME_DAYS};
pub use query::{OrderQuery, SearchAfter, SearchText, SearchTextError};
pub use rebuild::{CopiedPage, Rebuild};
pub use results::{Facet, Hit, LiveDocument, LivePage, SearchPage, StoredDocument};
pub use stored::{DocumentPage, IndexedDocument, Kind, StoredSource};
