//! How S3 is reached: objects that are written once and never changed.
//!
//! A name is derived from what the object holds, so that writing it again is harmless; [`ObjectStore::put_new`] lets the first writer win.
//! Bodies are whole in memory: what is stored here is an item of the table or a batch of records, never a file of unknown length.
//! That is also why checksums cost nothing to speak of: the SDK sends the CRC-32 of such a body as a header, S3 compares, and no body is sent in
//! chunks with a trailer.
//!
//! Errors name the error code of S3, never the name or content of an object: what is archived is somebody's.

mod error;
mod read;
mod write;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::Builder;

pub use aws::SetupError;
pub use error::ObjectError;
pub use read::{MAX_BYTES, ObjectInfo, ObjectPage};
pub use write::{Class, Put};

/// The longest name, in bytes of UTF-8: a limit of S3.
pub const MAX_NAME_BYTES: usize = 1024;

/// One bucket, with the client that reaches it.
#[derive(Debug, Clone)]
pub struct ObjectStore {
    client: Client,
    bucket: String,
}

impl ObjectStore {
    /// Over a client that is already built.
    #[must_use]
    pub const fn new(client: Client, bucket: String) -> Self {
        Self { client, bucket }
    }

    /// From the environment: the variable that names the bucket, and the SDK's own (region, credentials, endpoint).
    ///
    /// # Errors
    /// [`SetupError`] when the variable is missing or the TLS client cannot be built.
    pub async fn from_env(bucket_variable: &'static str) -> Result<Self, SetupError> {
        Self::over(&aws::config().await?, bucket_variable)
    }

    /// Over the configuration that a function shares among its clients; the variable names the bucket.
    ///
    /// # Errors
    /// [`SetupError::NotSet`] when the variable is missing.
    pub fn over(config: &aws::SdkConfig, bucket_variable: &'static str) -> Result<Self, SetupError> {
        let bucket = aws::variable(bucket_variable)?;
        // AWS names a bucket by host; another endpoint is one host only, so that the bucket goes into the path.
        let elsewhere = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"].into_iter().any(|name| aws::variable(name).is_ok());
        let config = Builder::from(config).force_path_style(elsewhere).build();
        Ok(Self::new(Client::from_conf(config), bucket))
    }
}

/// Refuses a name that S3 would not take, or could not list: XML has no control characters.
fn check(name: &str) -> Result<(), ObjectError> {
    match name {
        "" => Err(ObjectError::Name("it is empty")),
        _ if name.len() > MAX_NAME_BYTES => Err(ObjectError::Name("it is longer than 1,024 bytes")),
        _ if name.contains(char::is_control) => Err(ObjectError::Name("it has a control character")),
        _ => Ok(()),
    }
}
