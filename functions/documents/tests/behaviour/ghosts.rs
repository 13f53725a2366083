//! Tests of valid tokens of erased customers. Such a token changes nothing in documents.

use futures::future::join_all;
use http_api::sample::Call;
use key_schema::document::{self, Tie};
use key_schema::id::{CustomerId, DocumentId};
use key_schema::organization::Role;
use serde_json::json;

use crate::desk::{
    CLUB, DOC, Desk, add_editor, begin, create, delete, discard, hidden, publish, put, read, remove_editor, restore,
    version, versions,
};

/// Removes a customer from a document, as an erasure does.
async fn release(desk: &Desk, id: &str, customer: &str, tie: Tie) {
    let head =
        desk.own().get(&document::read_for_update(&DocumentId::new(id).unwrap()).unwrap()).await.unwrap().unwrap();
    let release = document::release(&head, &CustomerId::new(customer).unwrap(), tie).unwrap();
    desk.own().transact(&release).await.unwrap().unwrap();
}

async fn ties(desk: &Desk, customer: &str) -> Vec<Tie> {
    let query = document::of_customer(&CustomerId::new(customer).unwrap()).unwrap();
    desk.own().query(&query).await.unwrap().items.iter().map(|tie| tie.tie).collect()
}

fn writes(id: &str) -> Vec<Call> {
    vec![
        put(id, "a", "X", 1),
        put(id, "a", "X", 9),
        begin(id, 1),
        discard(id, 1),
        publish(id, 1),
        restore(id, 1, 1),
        add_editor(id, "ben"),
        remove_editor(id, "ben"),
        delete(id, 1),
    ]
}

#[tokio::test]
async fn a_customer_without_a_profile_cannot_create_a_document_or_become_an_editor() {
    let desk = Desk::with_club("c").await;
    for id in ["ben", "max"] {
        desk.delete_profile(id).await;
    }
    for stranger in ["ben", "stranger"] {
        let create = Call::new("POST /v1/documents").json(&json!({ "title": "t", "sections": { "a": "A" } }));
        assert_eq!(desk.refusal(create.customer(stranger)).await, hidden());
        assert_eq!(desk.refusal(add_editor(DOC, stranger).customer("ann")).await, hidden());
        assert_eq!(desk.refusal(add_editor(DOC, stranger).staff("s1")).await, hidden());
    }
    // A membership without a profile gives no right.
    let body = json!({ "title": "t", "organization_id": CLUB, "sections": { "a": "A" } });
    assert_eq!(desk.refusal(Call::new("POST /v1/documents").json(&body).customer("max")).await, hidden());
    assert_eq!(desk.stored("new").await, [""; 0]);
    for id in ["ben", "max", "stranger"] {
        assert_eq!(ties(&desk, id).await, []);
    }
    assert_eq!(desk.expect(200, read(DOC).customer("ann")).await["editors"], json!([]));
    // Staff have no profile either, and need none.
    desk.expect(201, create("new", &json!({ "a": "A" })).staff("s2")).await;
}

#[tokio::test]
async fn an_admin_without_a_profile_writes_no_document_of_the_organization() {
    let desk = Desk::with_club("c").await;
    desk.draw_up("m", "max", Some(CLUB), &json!({ "a": "A1" })).await;
    desk.delete_profile("mia").await;
    for call in [put("m", "a", "X", 1), begin("m", 1), restore("m", 1, 1)] {
        assert_eq!(desk.refusal(call.clone().customer("mia")).await, hidden(), "{call:?}");
    }
    desk.expect(201, begin("m", 1).customer("max")).await;
    for call in [put("m", "a", "X", 2), publish("m", 2), discard("m", 2)] {
        assert_eq!(desk.refusal(call.clone().customer("mia")).await, hidden(), "{call:?}");
    }
    let body = desk.expect(200, read("m").customer("max")).await;
    assert_eq!((&body["sections"]["a"]["text"], &body["version"]), (&json!("A1"), &json!(2)));
}

#[tokio::test]
async fn a_document_does_not_exist_to_an_erased_customer() {
    let desk = Desk::with_club("c").await;
    desk.enter(CLUB, "ann", Role::Member).await;
    desk.expect(200, add_editor(DOC, "ben").customer("ann")).await;
    desk.expect(200, add_editor("c", "ann").customer("mia")).await;
    release(&desk, DOC, "ben", Tie::Editor).await;
    release(&desk, "c", "ann", Tie::Editor).await;
    desk.leave("ann").await;
    for (id, who) in [(DOC, "ben"), ("c", "ann")] {
        for call in writes(id).into_iter().chain([read(id), versions(id), version(id, 1)]) {
            assert_eq!(desk.refusal(call.clone().customer(who)).await, hidden(), "{who}: {call:?}");
        }
    }
    assert_eq!((ties(&desk, "ben").await, ties(&desk, "ann").await), (vec![], vec![Tie::Owner]));
    assert_eq!(desk.texts(DOC).await["a"], "A1");
}

#[tokio::test]
async fn admins_share_and_delete_their_organizations_document_after_its_owner_is_erased() {
    let desk = Desk::with_club("c").await;
    desk.draw_up("m", "max", Some(CLUB), &json!({ "a": "A1" })).await;
    release(&desk, "m", "max", Tie::Owner).await;
    let body = desk.expect(200, read("m").customer("mia")).await;
    assert_eq!((&body["owner_id"], &body["version"]), (&json!(null), &json!(1)));
    // The history still names the author.
    assert_eq!(desk.expect(200, versions("m").customer("mia")).await["items"][0]["by"], "max");
    desk.expect(200, put("m", "a", "by mia", 1).customer("mia")).await;
    let forbidden = (403, "forbidden".to_owned());
    assert_eq!(desk.refusal(put("m", "a", "X", 2).customer("max")).await, forbidden, "the customer is only a member");
    for call in [add_editor("m", "ben"), remove_editor("m", "ben"), delete("m", 2)] {
        assert_eq!(desk.refusal(call.customer("max")).await, forbidden);
    }
    desk.enter(CLUB, "ben", Role::Member).await;
    desk.expect(200, add_editor("m", "ben").customer("mia")).await;
    desk.expect(200, put("m", "a", "by ben", 2).customer("ben")).await;
    desk.expect(204, delete("m", 3).customer("mia")).await;
    assert_eq!((desk.stored("m").await, ties(&desk, "ben").await), (vec![], vec![]));
}

#[tokio::test]
async fn the_ties_of_a_customer_are_exactly_the_owned_and_edited_documents() {
    let desk = Desk::open().await;
    assert_eq!(ties(&desk, "ann").await, [Tie::Owner]);
    for _ in 0..2 {
        for editor in ["ben", "ann"] {
            desk.expect(200, add_editor(DOC, editor).customer("ann")).await;
        }
        assert_eq!(
            (ties(&desk, "ben").await, ties(&desk, "ann").await),
            (vec![Tie::Editor], vec![Tie::Editor, Tie::Owner])
        );
    }
    for _ in 0..2 {
        for editor in ["ben", "ann"] {
            desk.expect(204, remove_editor(DOC, editor).customer("ann")).await;
        }
        assert_eq!((ties(&desk, "ben").await, ties(&desk, "ann").await), (vec![], vec![Tie::Owner]));
    }
    // A document with the maximum number of editors needs several transactions to be deleted.
    let editors: Vec<String> = (0..100).map(|n| format!("editor-{n}")).collect();
    for chunk in editors.chunks(50) {
        join_all(chunk.iter().map(|editor| desk.sign_up(editor))).await;
        for answer in join_all(chunk.iter().map(|editor| desk.settled(add_editor(DOC, editor).customer("ann")))).await {
            assert_eq!(answer.status, 200, "{}", answer.body);
        }
    }
    desk.expect(204, delete(DOC, 1).customer("ann")).await;
    assert_eq!(desk.stored(DOC).await, [""; 0]);
    for somebody in editors.iter().map(String::as_str).chain(["ann", "ben"]) {
        assert_eq!(ties(&desk, somebody).await, [], "{somebody}");
    }
}
