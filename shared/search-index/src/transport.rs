//! One HTTP call to the engine.
//!
//! Every call of this client may be made twice without harm: reads are reads, and writes carry an
//! external version. So every transient failure is retried, whatever the method.

use aws::{CallError, Failure, Response, Service};
use bytes::Bytes;
use http::{Method, StatusCode};
use tokio::time::Instant;

use crate::config::SearchConfig;
use crate::error::SearchError;

/// The longest answer that is read. A page of 1,000 hits or the outcomes of a full bulk request stay
/// far below.
const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Transport {
    service: Service,
}

/// What is asked. `path` begins with `/` and may hold a query string.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub method: Method,
    pub path: &'a str,
    pub content_type: &'static str,
    pub body: Bytes,
}

/// What the engine said, other than "later".
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

    /// When a call that begins now must have ended.
    pub(crate) fn deadline(&self) -> Instant {
        self.service.limits().deadline()
    }

    /// Makes the call, again and again while the engine answers 429, 502, 503, 504 or nothing,
    /// until the attempts or the time are used up.
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

    /// Waits before the next attempt; `false` if there is to be none.
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

/// Whether a status, of an answer or of one item of a bulk answer, says "later".
pub(crate) fn is_transient(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}
