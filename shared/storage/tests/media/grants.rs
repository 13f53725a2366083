//! Tests that a URL has the permissions of its signer.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use emulators::access::{Access, Rule};
use reqwest::Method;
use storage::media::{Expected, Media};

use crate::{BUCKET, media, send, start};

fn allow(action: &str, resource: &str) -> Rule {
    let resource = format!("arn:aws:s3:::{BUCKET}{resource}");
    Rule { sid: None, allow: true, action: action.to_owned(), resource }
}

#[tokio::test]
async fn a_presigned_url_has_only_the_permissions_of_its_signer() {
    let (server, _) = start().await;
    let rules = vec![
        allow("s3:PutObject", "/pending/*"),
        allow("s3:GetObject", "/pending/*"),
        allow("s3:PutObject", "/kept/*"),
        allow("s3:GetObject", "/kept/*"),
    ];
    let access =
        Arc::new(Access::new("us-east-1", "000000000000", [("F".to_owned(), rules), ("G".to_owned(), vec![])]));
    server.enforce(Arc::clone(&access));
    let (allowed, other) = (media(&server, Some("F")), media(&server, Some("G")));
    let expected = Expected { content_type: "image/png", bytes: 1, sha256: None };
    let put = async |media: &Media, name| {
        let upload = media.upload(name, expected, SystemTime::now()).await.unwrap();
        send(Method::PUT, &upload.url, &[("content-type", "image/png")], b"x").await
    };
    assert_eq!(put(&allowed, "pending/a").await.0, 200);
    let denied = (403, "AccessDenied".to_owned());
    assert_eq!(put(&other, "pending/a").await, denied);
    assert_eq!(put(&allowed, "elsewhere/a").await, denied);
    assert!(allowed.copy("pending/a", "kept/a").await.unwrap());
    assert!(other.copy("pending/a", "kept/b").await.is_err());
    server.put(BUCKET, "secret", Bytes::from_static(b"x")).unwrap();
    assert!(allowed.copy("secret", "kept/b").await.is_err(), "a copy also reads its source");
    assert!(allowed.copy("pending/a", "elsewhere/b").await.is_err());
    // S3 reports a missing object only to callers that may list the bucket.
    assert!(allowed.describe("pending/b").await.is_err());
    let reading = allowed.reading("kept/a", SystemTime::now()).await.unwrap();
    assert_eq!(send(Method::GET, &reading.url, &[], b"").await.0, 200);
    let used: Vec<u64> = access.report()[0].grants.iter().map(|grant| grant.used).collect();
    assert_eq!(used, [1, 1, 1, 1]);
    // The URL now names a session that did not sign it, so S3 refuses the signature. The report
    // does not count the call, because no function has made it.
    let before = access.report();
    let forged = reading.url.replace("X-Amz-Security-Token=F", "X-Amz-Security-Token=G");
    assert_eq!(send(Method::GET, &forged, &[], b"").await, (403, "SignatureDoesNotMatch".to_owned()));
    assert_eq!(access.report(), before);
}
