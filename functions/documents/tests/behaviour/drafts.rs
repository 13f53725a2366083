//! Tests of drafts: the next version, which readers cannot see before its publication.

use fixture::crash_after;
use key_schema::document::{self, DocumentAction, Edit, Right};
use key_schema::id::{Born, CustomerId, DocumentId, SectionName};
use key_schema::instant::Instant;
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
async fn the_publication_of_any_draft_writes_two_items() {
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

/// Begins a draft with this many texts. Returns the version afterwards.
async fn drafted(desk: &Desk, version: u64, texts: u64, text: &str) -> u64 {
    desk.expect(201, begin(DOC, version).customer("ann")).await;
    for n in 0..texts {
        desk.expect(200, put(DOC, &format!("s{n}"), text, version + 1 + n).customer("ann")).await;
    }
    version + 1 + texts
}

/// A draft of the maximum size exceeds the 4 MB of a transaction.
#[tokio::test]
async fn a_large_draft_is_discarded_at_once_and_its_texts_are_removed_in_steps() {
    let desk = Desk::open().await;
    let before = desk.stored(DOC).await;
    let last = drafted(&desk, 1, 35, &"x".repeat(100_000)).await;
    let _ = desk.app.table.meter().take();
    let first = desk.send(discard(DOC, last).customer("ann")).await;
    // DynamoDB Local counts fewer units than DynamoDB, so there one request can remove all texts.
    if first.status == 204 && std::env::var_os("AWS_ENDPOINT_URL_DYNAMODB").is_some() {
        assert_eq!(desk.stored(DOC).await, before);
        return;
    }
    assert_eq!((first.status, first.code()), (503, Some("throttled")), "{}", first.body);
    let costs = desk.app.table.meter().take();
    let steps = costs.iter().find(|cost| cost.pattern.id == "documents.discard-texts").unwrap();
    assert!(steps.requests > 1 && steps.capacity_units < 7_000.0, "{steps:?}");
    let halfway = desk.stored(DOC).await.len();
    assert!(halfway > before.len() && halfway < before.len() + 35, "{halfway}");
    // No caller sees the draft or one of its texts.
    assert_eq!(desk.refusal(version(DOC, 2).customer("ann")).await, hidden());
    assert_eq!(desk.expect(200, read(DOC).customer("ann")).await["draft"], json!(null));
    for stranger in
        [discard(DOC, last), put(DOC, "s34", "X", last + 1), begin(DOC, last + 1), restore(DOC, 1, last + 1)]
    {
        assert_eq!(desk.refusal(stranger.customer("ben")).await, hidden());
    }
    assert_eq!(desk.stored(DOC).await.len(), halfway);
    desk.expect(204, discard(DOC, last).customer("ann")).await;
    assert_eq!(desk.stored(DOC).await, before);
    assert_eq!(desk.refusal(discard(DOC, last).customer("ann")).await, (412, "version_mismatch".into()));
}

/// The next request repeats the discard, discards with the version after the first discard, or
/// begins another draft. That draft gets a text under the key of a discarded text.
#[tokio::test]
async fn a_discard_that_stops_at_any_point_is_finished_by_the_next_request() {
    let desk = Desk::open().await;
    let before = desk.stored(DOC).await;
    let (mut version_now, mut continued) = (1, 0);
    for waits in 0.. {
        let last = drafted(&desk, version_now, 23, "drafted").await;
        let done = crash_after(waits, desk.send(discard(DOC, last).customer("ann"))).await;
        let drafted = desk.send(version(DOC, 2).customer("ann")).await;
        if drafted.status == 200 {
            // The transaction that discards the draft has not happened, so the draft is complete.
            assert_eq!(texts(&drafted.body).as_object().unwrap().len(), 25);
            desk.expect(204, discard(DOC, last).customer("ann")).await;
        } else if desk.stored(DOC).await != before {
            continued += 1;
            match waits % 3 {
                0 => desk.expect(204, discard(DOC, last).customer("ann")).await,
                1 => desk.expect(204, discard(DOC, last + 1).customer("ann")).await,
                _ => {
                    desk.expect(201, begin(DOC, last + 1).customer("ann")).await;
                    desk.expect(200, put(DOC, "s22", "anew", last + 2).customer("ann")).await;
                    let anew = desk.expect(200, version(DOC, 2).customer("ann")).await;
                    assert_eq!(texts(&anew), json!({ "a": "A1", "b": "B1", "s22": "anew" }));
                    desk.expect(204, discard(DOC, last + 3).customer("ann")).await
                }
            };
        }
        assert_eq!(desk.stored(DOC).await, before, "after {waits} waits");
        let head = desk.expect(200, read(DOC).customer("ann")).await;
        assert_eq!(texts(&head), json!({ "a": "A1", "b": "B1" }));
        version_now = head["version"].as_u64().unwrap();
        if done.is_some() {
            break;
        }
    }
    assert!(continued > 3, "only {continued} interruptions left texts");
}

/// A text of the next version could have the key of a discarded text. The removal of the discarded
/// texts would then remove the new text.
#[tokio::test]
async fn the_table_refuses_a_change_of_the_content_while_discarded_texts_remain() {
    let desk = Desk::open().await;
    desk.abandon_draft(DOC).await;
    let (id, by, born) = (DocumentId::new(DOC).unwrap(), CustomerId::new("ann").unwrap(), Born::new("b3").unwrap());
    let head = desk.own().get(&document::read_for_update(&id).unwrap()).await.unwrap().unwrap();
    let edit = Edit { old: &head, right: Right::Staff, by: &by, at: Instant::now(), born: &born };
    let (begin, _) = document::begin_draft(edit).unwrap();
    let (put, _) = document::put_section(edit, &SectionName::new("a").unwrap(), "anew".to_owned()).unwrap();
    for change in [begin, put] {
        assert!(desk.own().transact(&change).await.unwrap().unwrap_err().names(DocumentAction::Document));
    }
}

/// A request that read the head before the discard cannot write a text that the discard removes.
#[tokio::test]
async fn a_change_during_a_discard_is_refused_or_keeps_its_text() {
    let desk = Desk::open().await;
    let mut version_now = 1;
    for round in 0..10 {
        let last = drafted(&desk, version_now, 12, "drafted").await;
        let discards = [discard(DOC, last), discard(DOC, last + 1)].map(|call| desk.send(call.customer("ann")));
        let put = desk.send(put(DOC, "s11", "anew", last + 1).customer("ann"));
        let (_, put) = futures::future::join(futures::future::join_all(discards), put).await;
        let head = desk.expect(200, read(DOC).customer("ann")).await;
        let kept = texts(&head)["s11"] == "anew";
        assert_eq!(kept, put.status == 200, "{round}: {}", put.body);
        version_now = head["version"].as_u64().unwrap();
        if kept {
            desk.expect(200, restore(DOC, 1, version_now).customer("ann")).await;
            version_now += 1;
        }
    }
}
