use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// The reason why a request, or one item of a bulk request, was rejected.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Problem {
    pub status: StatusCode,
    /// OpenSearch's name of the error.
    pub kind: &'static str,
    pub reason: String,
}

impl Problem {
    fn new(status: StatusCode, kind: &'static str, reason: impl Into<String>) -> Self {
        Self { status, kind, reason: reason.into() }
    }

    /// The query is invalid, or this emulator does not support it.
    pub(super) fn parsing(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "parsing_exception", reason)
    }

    pub(super) fn illegal(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "illegal_argument_exception", reason)
    }

    /// The mapping is invalid, or a document does not fit it.
    pub(super) fn mapping(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "mapper_parsing_exception", reason)
    }

    /// A document has a field that a strict mapping lacks.
    pub(super) fn unknown_field(field: &str) -> Self {
        let reason = format!("mapping set to strict, dynamic introduction of [{field}] within [_doc] is not allowed");
        Self::new(StatusCode::BAD_REQUEST, "strict_dynamic_mapping_exception", reason)
    }

    pub(super) fn no_such_index(name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "index_not_found_exception", format!("no such index [{name}]"))
    }

    pub(super) fn no_such_alias(name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "aliases_not_found_exception", format!("aliases [{name}] missing"))
    }

    /// The alias has several indices, but the request needs one.
    pub(super) fn many_indices(alias: &str) -> Self {
        let reason =
            format!("alias [{alias}] has more than one index associated with it, can't execute a single index op");
        Self::new(StatusCode::BAD_REQUEST, "illegal_argument_exception", reason)
    }

    pub(super) fn not_an_alias(name: &str) -> Self {
        let reason =
            format!("no such index [{name}] and [require_alias] request flag is [true] and [{name}] is not an alias");
        Self::new(StatusCode::NOT_FOUND, "index_not_found_exception", reason)
    }

    pub(super) fn index_exists(name: &str) -> Self {
        let reason = format!("index [{name}] already exists");
        Self::new(StatusCode::BAD_REQUEST, "resource_already_exists_exception", reason)
    }

    pub(super) fn index_name(name: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_index_name_exception", format!("Invalid index name [{name}]"))
    }

    pub(super) fn version_conflict(id: &str, current: u64, provided: u64) -> Self {
        let reason = format!(
            "[{id}]: version conflict, current version [{current}] is higher than the one provided [{provided}]"
        );
        Self::new(StatusCode::CONFLICT, "version_conflict_engine_exception", reason)
    }

    /// The state of the document differs from the state that the operation requires.
    pub(super) fn state_conflict(id: &str, required: (u64, u64)) -> Self {
        let (seq_no, term) = required;
        let reason = format!("[{id}]: version conflict, required seqNo [{seq_no}], primary term [{term}]");
        Self::new(StatusCode::CONFLICT, "version_conflict_engine_exception", reason)
    }

    /// OpenSearch's error when its write queue is full.
    pub(super) fn throttled() -> Self {
        let reason = "rejected execution of the operation: the queue is full";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "rejected_execution_exception", reason)
    }

    pub(super) fn unavailable() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "cluster_block_exception", "the service is unavailable")
    }

    /// The emulator itself failed.
    pub(super) fn internal(error: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "exception", error.to_string())
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"type": self.kind, "reason": self.reason})
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let cause = self.to_json();
        let body = json!({
            "error": {"root_cause": [cause], "type": self.kind, "reason": self.reason},
            "status": self.status.as_u16(),
        });
        (self.status, axum::Json(body)).into_response()
    }
}
