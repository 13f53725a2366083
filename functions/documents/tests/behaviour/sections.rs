//! Tests of writing one section.

use serde_json::json;

use crate::desk::{DOC, Desk, put, read, version};

#[tokio::test]
async fn a_change_of_a_section_writes_only_that_section_as_a_new_version() {
    let desk = Desk::open().await;
    let before = desk.stored(DOC).await;
    let answer = desk.send(put(DOC, "b", "B2", 1).customer("ann")).await;
    assert_eq!((answer.status, answer.header("etag")), (200, Some("\"2\"")));
    assert_eq!((&answer.body["current"], &answer.body["sections"]), (&json!(2), &json!({ "a": 1, "b": 2 })));
    let written: Vec<String> = desk.stored(DOC).await.into_iter().filter(|key| !before.contains(key)).collect();
    assert_eq!(written, ["SECTION#b#00000000000000000002", "VERSION#00000000000000000002"]);
    assert_eq!(desk.texts(DOC).await, json!({ "a": "A1", "b": "B2" }));
    let body = desk.expect(200, read(DOC).customer("ann")).await;
    assert_eq!((&body["sections"]["a"]["version"], &body["sections"]["b"]["version"]), (&json!(1), &json!(2)));
    assert_eq!(body["version"], 2);
    let old = desk.expect(200, version(DOC, 1).customer("ann")).await;
    assert_eq!(old["sections"]["b"]["text"], "B1");
}

#[tokio::test]
async fn a_new_section_is_added_under_any_name() {
    let desk = Desk::open().await;
    let longest = "#".repeat(128);
    for (n, name) in ["§ 1 #~$", "章程", "a#b", longest.as_str()].into_iter().enumerate() {
        desk.expect(200, put(DOC, name, name, n as u64 + 1).customer("ann")).await;
        assert_eq!(desk.texts(DOC).await[name], name);
    }
}
