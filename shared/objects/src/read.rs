//! Objects are read whole, and listed by name.

mod page;

use std::time::SystemTime;

use aws::{Call, Method, s3};

use crate::error::classify;
use crate::{ObjectError, ObjectStore, check};

/// The largest object that is read: more than an invocation's payload (6 MB), which is the largest
/// thing that is stored.
pub const MAX_BYTES: usize = 16 << 20;
/// The longest page of a list: 1,000 names of 1,024 bytes, each byte encoded in three, and what S3
/// says of each object.
const MAX_PAGE: usize = 4 << 20;

/// An object, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Its name.
    pub name: String,
    /// How many bytes it has.
    pub size: u64,
    /// When it was written.
    pub modified: SystemTime,
}

/// A page of a list, in the byte order of the names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPage {
    /// What it shows.
    pub items: Vec<ObjectInfo>,
    /// The name after which the next page begins, if there are more.
    pub next: Option<String>,
}

impl ObjectStore {
    /// Reads an object; `None` when it is not there.
    ///
    /// # Errors
    /// [`ObjectError`], [`ObjectError::TooLarge`] above [`MAX_BYTES`].
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

    /// The objects whose name begins with `prefix` and comes after `after`: at most `limit`, 1 to 1,000.
    ///
    /// # Errors
    /// [`ObjectError`].
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
