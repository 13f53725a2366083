//! Tests of the permissions of all routes.

use http_api::sample::Call;

use crate::club::{
    CLUB, Club, add_team, delete_team, hidden, members, organizations_of, put_member, read, remove_member, rename,
    rename_team,
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
    assert_eq!(club.roles().await.len(), 2, "a refused request changed something");
}

#[tokio::test]
async fn only_the_customer_and_staff_see_the_customers_memberships() {
    let club = Club::open().await;
    assert_eq!(club.refusal(organizations_of("bob")).await.0, 401);
    assert_eq!(club.refusal(organizations_of("bob").customer("ann")).await, hidden());
    for call in [organizations_of("bob").customer("bob"), organizations_of("bob").staff("s1")] {
        assert_eq!(club.expect(200, call).await["items"][0]["organization_id"], CLUB);
    }
}

#[tokio::test]
async fn ids_that_are_too_long_or_invalid_in_a_path_are_refused() {
    let club = Club::open().await;
    let longest = "#".repeat(128);
    club.expect(201, add_team(CLUB, &longest).customer("ann")).await;
    for bad in ["", "a\u{7f}", "a\nb", "a/b", "a?b", "50%", &"x".repeat(129)] {
        for call in [read(bad), add_team(CLUB, "x").path("id", bad), members(bad), remove_member(CLUB, bad)] {
            let call = if call.event()["routeKey"] == "PUT /v1/organizations/{id}/teams/{team}" {
                Call::new("PUT /v1/organizations/{id}/teams/{team}")
                    .path("id", CLUB)
                    .path("team", bad)
                    .header("if-none-match", "*")
            } else {
                call
            };
            assert_eq!(club.refusal(call.staff("s1")).await, (422, "invalid_id".into()), "{bad:?}");
        }
    }
}
