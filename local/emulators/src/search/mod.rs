//! Emulates the part of OpenSearch's HTTP interface that Bodega uses, over [`tantivy`].
//!
//! [`SearchServer`] serves a loopback port: index templates, indices, mappings and aliases, `_bulk`
//! with external versions, `_search`, `_count`, `_refresh`, `GET _doc` and `_mget`. It supports the
//! few query types, analyzers and options that `search-index` sends. It refuses every other request
//! with 400, so that every accepted request means the same here and in OpenSearch. Scores are BM25,
//! but their numbers differ from OpenSearch's.
//!
//! It differs from OpenSearch on purpose:
//! - Writes become visible with the next search, which refreshes first. OpenSearch takes up to a
//!   second.
//! - A write to a missing index fails. OpenSearch creates the index unless configured otherwise.
//! - A search or a write names one index, directly or by an alias of only that index. `GET
//!   /<index>`, `_refresh` and `GET /_alias/<name>` accept patterns.
//! - Sequence numbers of documents become invalid at a restart, because the primary term changes.
//!
//! # Faults
//!
//! [`SearchServer::faults`] makes requests fail. These faults prevent the processing:
//! - `throttle` returns 429.
//! - `error` returns 503.
//! - `reset` closes the connection.
//!
//! Despite these faults the request is processed:
//! - `slow` delays the response.
//! - `timeout` sends no response, and closes the connection after ten seconds.
//! - `truncate` closes the connection in the middle of the response.
//!
//! `partial` rejects single operations of a bulk request with 429, each with the probability
//! `rate`. `conflict` has no effect.

mod aliases;
mod analysis;
mod bulk;
mod cluster;
mod execute;
mod gate;
mod highlight;
mod index;
mod journal;
mod mapping;
mod multi_match;
mod problem;
mod query;
mod request;
mod routes;
mod server;
mod strict;
mod version;

use std::io;
use std::path::PathBuf;

pub use crate::table::{Fault, FaultCount, FaultKind, Faults};
pub use gate::SearchGate;
pub use server::SearchServer;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data folder, or a file in it, cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// Path of the file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A file in the data folder is damaged, or another program has written it.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// The error in the file.
        reason: String,
    },
    /// No port could be opened on the loopback interface.
    #[error("cannot serve: {0}")]
    Serve(#[from] io::Error),
}
