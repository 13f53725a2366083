//! Tests of versions: listing, reading and restoring them.

use key_schema::document::{DocumentVersion, Manifest};
use key_schema::id::{Born, CustomerId, DocumentId, SectionName};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use serde_json::json;

use crate::desk::{DOC, Desk, hidden, put, restore, texts, version, versions};

#[tokio::test]
async fn a_restore_publishes_an_old_version_as_a_new_version_and_keeps_the_history() {
    let desk = Desk::open().await;
    desk.expect(200, put(DOC, "a", "A2", 1).customer("ann")).await;
    desk.expect(200, put(DOC, "c", "C3", 2).customer("ann")).await;
    let before = desk.stored(DOC).await;
    let restored = desk.send(restore(DOC, 1, 3).customer("ann")).await;
    assert_eq!((restored.status, &restored.body["current"], restored.header("etag")), (200, &json!(4), Some("\"4\"")));
    assert_eq!(desk.texts(DOC).await, json!({ "a": "A1", "b": "B1" }));
    let written: Vec<String> = desk.stored(DOC).await.into_iter().filter(|key| !before.contains(key)).collect();
    assert_eq!(written, ["VERSION#00000000000000000004"], "a restore writes no text");
    let newest = desk.expect(200, version(DOC, 4).customer("ann")).await;
    assert_eq!((&newest["restored_from"], texts(&newest)), (&json!(1), json!({ "a": "A1", "b": "B1" })));
    assert_eq!(
        texts(&desk.expect(200, version(DOC, 3).customer("ann")).await),
        json!({ "a": "A2", "b": "B1", "c": "C3" })
    );
    let listed = desk.expect(200, versions(DOC).customer("ann")).await;
    let numbers: Vec<u64> =
        listed["items"].as_array().unwrap().iter().map(|item| item["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [4, 3, 2, 1]);
    for wrong in [5, 99] {
        let answer = desk.send(restore(DOC, wrong, 4).customer("ann")).await;
        assert_eq!((answer.status, &answer.body["errors"][0]["pointer"]), (422, &json!("/version")));
    }
    assert_eq!(desk.refusal(restore(DOC, 0, 4).customer("ann")).await, (422, "invalid_body".into()));
    assert_eq!(desk.refusal(restore(DOC, 1, 3).customer("ann")).await, (412, "version_mismatch".into()));
}

#[tokio::test]
async fn a_missing_version_is_not_found_and_a_malformed_number_is_refused() {
    let desk = Desk::open().await;
    for number in [0, 2, u64::MAX] {
        assert_eq!(desk.refusal(version(DOC, number).customer("ann")).await, hidden());
    }
    desk.expect(200, version(DOC, 1).customer("ann")).await;
    // These are other spellings of a version's number, so they are not found.
    for other in ["01", "+1", "00", "0001"] {
        let call = http_api::sample::Call::new("GET /v1/documents/{id}/versions/{n}").path("id", DOC).path("n", other);
        assert_eq!(desk.refusal(call.customer("ann")).await, hidden(), "{other}");
    }
    for bad in ["x", "-1", "1.0", "18446744073709551616", ""] {
        let call = http_api::sample::Call::new("GET /v1/documents/{id}/versions/{n}")
            .path("id", DOC)
            .path("n", bad)
            .customer("ann");
        assert_eq!(desk.refusal(call).await, (422, "invalid_id".into()), "{bad}");
    }
}

#[tokio::test]
async fn a_thousand_versions_are_listed_newest_first_with_two_requests_a_page() {
    let desk = Desk::open().await;
    let old = |number: u64| {
        let version = DocumentVersion {
            id: DocumentId::new(DOC).unwrap(),
            number,
            sections: Manifest::from([(SectionName::new("a").unwrap(), number)]),
            by: CustomerId::new("ann").unwrap(),
            at: Instant::now(),
            note: None,
            restored_from: None,
        };
        Stored::new(version, Born::new("b").unwrap(), Instant::now())
    };
    desk.put_all((2..=1000).map(old)).await;
    let (found, requests) = desk.all(&versions(DOC).customer("ann"), 100).await;
    let numbers: Vec<u64> = found.iter().map(|item| item["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=1000).rev().collect::<Vec<_>>());
    assert!(requests.iter().all(|count| *count == 2), "{requests:?}");
    let (again, _) = desk.all(&versions(DOC).staff("s1"), 33).await;
    assert_eq!(again, found);
}
