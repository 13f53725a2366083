//! The client of CloudWatch, with one call: `GetInsightRuleReport`, in its JSON protocol.
//!
//! Reading a report changes nothing, so the client retries after every transient failure.

use std::time::Duration;

use aws::{Api, Call, CallError, Failure, Limits, Method, Response, Service, SetupError, is_transient};
use serde_json::json;

use crate::report::{MAX_CONTRIBUTORS, PERIOD_SECONDS, Report};

/// The timeouts and retries of a call to CloudWatch.
const LIMITS: Limits = Limits {
    attempt: Duration::from_secs(3),
    total: aws::OPERATION_TIMEOUT,
    attempts: 6,
    backoff: Duration::from_millis(50),
};
/// The maximum size of a response. It is several times the size of a hundred of the longest keys.
const MAX_RESPONSE: usize = 4 << 20;
/// The headers of the operation, with the service's name in this protocol.
const HEADERS: [(&str, &str); 2] = [
    ("content-type", "application/x-amz-json-1.0"),
    ("x-amz-target", "GraniteServiceVersion20100801.GetInsightRuleReport"),
];

/// The reason why CloudWatch returned no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The call is invalid, or CloudWatch refuses it. A retry would fail as well.
    #[error("CloudWatch gives no report: {0}")]
    Refused(String),
    /// CloudWatch was busy, or did not respond in time.
    #[error("CloudWatch cannot be reached: {0}")]
    Unavailable(String),
}

/// CloudWatch in one region.
#[derive(Debug)]
pub struct CloudWatch {
    service: Service,
}

impl CloudWatch {
    /// Creates a client from the SDK's variables of region, credentials and endpoint.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn from_env() -> Result<Self, SetupError> {
        Service::from_env(Api::CloudWatch).map(Self::new)
    }

    /// Creates a client of this service.
    #[must_use]
    pub fn new(service: Service) -> Self {
        Self { service: service.with_limits(LIMITS) }
    }

    /// Returns a rule's largest contributors in each minute between two times, in seconds since
    /// 1970.
    ///
    /// # Errors
    /// [`ReportError`].
    pub async fn report(&self, rule: &str, (from, to): (i64, i64)) -> Result<Report, ReportError> {
        let body = json!({
            "RuleName": rule,
            "StartTime": from,
            "EndTime": to,
            "Period": PERIOD_SECONDS,
            "MaxContributorCount": MAX_CONTRIBUTORS,
        });
        let body = body.to_string().into();
        let call = Call { headers: &HEADERS, body, max_response: MAX_RESPONSE, ..Call::new(Method::POST, "/") };
        let response = self.service.call(&call, says_later).await?;
        if response.status == 200 {
            let report = serde_json::from_slice(&response.body);
            return report.map_err(|error| ReportError::Refused(format!("not a report: {error}")));
        }
        let reason = format!("status {} {}", response.status, response.json_error().unwrap_or_default());
        Err(if says_later(&response) { ReportError::Unavailable(reason) } else { ReportError::Refused(reason) })
    }
}

fn says_later(response: &Response) -> bool {
    is_transient(response.status, response.json_error().as_deref())
}

impl From<CallError> for ReportError {
    fn from(error: CallError) -> Self {
        match error.failure {
            failure @ (Failure::Invalid(_) | Failure::TooLong(_)) => Self::Refused(failure.to_string()),
            failure => Self::Unavailable(failure.to_string()),
        }
    }
}
