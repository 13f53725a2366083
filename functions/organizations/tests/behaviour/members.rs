//! Tests of members: a membership can be set and ended repeatedly.

use http_api::sample::Call;
use serde_json::json;

use crate::club::{CLUB, Club, add_team, hidden, members, organizations_of, put_member, read, remove_member};

#[tokio::test]
async fn a_membership_is_set_changed_and_ended_and_each_request_can_be_repeated() {
    let club = Club::open().await;
    club.expect(201, add_team(CLUB, "t").customer("ann")).await;
    let first = club.expect(200, put_member(CLUB, "eve", "member", Some("t")).staff("s1")).await;
    assert_eq!(club.expect(200, put_member(CLUB, "eve", "member", Some("t")).customer("ann")).await, first);
    let own = club.expect(200, organizations_of("eve").customer("eve")).await;
    assert_eq!((&own["items"][0]["organization_id"], &own["items"][0]["team"]), (&json!(CLUB), &json!("t")));
    let second = club.expect(200, put_member(CLUB, "eve", "admin", None).customer("ann")).await;
    assert_eq!((&second["role"], &second["team"]), (&json!("admin"), &json!(null)));
    assert_eq!(second["created_at"], first["created_at"]);
    let own = club.expect(200, organizations_of("eve").customer("eve")).await;
    assert_eq!((&own["items"][0]["role"], &own["items"][0]["team"]), (&json!("admin"), &json!(null)));
    for _ in 0..2 {
        club.expect(204, remove_member(CLUB, "eve").customer("ann")).await;
    }
    assert_eq!(club.refusal(read(CLUB).customer("eve")).await, hidden());
    assert_eq!(club.expect(200, organizations_of("eve").customer("eve")).await["items"], json!([]));
}

#[tokio::test]
async fn a_member_is_an_existing_customer_in_an_existing_team() {
    let club = Club::open().await;
    assert_eq!(club.refusal(put_member(CLUB, "nobody", "member", None).customer("ann")).await, hidden());
    let answer = club.send(put_member(CLUB, "eve", "member", Some("none")).customer("ann")).await;
    assert_eq!((answer.status, &answer.body["errors"][0]["pointer"]), (422, &json!("/team")));
    assert_eq!(club.refusal(put_member("no such", "eve", "member", None).staff("s1")).await, hidden());
    assert_eq!(club.refusal(remove_member("no such", "eve").staff("s1")).await, hidden());
    let unknown = put_member(CLUB, "eve", "owner", None);
    assert_eq!(club.refusal(unknown.customer("ann")).await, (422, "invalid_body".into()));
    assert!(!club.roles().await.contains_key("eve"));
}

#[tokio::test]
async fn the_last_admin_neither_leaves_nor_becomes_a_mere_member() {
    let club = Club::open().await;
    let last = (409, "last_admin".to_owned());
    for _ in 0..2 {
        assert_eq!(club.refusal(remove_member(CLUB, "ann").customer("ann")).await, last);
        assert_eq!(club.refusal(put_member(CLUB, "ann", "member", None).customer("ann")).await, last);
        assert_eq!(club.refusal(remove_member(CLUB, "ann").staff("s1")).await, last);
    }
    club.expect(200, put_member(CLUB, "bob", "admin", None).customer("ann")).await;
    club.expect(200, put_member(CLUB, "ann", "member", None).customer("ann")).await;
    assert_eq!(club.refusal(remove_member(CLUB, "bob").customer("bob")).await, last);
    club.expect(204, remove_member(CLUB, "ann").customer("ann")).await;
    assert_eq!(club.refusal(remove_member(CLUB, "ann").customer("ann")).await, hidden());
    assert_eq!(club.roles().await.into_keys().collect::<Vec<_>>(), ["bob"]);
}

/// The role may be missing, because a customer who accepts an invitation sends no role. If an
/// existing member omits the role, the member keeps it.
#[tokio::test]
async fn a_members_own_request_without_a_role_keeps_the_role() {
    let club = Club::open().await;
    club.expect(201, add_team(CLUB, "t").customer("ann")).await;
    let own = |customer: &str, team: &str| {
        let call = Call::new("PUT /v1/organizations/{id}/members/{customer}").path("id", CLUB);
        call.path("customer", customer).json(&json!({ "team": team })).customer(customer)
    };
    let kept = club.expect(200, own("ann", "t")).await;
    assert_eq!((&kept["role"], &kept["team"]), (&json!("admin"), &json!("t")));
    let unknown = club.send(own("ann", "none")).await;
    assert_eq!((unknown.status, &unknown.body["errors"][0]["pointer"]), (422, &json!("/team")));
    assert_eq!(club.refusal(own("bob", "t")).await, (403, "forbidden".to_owned()));
    let roles = club.roles().await;
    assert_eq!((roles["ann"].0.as_str(), roles["bob"].0.as_str()), ("admin", "member"));
}

#[tokio::test]
async fn a_member_who_is_no_admin_may_only_leave() {
    let club = Club::open().await;
    let forbidden = (403, "forbidden".to_owned());
    for call in [
        put_member(CLUB, "bob", "admin", None),
        put_member(CLUB, "eve", "member", None),
        put_member(CLUB, "ann", "member", None),
        remove_member(CLUB, "ann"),
        remove_member(CLUB, "eve"),
    ] {
        assert_eq!(club.refusal(call.customer("bob")).await, forbidden);
    }
    // Bob sets his unchanged membership, as a repeated acceptance does.
    club.expect(200, put_member(CLUB, "bob", "member", None).customer("bob")).await;
    assert_eq!(club.roles().await["bob"].0, "member");
    club.expect(204, remove_member(CLUB, "bob").customer("bob")).await;
    assert_eq!(club.refusal(members(CLUB).customer("bob")).await, hidden());
}

/// The ended membership and the new membership both have `rev` 1, so only the birth mark (`born`)
/// distinguishes them.
#[tokio::test]
async fn a_request_that_read_an_ended_membership_does_not_change_its_successor() {
    use key_schema::id::{CustomerId, OrganizationId};
    use key_schema::organization::{self, Authority, Role};

    let club = Club::open().await;
    let (id, bob) = (OrganizationId::new(CLUB).unwrap(), CustomerId::new("bob").unwrap());
    let old = club.own().get(&organization::member(&id, &bob).unwrap()).await.unwrap().unwrap();
    club.expect(204, remove_member(CLUB, "bob").customer("ann")).await;
    club.expect(200, put_member(CLUB, "bob", "admin", None).staff("s1")).await;
    let mut promoted = old.clone();
    promoted.data.role = Role::Admin;
    for change in [
        organization::put_member(Some(&old), &promoted, Authority::Staff).unwrap(),
        organization::remove_member(&old, Authority::Staff).unwrap(),
    ] {
        assert!(club.own().transact(&change).await.unwrap().is_err());
    }
    // The club counts two admins, so one may leave.
    club.expect(204, remove_member(CLUB, "ann").customer("ann")).await;
    assert_eq!(club.refusal(remove_member(CLUB, "bob").customer("bob")).await.1, "last_admin");
}
