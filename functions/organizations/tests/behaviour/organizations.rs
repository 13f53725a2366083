//! Tests of creating, reading and renaming organizations.

use http_api::sample::Call;
use key_schema::id::CustomerId;
use key_schema::quota::Quota;
use serde_json::json;

use crate::club::{CLUB, Club, add_team, found, members, organizations_of, read, rename};

#[tokio::test]
async fn the_founder_of_an_organization_is_its_first_admin() {
    let club = Club::empty(&["ann"]).await;
    let answer = club.send(found("Chess").customer("ann")).await;
    assert_eq!((answer.status, answer.header("etag")), (201, Some("\"1\"")));
    let id = answer.body["id"].as_str().unwrap();
    assert_eq!(answer.header("location"), Some(format!("/v1/organizations/{id}").as_str()));
    assert_eq!(club.expect(200, read(id).customer("ann")).await, answer.body);
    let listed = club.expect(200, members(id).customer("ann")).await;
    assert_eq!(listed["items"][0]["customer_id"], "ann");
    assert_eq!((&listed["items"][0]["role"], &listed["items"][0]["team"]), (&json!("admin"), &json!(null)));
    let own = club.expect(200, organizations_of("ann").customer("ann")).await;
    assert_eq!((&own["items"][0]["organization_id"], &own["items"][0]["role"]), (&json!(id), &json!("admin")));
}

#[tokio::test]
async fn only_staff_chooses_an_id_and_each_id_is_used_once() {
    let club = Club::empty(&[]).await;
    let call = || Call::new("POST /v1/organizations").json(&json!({ "id": CLUB, "name": "Chess" }));
    assert_eq!(club.refusal(call().customer("ann")).await, (403, "forbidden".into()));
    club.expect(201, call().staff("s1")).await;
    let again = club.send(call().staff("s2")).await;
    assert_eq!((again.status, again.code()), (409, Some("already_exists")));
    assert!(again.header("location").unwrap().starts_with("/v1/organizations/chess%20%231~2%24"));
    assert_eq!(club.refusal(members(CLUB).customer("s2")).await.0, 404, "the second caller is no member");
}

#[tokio::test]
async fn an_organization_is_read_with_all_its_teams_in_one_query() {
    let club = Club::open().await;
    for n in 0..100 {
        club.expect(201, add_team(CLUB, &format!("team {n:03}")).customer("ann")).await;
    }
    let _ = club.app.table.meter().take();
    let body = club.expect(200, read(CLUB).customer("bob")).await;
    let costs = club.app.table.meter().take();
    let requests: Vec<(&str, u32)> = costs.iter().map(|cost| (cost.pattern.id, cost.requests)).collect();
    assert!(requests.contains(&("organizations.get", 1)) && requests.contains(&("members.get", 1)), "{requests:?}");
    assert_eq!(requests.len(), 2);
    let teams: Vec<&str> = body["teams"].as_array().unwrap().iter().map(|team| team["id"].as_str().unwrap()).collect();
    assert_eq!(teams.len(), 100);
    assert!(teams.is_sorted());
    assert_eq!(body["version"], 1, "a new team does not change the organization");

    let full = club.send(add_team(CLUB, "one more").customer("ann")).await;
    assert_eq!((full.status, full.code()), (422, Some("invalid_body")));
    assert!(full.body["detail"].as_str().unwrap().contains("100 teams"));
}

#[tokio::test]
async fn the_members_see_the_new_name_of_an_organization() {
    let club = Club::open().await;
    let body = club.expect(200, rename(CLUB, "Go", 1).customer("ann")).await;
    assert_eq!((&body["name"], &body["version"]), (&json!("Go"), &json!(2)));
    assert_eq!(club.expect(200, read(CLUB).customer("bob")).await, body);
    assert_eq!(club.refusal(rename("no such", "X", 1).staff("s1")).await, (404, "not_found".into()));
}

/// An invitation shows the name to customers who are not members.
#[tokio::test]
async fn a_name_has_visible_characters_only() {
    let club = Club::open().await;
    // The right-to-left override would show the end of this name in reverse.
    let body = club.expect(201, found("Che\u{202E}ss \u{200B}club").customer("ann")).await;
    assert_eq!(body["name"], "Chess club");
    assert_eq!(club.expect(200, rename(CLUB, "G\u{2066}o", 1).customer("ann")).await["name"], "Go");
    for bad in ["\u{2028}", "a\u{E000}", "\u{200B}", " ", "\u{202E} "] {
        for call in [found(bad), rename(CLUB, bad, 2)] {
            let answer = club.send(call.customer("ann")).await;
            assert_eq!((answer.status, answer.pointers()), (422, vec!["/name"]), "{bad:?}");
        }
    }
}

#[tokio::test]
async fn a_customer_founds_no_more_organizations_a_day_than_the_quota() {
    let club = Club::empty(&["ann"]).await;
    for founder in ["ann", "s1"] {
        club.test.use_up(&CustomerId::new(founder).unwrap(), Quota::Organizations, 1).await;
    }
    club.expect(201, found("First").customer("ann")).await;
    let refused = club.send(found("Second").customer("ann")).await;
    assert_eq!((refused.status, refused.code()), (429, Some("quota_exceeded")), "{}", refused.body);
    assert!(refused.header("retry-after").is_some());
    let own = club.expect(200, organizations_of("ann").customer("ann")).await;
    assert_eq!(own["items"].as_array().unwrap().len(), 1);
    for name in ["Third", "Fourth"] {
        club.expect(201, found(name).staff("s1")).await;
    }
}
