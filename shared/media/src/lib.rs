//! Objects that clients upload and read themselves, by URLs that are signed here and good for one of them.
//!
//! A URL is computed, not asked for: Signature Version 4 in the query, with the headers that the client must send. S3 refuses every other name, media type
//! and length, and everything once the URL has expired. What a function does itself (look, copy, delete) goes by such URLs, too, so there is
//! one way to sign. All three can be repeated without harm, and are.
//!
//! This is not `objects`, whose SDK would be linked into a function that answers for product pages: three calls and one signature do not need it.
//!
//! Errors name the error code of S3, never an object or a URL: a URL is a permission.

mod call;
mod sign;

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use aws::Connector;
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_credential_types::provider::SharedCredentialsProvider;

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

/// A bucket, and who signs.
#[derive(Debug)]
pub struct Media {
    /// What comes before an object's name in a URL.
    base: String,
    region: String,
    credentials: SharedCredentialsProvider,
    /// Made with the first call: most functions that sign never make one, and it costs the reading of certificates.
    connector: OnceLock<Result<Connector, String>>,
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
    /// [`SetupError::NotSet`] when a variable is missing.
    pub fn from_env(bucket_variable: &'static str) -> Result<Self, SetupError> {
        let (bucket, region) = (aws::variable(bucket_variable)?, aws::variable("AWS_REGION")?);
        let endpoint =
            ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"].into_iter().find_map(|name| aws::variable(name).ok());
        let credentials = SharedCredentialsProvider::new(EnvironmentVariableCredentialsProvider::new());
        Ok(Self::new(&bucket, region, endpoint.as_deref(), credentials))
    }

    /// A bucket of a region, at an endpoint of its own or at AWS's.
    #[must_use]
    pub fn new(bucket: &str, region: String, endpoint: Option<&str>, credentials: SharedCredentialsProvider) -> Self {
        let base = match endpoint {
            // AWS names a bucket by host; another endpoint is one host only, so that the bucket goes into the path.
            Some(endpoint) => format!("{}/{bucket}", endpoint.trim_end_matches('/')),
            None if region.starts_with("cn-") => format!("https://{bucket}.s3.{region}.amazonaws.com.cn"),
            None => format!("https://{bucket}.s3.{region}.amazonaws.com"),
        };
        Self { base, region, credentials, connector: OnceLock::new() }
    }

    /// Permits to upload one object. The name must be of characters that a URL has as they are.
    ///
    /// # Errors
    /// [`MediaError::Signing`].
    pub async fn upload(&self, name: &str, expected: Expected<'_>, now: SystemTime) -> Result<Upload, MediaError> {
        let mut headers =
            vec![("content-length", expected.bytes.to_string()), ("content-type", expected.content_type.to_owned())];
        headers.extend(expected.sha256.map(|sum| ("x-amz-checksum-sha256", sum.to_owned())));
        let url = self.sign("PUT", name, &headers, now, UPLOAD_LIFE).await?;
        Ok(Upload { url, headers, expires_at: now + UPLOAD_LIFE })
    }

    /// Permits to read one object: from the beginning of the present quarter of an hour, so that it is the same until the next.
    ///
    /// # Errors
    /// [`MediaError::Signing`].
    pub async fn reading(&self, name: &str, now: SystemTime) -> Result<Reading, MediaError> {
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(since - since % READ_STEP.as_secs());
        let url = self.sign("GET", name, &[], start, READ_LIFE).await?;
        Ok(Reading { url, expires_at: start + READ_LIFE })
    }
}
