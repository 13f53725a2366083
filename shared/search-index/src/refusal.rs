use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::client::unreadable;
use crate::error::{SearchError, is_of_clauses};
use crate::transport::Answer;

#[derive(Deserialize)]
struct Problem {
    error: ProblemDetail,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ProblemDetail {
    Typed {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        reason: Option<String>,
        /// The causes. The error type of a failed search only says that all shards failed.
        #[serde(default)]
        root_cause: Vec<Cause>,
    },
    Text(String),
}

#[derive(Deserialize)]
struct Cause {
    #[serde(rename = "type")]
    kind: String,
}

impl Answer {
    /// Returns the response if it is a success, and otherwise the engine's error.
    pub(crate) fn accepted(self) -> Result<Self, SearchError> {
        if self.status.is_success() {
            return Ok(self);
        }
        let (kind, reason) = match self.parse::<Problem>().map(|problem| problem.error) {
            Ok(ProblemDetail::Typed { kind, reason, root_cause }) => {
                let clauses = root_cause.into_iter().map(|cause| cause.kind).find(|kind| is_of_clauses(kind));
                (clauses.unwrap_or(kind), reason.unwrap_or_default())
            }
            Ok(ProblemDetail::Text(text)) => ("an error without a type".to_owned(), text),
            // Either the body comes from a proxy, or IAM refused the request before the request
            // reached the domain.
            Err(_) => ("a response that is not the engine's".to_owned(), "no explanation".to_owned()),
        };
        Err(SearchError::Rejected { status: self.status.as_u16(), kind, reason })
    }

    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, SearchError> {
        serde_json::from_slice(&self.body).map_err(unreadable)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]

    use http::StatusCode;

    use super::*;

    fn refused(status: StatusCode, body: &'static str) -> SearchError {
        let Err(error) = (Answer { status, body: body.into() }).accepted() else { panic!("{body} is no error") };
        error
    }

    /// OpenSearch answered a query of too many clauses with status 500
    /// (<https://github.com/opensearch-project/OpenSearch/issues/3652>). It answers with 400 since
    /// <https://github.com/opensearch-project/OpenSearch/pull/21725>.
    #[test]
    fn a_query_of_too_many_clauses_is_distinguished_from_other_failures_of_all_shards() {
        let nested = r#"{"error":{"root_cause":[{"type":"too_many_nested_clauses","reason":"maxClauseCount is set to 1024"}],"type":"search_phase_execution_exception",
            "reason":"all shards failed","phase":"query","grouped":true,"failed_shards":[]},"status":500}"#;
        let flat = r#"{"error":{"root_cause":[{"type":"too_many_clauses","reason":"maxClauseCount is set to 1024"}],
            "type":"search_phase_execution_exception","reason":"all shards failed"},"status":400}"#;
        let other = r#"{"error":{"root_cause":[{"type":"circuit_breaking_exception","reason":"Data too large"}],
            "type":"search_phase_execution_exception","reason":"all shards failed"},"status":500}"#;
        for body in [nested, flat] {
            for status in [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::BAD_REQUEST] {
                assert!(refused(status, body).is_too_broad(), "{body}");
            }
        }
        let other = refused(StatusCode::INTERNAL_SERVER_ERROR, other);
        assert!(!other.is_too_broad());
        assert!(matches!(other, SearchError::Rejected { kind, .. } if kind == "search_phase_execution_exception"));
    }
}
