//! Reads whole objects, and lists them by name.

mod page;

use std::time::SystemTime;

use aws::{Call, Method, s3};

use crate::objects::error::classify;
use crate::objects::{ObjectError, ObjectStore, check};

/// The maximum size of an object that is read, in bytes. The largest stored object is an
/// invocation's payload (6 MB).
pub const MAX_BYTES: usize = 16 << 20;
/// The maximum size of a list's page in bytes. It has room for 1,000 names of 1,024 bytes, each
/// byte encoded in three characters, and for S3's other data about each object.
const MAX_PAGE: usize = 4 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    pub name: String,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last write.
    pub modified: SystemTime,
}

/// A page of a list, in the byte order of the names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPage {
    pub items: Vec<ObjectInfo>,
    /// The name after which the next page begins, if there are more objects.
    pub next: Option<String>,
}

impl ObjectStore {
    /// Reads an object. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// [`ObjectError`]. It is [`ObjectError::TooLarge`] for an object above [`MAX_BYTES`].
    pub async fn get(&self, name: &str) -> Result<Option<Vec<u8>>, ObjectError> {
        check(name)?;
        let (path, headers) = (s3::object(name), [("x-amz-checksum-mode", "ENABLED")]);
        let call = Call { headers: &headers, max_response: MAX_BYTES, ..Call::new(Method::GET, &path) };
        let response = self.bucket.call(&call).await?;
        if response.status == 200 {
            return Ok(Some(response.body.into()));
        }
        match s3::error_code(&response).as_deref() {
            Some("NoSuchKey") => Ok(None),
            _ => Err(classify(&response)),
        }
    }

    /// Lists the objects with names that begin with `prefix` and come after `after`. Returns at
    /// most `limit` of them, 1 to 1,000.
    pub async fn list(&self, prefix: &str, after: Option<&str>, limit: u16) -> Result<ObjectPage, ObjectError> {
        let (limit, prefix) = (limit.clamp(1, 1000), s3::query(prefix));
        let after = after.map_or_else(String::new, |after| format!("&start-after={}", s3::query(after)));
        let path = format!("/?list-type=2&encoding-type=url&max-keys={limit}&prefix={prefix}{after}");
        let call = Call { max_response: MAX_PAGE, ..Call::new(Method::GET, &path) };
        let response = self.bucket.call(&call).await?;
        if response.status != 200 {
            return Err(classify(&response));
        }
        page::parse(&response.body).ok_or_else(|| ObjectError::Unavailable("a list that cannot be read".to_owned()))
    }
}
