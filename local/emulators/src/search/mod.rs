//! The search engine on one machine: the part of OpenSearch's HTTP interface that Bodega uses, over
//! [`tantivy`].
//!
//! [`SearchServer`] answers on a loopback port: index templates, indices, mappings and aliases, `_bulk` with
//! external versions, `_search`, `_count`, `_refresh`, `GET _doc` and `_mget`. It knows the few query types,
//! analyzers and options that `search-index` sends and answers 400 to everything else, so that a
//! query which works here means the same to OpenSearch. Scores are BM25 but not the same numbers.
//!
//! Where it differs on purpose:
//! - Writes become visible with the next search, which refreshes first; OpenSearch takes up to a second.
//! - A write to an index that does not exist fails; OpenSearch creates one unless told otherwise.
//! - A search or a write names one index, itself or by an alias that has no other; `GET`, `_refresh` and `GET _alias` take
//!   patterns.
//! - The sequence numbers of documents mean nothing after the engine was closed: its primary term is another then.
//!
//! # Faults
//!
//! [`SearchServer::faults`] makes requests fail: `throttle` answers 429, `error` 503, `reset` closes
//! the connection, all three with nothing done; `slow` answers late, `timeout` does what was asked
//! and never answers. `partial` refuses single operations of a bulk request with 429, each by the rate of the fault.
//! `conflict` has no meaning here.

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

/// Why the search engine cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder of the data, or a file in it, cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file or folder in question.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// A file in the data folder is not what this engine wrote.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The file in question.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No port could be opened on the loopback interface.
    #[error("cannot serve: {0}")]
    Serve(#[from] io::Error),
}
