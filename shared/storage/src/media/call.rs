//! A Lambda function's own calls to the bucket: describe, read, write, copy or delete one object. All
//! of them are idempotent.

use aws::{Call, CallError, Failure, Method, Response, s3};
use bytes::Bytes;

use crate::media::{Media, MediaError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    pub content_type: String,
    pub bytes: u64,
}

impl Media {
    /// Returns the properties of an object, or `None` if it does not exist.
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

    /// Reads an object of at most `most` bytes. Returns `None` if it does not exist.
    pub async fn read(&self, name: &str, most: usize) -> Result<Option<Bytes>, MediaError> {
        let path = s3::object(name);
        let response = self.bucket.call(&Call { max_response: most, ..Call::new(Method::GET, &path) }).await?;
        match response.status {
            200 => Ok(Some(response.body)),
            404 => Ok(None),
            _ => Err(refused(&response)),
        }
    }

    /// Writes an object, and overwrites an existing one.
    ///
    /// # Errors
    /// [`MediaError`]. After [`MediaError::Unavailable`] the object may have been written.
    pub async fn write(&self, name: &str, content_type: &str, body: Bytes) -> Result<(), MediaError> {
        let (path, sum) = (s3::object(name), s3::checksum(&body));
        let headers = [("content-type", content_type), ("x-amz-checksum-sha256", sum.as_str())];
        let response = self.bucket.call(&Call { headers: &headers, body, ..Call::new(Method::PUT, &path) }).await?;
        if response.status == 200 { Ok(()) } else { Err(refused(&response)) }
    }

    /// Copies an object with its media type, and overwrites an existing target. Returns `false` if
    /// the source does not exist.
    ///
    /// # Errors
    /// [`MediaError`]. After [`MediaError::Unavailable`] the object may have been copied.
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

    /// Deletes an object. A missing object counts as deleted.
    ///
    /// # Errors
    /// [`MediaError`]. After [`MediaError::Unavailable`] the object may have been deleted.
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

/// Classifies the response of a failed call. The call was already retried, but the failure may
/// still be transient.
fn refused(response: &Response) -> MediaError {
    let code = s3::error_code(response);
    // S3 reports some internal errors with status 200 and an error document.
    let is_passing = response.status == 200 || aws::is_transient(response.status, code.as_deref());
    match (is_passing, code) {
        (true, _) => MediaError::Unavailable(format!("status {}", response.status)),
        (false, Some(code)) => MediaError::Refused(code),
        (false, None) => MediaError::Refused(format!("status {}", response.status)),
    }
}
