//! Plants each kind of damage directly in the table. A run finds exactly that damage, and repairs
//! it if there is a source of truth.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use fixture::{TestTable, seed};
use key_schema::agent::{self, Agent, AgentKey, AgentScope};
use key_schema::customer::EmailClaim;
use key_schema::document::{CustomerDocument, Tie};
use key_schema::follow::Follow;
use key_schema::id::{AgentId, CustomerId, EndpointId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Entity;
use key_schema::like::Like;
use key_schema::location::{self, StockLocation};
use key_schema::media::MediaObject;
use key_schema::order::CustomerOrder;
use key_schema::picture::{Picture, ProductPictures};
use key_schema::product::{ProductContent, ProductSales};
use key_schema::review::recent::RecentReview;
use key_schema::webhook_endpoint::{self, WebhookEndpoint};
use ops::verify::Kind::{self, Behind, Bounds, Claim, Copy, Index, Link, Orphan, Total, Unreadable};

use super::world::{self, PAID, PENDING};
use super::{options, run};

/// A change of an item by hand.
pub enum Damage {
    Set(&'static str, AttributeValue),
    Remove(&'static str),
    Delete,
}
use Damage::{Delete, Remove, Set};

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn number(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn id(id: &str) -> CustomerId {
    CustomerId::new(id).unwrap()
}

fn milk() -> ProductId {
    ProductId::new("milk").unwrap()
}

/// Returns the stored key that begins with this text.
async fn key(table: &TestTable, beginning: &str) -> (String, String) {
    let keys = table.keys("").await.into_iter();
    let found: Vec<_> = keys.filter(|(pk, sk)| format!("{pk} {sk}").starts_with(beginning)).collect();
    assert_eq!(found.len(), 1, "{beginning}: {found:?}");
    found[0].clone()
}

async fn damage(table: &TestTable, (pk, sk): &(String, String), damage: &Damage) {
    match damage {
        Set(name, value) => table.set(pk, sk, name, value.clone()).await,
        Delete => table.delete_at(pk, sk).await,
        Remove(name) => {
            let update = table.client().update_item().table_name(table.name()).key("PK", text(pk)).key("SK", text(sk));
            let update = update.update_expression("REMOVE #a").expression_attribute_names("#a", *name);
            update.send().await.unwrap();
        }
    }
}

/// Asserts that a run finds exactly these kinds and keys. After a repair the table is clean, or has
/// the same findings if there is no source of truth.
pub async fn finds(table: &TestTable, what: &str, expected: &[(Kind, &str)], is_repaired: bool) {
    let found = run(table, &options(false)).await;
    let mut keys: Vec<(Kind, String)> =
        found.findings.iter().map(|finding| (finding.kind, finding.key.clone())).collect();
    keys.sort();
    let mut wanted = expected.to_vec();
    wanted.sort_unstable();
    assert_eq!(keys.len(), wanted.len(), "{what}: {found}");
    for ((kind, key), (wanted_kind, beginning)) in keys.iter().zip(&wanted) {
        assert!(kind == wanted_kind && key.starts_with(beginning), "{what}: {key} for {beginning}: {found}");
    }
    assert_eq!(found.repaired(), 0);
    let fixed = run(table, &options(true)).await;
    assert_eq!(fixed.is_clean(), is_repaired, "{what}: {fixed}");
    let again = run(table, &options(false)).await;
    assert_eq!(again.left(), if is_repaired { 0 } else { found.left() }, "{what}: {again}");
    assert_eq!(again.unsettled, 0);
}

type Case = (&'static str, Damage, &'static [(Kind, &'static str)], bool);

pub async fn each(cases: impl IntoIterator<Item = Case>) {
    for (beginning, done, expected, is_repaired) in cases {
        let table = TestTable::create().await;
        world::fill(&table).await;
        let key = key(&table, beginning).await;
        damage(&table, &key, &done).await;
        finds(&table, beginning, expected, is_repaired).await;
    }
}

/// Puts an item into a shop, and asserts that a run finds exactly these kinds and keys.
pub async fn put<T: Entity>(data: T, expected: &[(Kind, &str)], is_repaired: bool) {
    let table = TestTable::create().await;
    world::fill(&table).await;
    table.put(&seed::stored(data)).await;
    finds(&table, T::NAME, expected, is_repaired).await;
}

#[tokio::test]
async fn a_wrong_missing_or_superfluous_index_key_is_repaired() {
    each([
        ("CUSTOMER#cleo PROFILE", Set("GSI3SK", text("Basel#cleo")), &[(Index, "CUSTOMER#cleo PROFILE")] as &[_], true),
        ("PRODUCT#tea REVIEW#ann", Remove("GSI3PK"), &[(Index, "PRODUCT#tea REVIEW#ann")], true),
        ("CUSTOMER#bob PROFILE", Set("GSI3PK", text("PLACE#CH#1")), &[(Index, "CUSTOMER#bob PROFILE")], true),
        ("CUSTOMER#ann OPEN", Set("ttl", number(99_999_999_999)), &[(Index, "CUSTOMER#ann OPEN")], true),
        ("CUSTOMER#ann LIKE#tea", Remove("GSI1SK"), &[(Index, "CUSTOMER#ann LIKE#tea")], true),
    ])
    .await;
}

#[tokio::test]
async fn an_unreadable_item_is_the_only_finding() {
    each([
        ("PRODUCT#tea IN#SUMMER", Remove("price"), &[(Unreadable, "PRODUCT#tea IN#SUMMER")] as &[_], false),
        ("CUSTOMER#bob PROFILE", Remove("born"), &[(Unreadable, "CUSTOMER#bob PROFILE")], false),
        ("CUSTOMER#bob PROFILE", Set("entity", text("Person")), &[(Unreadable, "CUSTOMER#bob PROFILE")], false),
        ("CUSTOMER#ann LIKE#tea", Set("product_id", text("milk")), &[(Unreadable, "CUSTOMER#ann LIKE#tea")], false),
    ])
    .await;
}

#[tokio::test]
async fn an_unreadable_stock_is_repaired_and_keeps_its_pieces_if_they_can_be_read() {
    let both = &[
        (Unreadable, "STOCK#milk#main#00000000000000000000 STOCK"),
        (Link, "STOCK#milk#main#00000000000000000000 STOCK"),
    ] as &[_];
    for (attribute, value, is_kept) in [("available", text("abc"), false), ("rev", text("one"), true)] {
        let table = TestTable::create().await;
        world::fill(&table).await;
        let before = table.items("STOCK#milk#main#00000000000000000000").await[0]["available"].clone();
        table.set("STOCK#milk#main#00000000000000000000", "STOCK", attribute, value).await;
        finds(&table, attribute, both, true).await;
        let stock = table.own().get(&key_schema::product::stock(&milk()).unwrap()).await.unwrap().unwrap();
        let pieces = serde_dynamo::AttributeValue::N(stock.available.to_string());
        assert_eq!(pieces == before, is_kept, "{pieces:?}");
        assert!(is_kept || stock.available == 0);
    }
}

#[tokio::test]
async fn a_value_beyond_its_bounds_and_a_large_item_are_reported() {
    let most = key_schema::product::MAX_STOCK + 1;
    each([
        (
            "STOCK#tea#main#00000000000000000000 STOCK",
            Set("available", number(most)),
            &[(Bounds, "STOCK#tea#main#00000000000000000000 STOCK")] as &[_],
            false,
        ),
        ("COUNTER#views COUNTER", Set("shards", number(3)), &[(Bounds, "COUNTER#views COUNTER")], false),
    ])
    .await;
    let content = ProductContent { product_id: milk(), text: "x".repeat(380_000), file: None };
    put(content, &[(Bounds, "PRODUCT#milk CONTENT")], false).await;
}

#[tokio::test]
async fn a_copy_that_one_transaction_writes_with_its_source_is_repaired() {
    each([
        (
            "CUSTOMER#ann ORDER#0159f8e6-ea80-7111-9111-000000000001",
            Set("status", text("paid")),
            &[(Copy, "CUSTOMER#ann ORDER#")] as &[_],
            true,
        ),
        ("CUSTOMER#ann ORDER#0159f8e6-ea80-7111-9111-000000000001", Delete, &[(Copy, "CUSTOMER#ann ORDER#")], true),
        // Only this copy has the carrier.
        ("CUSTOMER#ann ORDER#0159f8e6-ea80-7111-9111-000000000002", Delete, &[(Copy, "CUSTOMER#ann ORDER#")], false),
        ("CUSTOMER#ann QUESTION#", Set("text", text("?")), &[(Copy, "CUSTOMER#ann QUESTION#")], true),
        ("CUSTOMER#ann QUESTION#", Delete, &[(Copy, "CUSTOMER#ann QUESTION#")], true),
        ("PRODUCT#tea REVIEW#ann", Set("title", text("Hot")), &[(Copy, "RECENTREVIEWS#")], true),
    ])
    .await;
    let table = TestTable::create().await;
    world::fill(&table).await;
    for (pk, sk) in table.keys("RECENTREVIEWS#").await {
        table.delete_at(&pk, &sk).await;
    }
    finds(&table, "entries", &[(Copy, "RECENTREVIEWS#"), (Copy, "RECENTREVIEWS#")], true).await;
}

#[tokio::test]
async fn a_copy_that_the_stream_left_behind_is_refreshed() {
    let table = TestTable::create().await;
    for (attribute, value) in [("in_stock", AttributeValue::Bool(false)), ("rating_sum", number(9))] {
        let table = TestTable::create().await;
        world::fill(&table).await;
        table.set("PRODUCT#tea", "PRODUCT", attribute, value).await;
        finds(&table, attribute, &[(Behind, "PRODUCT#tea PRODUCT")], true).await;
    }
    world::fill(&table).await;
    table.set("PRODUCT#tea", "IN#SUMMER", "name", text("Old")).await;
    table.set("PRODUCT#tea", "IN#SUMMER", "source_rev", number(0)).await;
    finds(&table, "membership", &[(Behind, "PRODUCT#tea IN#SUMMER")], true).await;
}

#[tokio::test]
async fn a_product_that_does_not_name_its_first_picture_is_repaired() {
    let object = MediaObject { id: "m1".parse().unwrap(), content_type: "image/webp".to_owned(), bytes: 9 };
    let picture = Picture { object, alt: None, shape: None, added_at: Instant::EPOCH };
    let pictures = ProductPictures { product_id: milk(), pictures: vec![picture] };
    put(pictures, &[(Behind, "PRODUCT#milk PRODUCT")], true).await;
    let table = TestTable::create().await;
    world::fill(&table).await;
    table.set("PRODUCT#milk", "PRODUCT", "reference", text("m2")).await;
    finds(&table, "thumbnail", &[(Behind, "PRODUCT#milk PRODUCT")], true).await;
}

/// Without its row, a sale is also missing in the parts of its totals. The repair derives the rows,
/// and then sets the totals that still differ.
#[tokio::test]
async fn sales_that_are_missing_are_derived_once() {
    let order = format!("SALES#{PAID}");
    let product = [(Total, "PRODUCT#tea PRODUCT#SALES"), (Total, "PRODUCT#tea PRODUCT#SALES")];
    let place = [(Total, "PLACESALES#US#"), (Total, "PLACESALES#US#")];
    let table = TestTable::create().await;
    world::fill(&table).await;
    table.delete_at(&order, "LINE#00000000000000000001").await;
    finds(&table, "row", &[&product[..], &[(Behind, "SALES#")]].concat(), true).await;
    table.set(&order, "LINE#00000000000000000001", "quantity", number(7)).await;
    finds(&table, "quantity", &[(Behind, "SALES#"), product[0]], true).await;
    table.set(&order, "LINE#00000000000000000001", "customer_id", text("bob")).await;
    table.set(&order, "LINE#00000000000000000001", "GSI1PK", text("BOUGHT#bob")).await;
    finds(&table, "customer", &[(Behind, "SALES#")], true).await;
    table.delete_at(&order, "PLACE").await;
    finds(&table, "place", &[&place[..], &[(Behind, "ORDER#")]].concat(), true).await;
    // The state is as if the consumer had received no record.
    let (pk, sk) = ("PRODUCT#tea", "PRODUCT#SALES");
    table.delete_at(pk, sk).await;
    for (pk, sk) in table.keys("SALES#").await.into_iter().chain(table.keys("PLACESALES#").await) {
        table.delete_at(&pk, &sk).await;
    }
    table.delete_at("PRODUCT#milk", "PRODUCT#SALES").await;
    let (lines, orders) = ([(Behind, "SALES#"); 8], [(Behind, "ORDER#"); 4]);
    finds(&table, "all", &[&lines[..], &orders[..]].concat(), true).await;
    assert_eq!(table.keys(pk).await.iter().filter(|(_, sort)| sort == sk).count(), 1);
}

#[tokio::test]
async fn the_number_of_locations_is_that_of_those_besides_main() {
    let table = TestTable::create().await;
    for id in ["main", "ulm", "bern"] {
        let location = StockLocation { id: id.parse().unwrap(), name: id.to_owned(), address: None };
        table.transact(&location::create(&seed::stored(location)).unwrap()).await;
    }
    finds(&table, "all", &[], true).await;
    table.set("LOCATIONS", "LOCATIONS", "locations", number(1)).await;
    finds(&table, "too few", &[(Total, "LOCATIONS LOCATIONS")], true).await;
    table.delete_at("LOCATIONS", "LOCATIONS").await;
    finds(&table, "no head", &[(Total, "LOCATIONS LOCATIONS")], true).await;
}

#[tokio::test]
async fn the_number_of_agents_is_that_of_the_agents() {
    let table = TestTable::create().await;
    for id in ["acme", "robot"] {
        let id: AgentId = id.parse().unwrap();
        let agent = Agent {
            key_hash: AgentKey::new(&id, [1; 32]).hash(),
            id,
            name: "Robot".to_owned(),
            profile_url: "https://agent.example/profile".to_owned(),
            scopes: [AgentScope::Catalog].into(),
            checkouts_per_day: 1,
            key_created_at: Instant::EPOCH,
        };
        table.transact(&agent::create(&seed::stored(agent)).unwrap()).await;
    }
    finds(&table, "all", &[], true).await;
    table.set("AGENTS", "AGENTS", "agents", number(1)).await;
    finds(&table, "too few", &[(Total, "AGENTS AGENTS")], true).await;
    table.delete_at("AGENTS", "AGENTS").await;
    finds(&table, "no head", &[(Total, "AGENTS AGENTS")], true).await;
}

#[tokio::test]
async fn the_number_of_endpoints_is_that_of_the_endpoints() {
    let table = TestTable::create().await;
    for number in [1, 2] {
        let endpoint = WebhookEndpoint {
            id: EndpointId::generate(Instant::EPOCH, [number; 10]),
            agent: None,
            secrets: Vec::new(),
            failing_since: None,
            url: "https://erp.example".to_owned(),
            kinds: ["*".to_owned()].into(),
            description: None,
            disabled: None,
        };
        table.transact(&webhook_endpoint::create(&seed::stored(endpoint), None).unwrap()).await;
    }
    finds(&table, "all", &[], true).await;
    table.set("WEBHOOKS", "WEBHOOKS", "endpoints", number(1)).await;
    finds(&table, "too few", &[(Total, "WEBHOOKS WEBHOOKS")], true).await;
    table.delete_at("WEBHOOKS", "WEBHOOKS").await;
    finds(&table, "no head", &[(Total, "WEBHOOKS WEBHOOKS")], true).await;
}

/// The first item counts the rows that the further items do not count.
#[tokio::test]
async fn the_sales_of_a_hot_product_are_the_sum_of_several_items() {
    let table = TestTable::create().await;
    world::fill(&table).await;
    let counted = ProductSales { quantity: 1, orders: 1, ..ProductSales::none("tea".parse().unwrap(), 5) };
    table.put(&seed::stored(counted.clone())).await;
    let product = [(Total, "PRODUCT#tea PRODUCT#SALES"), (Total, "PRODUCT#tea PRODUCT#SALES")];
    finds(&table, "counted twice", &product, true).await;
    table.put(&seed::stored(ProductSales { quantity: 0, orders: 0, ..counted })).await;
    finds(&table, "moved", &product, true).await;
}

#[tokio::test]
async fn a_claim_without_owner_and_an_owner_without_claim_are_repaired() {
    each([
        ("EMAIL#bob@example.com", Delete, &[(Claim, "CUSTOMER#bob PROFILE")] as &[_], true),
        ("USERNAME#bob", Delete, &[(Claim, "CUSTOMER#bob PROFILE")], true),
        ("NUMBER#A88T-MRHC", Delete, &[(Claim, "ORDER#0159f8e6-ea80-7111-9111-000000000001")], true),
        (
            "NUMBER#A88T-MRHC",
            Set("order_id", text("other")),
            &[(Claim, "ORDER#0159f8e6-ea80-7111-9111-000000000001")],
            false,
        ),
        ("REFERENCE#basket-1#ann", Delete, &[(Claim, "ORDER#0159f8e6-ea80-7111-9111-000000000001")], true),
        // The owner has no claim, and the claim names another customer.
        (
            "USERNAME#bob",
            Set("customer_id", text("ann")),
            &[(Claim, "CUSTOMER#bob PROFILE"), (Claim, "USERNAME#<")],
            true,
        ),
        (
            "EMAIL#bob@",
            Set("customer_id", text("nobody")),
            &[(Claim, "CUSTOMER#bob PROFILE"), (Claim, "EMAIL#<")],
            false,
        ),
    ])
    .await;
    let nowhere = EmailClaim { email: "secret@example.com".to_owned(), customer_id: id("ann") };
    put(nowhere, &[(Claim, "EMAIL#<")], true).await;
}

/// Somebody deleted the profile by mistake. A repair must not give its names to others.
#[tokio::test]
async fn the_names_of_a_missing_profile_stay_taken() {
    let table = TestTable::create().await;
    table.sign_up("dan").await;
    table.delete_at("CUSTOMER#dan", "PROFILE").await;
    finds(&table, "no profile", &[(Claim, "EMAIL#<"), (Claim, "USERNAME#<")], false).await;
}

#[tokio::test]
async fn a_relation_with_one_side_is_reported() {
    let ghost =
        Set("entries", AttributeValue::M(HashMap::from([(PAID.to_owned(), entry()), (PENDING.to_owned(), entry())])));
    each([
        ("CUSTOMER#bob DOCUMENT#rules#editor", Delete, &[(Link, "CUSTOMER#bob DOCUMENT#rules#editor")] as &[_], true),
        ("PRODUCT#tea IN#SUMMER", Delete, &[(Link, "PRODUCT#tea PRODUCT#CATEGORIES")], false),
        ("PRODUCT#tea PRODUCT#CATEGORIES", Delete, &[(Link, "PRODUCT#tea IN#SUMMER")], false),
        ("REVIEWMONTHS", Delete, &[(Link, "REVIEWMONTHS")], true),
        ("CUSTOMER#cleo CUSTOMER#INVITATIONS", Delete, &[(Link, "ORG#chess INVITATION#cleo")], false),
        ("ORG#chess INVITATION#cleo", Delete, &[(Link, "CUSTOMER#cleo CUSTOMER#INVITATIONS")], false),
        ("CUSTOMER#ann OPEN", Delete, &[(Link, "ORDER#0159f8e6-ea80-7111-9111-000000000001")], false),
        ("CUSTOMER#ann OPEN", ghost, &[(Link, "CUSTOMER#ann OPEN")], true),
        ("COUNTER#views COUNTER", Delete, &[(Link, "COUNTER#views#00000000000000000001 SHARD")], false),
        ("CATEGORY CHILD#DRINKS", Delete, &[(Link, "CATEGORY#DRINKS CHILD#TEA")], true),
        ("STOCK#milk#main#00000000000000000000 STOCK", Delete, &[(Link, "PRODUCT#milk PRODUCT")], true),
        ("INVOICE#", Set("customer_id", text("bob")), &[(Link, "INVOICE#")], false),
        ("INVOICE#", Delete, &[(Link, "ORDER#"), (Total, "COUNTER#invoices")], false),
    ])
    .await;
    let role = CustomerDocument { customer_id: id("cleo"), document_id: "rules".parse().unwrap(), tie: Tie::Owner };
    put(role, &[(Link, "CUSTOMER#cleo DOCUMENT#rules#owner")], true).await;
}

pub fn entry() -> AttributeValue {
    AttributeValue::M(HashMap::from([("most".to_owned(), number(1)), ("lines".to_owned(), number(2))]))
}

#[tokio::test]
async fn an_orphan_is_reported() {
    let line = seed::line(&"nowhere".parse().unwrap(), 1, milk());
    put(line, &[(Orphan, "ORDER#nowhere ORDER")], false).await;
    let follow = Follow { customer_id: id("nobody"), followed_id: id("ann") };
    put(follow, &[(Orphan, "CUSTOMER#nobody PROFILE")], false).await;
    let (_, mut sections) = seed::document("nowhere", "ann", None, &[("Aim", "?")]);
    put(sections.remove(0), &[(Orphan, "DOC#nowhere DOC")], false).await;
    let mut head = key_schema::order::Order::new("gone".parse().unwrap(), id("ann"), Instant::now(), seed::usd(1), 1);
    head.reference = None;
    put(CustomerOrder::of(&head), &[(Orphan, "CUSTOMER#ann ORDER#gone")], false).await;
    put(seed::order_addresses("gone", "ann"), &[(Orphan, "CUSTOMER#ann SHIPTO#gone")], false).await;
    let entry = RecentReview {
        product_id: milk(),
        customer_id: id("ann"),
        written_at: Instant::now(),
        rating: 3,
        display_name: None,
        title: "?".to_owned(),
        text: "?".to_owned(),
    };
    put(entry, &[(Orphan, "RECENTREVIEWS#")], true).await;
    let stock = seed::stock("nowhere".parse().unwrap(), 1);
    put(stock, &[(Orphan, "STOCK#nowhere#main#00000000000000000000 STOCK")], false).await;
}

#[tokio::test]
async fn a_count_is_set_to_the_sum_of_its_parts() {
    each([
        (
            "PRODUCT#tea PRODUCT#STATS",
            Set("rating_count", number(9)),
            &[(Behind, "PRODUCT#tea PRODUCT"), (Total, "PRODUCT#tea PRODUCT#STATS")] as &[_],
            true,
        ),
        ("PRODUCT#tea PRODUCT#SALES", Set("quantity", number(9)), &[(Total, "PRODUCT#tea PRODUCT#SALES")], true),
        (
            "PRODUCT#tea PRODUCT#SALES",
            Delete,
            &[(Total, "PRODUCT#tea PRODUCT#SALES"), (Total, "PRODUCT#tea PRODUCT#SALES")],
            true,
        ),
        ("ORG#chess ORG", Set("admins", number(4)), &[(Total, "ORG#chess ORG")], true),
        ("ORG#chess TEAM#a", Set("members", number(4)), &[(Total, "ORG#chess TEAM#a")], true),
    ])
    .await;
    let table = TestTable::create().await;
    world::fill(&table).await;
    let counts =
        || async { table.keys("PRODUCT#tea").await.into_iter().find(|(_, sk)| sk.starts_with("LIKES#")).unwrap() };
    let (pk, sk) = counts().await;
    table.set(&pk, &sk, "likes", number(17)).await;
    let expected = [(Behind, "TALLY#likes#tea RANK#ALL"), (Total, "PRODUCT#tea LIKES#")];
    finds(&table, "likes", &expected, true).await;
    table.delete_at(&pk, &sk).await;
    finds(&table, "no likes", &expected, true).await;
    for (pk, sk) in table.keys("PLACESALES#").await.into_iter().take(1) {
        table.set(&pk, &sk, "amount", number(1)).await;
    }
    finds(&table, "amount", &[(Total, "PLACESALES#US#")], true).await;
}

/// The repair sets the number of teams. It cannot restore the team, because no other item stores
/// the team's name.
#[tokio::test]
async fn a_team_that_is_missing_is_reported() {
    let table = TestTable::create().await;
    world::fill(&table).await;
    table.delete_at("ORG#chess", "TEAM#a").await;
    let fixed = run(&table, &options(true)).await;
    assert_eq!((fixed.repaired(), fixed.left()), (1, 1), "{fixed}");
    let left = run(&table, &options(false)).await.findings.remove(0);
    assert_eq!((left.kind, left.key.as_str()), (Total, "ORG#chess TEAM#a"));
}

/// The repair creates the missing count, and its rank. The like is an orphan, and a run only
/// reports it.
#[tokio::test]
async fn a_like_by_a_missing_customer_is_counted_and_reported() {
    let table = TestTable::create().await;
    world::fill(&table).await;
    table.put(&seed::stored(Like { customer_id: id("nobody"), product_id: milk() })).await;
    let found = run(&table, &options(false)).await;
    assert_eq!(found.left(), 2, "{found}");
    let fixed = run(&table, &options(true)).await;
    assert_eq!((fixed.repaired(), fixed.left()), (2, 1), "{fixed}");
    let left = run(&table, &options(false)).await.findings.remove(0);
    assert_eq!((left.kind, left.key.as_str()), (Orphan, "CUSTOMER#nobody PROFILE"));
    assert_eq!(table.keys("PRODUCT#milk").await.iter().filter(|(_, sk)| sk.starts_with("LIKES#")).count(), 1);
}

/// Money, accounting records and texts have no second source, so a person decides how to repair
/// them.
#[tokio::test]
async fn a_sum_without_a_source_of_truth_is_only_reported() {
    each([
        ("WALLET#bob WALLET", Set("EUR", number(1)), &[(Total, "WALLET#bob WALLET")] as &[_], false),
        ("WALLET#bob ENTRY#", Delete, &[(Total, "WALLET#bob WALLET")], false),
        ("ORDER#0159f8e6-ea80-7111-9111-000000000002 ORDER", Set("refunded", number(5)), &[(Total, "ORDER#")], false),
        (
            "ORDER#0159f8e6-ea80-7111-9111-000000000002 TENDER#pay1",
            Set("refunded", number(5)),
            &[(Total, "ORDER#")],
            false,
        ),
        ("COUNTER#invoices COUNTER", Set("last", number(5)), &[(Total, "COUNTER#invoices COUNTER")], false),
        ("DOC#rules SECTION#Aim#00000000000000000001", Delete, &[(Total, "DOC#rules DOC")], false),
        (
            "DOC#rules VERSION#00000000000000000002",
            Delete,
            &[(Total, "DOC#rules DOC"), (Total, "DOC#rules DOC")],
            false,
        ),
        (
            "ORDER#0159f8e6-ea80-7111-9111-000000000001 ITEM#00000000000000000002",
            Delete,
            &[(Total, "ORDER#"), (Total, "ORDER#"), (Total, "ORDER#")],
            false,
        ),
    ])
    .await;
}
