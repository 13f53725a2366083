//! Objects of S3 that are written once and never changed.
//!
//! A name is derived from the object's content, so that writing it again is harmless;
//! [`ObjectStore::put_new`] lets the first writer win. Bodies are whole in memory: an object is an
//! item of the table or a batch of records, never a file of unknown length. So checksums cost
//! almost nothing. The SHA-256 of a body is signed and stored with the object, S3 compares it when
//! the object is written, and this crate compares it when the object is read. Objects that other
//! programs or earlier versions wrote have other checksums, which this crate does not compare.
//!
//! Errors name the error code of S3, never the name or content of an object, because archived items
//! belong to customers.

mod error;
mod read;
mod write;

use aws::s3::Bucket;

pub use aws::SetupError;
pub use error::ObjectError;
pub use read::{MAX_BYTES, ObjectInfo, ObjectPage};
pub use write::{Class, Put};

/// The longest name, in bytes of UTF-8: a limit of S3.
pub const MAX_NAME_BYTES: usize = 1024;

/// One bucket.
#[derive(Debug, Clone)]
pub struct ObjectStore {
    bucket: Bucket,
}

impl ObjectStore {
    /// The objects of a bucket.
    #[must_use]
    pub const fn new(bucket: Bucket) -> Self {
        Self { bucket }
    }

    /// From the environment: the variable that names the bucket, and the SDK's own (region, credentials, endpoint).
    ///
    /// # Errors
    /// [`SetupError`] when a variable is missing or the TLS client cannot be built.
    pub fn from_env(bucket_variable: &'static str) -> Result<Self, SetupError> {
        Bucket::from_env(bucket_variable).map(Self::new)
    }
}

/// Refuses a name that S3 would refuse, and control characters, which not every reader of a list
/// can handle.
fn check(name: &str) -> Result<(), ObjectError> {
    match name {
        "" => Err(ObjectError::Name("it is empty")),
        _ if name.len() > MAX_NAME_BYTES => Err(ObjectError::Name("it is longer than 1,024 bytes")),
        _ if name.contains(char::is_control) => Err(ObjectError::Name("it has a control character")),
        _ => Ok(()),
    }
}
