//! Objects of S3 that are written once and never changed.
//!
//! The caller derives an object's name from the stream record, so a second write for the same
//! record is harmless: [`ObjectStore::put_new`] keeps the first object. An object is one item of
//! the table or one batch of records, so its whole body is in memory. Computing a checksum
//! therefore costs almost nothing.
//!
//! The SHA-256 of a body is signed and stored with the object. S3 verifies the checksum when the
//! object is written. This crate verifies it when the object is read.
//!
//! Errors contain the error code of S3, never the name or content of an object, because archived
//! items belong to customers.

mod error;
mod read;
mod write;

use aws::s3::Bucket;

use aws::SetupError;
pub use error::ObjectError;
pub use read::{MAX_BYTES, ObjectInfo, ObjectPage};
pub use write::{Class, Put};

/// The maximum length of a name in bytes of UTF-8, a limit of S3.
pub const MAX_NAME_BYTES: usize = 1024;

#[derive(Debug, Clone)]
pub struct ObjectStore {
    bucket: Bucket,
}

impl ObjectStore {
    #[must_use]
    pub const fn new(bucket: Bucket) -> Self {
        Self { bucket }
    }

    /// Creates a store from the environment: `bucket_variable` names the bucket, and the SDK's
    /// variables give region, credentials and endpoint.
    pub fn from_env(bucket_variable: &'static str) -> Result<Self, SetupError> {
        Bucket::from_env(bucket_variable).map(Self::new)
    }
}

/// Refuses names that S3 would refuse. Also refuses control characters, because some programs that
/// read lists of objects cannot handle them.
fn check(name: &str) -> Result<(), ObjectError> {
    match name {
        "" => Err(ObjectError::Name("it is empty")),
        _ if name.len() > MAX_NAME_BYTES => Err(ObjectError::Name("it is longer than 1,024 bytes")),
        _ if name.contains(char::is_control) => Err(ObjectError::Name("it has a control character")),
        _ => Ok(()),
    }
}
