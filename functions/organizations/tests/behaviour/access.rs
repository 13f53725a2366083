//! Tests of the permissions of all routes.

use http_api::sample::Call;

use crate::club::{
    CLUB, Club, add_team, delete_team, hidden, members, put_member, read, remove_member, rename, rename_team,
};

fn reads() -> Vec<Call> {
    vec![read(CLUB), members(CLUB)]
}

fn writes() -> Vec<Call> {
    vec![
        rename(CLUB, "X", 1),
        rename(CLUB, "X", 9),
        add_team(CLUB, "new"),
        add_team(CLUB, "t"),
        rename_team(CLUB, "t", "X", 1),
        rename_team(CLUB, "t", "X", 9),
        delete_team(CLUB, "t", 1),
        delete_team(CLUB, "none", 1),
        put_member(CLUB, "eve", "admin", None),
        put_member(CLUB, "bob", "admin", None),
        put_member(CLUB, "ann", "member", None),
        put_member(CLUB, "nobody", "member", Some("none")),
        remove_member(CLUB, "ann"),
        remove_member(CLUB, "eve"),
        remove_member(CLUB, "nobody"),
    ]
}

#[tokio::test]
async fn only_members_and_staff_see_an_organization() {
    let club = Club::open().await;
    club.expect(201, add_team(CLUB, "t").customer("ann")).await;
    for call in reads().into_iter().chain(writes()) {
        assert_eq!(club.refusal(call.clone()).await, (401, "unauthenticated".into()));
        for stranger in ["eve", "nobody"] {
            assert_eq!(club.refusal(call.clone().customer(stranger)).await, hidden(), "{:?}", call.event()["routeKey"]);
        }
    }
    for call in reads() {
        for insider in [call.clone().customer("ann"), call.clone().customer("bob"), call.staff("s1")] {
            club.expect(200, insider).await;
        }
    }
    for call in writes() {
        assert_eq!(club.refusal(call.clone().customer("bob")).await, (403, "forbidden".into()), "{call:?}");
    }
    let body = club.expect(200, read(CLUB).staff("s1")).await;
    assert_eq!((body["version"].as_u64(), body["teams"][0]["version"].as_u64()), (Some(1), Some(1)));
    assert_eq!(club.roles().await.len(), 2, "a refused request changes nothing");
}
