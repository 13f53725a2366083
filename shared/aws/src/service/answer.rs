//! A response, read completely, and the error code in it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use super::Failure;
use crate::connector::Answer;

#[derive(Debug, Clone, Default)]
pub struct Response {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub attempts: u32,
}

/// The error codes that services use to throttle requests. The SDK has the same list.
const THROTTLES: [&str; 14] = [
    "BandwidthLimitExceeded",
    "EC2ThrottledException",
    "LimitExceededException",
    "PriorRequestNotComplete",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionInProgressException",
];

/// Returns whether a response of an AWS service says that the same request may succeed later.
/// `code` is the error code, if there is one.
#[must_use]
pub fn is_transient(status: u16, code: Option<&str>) -> bool {
    matches!(status, 429 | 500 | 502 | 503 | 504)
        || code.is_some_and(|code| THROTTLES.contains(&code) || code.starts_with("RequestTimeout"))
}

impl Response {
    /// Reads the body. Waits at most `limit` for each part of it.
    pub(super) async fn read(
        response: http::Response<Answer>,
        max: usize,
        attempts: u32,
        limit: Duration,
    ) -> Result<Self, Failure> {
        let (head, mut body) = response.into_parts();
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let mut read = BytesMut::with_capacity(announced.min(max));
        let is_error = head.status.is_client_error() || head.status.is_server_error();
        if announced > max && !is_error {
            return Err(Failure::TooLong(max));
        }
        while let Some(frame) = timeout(limit, body.frame()).await.map_err(|_| Failure::Timeout)? {
            let Ok(data) = frame.map_err(|_| Failure::Broken)?.into_data() else { continue };
            if read.len() + data.len() > max {
                if is_error {
                    // A proxy may send a long error page. The caller needs only the status, so the
                    // rest of the page is not read.
                    break;
                }
                return Err(Failure::TooLong(max));
            }
            read.extend_from_slice(&data);
        }
        Ok(Self { status: head.status.as_u16(), headers: head.headers, body: read.freeze(), attempts })
    }

    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the error code of a service with a JSON protocol, without its namespace. It comes
    /// from the header `x-amzn-errortype`, or else from the body.
    #[must_use]
    pub fn json_error(&self) -> Option<String> {
        // As in the SDK, `code` takes precedence over `__type`.
        #[derive(Default, Deserialize)]
        struct Refusal {
            code: Option<Value>,
            __type: Option<Value>,
        }
        let from_body = || {
            let Refusal { code, __type } = serde_json::from_slice(&self.body).unwrap_or_default();
            [code, __type].into_iter().flatten().find_map(|code| code.as_str().map(str::to_owned))
        };
        let code = self.header("x-amzn-errortype").map(str::to_owned).or_else(from_body)?;
        let code = code.split(':').next().unwrap_or_default();
        Some(code.rsplit('#').next().unwrap_or_default().to_owned())
    }
}
