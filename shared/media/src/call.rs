//! What a function asks of the bucket itself: to describe, copy and delete one object. Each may be done twice.

use aws::{Call, CallError, Failure, Method, Response, s3};

use crate::{Media, MediaError};

/// What an object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// Its media type.
    pub content_type: String,
    /// Its length.
    pub bytes: u64,
}

impl Media {
    /// What an object is; `None` when it is not there.
    ///
    /// # Errors
    /// [`MediaError`].
    pub async fn describe(&self, name: &str) -> Result<Option<Described>, MediaError> {
        let response = self.bucket.call(&Call::new(Method::HEAD, &s3::object(name))).await?;
        let length = response.header("content-length").and_then(|length| length.parse().ok());
        match (response.status, response.header("content-type"), length) {
            (200, Some(content_type), Some(bytes)) => {
                Ok(Some(Described { content_type: content_type.to_owned(), bytes }))
            }
            (404, ..) => Ok(None),
            _ => Err(refused(&response)),
        }
    }

    /// Copies an object with its media type, over another of the name; `false` when it is not there.
    ///
    /// # Errors
    /// [`MediaError`]; after [`MediaError::Unavailable`] it may be copied.
    pub async fn copy(&self, from: &str, to: &str) -> Result<bool, MediaError> {
        let (source, path) = (format!("{}{}", self.bucket.name(), s3::object(from)), s3::object(to));
        let headers = [("x-amz-copy-source", source.as_str())];
        let response = self.bucket.call(&Call { headers: &headers, ..Call::new(Method::PUT, &path) }).await?;
        match (response.status, s3::error_code(&response).as_deref()) {
            (200, None) => Ok(true),
            (404, Some("NoSuchKey")) => Ok(false),
            _ => Err(refused(&response)),
        }
    }

    /// Deletes an object; one that is not there is as good as deleted.
    ///
    /// # Errors
    /// [`MediaError`]; after [`MediaError::Unavailable`] it may be gone.
    pub async fn delete(&self, name: &str) -> Result<(), MediaError> {
        let response = self.bucket.call(&Call::new(Method::DELETE, &s3::object(name))).await?;
        if matches!(response.status, 200 | 204) { Ok(()) } else { Err(refused(&response)) }
    }
}

impl From<CallError> for MediaError {
    fn from(error: CallError) -> Self {
        match error.failure {
            Failure::Invalid(reason) => Self::Refused(reason),
            failure => Self::Unavailable(failure.to_string()),
        }
    }
}

/// Classifies a response that is no success. It may be the last of several that said "later".
fn refused(response: &Response) -> MediaError {
    let code = s3::error_code(response);
    // An error in a response that began well is one of S3 itself.
    let is_passing = response.status == 200 || aws::is_transient(response.status, code.as_deref());
    match (is_passing, code) {
        (true, _) => MediaError::Unavailable(format!("status {}", response.status)),
        (false, Some(code)) => MediaError::Refused(code),
        (false, None) => MediaError::Refused(format!("status {}", response.status)),
    }
}
