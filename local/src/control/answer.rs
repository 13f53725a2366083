//! Problems, and the pages of lists in a fixed order.

use std::fmt::Display;

use axum::Json;
use axum::response::{IntoResponse, Response};
use emulators::Page;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) const PAGE: usize = 1000;

#[derive(Debug, Deserialize)]
pub(super) struct Parameters {
    /// The number of entries on all earlier pages.
    pub(super) cursor: Option<String>,
}

impl Parameters {
    pub(super) fn after(&self) -> Result<u64, Problem> {
        match self.cursor.as_deref().map(str::parse) {
            None => Ok(0),
            Some(Ok(after)) => Ok(after),
            Some(Err(_)) => Err(Problem::bad_request("the cursor does not belong to this list")),
        }
    }
}

pub(super) fn paged<T>(page: Page<T>, item: impl Fn(T) -> Value) -> Value {
    let next_cursor = page.more.then(|| page.next.to_string());
    let items: Vec<Value> = page.items.into_iter().map(item).collect();
    json!({"items": items, "next_cursor": next_cursor})
}

/// A status and a message. The response body is `{"message": …}`.
#[derive(Debug)]
pub(super) struct Problem(StatusCode, String);

impl Problem {
    /// The request is invalid (400).
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self(StatusCode::BAD_REQUEST, message.into())
    }

    /// The caller has no access (403).
    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self(StatusCode::FORBIDDEN, message.into())
    }

    /// The resource does not exist (404).
    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self(StatusCode::NOT_FOUND, message.into())
    }

    /// The backends of this system do not support the request (409).
    pub(super) fn not_here(message: impl Into<String>) -> Self {
        Self(StatusCode::CONFLICT, message.into())
    }

    /// The wait timed out (504).
    pub(super) fn timed_out(message: impl Into<String>) -> Self {
        Self(StatusCode::GATEWAY_TIMEOUT, message.into())
    }

    /// A backend failed (502).
    pub(super) fn failed(error: &impl Display) -> Self {
        Self(StatusCode::BAD_GATEWAY, error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.0, Json(json!({"message": self.1}))).into_response()
    }
}
