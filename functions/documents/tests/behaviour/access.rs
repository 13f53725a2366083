//! Tests of the permissions to read and write documents.

use http_api::sample::Call;
use key_schema::organization::Role;
use serde_json::json;

use crate::desk::{
    CLUB, DOC, Desk, add_editor, begin, delete, discard, hidden, publish, put, read, remove_editor, restore, version,
    versions,
};

fn reads(id: &str) -> [Call; 3] {
    [read(id), versions(id), version(id, 1)]
}

/// Returns requests that change a document. Some have the current version, some have a stale
/// version, and some have another reason for a refusal.
fn writes(id: &str) -> Vec<Call> {
    vec![
        put(id, "a", "X", 1),
        put(id, "a", "X", 7),
        begin(id, 1),
        begin(id, 7),
        publish(id, 1),
        discard(id, 1),
        restore(id, 1, 1),
        restore(id, 99, 1),
        restore(id, 1, 7),
        delete(id, 1),
        delete(id, 7),
        add_editor(id, "ben"),
        add_editor(id, "nobody"),
        remove_editor(id, "nobody"),
    ]
}

#[tokio::test]
async fn only_the_owner_the_editors_and_staff_see_a_document() {
    let desk = Desk::open().await;
    for call in reads(DOC).into_iter().chain(writes(DOC)) {
        assert_eq!(desk.refusal(call.clone()).await, (401, "unauthenticated".into()));
        for stranger in ["ben", "nobody"] {
            assert_eq!(desk.refusal(call.clone().customer(stranger)).await, hidden(), "{call:?}");
        }
    }
    desk.expect(200, add_editor(DOC, "ben").customer("ann")).await;
    for call in reads(DOC) {
        for insider in [call.clone().customer("ann"), call.clone().customer("ben"), call.staff("s1")] {
            desk.expect(200, insider).await;
        }
    }
    desk.expect(200, put(DOC, "a", "by ben", 1).customer("ben")).await;
    desk.expect(200, put(DOC, "a", "by ann", 2).customer("ann")).await;
    desk.expect(200, put(DOC, "a", "by staff", 3).staff("s1")).await;
    assert_eq!(desk.refusal(delete(DOC, 4).customer("ben")).await, (403, "forbidden".into()));
    assert_eq!(desk.texts(DOC).await["a"], "by staff");
}

#[tokio::test]
async fn members_read_the_documents_of_their_organization_and_admins_write_them() {
    let desk = Desk::with_club("c").await;
    for call in reads("c") {
        for insider in ["mia", "max"] {
            desk.expect(200, call.clone().customer(insider)).await;
        }
        assert_eq!(desk.refusal(call.customer("ann")).await, hidden());
    }
    for call in writes("c") {
        assert_eq!(desk.refusal(call.clone().customer("max")).await, (403, "forbidden".into()), "{call:?}");
        assert_eq!(desk.refusal(call.clone().customer("ann")).await, hidden(), "{call:?}");
    }
    // Max owns this document, so mia writes it as an admin. A condition checks her membership.
    desk.draw_up("m", "max", Some(CLUB), &json!({ "a": "A" })).await;
    desk.expect(200, put("m", "a", "by mia", 1).customer("mia")).await;
    assert_eq!(desk.refusal(put("m", "a", "X", 1).customer("mia")).await, (412, "version_mismatch".into()));
    assert_eq!(desk.refusal(put("m", "a", "X", 2).customer("ann")).await, hidden());
    // A new editor must be a member, even if the owner or an admin adds the editor.
    for call in [add_editor("m", "ann").customer("max"), add_editor("m", "ann").customer("mia")] {
        assert_eq!(desk.refusal(call).await, hidden());
    }
    assert_eq!(desk.refusal(add_editor("m", "ann").staff("s1")).await, hidden());
    desk.enter(CLUB, "ann", Role::Member).await;
    desk.expect(200, add_editor("m", "ann").customer("max")).await;
    desk.expect(200, put("m", "a", "by ann", 2).customer("ann")).await;
    for call in [delete("m", 3), add_editor("m", "mia"), remove_editor("m", "max")] {
        assert_eq!(desk.refusal(call.customer("ann")).await, (403, "forbidden".into()));
    }
    assert_eq!(desk.texts("m").await["a"], "by ann");
    // The owner and the admin may add and remove themselves as editors.
    for who in ["max", "mia"] {
        desk.expect(200, add_editor("m", who).customer(who)).await;
        desk.expect(204, remove_editor("m", who).customer(who)).await;
    }
    desk.expect(204, remove_editor("m", "ann").customer("ann")).await;
    assert_eq!(desk.refusal(put("m", "a", "X", 3).customer("ann")).await, (403, "forbidden".into()));
    desk.expect(204, delete("m", 3).customer("mia")).await;
    desk.draw_up("n", "max", Some(CLUB), &json!({ "a": "A" })).await;
    assert_eq!(desk.refusal(delete("n", 9).customer("max")).await, (412, "version_mismatch".into()));
    desk.expect(204, delete("n", 1).customer("max")).await;
    assert_eq!(desk.stored("n").await, [""; 0]);
}

#[tokio::test]
async fn a_removed_member_has_no_right_to_the_organizations_documents_until_added_again() {
    let desk = Desk::with_club("c").await;
    desk.enter(CLUB, "ben", Role::Member).await;
    desk.draw_up("m", "max", Some(CLUB), &json!({ "a": "A" })).await;
    desk.expect(200, add_editor("m", "ben").customer("max")).await;
    // This document has no organization, so a membership does not matter.
    desk.draw_up("private", "max", None, &json!({ "a": "A" })).await;
    desk.expect(200, add_editor("private", "ben").customer("max")).await;
    for removed in ["max", "ben"] {
        desk.leave(removed).await;
        for call in reads("m").into_iter().chain(writes("m")) {
            assert_eq!(desk.refusal(call.clone().customer(removed)).await, hidden(), "{removed}: {call:?}");
        }
        desk.expect(200, read("private").customer(removed)).await;
    }
    desk.expect(200, put("private", "a", "by ben", 1).customer("ben")).await;
    // The document still has its owner and its editor, and the admin manages it.
    let body = desk.expect(200, read("m").customer("mia")).await;
    assert_eq!((&body["owner_id"], &body["editors"], &body["version"]), (&json!("max"), &json!(["ben"]), &json!(1)));
    desk.expect(204, remove_editor("m", "ben").customer("mia")).await;
    for who in ["ben", "max"] {
        desk.enter(CLUB, who, Role::Member).await;
    }
    assert_eq!(desk.refusal(put("m", "a", "X", 1).customer("ben")).await, (403, "forbidden".into()));
    desk.expect(200, put("m", "a", "by max", 1).customer("max")).await;
}

/// The table refuses a write by a caller without the right, even if the function read an older
/// state.
#[tokio::test]
async fn the_condition_on_the_document_itself_refuses_a_caller_who_is_no_editor() {
    use key_schema::document::{self, DocumentAction, Edit, Right};
    use key_schema::id::{Born, CustomerId, DocumentId, OrganizationId, SectionName};
    use key_schema::instant::Instant;

    let desk = Desk::with_club("c").await;
    let [ann, ben, max, mia] = ["ann", "ben", "max", "mia"].map(|id| CustomerId::new(id).unwrap());
    desk.enter(CLUB, "ann", Role::Member).await;
    desk.draw_up("m", "ann", Some(CLUB), &json!({ "a": "A1" })).await;
    desk.leave("ann").await;
    let club = OrganizationId::new(CLUB).unwrap();
    for (id, right, by, action) in [
        (DOC, Right::Own(&ben), &ben, DocumentAction::Document),
        ("c", Right::Own(&max), &max, DocumentAction::Document),
        // For an organization's document, `Right::Own` is not enough, even for the owner.
        ("c", Right::Own(&mia), &mia, DocumentAction::Document),
        ("c", Right::Member(&club, &max), &max, DocumentAction::Document),
        ("m", Right::Member(&club, &ann), &ann, DocumentAction::Member),
        ("c", Right::Admin(&club, &max), &max, DocumentAction::Admin),
        ("c", Right::Admin(&club, &ben), &ben, DocumentAction::Admin),
    ] {
        let old =
            desk.own().get(&document::read_for_update(&DocumentId::new(id).unwrap()).unwrap()).await.unwrap().unwrap();
        let edit = Edit { old: &old, right, by, at: Instant::now(), born: &Born::new("b").unwrap() };
        let (change, _) = document::put_section(edit, &SectionName::new("a").unwrap(), "X".to_owned()).unwrap();
        let refusals = desk.own().transact(&change).await.unwrap().unwrap_err();
        assert_eq!(refusals.iter().map(|refusal| refusal.action).collect::<Vec<_>>(), [action]);
    }
    assert_eq!(desk.texts(DOC).await["a"], "A1");
    assert_eq!(desk.texts("c").await["a"], "A1");
}
