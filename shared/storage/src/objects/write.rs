//! Writes objects once, and deletes them.

use std::time::Duration;

use aws::{Call, Method, OPERATION_TIMEOUT, s3};
use bytes::Bytes;
use tokio::time::{sleep, timeout};

use crate::objects::error::classify;
use crate::objects::{ObjectError, ObjectStore, check};

/// S3's error code for two concurrent conditional writes of one name. One of the two writes must be
/// retried.
const CONFLICT: &str = "ConditionalRequestConflict";
/// The maximum wait in milliseconds after each conflicting attempt, with full jitter.
const WAITS: [u64; 6] = [50, 100, 200, 400, 800, 0];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    Created,
    /// The name already existed, and its object is unchanged. If the response of an earlier attempt
    /// of this call was lost, that attempt may have created the object.
    AlreadyThere,
}

/// The storage class of an object, which determines its price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Standard,
    /// S3 Glacier Instant Retrieval: a sixth of Standard's storage price, readable at once. S3
    /// bills each object for at least 90 days and at least 128 KB. A write costs four times as much
    /// as in Standard. The class pays off for objects over about 22 KB with a long lifetime.
    Cold,
}

impl ObjectStore {
    /// Writes a JSON object unless its name already exists (`If-None-Match: *`).
    ///
    /// # Errors
    /// [`ObjectError`]. After [`ObjectError::Unavailable`] the object may exist.
    pub async fn put_new(&self, name: &str, body: Vec<u8>, class: Class) -> Result<Put, ObjectError> {
        check(name)?;
        // All attempts share the same bytes.
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

    /// Deletes an object. A missing object counts as deleted.
    ///
    /// # Errors
    /// [`ObjectError`]. After [`ObjectError::Unavailable`] the object may have been deleted.
    pub async fn delete(&self, name: &str) -> Result<(), ObjectError> {
        check(name)?;
        let response = self.bucket.call(&Call::new(Method::DELETE, &s3::object(name))).await?;
        if matches!(response.status, 200 | 204) { Ok(()) } else { Err(classify(&response)) }
    }

    /// Makes one call, with the retries that every call has. Returns `None` after a conflict with
    /// another write of the same name.
    async fn attempt(&self, name: &str, body: &Bytes, class: Class) -> Result<Option<Put>, ObjectError> {
        let class = match class {
            Class::Standard => "STANDARD",
            Class::Cold => "GLACIER_IR",
        };
        let (sum, length) = (s3::checksum(body), body.len().to_string());
        let headers = [
            // S3 requires a length even for an empty body, but the HTTP client sends no length in
            // this case.
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
