//! Tests of valid tokens of erased customers. A request with such a token changes no organization,
//! even while the membership still exists.

use key_schema::id::{CustomerId, OrganizationId};
use key_schema::organization;

use crate::club::{
    CLUB, Club, add_team, delete_team, found, hidden, members, organizations_of, put_member, read, remove_member,
    rename, rename_team,
};

/// Deletes the membership as an erasure does.
async fn erase(club: &Club, id: &str) {
    let get = organization::erasable(&OrganizationId::new(CLUB).unwrap(), &CustomerId::new(id).unwrap()).unwrap();
    let member = club.own().get(&get).await.unwrap().unwrap();
    club.own().transact(&organization::erase_member(&member).unwrap()).await.unwrap().unwrap();
}

#[tokio::test]
async fn an_admin_without_a_profile_changes_nothing() {
    let club = Club::open().await;
    club.expect(201, add_team(CLUB, "t").customer("ann")).await;
    club.delete_profile("ann").await;
    let before = club.expect(200, read(CLUB).staff("s1")).await;
    let writes = [
        rename(CLUB, "X", 1),
        add_team(CLUB, "new"),
        add_team(CLUB, "t"),
        rename_team(CLUB, "t", "X", 1),
        delete_team(CLUB, "t", 1),
        put_member(CLUB, "eve", "admin", None),
        put_member(CLUB, "bob", "admin", None),
        put_member(CLUB, "bob", "member", Some("t")),
        put_member(CLUB, "ann", "admin", Some("t")),
        remove_member(CLUB, "bob"),
    ];
    for call in writes {
        assert_eq!(club.refusal(call.clone().customer("ann")).await, hidden(), "{call:?}");
    }
    assert_eq!(club.expect(200, read(CLUB).staff("s1")).await, before);
    let roles = club.roles().await;
    assert_eq!((roles.len(), roles["bob"].0.as_str(), &roles["ann"].1), (2, "member", &None));
}

#[tokio::test]
async fn a_customer_without_a_profile_cannot_create_an_organization_or_become_a_member() {
    let club = Club::open().await;
    assert_eq!(club.refusal(found("X").customer("stranger")).await, hidden());
    club.delete_profile("eve").await;
    assert_eq!(club.refusal(found("X").customer("eve")).await, hidden());
    assert_eq!(club.expect(200, organizations_of("eve").staff("s1")).await["items"].as_array().unwrap().len(), 0);
    for call in
        [put_member(CLUB, "eve", "admin", None).customer("ann"), put_member(CLUB, "eve", "admin", None).staff("s1")]
    {
        assert_eq!(club.refusal(call).await, hidden());
    }
    assert_eq!(club.roles().await.len(), 2);
    // Staff need no profile.
    club.expect(201, found("Y").staff("s2")).await;
}

#[tokio::test]
async fn a_guest_becomes_no_member() {
    let club = Club::open().await;
    let before = club.items("").await;
    let guest = CustomerId::guest(&"gil@example.com".parse().unwrap());
    let add = || put_member(CLUB, guest.as_str(), "member", None);
    for call in [add().customer("ann"), add().staff("s1")] {
        assert_eq!(club.refusal(call).await, hidden());
    }
    assert_eq!(club.items("").await, before);
}

#[tokio::test]
async fn an_organization_does_not_exist_to_an_erased_customer() {
    let club = Club::open().await;
    club.delete_profile("ann").await;
    erase(&club, "ann").await;
    for call in [
        read(CLUB),
        members(CLUB),
        rename(CLUB, "X", 1),
        add_team(CLUB, "t"),
        put_member(CLUB, "ann", "admin", None),
        put_member(CLUB, "bob", "member", None),
        remove_member(CLUB, "ann"),
        remove_member(CLUB, "bob"),
    ] {
        assert_eq!(club.refusal(call.clone().customer("ann")).await, hidden(), "{call:?}");
    }
    // The organization has no admin, and bob is only a member. Staff can appoint an admin.
    assert_eq!(club.refusal(rename(CLUB, "X", 1).customer("bob")).await, (403, "forbidden".into()));
    club.expect(200, put_member(CLUB, "bob", "admin", None).staff("s1")).await;
    club.expect(200, rename(CLUB, "X", 1).customer("bob")).await;
    assert_eq!(club.refusal(remove_member(CLUB, "bob").customer("bob")).await.1, "last_admin");
}

#[tokio::test]
async fn staff_removes_a_last_admin_whose_erasure_has_begun() {
    let club = Club::open().await;
    club.begin_erasure("ann").await;
    club.expect(204, remove_member(CLUB, "ann").staff("s1")).await;
    assert_eq!(club.roles().await.into_keys().collect::<Vec<_>>(), ["bob"]);
}

#[tokio::test]
async fn staff_cannot_remove_a_last_admin_before_the_erasure() {
    let club = Club::open().await;
    let last = (409, "last_admin".to_owned());
    assert_eq!(club.refusal(remove_member(CLUB, "ann").staff("s1")).await, last);
    club.delete_profile("ann").await;
    for demote in [put_member(CLUB, "ann", "member", None).staff("s1"), remove_member(CLUB, "ann").customer("bob")] {
        assert!([403, 404].contains(&club.refusal(demote).await.0));
    }
    club.expect(204, remove_member(CLUB, "ann").staff("s1")).await;
    assert_eq!(club.roles().await.into_keys().collect::<Vec<_>>(), ["bob"]);
    // The counter of admins is correct: after bob becomes an admin, he is the last admin.
    club.expect(200, put_member(CLUB, "bob", "admin", None).staff("s1")).await;
    assert_eq!(club.refusal(remove_member(CLUB, "bob").staff("s1")).await, last);
}

#[tokio::test]
async fn staff_reaches_an_organization_without_members() {
    let club = Club::open().await;
    for id in ["ann", "bob"] {
        club.delete_profile(id).await;
        erase(&club, id).await;
    }
    assert_eq!(club.expect(200, members(CLUB).staff("s1")).await["items"].as_array().unwrap().len(), 0);
    assert_eq!(club.refusal(members("no such").staff("s1")).await, hidden());
    assert_eq!(club.refusal(members(CLUB).customer("eve")).await, hidden());
    club.expect(200, put_member(CLUB, "eve", "admin", None).staff("s1")).await;
    club.expect(200, rename(CLUB, "Eve's", 1).customer("eve")).await;
}
