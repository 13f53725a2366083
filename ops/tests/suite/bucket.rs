//! A bucket for one test.

use std::sync::Arc;

use aws::{Credentials, SharedCredentialsProvider};
use bytes::Bytes;
use emulators::objects::ObjectServer;
use storage::objects::ObjectStore;

const NAME: &str = "bucket";

/// An empty bucket.
pub struct Bucket {
    server: Arc<ObjectServer>,
    name: &'static str,
    pub store: ObjectStore,
}

impl Bucket {
    pub async fn open() -> Self {
        let server = ObjectServer::start(None, &[NAME.to_owned()]).await.unwrap();
        Self::of(&Arc::new(server), NAME)
    }

    /// Opens one of several buckets of a server.
    pub fn of(server: &Arc<ObjectServer>, name: &'static str) -> Self {
        let credentials = SharedCredentialsProvider::new(Credentials::new("local", "local", None, None, "test"));
        let bucket = aws::s3::Bucket::new(name, "us-east-1", Some(server.url()), credentials).unwrap();
        let store = ObjectStore::new(bucket);
        Self { server: Arc::clone(server), name, store }
    }

    /// Writes an object, or replaces an existing object.
    pub fn put(&self, name: &str, body: &str) {
        self.server.put(self.name, name, Bytes::from(body.to_owned())).unwrap();
    }

    /// Returns the names of all objects.
    pub async fn names(&self) -> Vec<String> {
        self.store.list("", None, 1_000).await.unwrap().items.into_iter().map(|object| object.name).collect()
    }
}
