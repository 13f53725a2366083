use aws::{CallError, Failure, Response, s3};

/// A reason why a request has no usable response. The messages contain no name and no body.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The bucket is at its request limit, even after retries. Nothing was done.
    #[error("the object store is throttled")]
    Throttled,
    /// There was no usable response in time. A write may or may not have happened.
    #[error("the object store did not answer: {0}")]
    Unavailable(String),
    /// The credentials do not allow the request.
    #[error("the object store denies access: {0}")]
    Denied(String),
    /// S3 refuses the request itself: a defect of this program or of the deployment.
    #[error("the object store refused the request: {0}")]
    Refused(String),
    /// The name is invalid, so no request was sent.
    #[error("the name of the object is invalid: {0}")]
    Name(&'static str),
    /// The object is larger than [`MAX_BYTES`](crate::objects::MAX_BYTES), so it was not read.
    #[error("the object is too large to be read")]
    TooLarge,
}

impl ObjectError {
    /// Returns whether the same request may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Throttled | Self::Unavailable(_))
    }

    pub(crate) fn timeout() -> Self {
        Self::Unavailable(Failure::Timeout.to_string())
    }
}

const THROTTLES: [&str; 4] = ["SlowDown", "ThrottlingException", "Throttling", "RequestLimitExceeded"];
/// The error codes of a failure in S3 or on the network.
const FAILURES: [&str; 5] =
    ["InternalError", "ServiceUnavailable", "RequestTimeout", "OperationAborted", "ConditionalRequestConflict"];
/// The error codes of insufficient or invalid credentials.
const DENIALS: [&str; 6] =
    ["AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AccountProblem"];

impl From<CallError> for ObjectError {
    fn from(error: CallError) -> Self {
        match error.failure {
            Failure::TooLong(_) => Self::TooLarge,
            Failure::Invalid(reason) => Self::Refused(reason),
            failure => Self::Unavailable(failure.to_string()),
        }
    }
}

/// Classifies the response of a failed call. The caller has already handled every status that is a
/// normal outcome of its call.
pub(crate) fn classify(response: &Response) -> ObjectError {
    let status = response.status;
    match s3::error_code(response) {
        Some(code) if THROTTLES.contains(&code.as_str()) => ObjectError::Throttled,
        Some(code) if FAILURES.contains(&code.as_str()) => ObjectError::Unavailable(code),
        Some(code) if DENIALS.contains(&code.as_str()) => ObjectError::Denied(code),
        // A proxy may respond without an error code.
        _ if status == 429 => ObjectError::Throttled,
        _ if status >= 500 => ObjectError::Unavailable(format!("status {status}")),
        _ if status == 401 || status == 403 => ObjectError::Denied(format!("status {status}")),
        Some(code) => ObjectError::Refused(code),
        None => ObjectError::Refused(format!("status {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, code: Option<&str>) -> ObjectError {
        let body = code.map_or_else(String::new, |code| {
            format!("<Error><Message>a customer's archive</Message><Code>{code}</Code></Error>")
        });
        classify(&Response { status, body: body.into(), ..Response::default() })
    }

    #[test]
    fn an_error_says_whether_a_retry_helps_and_does_not_quote_the_message_of_s3() {
        for (status, code, text, again) in [
            (503, Some("SlowDown"), "the object store is throttled", true),
            (429, None, "the object store is throttled", true),
            (500, Some("InternalError"), "the object store did not answer: InternalError", true),
            (502, None, "the object store did not answer: status 502", true),
            (409, Some("OperationAborted"), "the object store did not answer: OperationAborted", true),
            (403, Some("AccessDenied"), "the object store denies access: AccessDenied", false),
            (400, Some("ExpiredToken"), "the object store denies access: ExpiredToken", false),
            (403, None, "the object store denies access: status 403", false),
            (404, Some("NoSuchBucket"), "the object store refused the request: NoSuchBucket", false),
            (400, None, "the object store refused the request: status 400", false),
        ] {
            let error = answered(status, code);
            assert_eq!(error.to_string(), text, "{status} {code:?}");
            assert_eq!(error.is_retryable(), again, "{status} {code:?}");
        }
    }
}
