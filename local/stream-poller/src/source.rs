use std::collections::VecDeque;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::Mutex;

use crate::{Record, SequenceNumber};

/// A stream that can be followed: [`HttpStream`](crate::HttpStream), or one in memory for tests.
/// The calls are those of the DynamoDB Streams API.
pub trait StreamSource: Send + Sync + 'static {
    /// The stream's name in events and discarded batches.
    fn stream_arn(&self) -> &str;

    /// Every shard that the stream has now, in any order.
    fn shards(&self) -> BoxFuture<'_, Result<Vec<Shard>, SourceError>>;

    /// A place in a shard to read from.
    fn iterator<'a>(&'a self, shard_id: &'a str, start: Start) -> BoxFuture<'a, Result<String, SourceError>>;

    /// The next records at a place.
    fn records<'a>(&'a self, iterator: &'a str) -> BoxFuture<'a, Result<Page, SourceError>>;
}

/// A part of a stream, in which records are in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    /// Its name in the stream.
    pub id: String,
    /// The shard that it continues: read to the end before this one.
    pub parent: Option<String>,
}

/// Where in a shard to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// With the oldest record.
    TrimHorizon,
    /// With the first record from now on.
    Latest,
    /// With the record after this one.
    After(SequenceNumber),
}

/// Some records, and where to go on.
#[derive(Debug, Clone)]
pub struct Page {
    /// In the order of the shard.
    pub records: Vec<Arc<Record>>,
    /// Where the next records will be. `None`: the shard is closed and read to its end.
    pub next: Option<String>,
}

/// Why a stream cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The place was left too long ago; ask for another.
    #[error("the shard iterator has expired")]
    Expired,
    /// The records at the place are gone; go on with the oldest.
    #[error("the records to be read next were trimmed")]
    Trimmed,
    /// There is no such table, or it has no stream.
    #[error("there is no stream: {0}")]
    NoStream(String),
    /// The function that it is read for may not.
    #[error("the stream may not be read: {0}")]
    Denied(String),
    /// The endpoint is away, overloaded, or refuses.
    #[error("the stream cannot be read: {0}")]
    Unavailable(String),
    /// The endpoint speaks another language.
    #[error("the stream gives {0}")]
    Malformed(&'static str),
}

/// Pages kept for the mappings that come later. A page holds at most 1 MB.
const PAGES: usize = 8;

/// A source whose pages are read once for all mappings that follow it closely.
///
/// Mappings that start at the same place get the same iterators, one page after the other, so the
/// page that the first of them reads serves the rest. A mapping that fell far behind reads for
/// itself. Pages without records are not kept: there, more may have come.
pub(crate) struct SharedSource {
    source: Box<dyn StreamSource>,
    pages: Mutex<VecDeque<(String, Page)>>,
}

impl SharedSource {
    pub(crate) fn new(source: impl StreamSource) -> Self {
        Self { source: Box::new(source), pages: Mutex::default() }
    }

    pub(crate) fn get(&self) -> &dyn StreamSource {
        self.source.as_ref()
    }

    pub(crate) async fn records(&self, iterator: &str) -> Result<Page, SourceError> {
        // Held while reading, so that two mappings at the same place do not both read.
        let mut pages = self.pages.lock().await;
        if let Some((_, page)) = pages.iter().find(|(at, _)| at == iterator) {
            return Ok(page.clone());
        }
        let page = self.source.records(iterator).await?;
        if !page.records.is_empty() {
            if pages.len() == PAGES {
                pages.pop_front();
            }
            pages.push_back((iterator.to_owned(), page.clone()));
        }
        Ok(page)
    }
}
