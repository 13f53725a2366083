//! Tests of long lists, page by page.

use key_schema::id::{Born, CustomerId, OrganizationId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::organization::{Member, Role};
use serde_json::Value;

use crate::club::{CLUB, Club, hidden, members, organizations_of, read};

const COUNT: usize = 1000;

fn member(organization: &str, customer: &str, at: Instant) -> Stored<Member> {
    let (id, customer_id) = (OrganizationId::new(organization).unwrap(), CustomerId::new(customer).unwrap());
    Stored::new(Member { id, customer_id, role: Role::Member, team: None }, Born::new("b").unwrap(), at)
}

fn texts(items: &[Value], name: &str) -> Vec<String> {
    items.iter().map(|item| item[name].as_str().unwrap().to_owned()).collect()
}

/// Returns the `n`th id. The items are not written in the order of the ids.
fn id(n: usize) -> String {
    format!("{:04} #+~é", n * 7919 % COUNT)
}

#[tokio::test]
async fn each_of_a_thousand_members_is_listed_once_and_a_page_takes_two_requests() {
    let club = Club::open().await;
    club.put_all((0..COUNT).map(|n| member(CLUB, &id(n), Instant::now()))).await;
    let (found, requests) = club.all(&members(CLUB).customer("bob"), 100).await;
    let ids = texts(&found, "customer_id");
    assert_eq!(ids.len(), COUNT + 2);
    assert!(ids.is_sorted_by(|one, other| one < other));
    assert!(requests.iter().all(|count| *count == 2), "{requests:?}");
    assert_eq!(club.all(&members(CLUB).customer("bob"), 37).await.0, found);
    // The request that reads the organization does not read its members.
    let _ = club.app.table.meter().take();
    club.expect(200, read(CLUB).staff("s1")).await;
    assert_eq!(club.app.table.meter().take()[0].items, 1);
    assert_eq!(club.refusal(members("no such").staff("s1")).await, hidden());
}

#[tokio::test]
async fn a_thousand_memberships_of_a_customer_are_listed_oldest_first_with_one_request_a_page() {
    let club = Club::empty(&[]).await;
    let since = |n: usize| Instant::EPOCH.plus_seconds(i64::try_from(n / 2).unwrap());
    club.put_all((0..COUNT).map(|n| member(&id(n), "ann", since(n)))).await;
    club.put(&member("another's", "anna", Instant::EPOCH)).await;
    let (found, requests) = club.all(&organizations_of("ann").customer("ann"), 100).await;
    assert!(requests.iter().all(|count| *count == 1), "{requests:?}");
    assert!(texts(&found, "created_at").is_sorted());
    let mut ids = texts(&found, "organization_id");
    assert_eq!(club.all(&organizations_of("ann").staff("s1"), 7).await.0, found);
    ids.sort();
    let mut all: Vec<String> = (0..COUNT).map(id).collect();
    all.sort();
    assert_eq!(ids, all);
}
