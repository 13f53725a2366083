//! Objects are written once, and deleted.

use std::time::Duration;

use aws::{Call, Method, OPERATION_TIMEOUT, s3};
use bytes::Bytes;
use tokio::time::{sleep, timeout};

use crate::error::classify;
use crate::{ObjectError, ObjectStore, check};

/// S3's error code for two conditional writes of one name at the same moment. One of them must be
/// repeated.
const CONFLICT: &str = "ConditionalRequestConflict";
/// After each attempt that met another write, the longest wait in milliseconds before the next: full jitter.
const WAITS: [u64; 6] = [50, 100, 200, 400, 800, 0];

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// The object is new.
    Created,
    /// The name was taken; what lies there is as it was. It may be our own: an attempt whose answer was lost.
    AlreadyThere,
}

/// How an object is stored, and what that costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// S3 Standard.
    Standard,
    /// S3 Glacier Instant Retrieval: a sixth of Standard's price, read at once. Billed for at least 90 days and 128 KB, and four times as
    /// much a write, so that it pays for objects over about 22 KB that are kept for long.
    Cold,
}

impl ObjectStore {
    /// Writes a JSON object unless its name is taken (`If-None-Match: *`).
    ///
    /// # Errors
    /// [`ObjectError`]; after [`ObjectError::Unavailable`] the object may be there.
    pub async fn put_new(&self, name: &str, body: Vec<u8>, class: Class) -> Result<Put, ObjectError> {
        check(name)?;
        // Each attempt refers to the same bytes.
        let body = Bytes::from(body);
        let attempts = async {
            for wait in WAITS {
                if let Some(put) = self.attempt(name, &body, class).await? {
                    return Ok(put);
                }
                sleep(Duration::from_millis(wait).mul_f64(fastrand::f64())).await;
            }
            Err(ObjectError::Unavailable(CONFLICT.to_owned()))
        };
        timeout(OPERATION_TIMEOUT, attempts).await.map_err(|_| ObjectError::timeout())?
    }

    /// Deletes an object; one that is not there is as good as deleted.
    ///
    /// # Errors
    /// [`ObjectError`]; after [`ObjectError::Unavailable`] the object may be gone.
    pub async fn delete(&self, name: &str) -> Result<(), ObjectError> {
        check(name)?;
        let response = self.bucket.call(&Call::new(Method::DELETE, &s3::object(name))).await?;
        if matches!(response.status, 200 | 204) { Ok(()) } else { Err(classify(&response)) }
    }

    /// One attempt, with the retries of every call; `None` when it met another write of the name.
    async fn attempt(&self, name: &str, body: &Bytes, class: Class) -> Result<Option<Put>, ObjectError> {
        let class = match class {
            Class::Standard => "STANDARD",
            Class::Cold => "GLACIER_IR",
        };
        let (sum, length) = (s3::checksum(body), body.len().to_string());
        let headers = [
            // S3 demands a length also of an empty body, for which the HTTP client sends none.
            ("content-length", length.as_str()),
            ("content-type", "application/json"),
            ("if-none-match", "*"),
            (s3::CHECKSUM, sum.as_str()),
            ("x-amz-storage-class", class),
        ];
        let (path, body) = (s3::object(name), body.clone());
        let response = self.bucket.call(&Call { headers: &headers, body, ..Call::new(Method::PUT, &path) }).await?;
        match s3::error_code(&response).as_deref() {
            None if response.status == 200 => Ok(Some(Put::Created)),
            Some("PreconditionFailed") => Ok(Some(Put::AlreadyThere)),
            Some(CONFLICT) => Ok(None),
            _ => Err(classify(&response)),
        }
    }
}
