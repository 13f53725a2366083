//! Buckets for the tests.

use std::sync::Arc;
use std::time::Duration;

use aws::{Credentials, Limits, SharedCredentialsProvider};
use emulators::objects::{ObjectInfo, ObjectServer};
use serde_json::Value;
use storage::objects::ObjectStore;

const BUCKET: &str = "bodega-test";

/// A bucket of an object store in this process, which can be made to fail.
pub struct Bucket {
    pub server: ObjectServer,
    pub store: Arc<ObjectStore>,
}

impl Bucket {
    pub async fn create() -> Self {
        let server = ObjectServer::start(None, &[BUCKET.to_owned()]).await.unwrap();
        let credentials = SharedCredentialsProvider::new(Credentials::new("local", "local", None, None, "test"));
        let bucket = aws::s3::Bucket::new(BUCKET, "us-east-1", Some(server.url()), credentials).unwrap();
        let (attempt, backoff) = (Duration::from_millis(1500), Duration::from_millis(1));
        let limits = Limits { attempt, attempts: 2, backoff, ..Limits::default() };
        let store = Arc::new(ObjectStore::new(bucket.with_limits(limits)));
        Self { server, store }
    }

    /// Returns every object in the bucket.
    pub fn objects(&self) -> Vec<ObjectInfo> {
        self.server.list(BUCKET, None, 1_000).unwrap().items
    }

    /// Returns the names of the objects.
    pub fn names(&self) -> Vec<String> {
        self.objects().into_iter().map(|object| object.name).collect()
    }

    /// Returns the text of an object.
    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.server.get(BUCKET, name).unwrap().unwrap().to_vec()).unwrap()
    }

    /// Returns an object's JSON.
    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).unwrap()
    }

    /// Returns the JSON of every object.
    pub fn all(&self) -> Vec<Value> {
        self.names().iter().map(|name| self.json(name)).collect()
    }
}
