//! Tests of documents that are too large for one response, and of reads of single sections.

use std::collections::BTreeMap;

use http_api::MAX_PAGE_BYTES;
use http_api::sample::Call;
use key_schema::document::{MAX_SECTIONS, MAX_TEXT};
use serde_json::{Value, json};

use crate::desk::{CLUB, DOC, Desk, begin, hidden, publish, put, read, section, version};

/// Returns the name of the `n`th section. It consists mostly of quotation marks, because their
/// escapes take the most bytes in a response.
fn name(n: usize) -> String {
    format!("{n:02}{}", "\"".repeat(126))
}

fn text(n: usize) -> String {
    format!("{n:02}{}", "\"".repeat(MAX_TEXT - 2))
}

/// Creates a document whose draft has as much text as possible.
async fn full_draft(desk: &Desk) {
    desk.draw_up("full", "ann", None, &json!({})).await;
    desk.expect(201, begin("full", 1).customer("ann")).await;
    for n in 0..MAX_SECTIONS {
        desk.expect(200, put("full", &name(n), &text(n), u64::try_from(n).unwrap() + 2).customer("ann")).await;
    }
}

/// Returns all texts by section. Checks that each page fits into a response.
async fn texts(desk: &Desk, call: impl Fn() -> Call) -> BTreeMap<String, Value> {
    let (mut found, mut pages, mut cursor) = (BTreeMap::new(), 0, None::<String>);
    loop {
        let answer = desk.send(cursor.iter().fold(call(), |call, cursor| call.query("cursor", cursor))).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let wire = serde_json::to_string(&answer.body.to_string()).unwrap().len();
        assert!(wire <= MAX_PAGE_BYTES, "{wire} bytes");
        pages += 1;
        for (name, section) in answer.body["sections"].as_object().unwrap() {
            assert_eq!(found.insert(name.clone(), section["text"].clone()), None, "{name} is listed twice");
        }
        cursor = answer.body["next_cursor"].as_str().map(str::to_owned);
        assert_eq!(answer.header("link").is_some(), cursor.is_some());
        if cursor.is_none() {
            assert!(pages > 4, "{pages} pages");
            return found;
        }
    }
}

#[tokio::test]
async fn drafts_versions_and_current_documents_of_the_maximum_size_are_read_in_pages() {
    let desk = Desk::open().await;
    full_draft(&desk).await;
    let expected: BTreeMap<String, Value> = (0..MAX_SECTIONS).map(|n| (name(n), json!(text(n)))).collect();
    assert!(texts(&desk, || version("full", 2).customer("ann")).await == expected);
    let draft = desk.expect(200, version("full", 2).customer("ann")).await;
    desk.expect(200, publish("full", 52).customer("ann")).await;
    assert!(texts(&desk, || read("full").customer("ann")).await == expected);
    assert!(texts(&desk, || version("full", 2).customer("ann")).await == expected);

    // A page's cursor is valid only for the caller and the version or draft of that page.
    let refused = (400, "cursor_invalid".to_owned());
    let of_draft = draft["next_cursor"].as_str().unwrap();
    assert_eq!(desk.refusal(version("full", 2).customer("ann").query("cursor", of_draft)).await, refused);
    let first = desk.expect(200, read("full").customer("ann")).await;
    let cursor = first["next_cursor"].as_str().unwrap();
    desk.expect(200, put("full", &name(49), "changed", 53).customer("ann")).await;
    for call in [read("full"), read(DOC), version("full", 1)] {
        assert_eq!(desk.refusal(call.customer("ann").query("cursor", cursor)).await, refused);
    }
    assert_eq!(desk.refusal(version("full", 2).staff("s1").query("cursor", cursor)).await, refused);
    desk.expect(200, version("full", 2).customer("ann").query("cursor", cursor)).await;
}

#[tokio::test]
async fn a_stranger_with_a_bad_cursor_learns_nothing_about_a_document() {
    let desk = Desk::with_club("c").await;
    for call in [read("c"), version("c", 1), read(DOC), read("none"), version("none", 1)] {
        assert_eq!(desk.refusal(call.clone().query("cursor", "x").customer("ben")).await, hidden());
    }
    for caller in ["mia", "max"] {
        let refused = (400, "cursor_invalid".to_owned());
        assert_eq!(desk.refusal(read("c").query("cursor", "x").customer(caller)).await, refused);
    }
}

#[tokio::test]
async fn a_section_of_the_current_version_is_read_by_its_name() {
    let desk = Desk::with_club("c").await;
    desk.expect(200, put("c", "a", "A2", 1).customer("mia")).await;
    desk.expect(201, begin("c", 2).customer("mia")).await;
    desk.expect(200, put("c", "new", "N", 3).customer("mia")).await;
    for caller in ["mia", "max"] {
        let answer = desk.send(section("c", "a").customer(caller)).await;
        let mut body = answer.body.clone();
        assert!(body.as_object_mut().unwrap().remove("at").is_some());
        assert_eq!((answer.status, answer.header("etag")), (200, Some("\"4\"")));
        assert_eq!(body, json!({ "document_id": "c", "name": "a", "text": "A2", "version": 2, "by": "mia" }));
        // A section that only the draft has does not exist yet.
        for missing in ["new", "none"] {
            let answer = desk.send(section("c", missing).customer(caller)).await;
            assert_eq!((answer.status, answer.code()), (404, Some("not_found")));
            assert!(answer.body["detail"].as_str().unwrap().contains("section"), "{}", answer.body);
        }
    }
    for (id, name) in [("c", "a"), ("c", "none"), (DOC, "a"), ("none", "a")] {
        let answer = desk.send(section(id, name).customer("ben")).await;
        assert_eq!((answer.status, answer.code()), (404, Some("not_found")), "{CLUB}");
        assert!(!answer.body["detail"].as_str().unwrap().contains("section"), "{}", answer.body);
    }
}
