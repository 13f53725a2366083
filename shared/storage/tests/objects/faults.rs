//! Tests with a failing object store.

use std::time::Duration;

use emulators::faults::{Fault, FaultKind};
use emulators::objects::ObjectServer;
use storage::objects::{Class, ObjectError, ObjectStore, Put};

use super::{BUCKET, bucket_within, start};

fn fail(server: &ObjectServer, kind: FaultKind, count: Option<u32>) {
    server.faults().add(Fault { kind, rate: 1.0, count, seed: 7 }).unwrap();
}

fn fired(server: &ObjectServer) -> u64 {
    server.faults().counts().iter().map(|count| count.fired).sum()
}

/// Starts a server and a store with a short time limit for each attempt.
async fn hasty() -> (ObjectServer, ObjectStore) {
    let (server, _) = start().await;
    let store = ObjectStore::new(bucket_within(server.url(), BUCKET, Duration::from_millis(150)));
    (server, store)
}

#[tokio::test]
async fn a_call_succeeds_after_the_store_recovers() {
    for kind in [FaultKind::Throttle, FaultKind::Error, FaultKind::Reset] {
        let (server, store) = start().await;
        fail(&server, kind, Some(3));
        assert_eq!(store.put_new("a", b"1".to_vec(), Class::Standard).await.unwrap(), Put::Created, "{kind:?}");
        fail(&server, kind, Some(3));
        assert_eq!(store.get("a").await.unwrap().unwrap(), b"1", "{kind:?}");
        fail(&server, kind, Some(3));
        assert_eq!(store.list("", None, 10).await.unwrap().items.len(), 1, "{kind:?}");
        fail(&server, kind, Some(3));
        store.delete("a").await.unwrap();
        assert_eq!(fired(&server), 12, "{kind:?}");
        assert_eq!(server.get(BUCKET, "a").unwrap(), None);
    }
}

#[tokio::test]
async fn a_call_gives_up_when_its_attempts_are_used_up() {
    for kind in [FaultKind::Throttle, FaultKind::Error, FaultKind::Reset] {
        let (server, store) = start().await;
        fail(&server, kind, None);
        let error = store.put_new("a", b"1".to_vec(), Class::Standard).await.unwrap_err();
        match kind {
            FaultKind::Throttle => assert!(matches!(error, ObjectError::Throttled), "{error:?}"),
            _ => assert!(matches!(error, ObjectError::Unavailable(_)), "{error:?}"),
        }
        assert_eq!(fired(&server), 4, "{kind:?}");
        assert_eq!(server.get(BUCKET, "a").unwrap(), None, "the request was not executed");
    }
}

#[tokio::test]
async fn after_a_lost_response_the_next_attempt_finds_the_written_object() {
    let (server, store) = hasty().await;
    fail(&server, FaultKind::Timeout, Some(1));
    assert_eq!(store.put_new("a", b"1".to_vec(), Class::Standard).await.unwrap(), Put::AlreadyThere);
    assert_eq!(store.get("a").await.unwrap().unwrap(), b"1");
}

#[tokio::test]
async fn calls_to_a_store_that_never_answers_end_in_time() {
    let (server, store) = hasty().await;
    fail(&server, FaultKind::Timeout, None);
    for error in [
        store.put_new("a", b"1".to_vec(), Class::Standard).await.unwrap_err(),
        store.get("a").await.unwrap_err(),
        store.list("", None, 10).await.unwrap_err(),
        store.delete("a").await.unwrap_err(),
    ] {
        assert!(matches!(&error, ObjectError::Unavailable(reason) if reason == "timeout"), "{error:?}");
    }
    assert_eq!(fired(&server), 16, "four attempts each");
}

#[tokio::test]
async fn a_late_response_is_accepted() {
    let (server, store) = start().await;
    fail(&server, FaultKind::Slow, Some(1));
    assert_eq!(store.put_new("a", b"1".to_vec(), Class::Standard).await.unwrap(), Put::Created);
    assert_eq!(fired(&server), 1);
}

#[tokio::test]
async fn a_write_that_conflicts_with_another_is_retried() {
    let (server, store) = start().await;
    fail(&server, FaultKind::Conflict, Some(3));
    assert_eq!(store.put_new("a", b"1".to_vec(), Class::Standard).await.unwrap(), Put::Created);
    assert_eq!(fired(&server), 3);
    fail(&server, FaultKind::Conflict, None);
    let error = store.put_new("b", b"1".to_vec(), Class::Standard).await.unwrap_err();
    assert!(matches!(&error, ObjectError::Unavailable(code) if code == "ConditionalRequestConflict"), "{error:?}");
    assert_eq!(fired(&server), 9, "six attempts");
    // Only conditional writes can conflict.
    assert_eq!(store.get("a").await.unwrap().unwrap(), b"1");
}
