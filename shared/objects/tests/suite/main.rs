//! The object store against S3's wire protocol, as the emulator speaks it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod broken;
mod environment;
mod faults;
mod objects;

use std::time::Duration;

use ::objects::ObjectStore;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{BehaviorVersion, Config, Credentials, Region};
use emulators::objects::ObjectServer;

const BUCKET: &str = "bodega-archive";

async fn start() -> (ObjectServer, ObjectStore) {
    let server = ObjectServer::start(None, &[BUCKET.to_owned()]).await.unwrap();
    let store = store(&server);
    (server, store)
}

fn store(server: &ObjectServer) -> ObjectStore {
    ObjectStore::new(client(server), BUCKET.to_owned())
}

fn client(server: &ObjectServer) -> Client {
    client_within(server.url(), Duration::from_secs(3))
}

/// As deployed, but for pauses and an attempt's time, so that tests do not wait.
fn client_within(url: &str, attempt: Duration) -> Client {
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(attempt).build();
    let config = Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .endpoint_url(url)
        .force_path_style(true)
        .retry_config(RetryConfig::standard().with_max_attempts(4).with_initial_backoff(Duration::from_millis(1)))
        .timeout_config(timeouts)
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .build();
    Client::from_conf(config)
}
