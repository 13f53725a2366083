//! Tests of the limit on an organization's open invitations.

use key_schema::instant::Instant;
use key_schema::organization::invitation::MAX_OF_ORGANIZATION;

use crate::club::{CLUB, Club, accept, add_team, found, put_member, uninvite};
use crate::invitations::{invited, named};

#[tokio::test]
async fn void_invitations_of_a_former_admin_do_not_count_for_the_limit() {
    let club = Club::open().await;
    club.expect(200, put_member(CLUB, "bob", "admin", None).customer("ann")).await;
    for n in 0..MAX_OF_ORGANIZATION {
        let customer = format!("customer-{n:03}");
        club.sign_up(&customer).await;
        club.expect(202, put_member(CLUB, &customer, "member", None).customer("bob")).await;
    }
    let invite = || put_member(CLUB, "eve", "member", None).customer("ann");
    assert_eq!(club.refusal(invite()).await, (409, "too_many_invitations".into()));
    // While bob is an admin, the invitations by bob stay valid, even if bob's team changes.
    club.expect(201, add_team(CLUB, "t").customer("ann")).await;
    club.expect(200, put_member(CLUB, "bob", "admin", Some("t")).customer("ann")).await;
    assert_eq!(club.refusal(invite()).await, (409, "too_many_invitations".into()));
    club.expect(201, accept(CLUB, "customer-000").customer("customer-000")).await;
    club.expect(202, invite()).await;
    club.expect(204, uninvite(CLUB, "eve").customer("ann")).await;
    club.sign_up("zoe").await;
    club.expect(202, put_member(CLUB, "zoe", "member", None).customer("ann")).await;
    assert_eq!(club.refusal(invite()).await, (409, "too_many_invitations".into()));
    // The invitations by bob are void, and remain void when bob is an admin again.
    for role in ["member", "admin"] {
        club.expect(200, put_member(CLUB, "bob", role, None).customer("ann")).await;
        club.expect(202, invite()).await;
    }
}

/// An admin who is about to leave can invite many customers.
#[tokio::test]
async fn a_new_invitation_succeeds_and_withdraws_void_invitations() {
    let club = Club::open().await;
    club.expect(202, put_member(CLUB, "eve", "member", None).customer("ann")).await;
    for n in 0..520 {
        club.invite(&format!("customer-{n:03}"), "gone", Instant::now().plus_seconds(60)).await;
    }
    // adam has two invitations: a void invitation by bob, and a valid one to another organization.
    club.sign_up("adam").await;
    let other = club.expect(201, found("Go").customer("ann")).await["id"].as_str().unwrap().to_owned();
    club.expect(202, put_member(&other, "adam", "member", None).customer("ann")).await;
    club.expect(200, put_member(CLUB, "bob", "admin", None).customer("ann")).await;
    club.expect(202, put_member(CLUB, "adam", "member", None).customer("bob")).await;
    club.expect(200, put_member(CLUB, "bob", "member", None).customer("ann")).await;
    assert_eq!(named(&club, "adam").await, 2);

    club.sign_up("bill").await;
    let _ = club.app.table.meter().take();
    for n in 0..12 {
        club.expect(202, put_member(CLUB, "bill", "member", None).customer("ann")).await;
        club.expect(204, uninvite(CLUB, "bill").customer("ann")).await;
        let costs = club.app.table.meter().take();
        let withdrawn = costs.iter().find(|cost| cost.pattern.id == "invitations.delete").unwrap().requests;
        assert!(n > 0 || withdrawn == 51, "{withdrawn} withdrawals");
    }
    assert!(invited(&club).await.len() <= MAX_OF_ORGANIZATION);
    assert_eq!(named(&club, "adam").await, 1);
    club.expect(202, put_member(CLUB, "eve", "admin", None).customer("ann")).await;
}

#[tokio::test]
async fn a_valid_invitation_is_renewed_at_the_limit_without_a_read_of_other_invitations() {
    let club = Club::open().await;
    club.expect(202, put_member(CLUB, "eve", "member", None).customer("ann")).await;
    for n in 0..MAX_OF_ORGANIZATION {
        club.invite(&format!("customer-{n:03}"), "ann", Instant::now().plus_seconds(60)).await;
    }
    let _ = club.app.table.meter().take();
    club.expect(202, put_member(CLUB, "eve", "admin", None).customer("ann")).await;
    assert!(club.app.table.meter().take().iter().all(|cost| cost.pattern.id != "invitations.open"));
    // A void invitation does not count, so the limit applies to its renewal.
    club.sign_up("bill").await;
    club.invite("bill", "gone", Instant::now().plus_seconds(60)).await;
    let renewal = club.refusal(put_member(CLUB, "bill", "member", None).customer("ann")).await;
    assert_eq!(renewal, (409, "too_many_invitations".into()));
}
