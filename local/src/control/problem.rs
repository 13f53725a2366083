//! What goes wrong behind `/_local`.

use std::fmt::Display;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::json;

/// A status and a message, answered as `{"message": …}`.
#[derive(Debug)]
pub(super) struct Problem(StatusCode, String);

impl Problem {
    /// The request makes no sense.
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self(StatusCode::BAD_REQUEST, message.into())
    }

    /// The caller may not see it.
    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self(StatusCode::FORBIDDEN, message.into())
    }

    /// There is no such thing.
    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self(StatusCode::NOT_FOUND, message.into())
    }

    /// It cannot be done to this system's backends.
    pub(super) fn not_here(message: impl Into<String>) -> Self {
        Self(StatusCode::CONFLICT, message.into())
    }

    /// It takes too long.
    pub(super) fn timed_out(message: impl Into<String>) -> Self {
        Self(StatusCode::GATEWAY_TIMEOUT, message.into())
    }

    /// A backend failed.
    pub(super) fn failed(error: &impl Display) -> Self {
        Self(StatusCode::BAD_GATEWAY, error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.0, Json(json!({"message": self.1}))).into_response()
    }
}
