//! Tests of deleting a document with its history.

use fixture::crash_after;
use key_schema::document;
use key_schema::instant::Instant;
use serde_json::json;

use crate::desk::{DOC, Desk, add_editor, begin, create, delete, hidden, put, read, restore, version, versions};

#[tokio::test]
async fn a_deleted_document_leaves_no_item_and_its_id_is_free() {
    let desk = Desk::open().await;
    for n in 1..=30 {
        desk.expect(200, put(DOC, if n % 2 == 0 { "a" } else { "b" }, "text", n).customer("ann")).await;
    }
    desk.expect(200, restore(DOC, 3, 31).customer("ann")).await;
    desk.expect(201, begin(DOC, 32).customer("ann")).await;
    desk.expect(200, put(DOC, "drafted", "X", 33).customer("ann")).await;
    assert_eq!(desk.refusal(delete(DOC, 33).customer("ann")).await, (412, "version_mismatch".into()));
    assert!(desk.stored(DOC).await.len() > 60);
    desk.expect(204, delete(DOC, 34).customer("ann")).await;
    assert_eq!(desk.stored(DOC).await, [""; 0]);
    for call in
        [read(DOC), versions(DOC), version(DOC, 1), delete(DOC, 34), add_editor(DOC, "ben"), put(DOC, "a", "X", 35)]
    {
        assert_eq!(desk.refusal(call.staff("s1")).await, hidden());
    }
    desk.draw_up(DOC, "ben", None, &json!({ "a": "anew" })).await;
    assert_eq!(desk.texts(DOC).await, json!({ "a": "anew" }));
    assert_eq!(desk.expect(200, versions(DOC).customer("ben")).await["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_interrupted_deletion_hides_the_document_and_a_retry_completes_it() {
    use emulators::table::FaultKind;

    let desk = Desk::open().await;
    desk.expect(200, put(DOC, "a", "A2", 1).customer("ann")).await;
    // The deletion stopped after it marked the head.
    let document = key_schema::id::DocumentId::new(DOC).unwrap();
    let at = Instant::now();
    let retire = document::retire(&document, 2, None, at).unwrap();
    desk.own().update(&retire).await.unwrap().unwrap();
    for call in [read(DOC), versions(DOC), version(DOC, 1), put(DOC, "a", "X", 3), add_editor(DOC, "ben")] {
        for caller in [call.clone().customer("ann"), call.staff("s1")] {
            assert_eq!(desk.refusal(caller).await, hidden());
        }
    }
    assert_eq!(desk.refusal(delete(DOC, 2).customer("ben")).await, hidden());
    let taken = desk.refusal(create(DOC, &json!({})).staff("s1")).await;
    assert_eq!(taken, (409, "already_exists".into()));
    desk.break_with(FaultKind::Throttle, 1.0, Some(200), 1);
    assert_eq!(desk.send(delete(DOC, 2).customer("ann")).await.status, 503);
    desk.clear_faults();
    desk.expect(204, delete(DOC, 2).customer("ann")).await;
    assert_eq!(desk.stored(DOC).await, [""; 0]);
}

#[tokio::test]
async fn one_request_stops_after_a_few_thousand_write_units_and_a_repetition_removes_the_rest() {
    let desk = Desk::open().await;
    let text = "x".repeat(100_000);
    for n in 1..=30 {
        desk.expect(200, put(DOC, "a", &text, n).customer("ann")).await;
    }
    let _ = desk.app.table.meter().take();
    let begun = std::time::Instant::now();
    let first = desk.send(delete(DOC, 31).customer("ann")).await;
    assert_eq!((first.status, first.code()), (503, Some("throttled")), "{}", first.body);
    assert!(first.header("retry-after").is_some());
    let costs = desk.app.table.meter().take();
    let written: f64 =
        costs.iter().filter(|cost| cost.pattern.id == "documents.sweep").map(|cost| cost.capacity_units).sum();
    assert!((4_000.0..6_100.0).contains(&written), "{written}");
    // The deletion writes at most a thousand units a second. The last step may exceed this rate.
    assert!(begun.elapsed().as_secs_f64() > (written - 2_100.0) / 1_000.0);
    assert_eq!(desk.refusal(read(DOC).customer("ann")).await, hidden());
    desk.expect(204, delete(DOC, 31).customer("ann")).await;
    assert_eq!(desk.stored(DOC).await, [""; 0]);
}

/// Staff can choose the id of a deleted document while another attempt of the deletion still runs.
/// They can also begin to delete the next document. Then only the birth marks (`born`) tell the
/// documents apart.
#[tokio::test]
async fn a_slow_attempt_of_a_deletion_removes_nothing_of_the_next_document_with_the_id() {
    let desk = Desk::open().await;
    let next = json!({ "b": "anew", "c": "anew" });
    for (waits, is_deleting) in (0..).flat_map(|waits| [(waits, false), (waits, true)]) {
        let mut slow = Box::pin(desk.send(delete(DOC, 1).customer("ann")));
        if let Some(answer) = crash_after(waits, &mut slow).await {
            assert!(waits > 3 && answer.status == 204, "after {waits} waits: {}", answer.body);
            break;
        }
        // The first attempt may have completed the deletion already.
        desk.send(delete(DOC, 1).customer("ann")).await;
        desk.expect(201, create(DOC, &next).staff("s1")).await;
        if is_deleting {
            let retire = document::retire(&DOC.parse().unwrap(), 1, None, Instant::now()).unwrap();
            desk.own().update(&retire).await.unwrap().unwrap();
        }
        let answer = slow.await;
        assert!([204, 404, 412].contains(&answer.status), "after {waits} waits: {}", answer.body);
        assert_eq!(desk.stored(DOC).await.len(), 4, "after {waits} waits");
        if !is_deleting {
            assert_eq!(desk.texts(DOC).await, next, "after {waits} waits");
        }
        desk.expect(204, delete(DOC, 1).staff("s1")).await;
        desk.draw_up(DOC, "ann", None, &json!({ "a": "A1", "b": "B1" })).await;
    }
}
