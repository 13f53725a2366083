use std::collections::VecDeque;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::Mutex;

use crate::{Record, SequenceNumber};

/// A stream to follow: [`HttpStream`](crate::HttpStream), or an in-memory stream for tests. The
/// calls are those of the DynamoDB Streams API.
pub trait StreamSource: Send + Sync + 'static {
    fn stream_arn(&self) -> &str;

    /// Returns all current shards of the stream, in any order.
    fn shards(&self) -> BoxFuture<'_, Result<Vec<Shard>, SourceError>>;

    /// Returns an iterator: a position in a shard to read from.
    fn iterator<'a>(&'a self, shard_id: &'a str, start: Start) -> BoxFuture<'a, Result<String, SourceError>>;

    fn records<'a>(&'a self, iterator: &'a str) -> BoxFuture<'a, Result<Page, SourceError>>;
}

/// A part of a stream, in which records are in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    pub id: String,
    /// The preceding shard. A mapping reads the preceding shard to its end before it reads this
    /// shard.
    pub parent: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    TrimHorizon,
    /// At the first record that is written from now on.
    Latest,
    After(SequenceNumber),
}

/// Records, and the iterator for the next records.
#[derive(Debug, Clone)]
pub struct Page {
    /// The records, in the order of the shard.
    pub records: Vec<Arc<Record>>,
    /// Iterator of the next records. `None` if the shard is closed and read to its end.
    pub next: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The iterator has expired. The caller must request a new iterator.
    #[error("the shard iterator has expired")]
    Expired,
    /// The records at the iterator were trimmed. The caller must continue with the oldest record.
    #[error("the records to be read next were trimmed")]
    Trimmed,
    /// The table does not exist, or has no stream.
    #[error("there is no stream: {0}")]
    NoStream(String),
    /// The function's role lacks the permission.
    #[error("the function's role does not allow reading the stream: {0}")]
    Denied(String),
    /// The endpoint is unreachable or overloaded, or rejects the call.
    #[error("the stream cannot be read: {0}")]
    Unavailable(String),
    /// The endpoint's response has the wrong form.
    #[error("the stream returned {0}")]
    Malformed(&'static str),
}

/// Number of pages that are kept for other mappings. A page has at most 1 MB.
const PAGES: usize = 8;

/// A source that reads each page once for all mappings with about the same position.
///
/// Mappings with the same starting position get the same iterators. So the page that the first
/// mapping reads also serves the other mappings. A mapping that is far behind reads its own pages.
/// Empty pages are not kept, because records may follow at the same iterator.
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
        // The lock is held during the read, so that several mappings with the same iterator read
        // the page only once.
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
