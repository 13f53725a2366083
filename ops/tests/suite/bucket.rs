//! A bucket of one test.

use std::sync::Arc;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Config, Credentials, Region};
use bytes::Bytes;
use emulators::objects::ObjectServer;
use objects::ObjectStore;

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

    /// One of several on a server.
    pub fn of(server: &Arc<ObjectServer>, name: &'static str) -> Self {
        let config = Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("local", "local", None, None, "test"))
            .endpoint_url(server.url())
            .force_path_style(true)
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .build();
        let store = ObjectStore::new(Client::from_conf(config), name.to_owned());
        Self { server: Arc::clone(server), name, store }
    }

    /// Puts an object, over one that is there.
    pub fn put(&self, name: &str, body: &str) {
        self.server.put(self.name, name, Bytes::from(body.to_owned())).unwrap();
    }

    /// The names of all objects.
    pub async fn names(&self) -> Vec<String> {
        self.store.list("", None, 1_000).await.unwrap().items.into_iter().map(|object| object.name).collect()
    }
}
