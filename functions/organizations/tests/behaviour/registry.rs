//! Tests that each route uses the access patterns that it declares.

use fixture::Recorder;

use key_schema::instant::Instant;
use key_schema::organization::invitation::MAX_OF_ORGANIZATION;

use crate::club::{
    CLUB, Club, accept, add_team, delete_team, found, invitations, invitations_of, members, organizations_of,
    put_member, read, remove_member, rename, rename_team, uninvite,
};

#[tokio::test]
async fn every_route_uses_exactly_the_recorded_patterns() {
    let club = Club::open().await;
    // Staff become the only admins of these organizations and have no profile. Then the second
    // organization loses its only member.
    let mut of_staff = Vec::new();
    for name in ["A", "B"] {
        of_staff.push(club.expect(201, found(name).staff("s1")).await["id"].as_str().unwrap().to_owned());
    }
    club.expect(204, remove_member(&of_staff[1], "s1").staff("s1")).await;
    // The club has many void invitations, so the next request to invite reads their inviters.
    for n in 0..MAX_OF_ORGANIZATION {
        club.invite(&format!("customer-{n}"), "gone", Instant::now().plus_seconds(60)).await;
    }
    let calls = [
        remove_member(&of_staff[0], "s1").staff("s1"),
        members(&of_staff[1]).staff("s1"),
        found("Go").customer("eve"),
        read(CLUB).customer("bob"),
        rename(CLUB, "Go", 1).customer("ann"),
        add_team(CLUB, "t").customer("ann"),
        rename_team(CLUB, "t", "T", 1).customer("ann"),
        put_member(CLUB, "bob", "member", Some("t")).customer("ann"),
        put_member(CLUB, "bob", "member", None).customer("ann"),
        put_member(CLUB, "eve", "member", Some("t")).customer("ann"),
        invitations(CLUB).customer("ann"),
        invitations(&of_staff[1]).staff("s1"),
        invitations_of("eve").customer("eve"),
        uninvite(CLUB, "eve").customer("ann"),
        put_member(CLUB, "eve", "member", Some("t")).customer("ann"),
        accept(CLUB, "eve").customer("eve"),
        members(CLUB).customer("eve"),
        organizations_of("eve").customer("eve"),
        remove_member(CLUB, "eve").customer("ann"),
        delete_team(CLUB, "t", 2).customer("ann"),
    ];
    let mut recorder = Recorder::new(&club);
    for call in calls {
        recorder.ok(call).await;
    }
    recorder.assert_recorded();
}
