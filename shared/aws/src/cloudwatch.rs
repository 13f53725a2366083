//! A client of CloudWatch that uses its JSON protocol. Its calls only read, so the client retries
//! after every transient failure.

use std::time::Duration;

use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Api, Call, CallError, Failure, Limits, OPERATION_TIMEOUT, Response, Service, SetupError, is_transient};

const LIMITS: Limits = Limits {
    attempt: Duration::from_secs(3),
    total: OPERATION_TIMEOUT,
    attempts: 6,
    backoff: Duration::from_millis(50),
};
/// The maximum size of a response in bytes. A response of this size can have 100,800 data points of
/// metrics, or 100 contributors with the longest keys.
const MAX_RESPONSE: usize = 8 << 20;
/// The service's name in this protocol.
const TARGET: &str = "GraniteServiceVersion20100801";

#[derive(Debug, thiserror::Error)]
pub enum CloudWatchError {
    /// The call is invalid, or CloudWatch refuses it. A retry would fail as well.
    #[error("CloudWatch refuses the call: {0}")]
    Refused(String),
    /// CloudWatch was busy, or did not respond in time.
    #[error("CloudWatch cannot be reached: {0}")]
    Unavailable(String),
}

#[derive(Debug)]
pub struct CloudWatch {
    service: Service,
}

impl CloudWatch {
    /// Creates a client from the SDK's variables of region, credentials and endpoint.
    pub fn from_env() -> Result<Self, SetupError> {
        Service::from_env(Api::CloudWatch).map(Self::new)
    }

    #[must_use]
    pub fn new(service: Service) -> Self {
        Self { service: service.with_limits(LIMITS) }
    }

    pub async fn read<T: DeserializeOwned>(
        &self,
        operation: &str,
        request: &impl Serialize,
    ) -> Result<T, CloudWatchError> {
        let refused = |error: serde_json::Error| CloudWatchError::Refused(error.to_string());
        let target = format!("{TARGET}.{operation}");
        let headers = [("content-type", "application/x-amz-json-1.0"), ("x-amz-target", target.as_str())];
        let body = serde_json::to_vec(request).map_err(refused)?.into();
        let call = Call { headers: &headers, body, max_response: MAX_RESPONSE, ..Call::new(Method::POST, "/") };
        let response = self.service.call(&call, is_retryable).await?;
        if response.status == 200 {
            return serde_json::from_slice(&response.body).map_err(refused);
        }
        let reason = format!("status {} {}", response.status, response.json_error().unwrap_or_default());
        let is_retryable = is_retryable(&response);
        Err(if is_retryable { CloudWatchError::Unavailable(reason) } else { CloudWatchError::Refused(reason) })
    }
}

fn is_retryable(response: &Response) -> bool {
    is_transient(response.status, response.json_error().as_deref())
}

impl From<CallError> for CloudWatchError {
    fn from(error: CallError) -> Self {
        match error.failure {
            failure @ (Failure::Invalid(_) | Failure::TooLong(_)) => Self::Refused(failure.to_string()),
            failure => Self::Unavailable(failure.to_string()),
        }
    }
}
