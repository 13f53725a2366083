//! Tests of the object store against the emulator of S3's protocol.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod broken;
mod environment;
mod faults;
mod objects;

use std::time::Duration;

use aws::s3::Bucket;
use aws::{Credentials, Limits, SharedCredentialsProvider};
use emulators::objects::ObjectServer;
use storage::objects::ObjectStore;

const BUCKET: &str = "bodega-archive";

async fn start() -> (ObjectServer, ObjectStore) {
    let server = ObjectServer::start(None, &[BUCKET.to_owned()]).await.unwrap();
    let store = store(&server);
    (server, store)
}

fn store(server: &ObjectServer) -> ObjectStore {
    ObjectStore::new(bucket(server.url(), BUCKET))
}

fn bucket(url: &str, name: &str) -> Bucket {
    bucket_within(url, name, Duration::from_secs(3))
}

/// Creates the client of a bucket with the deployed limits, but with shorter pauses and the given
/// time limit of an attempt.
fn bucket_within(url: &str, name: &str, attempt: Duration) -> Bucket {
    let credentials = SharedCredentialsProvider::new(Credentials::new("local", "local", None, None, "test"));
    let bucket = Bucket::new(name, "us-east-1", Some(url), credentials).unwrap();
    bucket.with_limits(Limits { attempt, backoff: Duration::from_millis(1), ..Limits::default() })
}
