//! Tests of drafts: the next version, which readers cannot see before its publication.

use serde_json::json;

use crate::desk::{DOC, Desk, begin, discard, hidden, publish, put, read, restore, texts, version, versions};

#[tokio::test]
async fn a_draft_becomes_current_as_a_whole_when_it_is_published() {
    let desk = Desk::with_club("c").await;
    let begun = desk.send(begin("c", 1).customer("mia")).await;
    assert_eq!((begun.status, begun.header("etag")), (201, Some("\"2\"")));
    assert_eq!(begun.header("location"), Some("/v1/documents/c/versions/2"));
    assert_eq!((&begun.body["draft"]["number"], &begun.body["draft"]["by"]), (&json!(2), &json!("mia")));
    for (version, name, text) in [(2, "a", "A2"), (3, "b", "B1"), (4, "a", "A3")] {
        desk.expect(200, put("c", name, text, version).customer("mia")).await;
        assert_eq!(desk.texts("c").await, json!({ "a": "A1" }));
    }
    let writers = desk.expect(200, read("c").customer("mia")).await;
    assert_eq!(writers["draft"]["sections"], json!({ "a": 2, "b": 2 }));
    let readers = desk.expect(200, read("c").customer("max")).await;
    assert_eq!((readers.get("draft"), &readers["current"]), (None, &json!(1)));
    let drafted = desk.expect(200, version("c", 2).customer("mia")).await;
    assert_eq!((texts(&drafted), &drafted["draft"]), (json!({ "a": "A3", "b": "B1" }), &json!(true)));
    assert_eq!(desk.refusal(version("c", 2).customer("max")).await, hidden());
    assert_eq!(desk.expect(200, versions("c").customer("max")).await["items"].as_array().unwrap().len(), 1);

    let published = desk.expect(200, publish("c", 5).customer("mia")).await;
    assert_eq!((&published["current"], &published["draft"]), (&json!(2), &json!(null)));
    assert_eq!(desk.texts("c").await, json!({ "a": "A3", "b": "B1" }));
    let new = desk.expect(200, version("c", 2).customer("max")).await;
    assert_eq!((&new["note"], &new["draft"], &new["by"]), (&json!("as agreed"), &json!(false), &json!("mia")));
    assert_eq!(texts(&desk.expect(200, version("c", 1).customer("max")).await), json!({ "a": "A1" }));
    desk.expect(200, put("c", "b", "B2", 6).customer("mia")).await;
    assert_eq!(desk.expect(200, read("c").customer("max")).await["current"], 3);
}

#[tokio::test]
async fn publishing_writes_two_items_for_any_draft() {
    let desk = Desk::open().await;
    desk.expect(201, begin(DOC, 1).customer("ann")).await;
    for n in 0..10 {
        desk.expect(200, put(DOC, &format!("s{n}"), "text", n + 2).customer("ann")).await;
    }
    let before = desk.stored(DOC).await;
    desk.expect(200, publish(DOC, 12).customer("ann")).await;
    let written: Vec<String> = desk.stored(DOC).await.into_iter().filter(|key| !before.contains(key)).collect();
    assert_eq!(written, ["VERSION#00000000000000000002"]);
}

#[tokio::test]
async fn a_discarded_draft_leaves_no_item() {
    let desk = Desk::open().await;
    let before = desk.stored(DOC).await;
    desk.expect(201, begin(DOC, 1).customer("ann")).await;
    desk.expect(200, put(DOC, "a", "X", 2).customer("ann")).await;
    desk.expect(200, put(DOC, "new", "X", 3).customer("ann")).await;
    assert_eq!(desk.refusal(discard(DOC, 3).customer("ann")).await, (412, "version_mismatch".into()));
    desk.expect(204, discard(DOC, 4).customer("ann")).await;
    assert_eq!(desk.stored(DOC).await, before);
    assert_eq!(desk.texts(DOC).await, json!({ "a": "A1", "b": "B1" }));
    assert_eq!(desk.refusal(version(DOC, 2).customer("ann")).await, hidden());
    // The next published version takes the number of the discarded draft.
    desk.expect(200, put(DOC, "b", "B2", 5).customer("ann")).await;
    assert_eq!(texts(&desk.expect(200, version(DOC, 2).customer("ann")).await), json!({ "a": "A1", "b": "B2" }));
}

#[tokio::test]
async fn a_document_has_at_most_one_draft() {
    let desk = Desk::open().await;
    let missing = (409, "draft_missing".to_owned());
    assert_eq!(desk.refusal(publish(DOC, 1).customer("ann")).await, missing);
    assert_eq!(desk.refusal(discard(DOC, 1).customer("ann")).await, missing);
    desk.expect(201, begin(DOC, 1).customer("ann")).await;
    let open = (409, "draft_open".to_owned());
    assert_eq!(desk.refusal(begin(DOC, 2).customer("ann")).await, open);
    assert_eq!(desk.refusal(restore(DOC, 1, 2).customer("ann")).await, open);
    assert_eq!(desk.refusal(begin(DOC, 1).customer("ann")).await, (412, "version_mismatch".into()));
    desk.expect(200, publish(DOC, 2).customer("ann")).await;
    assert_eq!(desk.refusal(publish(DOC, 3).customer("ann")).await, missing);
}
