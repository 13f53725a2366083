//! Tests of creating and reading documents.

use http_api::sample::Call;
use key_schema::id::CustomerId;
use key_schema::quota::Quota;
use serde_json::{Value, json};

use crate::desk::{CLUB, DOC, Desk, create, hidden, put, read, texts, versions};

#[tokio::test]
async fn a_document_is_created_once_and_is_version_1() {
    let desk = Desk::open().await;
    let answer = desk.send(create("d", &json!({ "a": "A", "": "" })).staff("s1")).await;
    assert_eq!((answer.status, &answer.body["errors"][0]["pointer"]), (422, &json!("/sections/")));
    let answer = desk.send(create("d", &json!({ "a": "A" })).staff("s1")).await;
    assert_eq!((answer.status, answer.header("etag")), (201, Some("\"1\"")));
    assert_eq!(answer.header("location"), Some("/v1/documents/d"));
    assert_eq!((&answer.body["current"], &answer.body["sections"]), (&json!(1), &json!({ "a": 1 })));
    assert_eq!((&answer.body["owner_id"], &answer.body["draft"]), (&json!("s1"), &json!(null)));
    for caller in ["s1", "s2"] {
        let again = desk.send(create("d", &json!({ "a": "X" })).staff(caller)).await;
        assert_eq!(
            (again.status, again.code(), again.header("location")),
            (409, Some("already_exists"), Some("/v1/documents/d"))
        );
    }
    assert_eq!(desk.texts("d").await, json!({ "a": "A" }));
    let listed = desk.expect(200, versions("d").staff("s1")).await;
    assert_eq!((&listed["items"][0]["number"], &listed["items"][0]["by"]), (&json!(1), &json!("s1")));
    assert_eq!(desk.refusal(put("none", "a", "X", 1).customer("ann")).await, hidden());
}

/// A customer who may choose ids could learn which ids exist, or take an id before another caller.
#[tokio::test]
async fn only_staff_chooses_the_id_of_a_document() {
    let desk = Desk::open().await;
    for id in [DOC, "free"] {
        for customer in ["ann", "ben", "nobody"] {
            let call = create(id, &json!({ "a": "X" })).customer(customer);
            assert_eq!(desk.refusal(call).await, (403, "forbidden".into()), "{id}");
        }
    }
    assert_eq!(desk.stored("free").await, [""; 0]);
    assert_eq!(desk.texts(DOC).await["a"], "A1");
    desk.expect(201, create("free", &json!({ "a": "A" })).staff("s1")).await;
}

#[tokio::test]
async fn a_document_gets_a_generated_id_and_may_have_no_sections() {
    let desk = Desk::open().await;
    let call = Call::new("POST /v1/documents").json(&json!({ "title": "Empty", "sections": {} }));
    let body = desk.expect(201, call.customer("ann")).await;
    let id = body["id"].as_str().unwrap();
    assert_eq!(desk.expect(200, read(id).customer("ann")).await["sections"], json!({}));
    desk.expect(200, put(id, "first", "text", 1).customer("ann")).await;
    assert_eq!(desk.texts(id).await, json!({ "first": "text" }));
}

#[tokio::test]
async fn the_current_document_is_read_in_two_requests_at_any_size() {
    let desk = Desk::open().await;
    let sections: Value = (0..50).map(|n| (format!("{n} #+~é"), json!("x".repeat(4000)))).collect();
    desk.draw_up("large", "ann", None, &sections).await;
    let _ = desk.requests();
    let body = desk.expect(200, read("large").customer("ann")).await;
    assert_eq!(desk.requests().into_iter().collect::<Vec<_>>(), [("documents.get", 1), ("documents.texts", 1)]);
    assert_eq!(texts(&body), sections);
    let section = &body["sections"]["7 #+~é"];
    assert_eq!((&section["version"], &section["by"]), (&json!(1), &json!("ann")));
    let many: Value = (0..51).map(|n| (n.to_string(), json!(""))).collect();
    let answer = desk.send(create("more", &many).staff("s1")).await;
    assert_eq!((answer.status, &answer.body["errors"][0]["pointer"]), (422, &json!("/sections")));
    let full = desk.send(put("large", "one more", "", 1).customer("ann")).await;
    assert_eq!((full.status, full.code()), (422, Some("invalid_body")));
    desk.expect(200, put("large", "0 #+~é", "", 1).customer("ann")).await;
}

#[tokio::test]
async fn a_text_of_100_kb_fits_and_a_larger_text_is_refused_without_a_request_to_the_table() {
    let desk = Desk::open().await;
    let longest = "é".repeat(51_200);
    desk.expect(200, put(DOC, "a", &longest, 1).customer("ann")).await;
    assert_eq!(desk.texts(DOC).await["a"], longest);
    let _ = desk.requests();
    let answer = desk.send(put(DOC, "a", &(longest + "x"), 2).customer("ann")).await;
    assert_eq!((answer.status, &answer.body["errors"][0]["pointer"]), (422, &json!("/text")));
    let body = json!({ "title": "t", "sections": { "a": "x".repeat(300_000) } });
    let answer = desk.send(Call::new("POST /v1/documents").json(&body).customer("ann")).await;
    assert_eq!(answer.code(), Some("body_too_large"));
    assert!(desk.requests().is_empty());
}

#[tokio::test]
async fn a_document_of_an_organization_is_created_by_a_member_or_staff() {
    let desk = Desk::with_club("c").await;
    let call = |organization: &str| {
        let body = json!({ "title": "t", "organization_id": organization, "sections": { "a": "A" } });
        Call::new("POST /v1/documents").json(&body)
    };
    assert_eq!(desk.expect(201, call(CLUB).customer("max")).await["organization_id"], CLUB);
    desk.expect(201, call(CLUB).staff("s1")).await;
    for call in [call(CLUB).customer("ann"), call("no such").customer("mia"), call("no such").staff("s1")] {
        let answer = desk.send(call).await;
        assert_eq!((answer.status, &answer.body["errors"][0]["pointer"]), (422, &json!("/organization_id")));
    }
}

#[tokio::test]
async fn a_customer_creates_no_more_documents_a_day_than_the_quota() {
    let desk = Desk::open().await;
    for author in ["ann", "s1"] {
        desk.test.use_up(&CustomerId::new(author).unwrap(), Quota::Documents, 1).await;
    }
    let call = || Call::new("POST /v1/documents").json(&json!({ "title": "T", "sections": {} }));
    desk.expect(201, call().customer("ann")).await;
    let refused = desk.send(call().customer("ann")).await;
    assert_eq!((refused.status, refused.code()), (429, Some("quota_exceeded")), "{}", refused.body);
    assert!(refused.header("retry-after").is_some());
    for _ in 0..2 {
        desk.expect(201, call().staff("s1")).await;
    }
}
