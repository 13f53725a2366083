//! Tests that each route uses the access patterns that it declares.

use fixture::Recorder;
use http_api::sample::Call;
use key_schema::organization::Role;
use serde_json::json;

use crate::desk::{
    CLUB, DOC, Desk, add_editor, begin, delete, discard, publish, put, read, remove_editor, restore, section, version,
    versions,
};

#[tokio::test]
async fn every_route_uses_exactly_the_recorded_patterns() {
    let desk = Desk::with_club("c").await;
    desk.enter(CLUB, "ben", Role::Member).await;
    let of_club = json!({ "title": "t", "organization_id": CLUB, "sections": { "a": "A" } });
    let calls = [
        (201, Call::new("POST /v1/documents").json(&of_club).customer("mia")),
        (200, read("c").customer("max")),
        (200, section("c", "a").customer("max")),
        (200, versions("c").customer("max")),
        (200, version("c", 1).customer("max")),
        (404, version("c", 9).customer("max")),
        (200, put("c", "a", "A2", 1).customer("mia")),
        (201, begin("c", 2).customer("mia")),
        (200, put("c", "a", "A3", 3).customer("mia")),
        (200, publish("c", 4).customer("mia")),
        (201, begin("c", 5).customer("mia")),
        (204, discard("c", 6).customer("mia")),
        (200, restore("c", 1, 7).customer("mia")),
        (200, add_editor("c", "ben").customer("mia")),
        (204, remove_editor("c", "ben").customer("mia")),
        // After a refused write, the route reads the membership to choose between 403 and 404.
        (403, put("c", "a", "X", 8).customer("max")),
        (403, begin("c", 8).customer("max")),
        (403, discard("c", 8).customer("max")),
        (403, publish("c", 8).customer("max")),
        (403, restore("c", 1, 8).customer("max")),
        (403, add_editor("c", "ben").customer("max")),
        (403, remove_editor("c", "ben").customer("max")),
        (403, delete("c", 8).customer("max")),
        (204, delete("c", 8).customer("mia")),
        (204, delete(DOC, 1).customer("ann")),
    ];
    let mut recorder = Recorder::new(&desk);
    // A change of the content first removes the texts of a discarded draft.
    let changes = [(200, put("a", "a", "A2", 4)), (201, begin("b", 4)), (200, restore("d", 1, 4))];
    for ((status, call), id) in changes.into_iter().zip(["a", "b", "d"]) {
        desk.draw_up(id, "ben", Some(CLUB), &json!({ "a": "A1" })).await;
        desk.abandon_draft(id).await;
        recorder.expect(status, call.customer("mia")).await;
    }
    desk.abandon_draft("d").await;
    recorder.expect(204, discard("d", 8).customer("mia")).await;
    for (status, call) in calls {
        recorder.expect(status, call).await;
    }
    recorder.assert_recorded();
}
