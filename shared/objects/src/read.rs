//! Objects are read whole, and listed by name.

use std::time::SystemTime;

use aws::OPERATION_TIMEOUT;
use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::operation::get_object::GetObjectOutput;
use aws_sdk_s3::types::Object;
use tokio::time::timeout;

use crate::error::classify;
use crate::{ObjectError, ObjectStore, check};

/// The largest object that is read: more than an invocation's payload (6 MB), which is the largest thing that lies here.
pub const MAX_BYTES: usize = 16 << 20;
/// Attempts to read a body that breaks off; the SDK repeats a request only until its answer begins.
const ATTEMPTS: u32 = 3;

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
        let read = async {
            for _ in 1..ATTEMPTS {
                match self.read(name).await {
                    Err(Broken::Body) => {}
                    read => return read,
                }
            }
            self.read(name).await
        };
        // The SDK's own timeout ends where the body begins.
        let read = timeout(OPERATION_TIMEOUT, read).await.map_err(|_| ObjectError::timeout())?;
        read.map_err(|broken| match broken {
            Broken::Body => ObjectError::Unavailable("broken answer".to_owned()),
            Broken::Answer(error) => error,
        })
    }

    /// The objects whose name begins with `prefix` and comes after `after`: at most `limit`, 1 to 1,000.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub async fn list(&self, prefix: &str, after: Option<&str>, limit: u16) -> Result<ObjectPage, ObjectError> {
        let list = self.client.list_objects_v2().bucket(&self.bucket).prefix(prefix);
        let list = list.set_start_after(after.map(str::to_owned)).max_keys(i32::from(limit.clamp(1, 1000)));
        let page = list.send().await.map_err(|error| classify(&error))?;
        let more = page.is_truncated == Some(true);
        let items: Vec<ObjectInfo> = page.contents.unwrap_or_default().into_iter().filter_map(info).collect();
        let next = items.last().filter(|_| more).map(|last| last.name.clone());
        Ok(ObjectPage { items, next })
    }

    async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Broken> {
        match self.client.get_object().bucket(&self.bucket).key(name).send().await {
            Ok(object) => collect(object).await.map(Some),
            Err(error) if error.as_service_error().and_then(ProvideErrorMetadata::code) == Some("NoSuchKey") => {
                Ok(None)
            }
            Err(error) => Err(Broken::Answer(classify(&error))),
        }
    }
}

/// Why an object was not read.
enum Broken {
    /// The answer began and broke off, or is not what was stored.
    Body,
    Answer(ObjectError),
}

async fn collect(object: GetObjectOutput) -> Result<Vec<u8>, Broken> {
    let length = object.content_length.and_then(|length| usize::try_from(length).ok());
    if length.is_some_and(|length| length > MAX_BYTES) {
        return Err(Broken::Answer(ObjectError::TooLarge));
    }
    let (mut stream, mut body) = (object.body, Vec::with_capacity(length.unwrap_or_default()));
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|_| Broken::Body)?;
        if body.len() + chunk.len() > MAX_BYTES {
            return Err(Broken::Answer(ObjectError::TooLarge));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn info(object: Object) -> Option<ObjectInfo> {
    let size = object.size.and_then(|size| u64::try_from(size).ok()).unwrap_or_default();
    let modified = object.last_modified.and_then(|at| SystemTime::try_from(at).ok()).unwrap_or(SystemTime::UNIX_EPOCH);
    Some(ObjectInfo { name: object.key?, size, modified })
}
