//! Objects are written once, and deleted.

use std::time::Duration;

use aws::OPERATION_TIMEOUT;
use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::types::StorageClass;
use bytes::Bytes;
use tokio::time::{sleep, timeout};

use crate::error::classify;
use crate::{ObjectError, ObjectStore, check};

/// What S3 calls two conditional writes of one name at the same moment: one of them has to come again.
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
        let deleted = self.client.delete_object().bucket(&self.bucket).key(name).send().await;
        deleted.map(|_| ()).map_err(|error| classify(&error))
    }

    /// One attempt, with the SDK's retries; `None` when it met another write of the name.
    async fn attempt(&self, name: &str, body: &Bytes, class: Class) -> Result<Option<Put>, ObjectError> {
        let class = match class {
            Class::Standard => StorageClass::Standard,
            Class::Cold => StorageClass::GlacierIr,
        };
        let put = self.client.put_object().bucket(&self.bucket).key(name).if_none_match("*");
        let put = put.content_type("application/json").storage_class(class).body(body.clone().into());
        let Err(error) = put.send().await else { return Ok(Some(Put::Created)) };
        match error.as_service_error().and_then(ProvideErrorMetadata::code) {
            Some("PreconditionFailed") => Ok(Some(Put::AlreadyThere)),
            Some(CONFLICT) => Ok(None),
            _ => Err(classify(&error)),
        }
    }
}
