//! What can go wrong between a function and the search engine.

use thiserror::Error;

/// A call that did not succeed.
///
/// The messages are for operators and go into logs. None holds a document or a query: what the engine itself says of a refusal may quote either, so it is a
/// field of [`SearchError::Rejected`] and no part of its message.
#[derive(Debug, Error)]
pub enum SearchError {
    /// The engine was throttling, failing, unreachable or too slow, and stayed so for as long as
    /// the limits allow. The call may be made again later.
    #[error("the search engine is unavailable after {attempts} attempts: {reason}")]
    Unavailable {
        /// How often the call was attempted.
        attempts: u32,
        /// The last failure.
        reason: String,
    },
    /// The engine refused the call; it would refuse it again.
    #[error("the search engine refused the call with status {status}: {kind}")]
    Rejected {
        /// The HTTP status, 4xx or 501.
        status: u16,
        /// The engine's name of the error, such as `parsing_exception`.
        kind: String,
        /// Its explanation, which may quote what it could not take.
        reason: String,
    },
    /// The answer was not what the engine's documentation promises, or larger than this client reads.
    #[error("the search engine's answer cannot be read: {0}")]
    Answer(String),
    /// The request could not be built or signed, or must not be made.
    #[error("the request to the search engine cannot be made: {0}")]
    Request(String),
    /// A collection can be rebuilt once at a time. The rebuild in progress is resumed or abandoned.
    #[error("a rebuild of {collection} is in progress already")]
    RebuildInProgress {
        /// The name of the collection.
        collection: &'static str,
    },
    /// The engine lacks something without which the index would not follow the table.
    #[error("the search engine cannot be used: {0}")]
    Unsupported(String),
}

impl SearchError {
    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_engine_quotes_is_in_no_message() {
        let reason = "failed to parse [ann@example.com]".to_owned();
        let error = SearchError::Rejected { status: 400, kind: "parsing_exception".to_owned(), reason };
        assert_eq!(error.to_string(), "the search engine refused the call with status 400: parsing_exception");
    }
}
