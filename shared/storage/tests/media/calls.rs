//! Tests of a Lambda function's own calls to the bucket.

use std::time::{Duration, Instant};

use bytes::Bytes;
use emulators::faults::{Fault, FaultKind};
use storage::media::{Described, MediaError};

use crate::{BUCKET, start};

#[tokio::test]
async fn an_object_is_described_copied_and_deleted() {
    let (server, media) = start().await;
    assert_eq!(media.describe("a").await.unwrap(), None);
    assert!(!media.copy("a", "b").await.unwrap());
    server.put(BUCKET, "a", Bytes::from_static(b"12345")).unwrap();
    let described = Described { content_type: "application/json".to_owned(), bytes: 5 };
    assert_eq!(media.describe("a").await.unwrap().as_ref(), Some(&described));
    for _ in 0..2 {
        assert!(media.copy("a", "kept/picture/p~1").await.unwrap());
        assert_eq!(media.describe("kept/picture/p~1").await.unwrap().as_ref(), Some(&described));
    }
    assert_eq!(media.read("a", 5).await.unwrap().as_deref(), Some(&b"12345"[..]));
    assert!(media.read("a", 4).await.is_err());
    assert_eq!(media.read("none", 5).await.unwrap(), None);
    for body in [&b"first"[..], b"second"] {
        media.write("c", "image/jpeg", Bytes::from_static(body)).await.unwrap();
        assert_eq!(media.read("c", 9).await.unwrap().as_deref(), Some(body));
    }
    assert_eq!(media.describe("c").await.unwrap().unwrap().content_type, "image/jpeg");
    for _ in 0..2 {
        media.delete("a").await.unwrap();
        assert_eq!(media.describe("a").await.unwrap(), None);
    }
    assert_eq!(server.get(BUCKET, "kept/picture/p~1").unwrap().as_deref(), Some(&b"12345"[..]));
}

#[tokio::test]
async fn a_call_to_a_busy_store_is_retried_and_fails_if_the_store_stays_busy() {
    let (server, media) = start().await;
    server.put(BUCKET, "a", Bytes::from_static(b"1")).unwrap();
    let break_with = |kind, count| server.faults().add(Fault { kind, rate: 1.0, count: Some(count), seed: 1 }).unwrap();
    for kind in [FaultKind::Throttle, FaultKind::Error, FaultKind::Reset, FaultKind::Slow] {
        break_with(kind, 2);
        assert!(media.copy("a", "b").await.unwrap(), "{kind:?}");
        server.faults().clear();
    }
    break_with(FaultKind::Throttle, 4);
    let refused = media.describe("a").await.unwrap_err();
    assert_eq!(refused.to_string(), "the object store did not answer: status 503");
    assert!(media.describe("a").await.unwrap().is_some(), "four attempts were made");
}

#[tokio::test]
async fn a_call_to_a_store_that_does_not_answer_ends_in_time() {
    let (server, media) = start().await;
    server.faults().add(Fault { kind: FaultKind::Timeout, rate: 1.0, count: None, seed: 1 }).unwrap();
    let begun = Instant::now();
    assert!(matches!(media.delete("a").await, Err(MediaError::Unavailable(_))));
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
}
