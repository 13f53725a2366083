//! Tests of teams.

use serde_json::json;

use crate::club::{CLUB, Club, add_team, delete_team, put_member, read, remove_member, rename_team};

const TEAM: &str = "Läufer #1+~";

#[tokio::test]
async fn a_team_is_added_once_and_renamed_at_the_current_version() {
    let club = Club::open().await;
    let added = club.send(add_team(CLUB, TEAM).customer("ann")).await;
    assert_eq!((added.status, added.header("etag")), (201, Some("\"1\"")));
    assert_eq!(club.refusal(add_team(CLUB, TEAM).customer("ann")).await, (409, "already_exists".into()));
    let renamed = club.send(rename_team(CLUB, TEAM, "Bishops", 1).customer("ann")).await;
    assert_eq!((renamed.status, renamed.header("etag")), (200, Some("\"2\"")));
    assert_eq!(club.expect(200, read(CLUB).customer("bob")).await["teams"], json!([renamed.body]));
    assert_eq!(club.refusal(rename_team(CLUB, TEAM, "X", 1).customer("ann")).await, (412, "version_mismatch".into()));
    assert_eq!(club.refusal(rename_team(CLUB, "none", "X", 1).customer("ann")).await.0, 404);
    assert_eq!(club.refusal(add_team("no such", TEAM).staff("s1")).await.0, 404);
}

#[tokio::test]
async fn the_name_of_a_team_has_no_invisible_characters() {
    let club = Club::open().await;
    club.expect(201, add_team(CLUB, TEAM).customer("ann")).await;
    let renamed = club.expect(200, rename_team(CLUB, TEAM, "safe\u{202e}txt\u{200b}", 1).customer("ann")).await;
    assert_eq!(renamed["name"], "safetxt");
    assert_eq!(club.refusal(rename_team(CLUB, TEAM, "\u{200b}", 2).customer("ann")).await.0, 422);
}

#[tokio::test]
async fn a_team_with_members_cannot_be_removed() {
    let club = Club::open().await;
    club.expect(201, add_team(CLUB, TEAM).customer("ann")).await;
    club.expect(201, add_team(CLUB, "other").customer("ann")).await;
    club.expect(200, put_member(CLUB, "bob", "member", Some(TEAM)).customer("ann")).await;
    let in_use = (409, "team_in_use".to_owned());
    assert_eq!(club.refusal(delete_team(CLUB, TEAM, 1).customer("ann")).await, in_use);
    assert_eq!(club.refusal(delete_team(CLUB, TEAM, 2).customer("ann")).await, (412, "version_mismatch".into()));
    // A repeated request counts the member only once.
    club.expect(200, put_member(CLUB, "bob", "member", Some(TEAM)).customer("ann")).await;
    club.expect(200, put_member(CLUB, "bob", "admin", Some(TEAM)).customer("ann")).await;
    club.expect(200, put_member(CLUB, "bob", "member", Some("other")).customer("ann")).await;
    club.expect(204, delete_team(CLUB, TEAM, 1).customer("ann")).await;
    assert_eq!(club.refusal(delete_team(CLUB, TEAM, 1).customer("ann")).await.0, 404);
    assert_eq!(club.refusal(delete_team(CLUB, "other", 1).customer("ann")).await, in_use);
    club.expect(204, remove_member(CLUB, "bob").customer("ann")).await;
    club.expect(204, delete_team(CLUB, "other", 1).staff("s1")).await;
    assert_eq!(club.expect(200, read(CLUB).customer("ann")).await["teams"], json!([]));
}
