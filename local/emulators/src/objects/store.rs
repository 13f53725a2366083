use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::Error;
use super::files::Folder;

pub(super) const MAX_NAME_BYTES: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last write, in whole seconds.
    pub modified: SystemTime,
    /// Storage class: `STANDARD`, `GLACIER_IR`, …
    pub class: String,
}

/// A page of a list, in the byte order of the names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPage {
    pub items: Vec<ObjectInfo>,
    /// The name after which the next page starts, if there is one.
    pub next: Option<String>,
}

/// Properties of an object besides its name and body.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Properties {
    pub(super) size: u64,
    /// Seconds since 1970.
    pub(super) modified: u64,
    pub(super) class: String,
    pub(super) content_type: String,
    pub(super) etag: String,
    pub(super) crc32: u32,
    /// The checksum that the writer sent, as it was in the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sha256: Option<String>,
}

struct Object {
    properties: Properties,
    /// The body in memory. `None` if it is in the folder.
    body: Option<Bytes>,
}

type Objects = BTreeMap<String, Object>;

struct Bucket {
    objects: Mutex<Objects>,
    folder: Option<Folder>,
}

pub(super) struct Store(BTreeMap<String, Bucket>);

impl Store {
    /// Opens the buckets with these names. Their objects are in the folder, or in memory.
    pub(super) fn open(data: Option<&Path>, names: &[String]) -> Result<Self, Error> {
        let mut buckets = BTreeMap::new();
        for name in names {
            if !is_bucket_name(name) {
                return Err(Error::BucketName(name.clone()));
            }
            let folder = data.map(|data| Folder::open(&data.join(name))).transpose()?;
            let mut objects = Objects::new();
            if let Some(folder) = &folder {
                folder.each(|name, properties| {
                    objects.insert(name, Object { properties, body: None });
                })?;
            }
            buckets.insert(name.clone(), Bucket { objects: Mutex::new(objects), folder });
        }
        Ok(Self(buckets))
    }

    pub(super) fn has(&self, bucket: &str) -> bool {
        self.0.contains_key(bucket)
    }

    /// Writes an object. With `new` it writes only if no object has this name. Returns whether it
    /// wrote. Writes to a bucket are serialized. So if several callers write a new name at the same
    /// time, only one succeeds.
    pub(super) fn put(&self, bucket: &str, name: &str, body: &Bytes, kind: Kind, new: bool) -> Result<bool, Error> {
        if !is_name(name) {
            return Err(Error::Name);
        }
        let bucket = self.bucket(bucket)?;
        let properties = properties(body, kind);
        let mut objects = bucket.objects();
        if new && objects.contains_key(name) {
            return Ok(false);
        }
        let body = match &bucket.folder {
            Some(folder) => {
                folder.write(name, &properties, body)?;
                None
            }
            None => Some(body.clone()),
        };
        objects.insert(name.to_owned(), Object { properties, body });
        Ok(true)
    }

    pub(super) fn get(&self, bucket: &str, name: &str) -> Result<Option<(Properties, Bytes)>, Error> {
        let bucket = self.bucket(bucket)?;
        let objects = bucket.objects();
        let Some(object) = objects.get(name) else { return Ok(None) };
        let body = match (&object.body, &bucket.folder) {
            (Some(body), _) => body.clone(),
            (None, Some(folder)) => folder.read(name)?,
            (None, None) => Bytes::new(),
        };
        Ok(Some((object.properties.clone(), body)))
    }

    /// Returns the properties of an object, or `None` if it does not exist.
    pub(super) fn describe(&self, bucket: &str, name: &str) -> Result<Option<Properties>, Error> {
        Ok(self.bucket(bucket)?.objects().get(name).map(|object| object.properties.clone()))
    }

    pub(super) fn delete(&self, bucket: &str, name: &str) -> Result<(), Error> {
        let bucket = self.bucket(bucket)?;
        let mut objects = bucket.objects();
        if objects.contains_key(name) {
            if let Some(folder) = &bucket.folder {
                folder.remove(name)?;
            }
            objects.remove(name);
        }
        Ok(())
    }

    pub(super) fn list(&self, bucket: &str, prefix: &str, after: &str, limit: usize) -> Result<ListPage, Error> {
        let objects = self.bucket(bucket)?.objects();
        let start = if after < prefix { Bound::Included(prefix) } else { Bound::Excluded(after) };
        let range = objects.range::<str, _>((start, Bound::Unbounded));
        let mut found = range.take_while(|(name, _)| name.starts_with(prefix));
        let items: Vec<(String, Properties)> =
            found.by_ref().take(limit).map(|(name, object)| (name.clone(), object.properties.clone())).collect();
        let more = limit > 0 && found.next().is_some();
        Ok(ListPage { items, more })
    }

    fn bucket(&self, name: &str) -> Result<&Bucket, Error> {
        self.0.get(name).ok_or_else(|| Error::NoBucket(name.to_owned()))
    }
}

impl Bucket {
    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The properties that the writer chooses.
pub(super) struct Kind {
    pub(super) class: String,
    pub(super) content_type: String,
    pub(super) sha256: Option<String>,
}

pub(super) struct ListPage {
    pub(super) items: Vec<(String, Properties)>,
    pub(super) more: bool,
}

impl From<ListPage> for ObjectPage {
    fn from(page: ListPage) -> Self {
        let next = page.items.last().filter(|_| page.more).map(|(name, _)| name.clone());
        let info = |(name, properties): (String, Properties)| ObjectInfo {
            name,
            size: properties.size,
            modified: properties.modified(),
            class: properties.class,
        };
        Self { items: page.items.into_iter().map(info).collect(), next }
    }
}

impl Properties {
    pub(super) fn modified(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.modified)
    }
}

fn properties(body: &Bytes, kind: Kind) -> Properties {
    let crc32 = crc32fast::hash(body);
    Properties {
        size: u64::try_from(body.len()).unwrap_or(u64::MAX),
        modified: UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs()),
        class: kind.class,
        content_type: kind.content_type,
        // S3's ETag is not always an MD5, so clients must not rely on its form.
        etag: format!("\"{crc32:08x}-{}\"", body.len()),
        crc32,
        sha256: kind.sha256,
    }
}

fn is_bucket_name(name: &str) -> bool {
    let ends = [name.bytes().next(), name.bytes().next_back()];
    (3..=63).contains(&name.len())
        && ends.into_iter().flatten().all(|byte| byte.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
}

/// Returns whether S3 accepts the name: whether it has 1 to 1,024 bytes, and no `..` leads to a
/// path above the bucket.
pub(super) fn is_name(name: &str) -> bool {
    let mut depth = 0_i64;
    let inside = name.split('/').all(|segment| {
        depth += match segment {
            "" | "." => 0,
            ".." => -1,
            _ => 1,
        };
        depth >= 0
    });
    (1..=MAX_NAME_BYTES).contains(&name.len()) && inside
}
