//! Tests of many concurrent editors.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join_all;
use serde_json::json;

use crate::desk::{CLUB, DOC, Desk, begin, create, delete, put, read, texts, version, versions};

/// The number of concurrent clients.
const CLIENTS: usize = 50;

#[tokio::test]
async fn one_of_many_concurrent_creations_of_a_document_succeeds() {
    let desk = Desk::open().await;
    let answers = join_all(
        (0..CLIENTS).map(|n| desk.settled(create("d", &json!({ "a": n.to_string(), "b": n.to_string() })).staff("s1"))),
    )
    .await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    assert!(answers.iter().all(|answer| [201, 409].contains(&answer.status)));
    let texts = desk.texts("d").await;
    assert_eq!(texts["a"], texts["b"], "both texts come from one request");
}

#[tokio::test]
async fn one_of_many_concurrent_changes_of_a_version_wins_and_the_others_change_nothing() {
    let desk = Desk::open().await;
    let answers = join_all((0..CLIENTS).map(|n| {
        let section = if n % 2 == 0 { "a" } else { "b" };
        desk.settled(put(DOC, section, &format!("by {n}"), 1).customer("ann"))
    }))
    .await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
    assert_eq!(answers.iter().filter(|answer| answer.code() == Some("version_mismatch")).count(), CLIENTS - 1);
    let body = desk.expect(200, read(DOC).customer("ann")).await;
    let first = desk.expect(200, version(DOC, 1).customer("ann")).await;
    let (now, then) = (texts(&body), texts(&first));
    let changed = ["a", "b"].iter().filter(|name| now[**name] != then[**name]).count();
    assert_eq!((changed, &body["current"], &body["version"]), (1, &json!(2), &json!(2)));
    let begun = join_all((0..CLIENTS).map(|_| desk.settled(begin(DOC, 2).customer("ann")))).await;
    assert_eq!(begun.iter().filter(|answer| answer.status == 201).count(), 1);
}

#[tokio::test]
async fn many_concurrent_callers_that_retry_until_success_leave_versions_without_gaps() {
    let desk = Desk::open().await;
    let work = (0..CLIENTS).map(|n| {
        let desk = &desk;
        async move {
            loop {
                let seen = desk.expect(200, read(DOC).customer("ann")).await["version"].as_u64().unwrap();
                let name = format!("s{}", n % 10);
                let answer = desk.settled(put(DOC, &name, &format!("by {n}"), seen).customer("ann")).await;
                if answer.status == 200 {
                    return answer.body["current"].as_u64().unwrap();
                }
                assert_eq!(answer.status, 412, "{}", answer.body);
            }
        }
    });
    let mut numbers = join_all(work).await;
    numbers.sort_unstable();
    assert_eq!(numbers, (2..=CLIENTS as u64 + 1).collect::<Vec<_>>());
    let (found, _) = desk.all(&versions(DOC).customer("ann"), 100).await;
    let listed: Vec<u64> = found.iter().rev().map(|item| item["number"].as_u64().unwrap()).collect();
    assert_eq!(listed, (1..=CLIENTS as u64 + 1).collect::<Vec<_>>());
    // Each version changes exactly one section of the version before.
    for pair in found.windows(2) {
        let (new, old) = (&pair[0], &pair[1]);
        let changed: Vec<&String> = new["sections"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(name, number)| old["sections"].get(name.as_str()) != Some(number))
            .map(|(name, _)| name)
            .collect();
        assert_eq!(changed.len(), 1);
        assert_eq!(new["sections"][changed[0].as_str()], new["number"]);
    }
}

#[tokio::test]
async fn a_document_deleted_during_many_writes_leaves_no_item() {
    let desk = Desk::open().await;
    let calls = (0..CLIENTS).map(|n| {
        let desk = &desk;
        async move {
            if n == CLIENTS / 2 {
                return desk.settled(delete(DOC, 1).customer("ann")).await.status;
            }
            desk.settled(put(DOC, "a", &n.to_string(), 1).customer("ann")).await.status
        }
    });
    let statuses = join_all(calls).await;
    let won = statuses.iter().filter(|status| [200, 204].contains(*status)).count();
    assert_eq!(won, 1, "{statuses:?}");
    if statuses.contains(&204) {
        assert_eq!(desk.stored(DOC).await, [""; 0]);
    } else {
        assert_eq!(desk.expect(200, read(DOC).customer("ann")).await["current"], 2);
    }
}

/// The table refuses the write even if the function read the membership before it was removed.
#[tokio::test]
async fn no_write_of_a_removed_member_succeeds_after_the_removal() {
    let desk = Desk::with_club("c").await;
    desk.draw_up("m", "max", Some(CLUB), &json!({ "a": "0" })).await;
    let (is_written, is_removed) = (AtomicBool::new(false), AtomicBool::new(false));
    let remove = async {
        while !is_written.load(Ordering::SeqCst) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        desk.leave("max").await;
        is_removed.store(true, Ordering::SeqCst);
    };
    let work = (0..4).map(|_| async {
        let mut version = 1;
        loop {
            let was_removed = is_removed.load(Ordering::SeqCst);
            let answer = desk.settled(put("m", "a", "by max", version).customer("max")).await;
            match answer.status {
                200 => {
                    assert!(!was_removed, "a write succeeded after its author was removed");
                    is_written.store(true, Ordering::SeqCst);
                }
                412 => {}
                404 => return,
                _ => panic!("{}", answer.body),
            }
            version = desk.expect(200, read("m").staff("s1")).await["version"].as_u64().unwrap();
        }
    });
    tokio::join!(remove, join_all(work));
}
