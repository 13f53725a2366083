//! Buckets of a test, and identities as they are spelled.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{BehaviorVersion, Config, Credentials, Region};
use emulators::objects::{ObjectInfo, ObjectServer};
use objects::ObjectStore;
use serde_json::Value;

const BUCKET: &str = "bodega-test";

/// One bucket of an object store in this process, which can be made to fail.
pub struct Bucket {
    pub server: ObjectServer,
    pub store: Arc<ObjectStore>,
}

impl Bucket {
    pub async fn create() -> Self {
        let server = ObjectServer::start(None, &[BUCKET.to_owned()]).await.unwrap();
        let timeouts = TimeoutConfig::builder().operation_attempt_timeout(Duration::from_millis(1500)).build();
        let config = Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("local", "local", None, None, "test"))
            .endpoint_url(server.url())
            .force_path_style(true)
            .retry_config(RetryConfig::standard().with_max_attempts(2).with_initial_backoff(Duration::from_millis(1)))
            .timeout_config(timeouts)
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .build();
        let store = Arc::new(ObjectStore::new(Client::from_conf(config), BUCKET.to_owned()));
        Self { server, store }
    }

    /// Every object that lies there.
    pub fn objects(&self) -> Vec<ObjectInfo> {
        self.server.list(BUCKET, None, 1_000).unwrap().items
    }

    /// Their names.
    pub fn names(&self) -> Vec<String> {
        self.objects().into_iter().map(|object| object.name).collect()
    }

    /// The text of an object.
    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.server.get(BUCKET, name).unwrap().unwrap().to_vec()).unwrap()
    }

    /// An object's JSON.
    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).unwrap()
    }

    /// The JSON of every object.
    pub fn all(&self) -> Vec<Value> {
        self.names().iter().map(|name| self.json(name)).collect()
    }
}
