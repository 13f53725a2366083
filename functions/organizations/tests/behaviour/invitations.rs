//! Tests of invitations: a customer joins an organization by accepting an invitation.

use std::time::Duration;

use futures::future::join_all;
use http_api::sample::Call;
use key_schema::id::{Born, CustomerId, OrganizationId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::organization::Role;
use key_schema::organization::invitation::{self, MAX_OF_CUSTOMER, MAX_OF_INVITER, MAX_OF_ORGANIZATION};
use serde_json::{Value, json};

use crate::club::{
    CLUB, Club, accept, add_team, delete_team, found, hidden, invitations, invitations_of, members, put_member, read,
    remove_member, rename, uninvite,
};

/// The number of concurrent clients.
const CLIENTS: usize = 20;

/// Returns the invited customers.
pub async fn invited(club: &Club) -> Vec<String> {
    let (found, _) = club.all(&invitations(CLUB).staff("s1"), 100).await;
    found.iter().map(|item| item["customer_id"].as_str().unwrap().to_owned()).collect()
}

/// Returns the number of invitations in the customer's list of open invitations.
pub async fn named(club: &Club, customer: &str) -> usize {
    let roster = invitation::roster(&CustomerId::new(customer).unwrap()).unwrap();
    club.own().get(&roster).await.unwrap().map_or(0, |roster| roster.open.len())
}

/// Writes an invitation of eve that expires in `seconds`, without the function's checks.
async fn invite_until(club: &Club, seconds: i64) {
    let call = put_member(CLUB, "eve", "member", None).customer("ann");
    club.expect(202, call).await;
    club.invite("eve", "ann", Instant::now().plus_seconds(seconds)).await;
}

#[tokio::test]
async fn an_admin_invites_a_customer_who_becomes_a_member_by_accepting() {
    let club = Club::open().await;
    club.expect(201, add_team(CLUB, "t").customer("ann")).await;
    let body = club.expect(202, put_member(CLUB, "eve", "admin", Some("t")).customer("ann")).await;
    assert_eq!((&body["organization_id"], &body["organization_name"]), (&json!(CLUB), &json!("Chess")));
    assert_eq!((&body["customer_id"], &body["role"], &body["team"]), (&json!("eve"), &json!("admin"), &json!("t")));
    let instant = |value: &Value| value.as_str().unwrap().parse::<Instant>().unwrap();
    assert_eq!(instant(&body["expires_at"]), instant(&body["created_at"]).plus_seconds(14 * 24 * 60 * 60));
    for list in [
        invitations(CLUB).customer("ann"),
        invitations(CLUB).staff("s1"),
        invitations_of("eve").customer("eve"),
        invitations_of("eve").staff("s1"),
    ] {
        assert_eq!(club.expect(200, list).await["items"], json!([body]));
    }
    // An invitation gives no access to the organization.
    for call in
        [read(CLUB), members(CLUB), invitations(CLUB), rename(CLUB, "X", 1), put_member(CLUB, "bob", "admin", None)]
    {
        assert_eq!(club.refusal(call.customer("eve")).await, hidden());
    }
    assert!(!club.roles().await.contains_key("eve"));
    assert_eq!(club.expect(200, crate::club::organizations_of("eve").customer("eve")).await["items"], json!([]));

    let answer = club.send(accept(CLUB, "eve").customer("eve")).await;
    assert_eq!((answer.status, &answer.body["role"], &answer.body["team"]), (201, &json!("admin"), &json!("t")));
    assert_eq!(club.roles().await["eve"], ("admin".to_owned(), Some("t".to_owned())));
    assert_eq!((invited(&club).await.len(), named(&club, "eve").await), (0, 0));
    // A repeated acceptance changes nothing.
    assert_eq!(club.expect(200, accept(CLUB, "eve").customer("eve")).await, answer.body);
    // The counters are correct: eve is an admin and in the team.
    assert_eq!(club.refusal(delete_team(CLUB, "t", 1).customer("ann")).await, (409, "team_in_use".into()));
    club.expect(204, remove_member(CLUB, "ann").customer("ann")).await;
    assert_eq!(club.refusal(remove_member(CLUB, "eve").customer("eve")).await, (409, "last_admin".into()));
}

#[tokio::test]
async fn role_and_team_come_from_the_invitation_and_an_acceptance_with_other_values_is_refused() {
    let club = Club::open().await;
    club.expect(201, add_team(CLUB, "t").customer("ann")).await;
    club.expect(202, put_member(CLUB, "eve", "member", Some("t")).customer("ann")).await;
    for (role, team, pointer) in [("admin", None, "/role"), ("member", Some("other"), "/team")] {
        let answer = club.send(put_member(CLUB, "eve", role, team).customer("eve")).await;
        assert_eq!((answer.status, &answer.body["errors"][0]["pointer"]), (422, &json!(pointer)));
    }
    // Callers cannot accept for another customer. An admin's request renews the invitation, and the
    // request of a member who is not an admin is refused.
    assert_eq!(club.refusal(put_member(CLUB, "eve", "member", None).customer("bob")).await, (403, "forbidden".into()));
    club.expect(202, put_member(CLUB, "eve", "member", Some("t")).customer("ann")).await;
    assert!(!club.roles().await.contains_key("eve"));
    // The team no longer exists, so the member has no team.
    club.expect(204, delete_team(CLUB, "t", 1).customer("ann")).await;
    let body = club.expect(201, put_member(CLUB, "eve", "member", None).customer("eve")).await;
    assert_eq!(body["team"], json!(null));
    // A request for another customer must have a role.
    let bare = |caller: &str| accept(CLUB, "bob").customer(caller);
    assert_eq!(club.refusal(bare("ann")).await, (422, "invalid_body".into()));
    assert_eq!(club.refusal(accept(CLUB, "eve").staff("s1")).await, (422, "invalid_body".into()));
}

#[tokio::test]
async fn a_declined_or_withdrawn_invitation_gives_no_membership() {
    let club = Club::open().await;
    for end in [
        uninvite(CLUB, "eve").customer("eve"),
        uninvite(CLUB, "eve").customer("ann"),
        uninvite(CLUB, "eve").staff("s1"),
    ] {
        club.expect(202, put_member(CLUB, "eve", "member", None).customer("ann")).await;
        assert_eq!(club.refusal(uninvite(CLUB, "eve").customer("bob")).await, (403, "forbidden".into()));
        assert_eq!(club.refusal(uninvite(CLUB, "eve").customer("nobody")).await, hidden());
        assert_eq!(named(&club, "eve").await, 1);
        club.expect(204, end).await;
        assert_eq!(club.refusal(accept(CLUB, "eve").customer("eve")).await, hidden());
        assert_eq!((invited(&club).await.len(), named(&club, "eve").await), (0, 0));
    }
    // A missing invitation counts as ended. A caller who is not a member gets 404, so that the
    // response does not reveal the club.
    for insider in [uninvite(CLUB, "eve").customer("ann"), uninvite(CLUB, "nobody").staff("s1")] {
        club.expect(204, insider).await;
    }
    for stranger in ["eve", "nobody"] {
        assert_eq!(club.refusal(uninvite(CLUB, "eve").customer(stranger)).await, hidden());
    }
    assert_eq!(club.refusal(uninvite("no such", "eve").staff("s1")).await, hidden());
}

#[tokio::test]
async fn lists_of_invitations_are_for_admins_the_customer_and_staff() {
    let club = Club::open().await;
    club.expect(202, put_member(CLUB, "eve", "member", None).customer("ann")).await;
    assert_eq!(club.refusal(invitations(CLUB).customer("bob")).await, (403, "forbidden".into()));
    for stranger in ["eve", "nobody"] {
        assert_eq!(club.refusal(invitations(CLUB).customer(stranger)).await, hidden());
    }
    for stranger in ["ann", "bob", "nobody"] {
        assert_eq!(club.refusal(invitations_of("eve").customer(stranger)).await, hidden());
    }
    assert_eq!(club.refusal(invitations("no such").staff("s1")).await, hidden());
}

#[tokio::test]
async fn an_expired_invitation_is_not_accepted_even_before_dynamodb_removes_it() {
    let club = Club::open().await;
    invite_until(&club, -1).await;
    assert_eq!(club.refusal(accept(CLUB, "eve").customer("eve")).await, hidden());
    assert_eq!(invited(&club).await, [""; 0]);
    assert_eq!(club.expect(200, invitations_of("eve").customer("eve")).await["items"], json!([]));
    assert_eq!(club.refusal(uninvite(CLUB, "eve").customer("eve")).await, hidden());
    // The function's clock may be slow, so the write's condition also checks the expiry.
    invite_until(&club, 1).await;
    let state = invitation::State {
        invitation: club.invitation("eve").await,
        roster: club.own().get(&invitation::roster(&CustomerId::new("eve").unwrap()).unwrap()).await.unwrap(),
    };
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let member = key_schema::organization::Member {
        id: OrganizationId::new(CLUB).unwrap(),
        customer_id: CustomerId::new("eve").unwrap(),
        role: Role::Member,
        team: None,
    };
    let member = Stored::new(member, Born::new("late").unwrap(), Instant::now());
    let late = invitation::accept(state.invitation.as_ref().unwrap(), &state, &member).unwrap();
    assert!(club.own().transact(&late).await.unwrap().is_err());
    assert!(!club.roles().await.contains_key("eve"));
    // The admin invites the customer again.
    club.expect(202, put_member(CLUB, "eve", "member", None).customer("ann")).await;
    club.expect(201, accept(CLUB, "eve").customer("eve")).await;
}

#[tokio::test]
async fn an_invitation_of_a_former_admin_is_void_until_an_admin_renews_it() {
    let club = Club::open().await;
    let demoted = put_member(CLUB, "ann", "member", None).staff("s1");
    for (role, former) in [("admin", demoted), ("member", remove_member(CLUB, "ann").staff("s1"))] {
        club.expect(200, put_member(CLUB, "ann", "admin", None).staff("s1")).await;
        club.expect(200, put_member(CLUB, "bob", "admin", None).staff("s1")).await;
        club.expect(202, put_member(CLUB, "eve", role, None).customer("ann")).await;
        assert!([200, 204].contains(&club.send(former).await.status));
        assert_eq!(club.refusal(accept(CLUB, "eve").customer("eve")).await, hidden());
        // The invitation stays void when the inviter becomes an admin again.
        club.expect(200, put_member(CLUB, "ann", "admin", None).staff("s1")).await;
        assert_eq!(club.refusal(accept(CLUB, "eve").customer("eve")).await, hidden());
        assert!(!club.roles().await.contains_key("eve"));
        club.expect(202, put_member(CLUB, "eve", role, None).customer("bob")).await;
        club.expect(201, accept(CLUB, "eve").customer("eve")).await;
        assert_eq!(club.roles().await["eve"].0, role);
        club.expect(204, remove_member(CLUB, "eve").staff("s1")).await;
    }
}

/// A removed member must not return with an old invitation.
#[tokio::test]
async fn a_member_added_by_staff_has_no_open_invitation() {
    let club = Club::open().await;
    club.expect(202, put_member(CLUB, "eve", "admin", None).customer("ann")).await;
    club.expect(200, put_member(CLUB, "eve", "member", None).staff("s1")).await;
    assert_eq!((invited(&club).await.len(), named(&club, "eve").await), (0, 0));
    assert_eq!(club.roles().await["eve"].0, "member");
    club.expect(204, remove_member(CLUB, "eve").customer("ann")).await;
    assert_eq!(club.refusal(accept(CLUB, "eve").customer("eve")).await, hidden());
    // An admin's request changes an existing member at once, without an invitation.
    assert_eq!(club.expect(200, put_member(CLUB, "bob", "admin", None).customer("ann")).await["role"], "admin");
    assert_eq!(invited(&club).await, [""; 0]);
}

#[tokio::test]
async fn an_organization_has_at_most_100_open_invitations_even_if_more_are_sent_at_once() {
    let club = Club::open().await;
    let customers: Vec<String> = (0..MAX_OF_ORGANIZATION + 5).map(|n| format!("customer-{n:03}")).collect();
    for customer in &customers {
        club.sign_up(customer).await;
    }
    for customer in &customers[..MAX_OF_ORGANIZATION - 5] {
        club.expect(202, put_member(CLUB, customer, "member", None).customer("ann")).await;
    }
    let last = &customers[MAX_OF_ORGANIZATION - 5..];
    let answers =
        join_all(last.iter().map(|customer| club.settled(put_member(CLUB, customer, "member", None).customer("ann"))))
            .await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 202).count(), 5);
    let full: Vec<_> = answers.iter().filter(|answer| answer.status == 409).collect();
    assert!(full.len() == 5 && full.iter().all(|answer| answer.code() == Some("too_many_invitations")));
    assert_eq!(invited(&club).await.len(), MAX_OF_ORGANIZATION);
    // A renewal succeeds at the limit, and an acceptance makes room for one invitation.
    club.expect(202, put_member(CLUB, &customers[0], "admin", None).customer("ann")).await;
    club.expect(201, accept(CLUB, &customers[0]).customer(&customers[0])).await;
    let refused = customers.iter().position(|id| answers.iter().zip(last).any(|(a, c)| a.status == 409 && c == id));
    club.expect(202, put_member(CLUB, &customers[refused.unwrap()], "member", None).customer("ann")).await;
}

/// An attacker may create many organizations with many accounts.
#[tokio::test]
async fn a_customer_has_at_most_100_open_invitations_and_at_most_10_by_one_inviter() {
    let club = Club::open().await;
    let inviters: Vec<String> = (0..=MAX_OF_CUSTOMER / MAX_OF_INVITER).map(|n| format!("spam-{n}")).collect();
    let mut clubs: Vec<(String, &str)> = Vec::new();
    for inviter in &inviters {
        club.sign_up(inviter).await;
        for n in 0..=MAX_OF_INVITER {
            let body = club.expect(201, found(&format!("Spam {n}")).customer(inviter)).await;
            clubs.push((body["id"].as_str().unwrap().to_owned(), inviter));
        }
    }
    let invite = |(id, inviter): &(String, &str)| put_member(id, "eve", "member", None).customer(inviter);
    // Exactly one of these concurrent requests exceeds the first inviter's limit.
    let first = &clubs[..=MAX_OF_INVITER];
    let answers = join_all(first.iter().map(|club_of| club.settled(invite(club_of)))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 202).count(), MAX_OF_INVITER);
    assert!(answers.iter().all(|answer| answer.status == 202 || answer.code() == Some("too_many_invitations")));
    let others: Vec<&(String, &str)> =
        clubs.chunks(MAX_OF_INVITER + 1).skip(1).flat_map(|clubs| &clubs[..MAX_OF_INVITER]).collect();
    let (sent, last) = others.split_at(MAX_OF_CUSTOMER - MAX_OF_INVITER - 2);
    for club_of in sent {
        club.expect(202, invite(club_of)).await;
    }
    let answers = join_all(last.iter().map(|club_of| club.settled(invite(club_of)))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 202).count(), 2);
    assert!(answers.iter().all(|answer| answer.status == 202 || answer.code() == Some("too_many_invitations")));
    let (listed, requests) = club.all(&invitations_of("eve").customer("eve"), 30).await;
    assert_eq!(listed.len(), MAX_OF_CUSTOMER);
    assert!(requests.iter().all(|count| *count == 1), "{requests:?}");
    // Staff can add the customer even at the limit. A declined invitation makes room for another
    // invitation.
    club.expect(200, put_member(CLUB, "eve", "member", None).staff("s1")).await;
    club.expect(204, uninvite(&sent[0].0, "eve").customer("eve")).await;
    club.expect(202, invite(sent[0])).await;
    assert_eq!(named(&club, "eve").await, MAX_OF_CUSTOMER);
}

#[tokio::test]
async fn one_of_many_concurrent_acceptances_begins_the_membership_and_the_member_counts_once() {
    let club = Club::open().await;
    // In some rounds an acceptance completes between the two reads of another acceptance.
    for _ in 0..10 {
        club.expect(202, put_member(CLUB, "eve", "admin", None).customer("ann")).await;
        let answers = join_all((0..CLIENTS).map(|_| club.settled(accept(CLUB, "eve").customer("eve")))).await;
        let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [vec![200; CLIENTS - 1], vec![201]].concat());
        club.expect(204, remove_member(CLUB, "eve").customer("eve")).await;
        // If eve was counted as two admins, ann could leave.
        assert_eq!(club.refusal(remove_member(CLUB, "ann").customer("ann")).await.1, "last_admin");
    }
}

/// If the acceptance runs first, the membership stays. Otherwise there is no membership.
#[tokio::test]
async fn either_an_acceptance_or_a_concurrent_withdrawal_takes_effect_but_not_both() {
    let club = Club::open().await;
    let mut outcomes = [0, 0];
    for round in 0..CLIENTS {
        club.expect(202, put_member(CLUB, "eve", "member", None).customer("ann")).await;
        let accepts = async { club.settled(accept(CLUB, "eve").customer("eve")).await.status };
        let withdraws = club.settled(uninvite(CLUB, "eve").customer("ann"));
        // In the first two rounds one request follows the other, so that each outcome happens.
        let (accepted, withdrawn) = match round {
            0 => (accepts.await, withdraws.await),
            1 => {
                let withdrawn = withdraws.await;
                (accepts.await, withdrawn)
            }
            _ => futures::future::join(accepts, withdraws).await,
        };
        assert_eq!(withdrawn.status, 204);
        let is_member = club.roles().await.contains_key("eve");
        assert_eq!((is_member, accepted), if is_member { (true, 201) } else { (false, 404) });
        assert_eq!((invited(&club).await.len(), named(&club, "eve").await), (0, 0));
        outcomes[usize::from(is_member)] += 1;
        if is_member {
            club.expect(204, remove_member(CLUB, "eve").customer("ann")).await;
        }
    }
    assert!(outcomes.iter().all(|rounds| *rounds > 0), "{outcomes:?}");
}

#[tokio::test]
async fn after_concurrent_invitations_and_additions_no_member_has_an_invitation() {
    let club = Club::open().await;
    let calls = (0..CLIENTS).map(|n| {
        let club = &club;
        async move {
            let call = match n % 4 {
                0 => put_member(CLUB, "eve", "member", None).customer("ann"),
                1 => put_member(CLUB, "eve", "member", None).staff("s1"),
                2 => accept(CLUB, "eve").customer("eve"),
                _ => remove_member(CLUB, "eve").customer("ann"),
            };
            club.settled(call).await.status
        }
    });
    let statuses = join_all(calls).await;
    assert!(statuses.iter().all(|status| [200, 201, 202, 204, 404].contains(status)), "{statuses:?}");
    let (is_member, is_invited) = (club.roles().await.contains_key("eve"), !invited(&club).await.is_empty());
    assert!(!(is_member && is_invited));
    assert_eq!(named(&club, "eve").await, usize::from(is_invited));
}

#[tokio::test]
async fn an_invitation_of_a_missing_organization_or_an_erased_customer_is_not_accepted() {
    let club = Club::open().await;
    club.expect(202, put_member(CLUB, "eve", "member", None).customer("ann")).await;
    club.delete(key_schema::organization::head(&OrganizationId::new(CLUB).unwrap()).unwrap().key()).await;
    assert_eq!(club.refusal(accept(CLUB, "eve").customer("eve")).await, hidden());
    let other = club.expect(201, found("Go").customer("ann")).await["id"].as_str().unwrap().to_owned();
    club.expect(202, put_member(&other, "eve", "member", None).customer("ann")).await;
    club.delete_at("CUSTOMER#eve", "PROFILE").await;
    assert_eq!(club.refusal(accept(&other, "eve").customer("eve")).await, hidden());
    // A customer without a profile cannot be invited.
    assert_eq!(club.refusal(put_member(&other, "eve", "member", None).customer("ann")).await, hidden());
    let list: Call = members(&other).staff("s1");
    assert_eq!(club.expect(200, list).await["items"].as_array().unwrap().len(), 1);
}
