//! Tests of an erasure's effect on organizations, documents and the addresses of orders.

use emulators::table::FaultKind;
use fixture::seed::{self, stored};
use futures::future::{join, join_all};
use http_api::sample::{Answered, Call};
use key_schema::document::{self, Document, Edit, Right, Tie};
use key_schema::id::{Born, CustomerId, DocumentId, OrganizationId, SectionName, TeamId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::addresses;
use key_schema::organization::{self, Authority, Member, Organization, Role, Team};
use key_schema::pattern::Consistency;
use key_schema::request::Transaction;
use table::{Refusals, TableError};

use crate::shop::{Shop, if_match};

/// The number of clients that add items of the customer while the customer is erased.
const CLIENTS: usize = 50;

async fn erase(shop: &Shop, id: &str) -> Answered {
    shop.send(if_match(Call::new("DELETE /v1/customers/{id}").path("id", id).customer(id), 1)).await
}

fn id(text: &str) -> CustomerId {
    CustomerId::new(text).unwrap()
}

fn membership(organization: &str, customer: &str, role: Role, team: Option<&str>) -> Stored<Member> {
    let team = team.map(|team| TeamId::new(team).unwrap());
    stored(Member { team, ..seed::member(organization, customer, role) })
}

async fn head(shop: &Shop, organization: &str) -> Organization {
    let get = organization::head(&OrganizationId::new(organization).unwrap()).unwrap();
    shop.own().get(&get).await.unwrap().unwrap().data
}

async fn members(shop: &Shop, organization: &str) -> Vec<String> {
    let query = organization::members(&OrganizationId::new(organization).unwrap()).unwrap();
    let members = shop.own().query(&query).await.unwrap().items;
    members.iter().map(|member| member.customer_id.to_string()).collect()
}

async fn create(shop: &Shop, document: &str, owner: &str, organization: Option<&str>) {
    shop.write(seed::document(document, owner, organization, &[("a", "A")])).await;
}

async fn let_edit(shop: &Shop, document: &str, editor: &str) -> Transaction<document::DocumentAction> {
    let (head, born) = (read(shop, document).await.unwrap(), Born::new("born").unwrap());
    document::add_editor(&head, &id(editor), Right::Staff, &born, Instant::now()).unwrap()
}

async fn read(shop: &Shop, document: &str) -> Option<Stored<Document>> {
    shop.own().get(&document::read_for_update(&DocumentId::new(document).unwrap()).unwrap()).await.unwrap()
}

/// Publishes one more version.
async fn publish(shop: &Shop, document: &str) {
    let old = read(shop, document).await.unwrap();
    let (by, born) = (id("s"), Born::new("born").unwrap());
    let edit = Edit { old: &old, right: Right::Staff, by: &by, at: Instant::now(), born: &born };
    let (put, _) = document::put_section(edit, &SectionName::new("a").unwrap(), "B".to_owned()).unwrap();
    shop.transact(&put).await;
}

async fn ties(shop: &Shop, customer: &str) -> Vec<(String, Tie)> {
    let found = shop.own().query(&document::of_customer(&id(customer)).unwrap()).await.unwrap().items;
    found.iter().map(|tie| (tie.document_id.to_string(), tie.tie)).collect()
}

/// Returns the sort keys of the items that remain in a document's partition.
async fn left(shop: &Shop, document: &str) -> Vec<String> {
    let partition = format!("DOC#{document}");
    let all = shop.keys("").await;
    all.into_iter().filter(|(pk, _)| *pk == partition).map(|(_, sk)| sk).collect()
}

#[tokio::test]
async fn erasure_ends_every_membership_and_corrects_the_counts() {
    let shop = Shop::open().await;
    for customer in ["ann", "bob"] {
        shop.customer(customer).await;
    }
    // The clubs fill more than one page. Ann is in a team of each club, and an admin of every
    // second club.
    let clubs: Vec<String> = (0..30).map(|n| format!("club-{n}")).collect();
    for (n, club) in clubs.iter().enumerate() {
        shop.found(club, "bob").await;
        let team = Team {
            organization_id: OrganizationId::new(club.as_str()).unwrap(),
            id: TeamId::new("t").unwrap(),
            members: 0,
            name: "T".to_owned(),
        };
        shop.transact(&organization::create_team(&stored(team), Authority::Staff).unwrap()).await;
        let role = if n % 2 == 0 { Role::Admin } else { Role::Member };
        let member = membership(club, "ann", role, Some("t"));
        shop.transact(&organization::put_member(None, &member, Authority::Staff).unwrap()).await;
    }
    assert_eq!(erase(&shop, "ann").await.status, 204);
    for club in &clubs {
        assert_eq!((members(&shop, club).await, head(&shop, club).await.admins), (vec!["bob".to_owned()], 1), "{club}");
        let query = organization::get(&OrganizationId::new(club.as_str()).unwrap()).unwrap();
        let team = shop.own().query(&query).await.unwrap().items.into_iter().find_map(|item| match item {
            organization::HeadItem::Team(team) => Some(team.members),
            _ => None,
        });
        assert_eq!(team, Some(0));
    }
}

#[tokio::test]
async fn erasure_removes_the_last_admin_and_keeps_the_members() {
    let shop = Shop::open().await;
    for customer in ["ann", "bob"] {
        shop.customer(customer).await;
    }
    shop.found("club", "ann").await;
    let bob = membership("club", "bob", Role::Member, None);
    shop.transact(&organization::put_member(None, &bob, Authority::Staff).unwrap()).await;
    assert_eq!(erase(&shop, "ann").await.status, 204);
    assert_eq!((members(&shop, "club").await, head(&shop, "club").await.admins), (vec!["bob".to_owned()], 0));
    // Staff can then appoint an admin.
    let admin = membership("club", "bob", Role::Admin, None);
    shop.transact(&organization::put_member(Some(&bob), &admin, Authority::Staff).unwrap()).await;
    assert_eq!(head(&shop, "club").await.admins, 1);
}

#[tokio::test]
async fn erasure_deletes_the_customers_own_documents_with_their_history_and_keeps_all_other_documents() {
    let shop = Shop::open().await;
    for customer in ["ann", "bob", "anna"] {
        shop.customer(customer).await;
    }
    shop.found("club", "ann").await;
    let bob = membership("club", "bob", Role::Member, None);
    shop.transact(&organization::put_member(None, &bob, Authority::Staff).unwrap()).await;
    create(&shop, "own", "ann", None).await;
    create(&shop, "of-the-club", "ann", Some("club")).await;
    create(&shop, "of-bob", "bob", None).await;
    create(&shop, "of-anna", "anna", None).await;
    for (document, editor) in [("own", "bob"), ("own", "ann"), ("of-bob", "ann"), ("of-the-club", "bob")] {
        shop.transact(&let_edit(&shop, document, editor).await).await;
    }
    // There is more than one page of versions.
    for _ in 0..30 {
        publish(&shop, "own").await;
    }
    assert_eq!(ties(&shop, "ann").await.len(), 4);
    assert_eq!(left(&shop, "own").await.len(), 63);
    assert_eq!(erase(&shop, "ann").await.status, 204);
    assert_eq!(left(&shop, "own").await, [""; 0]);
    assert_eq!(ties(&shop, "ann").await, []);
    // No other customer keeps a tie to a deleted document.
    assert_eq!(ties(&shop, "bob").await, [("of-bob".to_owned(), Tie::Owner), ("of-the-club".to_owned(), Tie::Editor)]);
    assert_eq!(ties(&shop, "anna").await, [("of-anna".to_owned(), Tie::Owner)]);
    let of_bob = read(&shop, "of-bob").await.unwrap();
    assert_eq!((of_bob.editors.len(), of_bob.is_owner(&id("bob")), of_bob.meta.version), (0, true, 1));
    let of_the_club = read(&shop, "of-the-club").await.unwrap();
    assert_eq!((&of_the_club.owner_id, of_the_club.editors.len()), (&None, 1));
    // The version that ann wrote still names her.
    let version = document::history(&of_the_club.id).unwrap();
    assert_eq!(shop.own().query(&version).await.unwrap().items[0].by, id("ann"));
}

#[tokio::test]
async fn one_request_stops_after_a_few_thousand_write_units_and_a_repetition_erases_the_rest() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let (text, names) = ("x".repeat(100_000), (0..16).map(|n| format!("s{n}")).collect::<Vec<_>>());
    let texts: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), text.as_str())).collect();
    for document in ["first", "second"] {
        shop.write(seed::document(document, "ann", None, &texts)).await;
    }
    let _ = shop.app.table.meter().take();
    let first = erase(&shop, "ann").await;
    assert_eq!((first.status, first.code()), (503, Some("throttled")), "{}", first.body);
    let costs = shop.app.table.meter().take();
    let written = costs.iter().filter(|cost| cost.pattern.consistency == Consistency::Write);
    let written: f64 = written.map(|cost| cost.capacity_units).sum();
    assert!((4_000.0..6_100.0).contains(&written), "{written}");
    // The second document keeps its versions until all its texts are removed.
    let rest = left(&shop, "second").await;
    assert!(ties(&shop, "ann").await.len() == 1 && (3..18).contains(&rest.len()), "{rest:?}");
    assert_eq!(erase(&shop, "ann").await.status, 204);
    assert_eq!((ties(&shop, "ann").await, left(&shop, "second").await), (vec![], vec![]));
}

#[tokio::test]
async fn erasure_finishes_a_begun_deletion_and_removes_dangling_references() {
    let shop = Shop::open().await;
    for customer in ["ann", "bob"] {
        shop.customer(customer).await;
    }
    create(&shop, "begun", "ann", None).await;
    create(&shop, "of-bob", "bob", None).await;
    shop.transact(&let_edit(&shop, "of-bob", "ann").await).await;
    for (document, owner) in [("begun", "ann"), ("of-bob", "bob")] {
        let document = DocumentId::new(document).unwrap();
        let retire = document::retire(&document, 1, Some(&id(owner)), Instant::now()).unwrap();
        shop.own().update(&retire).await.unwrap().unwrap();
    }
    // A restored backup can tie ann as owner to a missing document and to bob's document.
    for document in ["lost", "of-bob"] {
        let (customer_id, document_id) = (id("ann"), DocumentId::new(document).unwrap());
        shop.put(&stored(document::CustomerDocument { customer_id, document_id, tie: Tie::Owner })).await;
    }
    assert_eq!(erase(&shop, "ann").await.status, 204);
    assert_eq!((left(&shop, "begun").await.len(), ties(&shop, "ann").await.len()), (0, 0));
    let of_bob = read(&shop, "of-bob").await.unwrap();
    assert!(of_bob.deleting && of_bob.is_owner(&id("bob")) && of_bob.editors.is_empty());
}

/// Either the grant comes first and the erasure finds it, or the profile is missing and the grant
/// fails.
#[tokio::test]
async fn concurrent_grants_and_an_erasure_leave_no_item_of_the_customer() {
    let shop = Shop::open().await;
    shop.customer("bob").await;
    for n in 0..CLIENTS {
        shop.found(&format!("club-{n}"), "bob").await;
        create(&shop, &format!("doc-{n}"), "bob", None).await;
    }
    let (mut granted, mut refused) = (0, 0);
    for round in 0..4 {
        shop.customer("ann").await;
        let grants = (0..CLIENTS).map(|n| {
            let shop = &shop;
            async move {
                // In the first round, all grants start at once. In later rounds, some grants start
                // only after the erasure.
                tokio::time::sleep(std::time::Duration::from_millis(n as u64 * round * 20)).await;
                let table = shop.own();
                let (head, sections) = seed::document(&format!("own-{round}-{n}"), "ann", None, &[("a", "A")]);
                let sections: Vec<_> = sections.into_iter().map(stored).collect();
                let club = format!("own-club-{round}-{n}");
                let founded = seed::organization(&club);
                let admin = membership(&club, "ann", Role::Admin, None);
                let ann = id("ann");
                let member = membership(&format!("club-{n}"), "ann", Role::Admin, None);
                match n % 4 {
                    0 => {
                        outcome(table.transact(&document::create(&stored(head), &sections, &ann, false).unwrap()).await)
                    }
                    1 => outcome(table.transact(&let_edit(shop, &format!("doc-{n}"), "ann").await).await),
                    2 => outcome(
                        table.transact(&organization::put_member(None, &member, Authority::Staff).unwrap()).await,
                    ),
                    _ => {
                        let founder = Authority::Customer(&ann);
                        outcome(table.transact(&organization::create(&stored(founded), &admin, founder).unwrap()).await)
                    }
                }
            }
        });
        let (outcomes, mut erased) = join(join_all(grants), erase(&shop, "ann")).await;
        let mut repeated = false;
        // Against a slow table, the attempts of the first request can run out. The repeated request
        // gets 404 if the first one has already deleted the profile.
        while erased.code() == Some("throttled") {
            repeated = true;
            erased = erase(&shop, "ann").await;
        }
        assert!(erased.status == 204 || repeated && erased.status == 404, "{}", erased.body);
        granted += outcomes.iter().filter(|granted| **granted).count();
        refused += outcomes.iter().filter(|granted| !**granted).count();
        let (all, personal) = (shop.keys("").await, format!("DOC#own-{round}"));
        let of_ann: Vec<_> = all
            .iter()
            .filter(|(pk, sk)| pk == "CUSTOMER#ann" || sk == "MEMBER#ann" || pk.starts_with(&personal))
            .collect();
        assert!(of_ann.is_empty(), "{of_ann:?}");
        for n in 0..CLIENTS {
            assert!(read(&shop, &format!("doc-{n}")).await.unwrap().editors.is_empty());
            assert_eq!(head(&shop, &format!("club-{n}")).await.admins, 1);
        }
    }
    assert!(granted > 0 && refused > 0, "{granted} requests succeeded, {refused} were refused");
}

fn outcome<A>(result: Result<Result<(), Refusals<A>>, TableError>) -> bool {
    result.unwrap().is_ok()
}

#[tokio::test]
async fn a_repetition_finishes_an_erasure_that_was_interrupted_at_any_point() {
    let kinds = [FaultKind::Throttle, FaultKind::Conflict, FaultKind::Error, FaultKind::Reset, FaultKind::Timeout];
    // The kinds of faults are tested concurrently, because each test mostly waits for retries.
    join_all((0..).zip(kinds).map(|(seed, kind)| broken_off(kind, seed))).await;
}

async fn broken_off(kind: FaultKind, seed: u64) {
    let shop = Shop::open().await;
    for customer in ["ann", "bob"] {
        shop.customer(customer).await;
    }
    shop.found("club", "ann").await;
    shop.found("other", "bob").await;
    let member = membership("other", "ann", Role::Admin, None);
    shop.transact(&organization::put_member(None, &member, Authority::Staff).unwrap()).await;
    create(&shop, "own", "ann", None).await;
    create(&shop, "of-the-club", "ann", Some("club")).await;
    create(&shop, "of-bob", "bob", None).await;
    shop.transact(&let_edit(&shop, "of-bob", "ann").await).await;
    shop.transact(&let_edit(&shop, "own", "bob").await).await;
    publish(&shop, "own").await;
    // These faults interrupt a few attempts. More faults would take too long, above all timeouts,
    // because the SDK retries each fault.
    let count = Some(if kind == FaultKind::Timeout { 3 } else { 15 });
    shop.break_with(kind, 0.5, count, seed);
    let mut statuses = Vec::new();
    while statuses.len() < 100 && !statuses.last().is_some_and(|status| [204, 404].contains(status)) {
        statuses.push(erase(&shop, "ann").await.status);
    }
    shop.clear_faults();
    assert!(statuses.iter().all(|status| [204, 404, 503].contains(status)), "{kind:?}: {statuses:?}");
    assert!([204, 404].contains(statuses.last().unwrap()), "{kind:?}: {statuses:?}");
    assert_eq!((left(&shop, "own").await.len(), ties(&shop, "ann").await.len()), (0, 0), "{kind:?}");
    assert_eq!((head(&shop, "club").await.admins, members(&shop, "club").await.len()), (0, 0), "{kind:?}");
    assert_eq!((head(&shop, "other").await.admins, members(&shop, "other").await.len()), (1, 1), "{kind:?}");
    assert_eq!(read(&shop, "of-the-club").await.unwrap().owner_id, None, "{kind:?}");
    assert!(read(&shop, "of-bob").await.unwrap().editors.is_empty(), "{kind:?}");
    assert_eq!(ties(&shop, "bob").await.len(), 1, "{kind:?}");
}

#[tokio::test]
async fn a_repetition_continues_an_erasure_that_stopped_after_deleting_the_profile() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    shop.found("club", "ann").await;
    create(&shop, "own", "ann", None).await;
    shop.delete_profile("ann").await;
    assert_eq!(erase(&shop, "ann").await.status, 404);
    assert_eq!((left(&shop, "own").await.len(), members(&shop, "club").await.len()), (0, 0));
}

/// The erasure reads 100 orders with addresses at a time.
#[tokio::test]
async fn an_erasure_removes_the_addresses_of_all_orders() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    for n in 0..130 {
        shop.put(&stored(seed::order_addresses(&format!("o{n}"), "ann"))).await;
    }
    shop.put(&stored(seed::order_addresses("bobs", "bob"))).await;
    assert_eq!(erase(&shop, "ann").await.status, 204);
    for (customer, left) in [("ann", 0), ("bob", 1)] {
        let all = addresses::of_customer(&id(customer)).unwrap().limit(1000);
        assert_eq!(shop.own().query(&all).await.unwrap().items.len(), left, "{customer}");
    }
}
