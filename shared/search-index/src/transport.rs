//! One HTTP call to the engine.
//!
//! Every call of this client may be repeated. Reads have no effect. A write of a document carries
//! an external version, and the deletion of a tombstone has a condition. A repeated change of
//! indices or aliases is harmless, or the engine refuses it. All transient failures are therefore
//! retried until the attempts or the time run out, for every HTTP method.

use aws::{CallError, Failure, Response, Service};
use bytes::Bytes;
use http::{Method, StatusCode};
use tokio::time::Instant;

use crate::config::SearchConfig;
use crate::error::SearchError;

/// The maximum size of a response in bytes. A page of 1,000 hits or the outcomes of a full bulk
/// request are far smaller.
const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Transport {
    service: Service,
}

#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub method: Method,
    pub path: &'a str,
    pub content_type: &'static str,
    pub body: Bytes,
}

/// The engine's final response. Its status is not transient.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: StatusCode,
    pub body: Bytes,
}

impl Transport {
    pub(crate) fn new(config: &SearchConfig) -> Self {
        let endpoint = config.endpoint.to_string();
        let service = Service::new(config.connector.clone(), &endpoint, config.signing.clone());
        Self { service: service.with_limits(config.limits) }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.service.limits().deadline()
    }

    /// Returns the deadline of a call that begins now and has the time of one attempt.
    pub(crate) fn attempt_deadline(&self) -> Instant {
        Instant::now() + self.service.limits().attempt
    }

    /// Makes the call. Retries it after a response with status 429, 502, 503 or 504, or if no
    /// response arrives, until the attempts or the time run out.
    pub(crate) async fn call(&self, call: &Call<'_>, deadline: Instant) -> Result<Answer, SearchError> {
        let content_type = [("content-type", call.content_type)];
        let call = aws::Call {
            method: call.method.clone(),
            path: call.path,
            headers: if call.body.is_empty() { &[] } else { &content_type },
            body: call.body.clone(),
            max_response: MAX_ANSWER_BYTES,
        };
        let says_later = |response: &Response| is_transient(response.status);
        let Response { status, body, attempts, .. } = self.service.call_until(deadline, &call, says_later).await?;
        if is_transient(status) {
            return Err(SearchError::Unavailable { attempts, reason: format!("status {status}") });
        }
        let status = StatusCode::from_u16(status).map_err(|error| SearchError::Answer(error.to_string()))?;
        Ok(Answer { status, body })
    }

    /// Waits before the next attempt. Returns `false` if the limits allow no further attempt.
    pub(crate) async fn pause(&self, attempts: u32, deadline: Instant) -> bool {
        self.service.limits().pause(attempts, deadline).await
    }
}

impl From<CallError> for SearchError {
    fn from(CallError { failure, attempts }: CallError) -> Self {
        match failure {
            Failure::Invalid(reason) => Self::Request(reason),
            Failure::TooLong(_) => Self::Answer(failure.to_string()),
            failure => Self::Unavailable { attempts, reason: failure.to_string() },
        }
    }
}

/// Returns whether a status is transient. It may be the status of a response, or of one item in a
/// bulk response.
pub(crate) fn is_transient(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}
