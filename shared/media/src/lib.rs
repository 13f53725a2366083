//! Objects that clients upload and read themselves, by URLs that are signed here and good for one of them.
//!
//! A URL is computed, not asked for: Signature Version 4 in the query, with the headers that the
//! client must send. S3 refuses every other name, media type and length, and everything once the
//! URL has expired. The calls of a function (describe, copy, delete) are signed in their headers.
//! All three can be repeated without harm, and are.
//!
//! Errors name the error code of S3, never an object or a URL: a URL is a permission.

mod call;

use std::time::{Duration, SystemTime};

use aws::s3::{self, Bucket};
use aws::{Call, Method};

pub use aws::SetupError;
pub use call::Described;

/// For how long an upload may begin.
pub const UPLOAD_LIFE: Duration = Duration::from_secs(15 * 60);
/// For how long a URL to read by is good at most; at least for three quarters of it.
pub const READ_LIFE: Duration = Duration::from_secs(60 * 60);
/// Within so long the same object has the same URL, so that a browser has what it reads by it already.
const READ_STEP: Duration = Duration::from_secs(15 * 60);

/// A request that has no answer, or a URL that cannot be made. None of them quotes a name or a URL.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// No answer in time, a broken one or "later", also after retries: what was asked may or may not have happened.
    #[error("the object store did not answer: {0}")]
    Unavailable(String),
    /// S3 or the credentials refuse the request: a defect of this program or of the deployment.
    #[error("the object store refused the request: {0}")]
    Refused(String),
    /// The request could not be signed.
    #[error("a request cannot be signed: {0}")]
    Signing(String),
}

/// A bucket whose objects clients upload and read.
#[derive(Debug)]
pub struct Media {
    bucket: Bucket,
}

/// What an upload must be.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// Its media type.
    pub content_type: &'a str,
    /// Its length.
    pub bytes: u64,
    /// The base64 of its SHA-256, where the client knows it.
    pub sha256: Option<&'a str>,
}

/// A permission to upload one object, with `PUT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// Where to.
    pub url: String,
    /// The headers that must come with it, as they are.
    pub headers: Vec<(&'static str, String)>,
    /// Until when it may begin.
    pub expires_at: SystemTime,
}

/// A permission to read one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Where.
    pub url: String,
    /// Until when.
    pub expires_at: SystemTime,
}

impl Media {
    /// From the environment: the variable that names the bucket, and the SDK's own (region, credentials, endpoint).
    ///
    /// # Errors
    /// [`SetupError`] when a variable is missing or the TLS client cannot be built.
    pub fn from_env(bucket_variable: &'static str) -> Result<Self, SetupError> {
        Bucket::from_env(bucket_variable).map(Self::new)
    }

    /// The objects of a bucket.
    #[must_use]
    pub const fn new(bucket: Bucket) -> Self {
        Self { bucket }
    }

    /// Permits to upload one object.
    ///
    /// # Errors
    /// [`MediaError::Signing`].
    pub async fn upload(&self, name: &str, expected: Expected<'_>, now: SystemTime) -> Result<Upload, MediaError> {
        let mut headers =
            vec![("content-length", expected.bytes.to_string()), ("content-type", expected.content_type.to_owned())];
        headers.extend(expected.sha256.map(|sum| ("x-amz-checksum-sha256", sum.to_owned())));
        let url = self.presign(Method::PUT, name, &headers, now, UPLOAD_LIFE).await?;
        Ok(Upload { url, headers, expires_at: now + UPLOAD_LIFE })
    }

    /// Permits to read one object: from the beginning of the present quarter of an hour, so that it is the same until the next.
    ///
    /// # Errors
    /// [`MediaError::Signing`].
    pub async fn reading(&self, name: &str, now: SystemTime) -> Result<Reading, MediaError> {
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(since - since % READ_STEP.as_secs());
        let url = self.presign(Method::GET, name, &[], start, READ_LIFE).await?;
        Ok(Reading { url, expires_at: start + READ_LIFE })
    }

    async fn presign(
        &self,
        method: Method,
        name: &str,
        headers: &[(&'static str, String)],
        from: SystemTime,
        life: Duration,
    ) -> Result<String, MediaError> {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let path = s3::object(name);
        let call = Call { headers: &headers, ..Call::new(method, &path) };
        self.bucket.presign(&call, from, life).await.map_err(|failure| MediaError::Signing(failure.to_string()))
    }
}
