//! Objects that clients upload and read directly. Each presigned URL is for one object.
//!
//! A Lambda function computes a URL without a request to S3. The URL's query contains a signature
//! (Signature Version 4). The signature also covers the headers that the client must send. S3
//! refuses a request with another name, media type or length, and any request after the URL has
//! expired. The Lambda function's own calls (describe, read, write, copy, delete) carry the
//! signature in a header. All of them are idempotent and are retried.
//!
//! Errors contain the error code of S3, but never an object's name, and never a URL, because anyone
//! with a URL may use it.

mod call;

use std::time::{Duration, SystemTime};

use aws::s3::{self, Bucket};
use aws::{Call, Method};

use aws::SetupError;
pub use call::Described;

pub const UPLOAD_LIFE: Duration = Duration::from_secs(15 * 60);
/// The lifetime of a URL for reading. When a client gets a URL, at least three quarters of this
/// time are left.
pub const READ_LIFE: Duration = Duration::from_secs(60 * 60);
/// The time for which an object keeps its URL for reading, so that browsers can cache the object.
const READ_STEP: Duration = Duration::from_secs(15 * 60);

/// A request without a usable response, or a URL that cannot be created. The messages contain no
/// name and no URL.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// Even after retries there was no usable response in time, or only a transient error. The
    /// request may or may not have taken effect.
    #[error("the object store did not answer: {0}")]
    Unavailable(String),
    /// S3 refuses the request, or the request cannot be built: a defect of this program or of the
    /// deployment.
    #[error("the object store refused the request: {0}")]
    Refused(String),
    /// The request could not be signed.
    #[error("a request cannot be signed: {0}")]
    Signing(String),
}

/// A bucket with objects that clients upload and read.
#[derive(Debug)]
pub struct Media {
    bucket: Bucket,
}

#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    pub content_type: &'a str,
    pub bytes: u64,
    /// The base64 of the SHA-256 checksum, if the client knows it.
    pub sha256: Option<&'a str>,
}

/// The parameter with which S3 sends `Cache-Control: no-cache`.
const NO_CACHE: &str = "?response-cache-control=no-cache";

/// A permission to upload one object, with `PUT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    pub url: String,
    /// The headers that the client must send unchanged.
    pub headers: Vec<(&'static str, String)>,
    /// The time until which the upload may begin.
    pub expires_at: SystemTime,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    pub url: String,
    pub expires_at: SystemTime,
}

impl Media {
    /// Creates a [`Media`] from the environment: `bucket_variable` names the bucket, and the SDK's
    /// variables give region, credentials and endpoint.
    pub fn from_env(bucket_variable: &'static str) -> Result<Self, SetupError> {
        Bucket::from_env(bucket_variable).map(Self::new)
    }

    #[must_use]
    pub const fn new(bucket: Bucket) -> Self {
        Self { bucket }
    }

    pub async fn upload(&self, name: &str, expected: Expected<'_>, now: SystemTime) -> Result<Upload, MediaError> {
        let mut headers =
            vec![("content-length", expected.bytes.to_string()), ("content-type", expected.content_type.to_owned())];
        headers.extend(expected.sha256.map(|sum| ("x-amz-checksum-sha256", sum.to_owned())));
        let url = self.presign(Method::PUT, &s3::object(name), &headers, now, UPLOAD_LIFE).await?;
        Ok(Upload { url, headers, expires_at: now + UPLOAD_LIFE })
    }

    /// Creates the permission to read one object. The permission starts at the last full quarter of
    /// an hour. All calls within a quarter of an hour return the same URL.
    ///
    /// A browser may show the picture first, and read the same URL with `fetch` later. S3 sends CORS
    /// headers only to requests with an `Origin`, so a page could not read the browser's copy. With
    /// `no-cache` the browser asks S3 before it uses the copy, and gets the headers with the 304.
    pub async fn reading(&self, name: &str, now: SystemTime) -> Result<Reading, MediaError> {
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(since - since % READ_STEP.as_secs());
        let url = self.presign(Method::GET, &(s3::object(name) + NO_CACHE), &[], start, READ_LIFE).await?;
        Ok(Reading { url, expires_at: start + READ_LIFE })
    }

    async fn presign(
        &self,
        method: Method,
        path: &str,
        headers: &[(&'static str, String)],
        from: SystemTime,
        life: Duration,
    ) -> Result<String, MediaError> {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let call = Call { headers: &headers, ..Call::new(method, path) };
        self.bucket.presign(&call, from, life).await.map_err(|failure| MediaError::Signing(failure.to_string()))
    }
}
