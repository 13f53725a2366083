//! Tests of presigned URLs against the emulated object store, and of a Lambda function's own calls.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod calls;
mod grants;
mod urls;

use aws::s3::Bucket;
use aws::{Credentials, SharedCredentialsProvider};
use emulators::objects::ObjectServer;
use reqwest::{Client, Method};
use storage::media::Media;

const BUCKET: &str = "bodega-media";

async fn start() -> (ObjectServer, Media) {
    let server = ObjectServer::start(None, &[BUCKET.to_owned(), "other".to_owned()]).await.unwrap();
    let media = media(&server, None);
    (server, media)
}

/// Creates a client with the identity of `function`, if one is given.
fn media(server: &ObjectServer, function: Option<&str>) -> Media {
    let credentials = Credentials::new("local", "local", function.map(str::to_owned), None, "test");
    let credentials = SharedCredentialsProvider::new(credentials);
    Media::new(Bucket::new(BUCKET, "us-east-1", Some(server.url()), credentials).unwrap())
}

/// Sends a request. Returns the status of the response, and the error code of an error.
async fn send(method: Method, url: &str, headers: &[(&str, &str)], body: &'static [u8]) -> (u16, String) {
    let mut request = Client::new().request(method, url).body(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    let (status, body) = (answer.status().as_u16(), answer.text().await.unwrap());
    let code = body.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    (status, code.map_or("", |(code, _)| code).to_owned())
}
