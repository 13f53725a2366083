//! Tests of editors: a limited set in the document's item.

use futures::future::join_all;
use serde_json::json;

use key_schema::organization::Role;

use crate::desk::{CLUB, DOC, Desk, add_editor, hidden, put, read, remove_editor};

#[tokio::test]
async fn an_addition_or_removal_of_an_editor_can_be_repeated() {
    let desk = Desk::open().await;
    assert_eq!(desk.refusal(put(DOC, "a", "X", 1).customer("ben")).await, hidden());
    for _ in 0..2 {
        let body = desk.expect(200, add_editor(DOC, "ben").customer("ann")).await;
        assert_eq!(body, json!({ "document_id": DOC, "customer_id": "ben" }));
        assert_eq!(desk.expect(200, read(DOC).customer("ben")).await["editors"], json!(["ben"]));
    }
    // Adding an editor does not change the version, so every If-Match stays valid.
    desk.expect(200, put(DOC, "a", "by ben", 1).customer("ben")).await;
    for _ in 0..2 {
        desk.expect(204, remove_editor(DOC, "ben").customer("ann")).await;
        assert_eq!(desk.refusal(put(DOC, "a", "X", 2).customer("ben")).await, hidden());
    }
    assert_eq!(desk.expect(200, read(DOC).customer("ann")).await["editors"], json!([]), "the document has no editors");
    desk.expect(200, add_editor(DOC, "ben").staff("s1")).await;
    desk.expect(204, remove_editor(DOC, "ben").customer("ben")).await;
    assert_eq!(desk.refusal(remove_editor(DOC, "ben").customer("ben")).await, hidden());
}

#[tokio::test]
async fn only_the_owner_and_staff_choose_the_editors() {
    let desk = Desk::open().await;
    desk.expect(200, add_editor(DOC, "ben").customer("ann")).await;
    let forbidden = (403, "forbidden".to_owned());
    for call in [add_editor(DOC, "eve"), add_editor(DOC, "ben"), remove_editor(DOC, "ann"), remove_editor(DOC, "eve")] {
        assert_eq!(desk.refusal(call.clone().customer("ben")).await, forbidden);
        assert_eq!(desk.refusal(call.customer("stranger")).await, hidden());
    }
    assert_eq!(desk.refusal(add_editor(DOC, "nobody").customer("ann")).await, hidden());
    assert_eq!(desk.refusal(add_editor("none", "ben").staff("s1")).await, hidden());
    assert_eq!(desk.refusal(remove_editor("none", "ben").staff("s1")).await, hidden());
    assert_eq!(desk.expect(200, read(DOC).customer("ann")).await["editors"], json!(["ben"]));
}

/// The head still names a former member, who may become a member again.
#[tokio::test]
async fn an_editor_can_leave_after_the_end_of_the_membership() {
    let desk = Desk::with_club("c").await;
    desk.enter(CLUB, "ben", Role::Member).await;
    desk.draw_up("own", "max", Some(CLUB), &json!({ "a": "A1" })).await;
    for editor in ["ben", "max"] {
        desk.expect(200, add_editor("c", editor).customer("mia")).await;
        desk.leave(editor).await;
    }
    assert_eq!(desk.refusal(remove_editor("c", "max").customer("ben")).await, hidden());
    desk.expect(204, remove_editor("c", "ben").customer("ben")).await;
    assert_eq!(desk.refusal(remove_editor("c", "ben").customer("ben")).await, hidden());
    assert_eq!(desk.expect(200, read("c").customer("mia")).await["editors"], json!(["max"]));
    assert_eq!(desk.keys("CUSTOMER#ben").await, [("CUSTOMER#ben".into(), "PROFILE".into())]);
    assert_eq!(desk.refusal(remove_editor("own", "max").customer("max")).await, hidden());
}

#[tokio::test]
async fn only_a_hundred_of_the_editors_added_at_once_are_accepted() {
    let desk = Desk::open().await;
    let names: Vec<String> = (0..120).map(|n| format!("editor-{n}")).collect();
    for chunk in names.chunks(40) {
        join_all(chunk.iter().map(|name| desk.sign_up(name))).await;
    }
    let mut statuses = Vec::new();
    for chunk in names.chunks(50) {
        let added = chunk.iter().map(|name| desk.settled(add_editor(DOC, name).customer("ann")));
        statuses.extend(join_all(added).await.into_iter().map(|answer| answer.status));
    }
    let of = |wanted| statuses.iter().filter(|status| **status == wanted).count();
    assert_eq!((of(200), of(422)), (100, 20));
    let body = desk.expect(200, read(DOC).customer("ann")).await;
    let editors = body["editors"].as_array().unwrap();
    assert_eq!(editors.len(), 100);
    // An existing editor can be added again. A new editor can be added only after another editor is
    // removed.
    desk.expect(200, add_editor(DOC, editors[7].as_str().unwrap()).customer("ann")).await;
    assert_eq!(desk.refusal(add_editor(DOC, "ben").customer("ann")).await, (422, "invalid_body".into()));
    desk.expect(204, remove_editor(DOC, editors[7].as_str().unwrap()).customer("ann")).await;
    desk.expect(200, add_editor(DOC, "ben").customer("ann")).await;
}
