//! What can go wrong between a request and its answer.

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};

/// A request that has no answer. None of them quotes a name or a body.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The bucket takes no more at the moment, also after retries. Nothing was done.
    #[error("the object store is throttled")]
    Throttled,
    /// No answer in time or a broken one: a write may or may not have happened.
    #[error("the object store did not answer: {0}")]
    Unavailable(String),
    /// The credentials do not allow it.
    #[error("the object store denies access: {0}")]
    Denied(String),
    /// S3 refuses the request as such: a defect of this program or of the deployment.
    #[error("the object store refused the request: {0}")]
    Refused(String),
    /// Refused before it was sent.
    #[error("not a name of an object: {0}")]
    Name(&'static str),
    /// The object is larger than [`MAX_BYTES`](crate::MAX_BYTES); it was not read.
    #[error("the object is too large to be read")]
    TooLarge,
}

impl ObjectError {
    /// Whether the same request may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Throttled | Self::Unavailable(_))
    }

    pub(crate) fn timeout() -> Self {
        Self::Unavailable("timeout".to_owned())
    }
}

/// The error codes by which S3 says "later".
const THROTTLES: [&str; 4] = ["SlowDown", "ThrottlingException", "Throttling", "RequestLimitExceeded"];
/// The error codes of a failure on the other side, or on the way.
const FAILURES: [&str; 5] =
    ["InternalError", "ServiceUnavailable", "RequestTimeout", "OperationAborted", "ConditionalRequestConflict"];
/// The error codes of credentials that do not suffice.
const DENIALS: [&str; 6] =
    ["AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AccountProblem"];

/// Sorts a failed call. Answers that mean something to a caller were looked at before.
pub(crate) fn classify<E>(error: &SdkError<E, aws_sdk_s3::config::http::HttpResponse>) -> ObjectError
where
    E: ProvideErrorMetadata,
{
    match error {
        SdkError::ServiceError(service) => {
            let status = service.raw().status().as_u16();
            match service.err().code() {
                Some(code) if THROTTLES.contains(&code) => ObjectError::Throttled,
                Some(code) if FAILURES.contains(&code) => ObjectError::Unavailable(code.to_owned()),
                Some(code) if DENIALS.contains(&code) => ObjectError::Denied(code.to_owned()),
                // An answer to HEAD, or one of a proxy on the way, has no body that says more.
                _ if status == 429 => ObjectError::Throttled,
                _ if status >= 500 => ObjectError::Unavailable(format!("status {status}")),
                _ if status == 401 || status == 403 => ObjectError::Denied(format!("status {status}")),
                Some(code) => ObjectError::Refused(code.to_owned()),
                None => ObjectError::Refused(format!("status {status}")),
            }
        }
        SdkError::ConstructionFailure(_) => ObjectError::Refused("the request could not be built".to_owned()),
        SdkError::TimeoutError(_) => ObjectError::timeout(),
        SdkError::DispatchFailure(failure) if failure.is_timeout() => ObjectError::timeout(),
        SdkError::DispatchFailure(failure) if failure.is_io() => ObjectError::Unavailable("connection".to_owned()),
        SdkError::DispatchFailure(_) => ObjectError::Unavailable("dispatch".to_owned()),
        _ => ObjectError::Unavailable("broken answer".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use aws_sdk_s3::config::http::HttpResponse;
    use aws_sdk_s3::error::ErrorMetadata;
    use aws_sdk_s3::primitives::SdkBody;

    use super::*;

    fn answered(status: u16, code: Option<&str>) -> ObjectError {
        let mut error = ErrorMetadata::builder().message("a customer's archive");
        if let Some(code) = code {
            error = error.code(code);
        }
        let raw = HttpResponse::new(status.try_into().unwrap(), SdkBody::empty());
        classify(&SdkError::service_error(error.build(), raw))
    }

    #[test]
    fn an_answer_says_whether_to_come_again_and_quotes_nothing() {
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
