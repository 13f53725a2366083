//! Tests of the copy of a customer's data.

use std::collections::BTreeMap;

use fixture::seed::{self, stored};
use http_api::sample::{Answered, Call};
use key_schema::instant::Instant;
use key_schema::order::{self, CustomerOrder, OrderStatus, OrderStatusEvent};
use key_schema::organization::Role;
use key_schema::organization::invitation::{Invitations, OpenInvitation};
use key_schema::quota::Quota;
use serde_json::Value;

use crate::shop::Shop;

async fn page(shop: &Shop, id: &str, cursor: Option<&str>, limit: usize) -> Answered {
    let call =
        Call::new("GET /v1/customers/{id}/data").path("id", id).customer("ann").query("limit", &limit.to_string());
    shop.send(cursor.into_iter().fold(call, |call, cursor| call.query("cursor", cursor))).await
}

/// Follows the cursors. Returns the records by kind.
async fn whole(shop: &Shop, limit: usize) -> BTreeMap<String, Vec<Value>> {
    let (mut kinds, mut cursor): (BTreeMap<String, Vec<Value>>, _) = (BTreeMap::new(), None);
    loop {
        let answer = page(shop, "ann", cursor.as_deref(), limit).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let records = answer.body["items"].as_array().unwrap();
        assert!(records.len() <= limit);
        for record in records {
            kinds.entry(record["kind"].as_str().unwrap().to_owned()).or_default().push(record.clone());
        }
        cursor = answer.body["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            return kinds;
        }
    }
}

async fn fill(shop: &Shop) {
    for customer in ["ann", "bob"] {
        shop.customer(customer).await;
    }
    for product in ["p0", "p1", "p2"] {
        shop.product(product).await;
        shop.like("ann", product).await;
        shop.review("ann", product).await;
    }
    shop.invoiced_order("ann", "p0").await;
    shop.order("ann", "p0", 1).await;
    shop.order("bob", "p0", 2).await;
    shop.session("ann", "s", 60).await;
    shop.cart("ann", 1, 60).await;
    shop.follow("ann", "bob").await;
    shop.follow("bob", "ann").await;
}

#[tokio::test]
async fn the_pages_have_every_record_of_every_kind_once() {
    let shop = Shop::open().await;
    fill(&shop).await;
    let whole_at_once = whole(&shop, 100).await;
    let counts: Vec<_> = whole_at_once.iter().map(|(kind, records)| (kind.as_str(), records.len())).collect();
    let expected = [
        ("cart", 1),
        ("followers", 1),
        ("follows_and_likes", 4),
        ("orders", 2),
        ("profile", 1),
        ("reviews", 3),
        ("sessions", 1),
    ];
    assert_eq!(counts, expected);
    for limit in [1, 2] {
        assert_eq!(whole(&shop, limit).await, whole_at_once, "{limit}");
    }
    let profile = &whole_at_once["profile"][0];
    assert_eq!((&profile["entity"], &profile["data"]["email"]), (&"Customer".into(), &"ann@example.com".into()));
    for internal in ["PK", "GSI1PK", "rev", "born", "list_shards"] {
        assert_eq!(profile["data"].get(internal), None);
    }
    let review = &whole_at_once["reviews"][0]["data"];
    assert_eq!((&review["display_name"], review.get("reference")), (&"ann from Ulm".into(), None));
    let orders = &whole_at_once["orders"];
    let parts = |order: &Value| order["parts"].as_array().unwrap().iter().map(|part| part["entity"].clone()).collect();
    let parts: Vec<Vec<Value>> = orders.iter().map(parts).collect();
    assert_eq!(
        parts,
        [vec!["OrderLine", "Order", "OrderStatusEvent"], vec!["OrderLine", "Order", "Invoice", "OrderStatusEvent"]]
    );
}

#[tokio::test]
async fn the_copy_has_no_notes_and_no_ids_of_staff() {
    let shop = Shop::open().await;
    fill(&shop).await;
    let id = shop.order("ann", "p0", 9).await;
    let event = OrderStatusEvent {
        order_id: id.parse().unwrap(),
        status: OrderStatus::Cancelled,
        at: Instant::now(),
        by: "clerk".to_owned(),
        note: Some("Looks like fraud".to_owned()),
        message: Some("We could not deliver".to_owned()),
        carrier: None,
        tracking: None,
        expires_at: None,
    };
    shop.put(&stored(event)).await;
    let text = serde_json::to_string(&whole(&shop, 100).await).unwrap();
    assert!(text.contains("We could not deliver") && !text.contains("clerk") && !text.contains("fraud"), "{text}");
    assert!(text.contains("\"by\":\"ann\""), "{text}");
}

/// The customer may have left the organization since.
#[tokio::test]
async fn the_copy_has_neither_the_document_of_an_organization_nor_the_inviter() {
    let shop = Shop::open().await;
    fill(&shop).await;
    shop.put(&stored(seed::organization("acme"))).await;
    shop.enter("acme", "ann", Role::Member).await;
    shop.write(seed::document("own", "ann", None, &[("a", "A")])).await;
    shop.write(seed::document("theirs", "ann", Some("acme"), &[("a", "A")])).await;
    let invitation = OpenInvitation::new(Instant::now().plus_seconds(60), &"bob".parse().unwrap());
    let inviter = invitation.inviter.clone();
    let open = BTreeMap::from([("acme".parse().unwrap(), invitation)]);
    shop.put(&stored(Invitations { customer_id: "ann".parse().unwrap(), open })).await;
    let copy = whole(&shop, 100).await;
    let parts: BTreeMap<_, _> = copy["documents"]
        .iter()
        .map(|tie| (tie["data"]["document_id"].as_str().unwrap(), tie.get("parts").is_some()))
        .collect();
    assert_eq!(parts, BTreeMap::from([("own", true), ("theirs", false)]));
    let invitations = serde_json::to_string(&copy["invitations"]).unwrap();
    assert!(invitations.contains("acme") && !invitations.contains(&inviter), "{invitations}");
}

/// The copy has the stored attributes, so it also has an item that the functions cannot read.
#[tokio::test]
async fn an_unreadable_item_does_not_end_the_copy_and_is_counted() {
    let shop = Shop::open().await;
    fill(&shop).await;
    shop.write(seed::document("own", "ann", None, &[("a", "A")])).await;
    let id = shop.order("ann", "p0", 9).await;
    shop.spoil("CUSTOMER#ann", &format!("ORDER#{id}"), "total").await;
    shop.spoil("PRODUCT#p1", "REVIEW#ann", "rating").await;
    shop.spoil("DOC#own", "DOC", "current").await;
    let (mut cursor, mut left_out) = (None::<String>, BTreeMap::new());
    loop {
        let answer = page(&shop, "ann", cursor.as_deref(), 100).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        if let Some(count) = answer.header("x-left-out") {
            left_out.insert(answer.body["items"][0]["kind"].as_str().unwrap().to_owned(), count.to_owned());
        }
        if answer.body["items"][0]["kind"] == "orders" {
            assert_eq!(answer.body["items"].as_array().unwrap().len(), 3);
        }
        cursor = answer.body["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    let counts = [("documents", "1"), ("reviews", "1")].map(|(kind, count)| (kind.to_owned(), count.to_owned()));
    assert_eq!(left_out, BTreeMap::from(counts));
}

#[tokio::test]
async fn a_page_of_orders_has_at_most_500_lines() {
    let shop = Shop::open().await;
    fill(&shop).await;
    for minute in 10..13 {
        let id = shop.order("ann", "p0", minute).await;
        let head = shop.own().get(&order::head(&id.parse().unwrap()).unwrap()).await.unwrap().unwrap();
        shop.put(&stored(CustomerOrder { line_count: 250, ..CustomerOrder::of(&head) })).await;
    }
    let profile = page(&shop, "ann", None, 100).await;
    let mut cursor = profile.body["next_cursor"].clone();
    let mut sizes = Vec::new();
    loop {
        let next = page(&shop, "ann", cursor.as_str(), 100).await;
        if next.body["items"][0]["kind"] != "orders" {
            break;
        }
        sizes.push(next.body["items"].as_array().unwrap().len());
        cursor = next.body["next_cursor"].clone();
    }
    assert_eq!(sizes, [2, 3]);
}

#[tokio::test]
async fn a_customer_reads_a_limited_number_of_pages_a_day_and_staff_do_not() {
    let shop = Shop::open().await;
    fill(&shop).await;
    shop.use_up(&"ann".parse().unwrap(), Quota::DataPages, 1).await;
    assert_eq!(page(&shop, "ann", None, 20).await.status, 200);
    let refused = page(&shop, "ann", None, 20).await;
    assert_eq!((refused.status, refused.code()), (429, Some("quota_exceeded")), "{}", refused.body);
    let staff = Call::new("GET /v1/customers/{id}/data").path("id", "ann").staff("s");
    assert_eq!(shop.send(staff).await.status, 200);
}

#[tokio::test]
async fn only_the_customer_and_staff_read_the_copy() {
    let shop = Shop::open().await;
    fill(&shop).await;
    assert_eq!(page(&shop, "bob", None, 20).await.status, 404);
    assert_eq!(page(&shop, "me", None, 20).await.body["items"][0]["data"]["id"], "ann");
    let staff = Call::new("GET /v1/customers/{id}/data").path("id", "ann").staff("s");
    assert_eq!(shop.send(staff).await.status, 200);
}
