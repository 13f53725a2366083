//! Tests of many concurrent changes.

use futures::future::join_all;
use key_schema::id::{Born, CustomerId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::organization::{self, Authority, Member, Role};

use crate::club::{CLUB, Club, add_team, delete_team, put_member, read, remove_member, rename, rename_team};

/// The number of concurrent clients.
const CLIENTS: usize = 50;

#[tokio::test]
async fn one_of_many_concurrent_changes_of_a_version_wins_and_the_others_change_nothing() {
    let club = Club::open().await;
    club.expect(201, add_team(CLUB, "t").customer("ann")).await;
    let names: Vec<String> = (0..CLIENTS).map(|n| format!("name {n}")).collect();
    let renamed = join_all(names.iter().map(|name| club.settled(rename(CLUB, name, 1).customer("ann")))).await;
    let won: Vec<&str> = renamed
        .iter()
        .filter(|answer| answer.status == 200)
        .map(|answer| answer.body["name"].as_str().unwrap())
        .collect();
    assert_eq!(won.len(), 1);
    assert!(renamed.iter().all(|answer| [200, 412].contains(&answer.status)));
    let changed =
        join_all(names.iter().map(|name| club.settled(rename_team(CLUB, "t", name, 1).customer("ann")))).await;
    assert_eq!(changed.iter().filter(|answer| answer.status == 200).count(), 1);
    let body = club.expect(200, read(CLUB).staff("s1")).await;
    assert_eq!((body["name"].as_str(), body["version"].as_u64()), (Some(won[0]), Some(2)));
    assert_eq!(body["teams"][0]["version"], 2);
}

#[tokio::test]
async fn one_of_many_concurrent_additions_of_a_team_succeeds_and_the_team_counts_once() {
    let club = Club::open().await;
    let added = join_all((0..CLIENTS).map(|_| club.settled(add_team(CLUB, "t").customer("ann")))).await;
    let of = |status| added.iter().filter(|answer| answer.status == status).count();
    assert_eq!((of(201), of(409)), (1, CLIENTS - 1));
    // The head counts one team, so 99 more fit.
    let more: Vec<String> = (0..CLIENTS * 2 + 5).map(|n| format!("more {n}")).collect();
    let added = join_all(more.iter().map(|name| club.settled(add_team(CLUB, name).staff("s1")))).await;
    assert_eq!(added.iter().filter(|answer| answer.status == 201).count(), 99);
    assert_eq!(added.iter().filter(|answer| answer.status == 422).count(), more.len() - 99);
    assert_eq!(club.expect(200, read(CLUB).staff("s1")).await["teams"].as_array().unwrap().len(), 100);
}

/// The read finds no membership. Then the caller becomes an admin before the write.
#[tokio::test]
async fn a_membership_that_began_after_the_read_is_not_overwritten() {
    let club = Club::open().await;
    club.expect(201, add_team(CLUB, "t").customer("ann")).await;
    club.expect(200, put_member(CLUB, "ann", "admin", Some("t")).customer("ann")).await;
    let ann = CustomerId::new("ann").unwrap();
    let member = Member { id: CLUB.parse().unwrap(), customer_id: ann.clone(), role: Role::Admin, team: None };
    let member = Stored::new(member, Born::new("late").unwrap(), Instant::now());
    let late = organization::put_member(None, &member, Authority::Customer(&ann)).unwrap();
    assert!(club.own().transact(&late).await.unwrap().is_err());
    assert_eq!(club.roles().await["ann"], ("admin".to_owned(), Some("t".to_owned())));
    // The organization still counts one admin, so ann cannot leave.
    assert_eq!(club.refusal(remove_member(CLUB, "ann").customer("ann")).await, (409, "last_admin".to_owned()));
}

#[tokio::test]
async fn at_least_one_admin_remains_when_many_leave_at_once() {
    let admins: Vec<String> = (0..8).map(|n| format!("admin-{n}")).collect();
    let club = Club::open().await;
    for admin in &admins {
        club.sign_up(admin).await;
        club.expect(200, put_member(CLUB, admin, "admin", None).staff("s1")).await;
    }
    let everybody: Vec<&str> = admins.iter().map(String::as_str).chain(["ann"]).collect();
    let calls = (0..CLIENTS).map(|n| {
        let admin = everybody[n % everybody.len()];
        let demote = n % 2 == 0;
        let call = move || if demote { put_member(CLUB, admin, "member", None) } else { remove_member(CLUB, admin) };
        let club = &club;
        async move { club.settled(call().customer(admin)).await.status }
    });
    let statuses = join_all(calls).await;
    assert!(statuses.iter().all(|status| [200, 204, 403, 404, 409].contains(status)), "{statuses:?}");
    let roles = club.roles().await;
    assert!(roles.values().filter(|(role, _)| role == "admin").count() >= 1, "{roles:?}");
    // The counter of admins is correct: every admin except the last can be removed.
    for admin in everybody {
        let _ = club.send(remove_member(CLUB, admin).staff("s1")).await;
    }
    let left = club.roles().await;
    assert_eq!(left.values().filter(|(role, _)| role == "admin").count(), 1, "{left:?}");
}

#[tokio::test]
async fn a_member_moved_between_teams_by_many_callers_is_counted_in_one_team() {
    let club = Club::open().await;
    for team in ["a", "b"] {
        club.expect(201, add_team(CLUB, team).customer("ann")).await;
    }
    let moves = (0..CLIENTS).map(|n| {
        let club = &club;
        async move {
            let call = || match n % 3 {
                0 => put_member(CLUB, "eve", "member", Some("a")),
                1 => put_member(CLUB, "eve", "admin", Some("b")),
                _ => remove_member(CLUB, "eve"),
            };
            club.settled(call().staff("s1")).await.status
        }
    });
    let statuses = join_all(moves).await;
    assert!(statuses.iter().all(|status| [200, 204].contains(status)), "{statuses:?}");
    club.expect(204, remove_member(CLUB, "eve").customer("ann")).await;
    // The counters of the teams are 0, so both teams can be removed.
    for team in ["a", "b"] {
        club.expect(204, delete_team(CLUB, team, 1).customer("ann")).await;
    }
    // The counter of admins is 1, so ann cannot leave.
    assert_eq!(club.refusal(remove_member(CLUB, "ann").customer("ann")).await.1, "last_admin");
}
