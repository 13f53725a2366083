use thiserror::Error;

/// A call that did not succeed.
///
/// The messages are for operators and go into logs. They contain no document and no query. The
/// engine's own explanation of a refusal may quote a document or a query. So it is a field of
/// [`SearchError::Rejected`] but not part of its message.
#[derive(Debug, Error)]
pub enum SearchError {
    /// The engine was throttling, failing, unreachable or too slow until the call's limits were
    /// reached. The caller may repeat the call later.
    #[error("the search engine is unavailable after {attempts} attempts: {reason}")]
    Unavailable {
        attempts: u32,
        /// The last failure.
        reason: String,
    },
    /// The engine refused the call. It would also refuse a retry.
    #[error("the search engine refused the call with status {status}: {kind}")]
    Rejected {
        /// The HTTP status. It is neither a success nor one of 429, 502, 503 and 504, after which a
        /// retry may succeed.
        status: u16,
        /// The engine's name for the error, such as `parsing_exception`.
        kind: String,
        /// The engine's explanation. It may quote the rejected input.
        reason: String,
    },
    /// The response does not follow the engine's documentation, or is larger than this client
    /// reads.
    #[error("the search engine's answer cannot be read: {0}")]
    Answer(String),
    /// The request cannot be built or signed, or this client does not allow it.
    #[error("the request to the search engine cannot be made: {0}")]
    Request(String),
    /// A collection can have only one rebuild at a time. The operator must resume or abandon the
    /// rebuild in progress.
    #[error("a rebuild of {collection} is in progress already")]
    RebuildInProgress {
        /// The name of the collection.
        collection: &'static str,
    },
    /// The engine lacks a feature that the index needs.
    #[error("the search engine cannot be used: {0}")]
    Unsupported(String),
}

/// The engine's names for a query with more clauses than `indices.query.bool.max_clause_count`.
const TOO_MANY_CLAUSES: [&str; 2] = ["too_many_clauses", "too_many_nested_clauses"];

/// Returns whether an error with this name is about too many clauses.
pub(crate) fn is_of_clauses(kind: &str) -> bool {
    TOO_MANY_CLAUSES.contains(&kind)
}

impl SearchError {
    /// Returns whether the engine refused the query because it matches too many different words of
    /// the index. A simpler query may succeed.
    pub fn is_too_broad(&self) -> bool {
        matches!(self, Self::Rejected { kind, .. } if is_of_clauses(kind))
    }

    /// Returns whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_message_has_a_value_that_the_engine_quotes() {
        let reason = "failed to parse [ann@example.com]".to_owned();
        let error = SearchError::Rejected { status: 400, kind: "parsing_exception".to_owned(), reason };
        assert_eq!(error.to_string(), "the search engine refused the call with status 400: parsing_exception");
    }
}
