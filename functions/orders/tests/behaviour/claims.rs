//! Tests of the claims of orders that a customer placed as a guest.

use fixture::Recorder;
use futures::future::join_all;
use http_api::sample::{Answered, Call};
use key_schema::customer::Customer;
use key_schema::id::{CustomerId, OrderId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::open::OpenOrder;
use key_schema::order::{self, OrderStatus, PlacedOrder, addresses};
use key_schema::promotion::Promotion;
use serde_json::{Value, json};
use workflows::staging;

use crate::guests::{guest, shop, with_token};
use crate::payments::{Till, intent};
use crate::promotions::ten;
use crate::quote::{address, usd};
use crate::shop::{Shop, moved, order as ordered, stored};

const READ: &str = "GET /v1/guest/orders/{id}";

fn ann() -> CustomerId {
    CustomerId::new("ann").unwrap()
}

fn claim(customer: &str) -> Call {
    Call::new("POST /v1/customers/{id}/orders/claim").path("id", customer).customer(customer)
}

fn of_ann(route: &'static str, order: &Value) -> Call {
    Call::new(route).path("id", order["id"].as_str().unwrap()).customer("ann")
}

fn id_of(order: &Value) -> OrderId {
    order["id"].as_str().unwrap().parse().unwrap()
}

fn ids(answer: &Answered) -> Vec<&str> {
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body["items"].as_array().unwrap().iter().map(|order| order["id"].as_str().unwrap()).collect()
}

impl Shop {
    /// Claims the orders of ann. Returns the number of claimed orders.
    async fn claimed(&self) -> usize {
        ids(&self.send(claim("ann")).await).len()
    }

    /// Replaces the profile of a customer.
    async fn with_address(&self, customer: &str, email: &str, email_verified: bool) {
        let data = Customer { email: email.parse().unwrap(), email_verified, ..self.profile(customer).await.data };
        self.put(&stored(data)).await;
    }

    async fn placed(&self, order: &Value) -> PlacedOrder {
        let items = self.own().query(&order::read_for_update(&id_of(order)).unwrap()).await.unwrap().items;
        PlacedOrder::of(items).unwrap()
    }

    async fn keys_of_guest(&self, email: &str) -> Vec<String> {
        let keys = self.keys(&format!("CUSTOMER#{}", guest(email))).await;
        keys.into_iter().map(|(_, sort)| sort).collect()
    }
}

#[tokio::test]
async fn a_claim_moves_a_pending_order_with_its_addresses_and_its_entry() {
    let shop = shop().await;
    let cart = shop.guest_cart(&[("tea", 2)]).await;
    let more = json!({ "shipping_address": address("CH"), "billing_address": address("DE") });
    let placed = shop.expect(201, cart.check_out_with("Ann@Example.com", &more)).await;
    let before = shop.placed(&placed).await;
    let answer = shop.send(claim("ann")).await;
    assert_eq!((ids(&answer), &answer.body["remaining"]), (vec![placed["id"].as_str().unwrap()], &json!(false)));
    assert_eq!(answer.body["items"][0]["total"], usd(200));
    assert!(!answer.body.to_string().contains("guest:"), "{}", answer.body);

    assert_eq!(shop.refusal(with_token(READ, &placed)).await, (404, "not_found".to_owned()));
    let read = shop.send(of_ann("GET /v1/orders/{id}", &placed)).await;
    assert_eq!((read.status, &read.body["customer_id"], read.version()), (200, &json!("ann"), Some(2)));
    assert_eq!((read.body.get("guest"), read.body.get("order_token")), (None, None), "{}", read.body);
    for field in ["id", "number", "lines", "total", "status", "placed_at", "lapses_at", "history"] {
        assert_eq!(read.body[field], placed[field], "{field}");
    }
    assert_eq!(read.body["shipping_address"], address("CH"));
    assert_eq!(read.body["billing_address"], address("DE"));
    for route in ["GET /v1/orders/{id}/lines", "GET /v1/orders/{id}/history", "GET /v1/orders/{id}/payments"] {
        shop.ok(of_ann(route, &placed)).await;
    }
    let list = shop.send(Call::new("GET /v1/customers/{id}/orders").path("id", "ann").customer("ann")).await;
    assert_eq!(
        (ids(&list), &list.body["items"][0]["status"]),
        (vec![placed["id"].as_str().unwrap()], &json!("pending"))
    );

    let (head, after) = (shop.head(&placed).await, shop.placed(&placed).await);
    assert_eq!((&head.token_hash, head.by_customer, head.lapses_at), (&None, true, before.head.lapses_at));
    assert_eq!((after.lines, after.history), (before.lines, before.history));
    assert_eq!(shop.open_orders().await.into_values().collect::<Vec<_>>(), [OpenOrder { most: 2, lines: 1 }]);
    // The item with the list of open orders expires by itself.
    assert_eq!(shop.keys_of_guest("ann@example.com").await, ["OPEN"]);
    assert!(shop.open_of(&guest("ann@example.com")).await.is_empty());
    let left = format!("{:?}", shop.items("").await);
    assert!(!left.contains("Ann@Example.com") && !left.contains("Gil"), "the guest's data is gone");
    assert_eq!(shop.lapsing(Instant::MAX).await, 1);

    let again = shop.send(claim("ann")).await;
    assert_eq!((again.status, again.body), (200, json!({ "items": [], "remaining": false })));
    assert_eq!(shop.head(&placed).await.meta.version, 2);
    // The repeated checkout does not give the order to the holder of the cart's token.
    let replay = shop.refusal(cart.check_out_with("Ann@Example.com", &more)).await;
    assert_eq!(replay, (404, "not_found".to_owned()));
}

#[tokio::test]
async fn a_claim_moves_an_order_without_an_address_and_leaves_no_item_of_the_guest() {
    let shop = shop().await;
    let placed = shop.guest_order("ann@example.com").await;
    assert_eq!(shop.claimed().await, 1);
    let addresses = shop.own().query(&addresses::of_customer(&ann()).unwrap()).await.unwrap().items;
    assert!(addresses.is_empty(), "{addresses:?}");
    assert_eq!(shop.keys_of_guest("ann@example.com").await, ["OPEN"]);
    let read = shop.expect(200, of_ann("GET /v1/orders/{id}", &placed)).await;
    assert_eq!((read.get("guest"), read.get("shipping_address")), (None, None), "{read}");
}

#[tokio::test]
async fn a_claim_moves_a_paid_order_with_its_payments_and_its_invoice() {
    let till = Till::open().await;
    let placed = till.guest_order("ann@example.com").await;
    let card = || with_token("POST /v1/guest/orders/{id}/payments", &placed).json(&json!({ "method": "card" }));
    let intent = intent(&till.expect(201, card()).await);
    till.server.confirm(&intent, None).unwrap();
    till.expect(200, card()).await;
    let invoice = Call::new("POST /v1/orders/{id}/invoice").path("id", placed["id"].as_str().unwrap()).staff("sam");
    let invoice = till.expect(201, invoice).await;
    let read_invoice = || {
        let number = invoice["number"].to_string();
        Call::new("GET /v1/invoices/{number}").path("number", &number).customer("ann")
    };
    assert_eq!(till.send(read_invoice()).await.status, 404);
    let before = till.expect(200, with_token(READ, &placed)).await;
    assert_eq!(till.claimed().await, 1);
    let read = till.expect(200, of_ann("GET /v1/orders/{id}", &placed)).await;
    for field in ["status", "payments", "history", "invoice_number", "total"] {
        assert_eq!(read[field], before[field], "{field}");
    }
    assert_eq!((&read["status"], &read["payments"][0]["captured"]), (&json!("paid"), &usd(500)));
    let payments = till.expect(200, of_ann("GET /v1/orders/{id}/payments", &placed)).await;
    assert_eq!(payments["items"][0]["id"], read["payments"][0]["id"]);
    assert!(till.placed(&placed).await.payments.iter().all(|payment| payment.customer_id == ann()));
    let shown = till.expect(200, read_invoice()).await;
    assert_eq!(shown["customer_id"], "ann");
    assert!(till.open_orders().await.is_empty(), "a paid order is not open");
    for route in ["POST /v1/guest/orders/{id}/payments", "GET /v1/guest/orders/{id}/payments"] {
        let call = with_token(route, &placed).json(&json!({ "method": "card" }));
        assert_eq!(till.refusal(call).await, (404, "not_found".to_owned()), "{route}");
    }
    // The money still goes back to the card.
    let cancelled = till.expect(200, moved(&read, "cancelled")).await;
    assert_eq!((&cancelled["refunded"], till.books(&intent).refunded), (&usd(500), 500));
}

#[tokio::test]
async fn a_claim_moves_shipped_and_cancelled_orders() {
    let shop = shop().await;
    let mut shipped = shop.guest_order("ann@example.com").await;
    let cancelled = shop.guest_order("ann@example.com").await;
    for to in ["paid", "picking", "shipped"] {
        let token = shipped["order_token"].clone();
        shipped = shop.expect(200, moved(&shipped, to)).await;
        shipped["order_token"] = token;
    }
    shop.expect(200, moved(&cancelled, "cancelled")).await;
    let answer = shop.send(claim("ann")).await;
    assert_eq!(ids(&answer), [&cancelled, &shipped].map(|order| order["id"].as_str().unwrap()), "newest first");
    let shipments = Call::new("GET /v1/customers/{id}/shipments").path("id", "ann").customer("ann");
    assert_eq!(ids(&shop.send(shipments).await), [shipped["id"].as_str().unwrap()]);
    let read = shop.expect(200, of_ann("GET /v1/orders/{id}", &shipped)).await;
    assert_eq!((&read["status"], read["history"].as_array().unwrap().len()), (&json!("shipped"), 4));
    assert!(!read.to_string().contains("sam"), "{read}");
    assert_eq!(read["history"][0]["by"], shipped["customer_id"], "the guest placed the order");
    let delivered = shop.expect(200, moved(&read, "delivered")).await;
    assert_eq!(shop.expect(200, moved(&delivered, "returned")).await["status"], "returned");
    assert_eq!((shop.stock("tea").await, shop.open_orders().await.len()), (100, 0));
}

#[tokio::test]
async fn a_claimed_order_can_be_cancelled_and_lapses_like_any_other() {
    let shop = shop().await;
    shop.promote(Promotion { limit_total: Some(5), ..ten() }).await;
    let mut orders = Vec::new();
    for _ in 0..2 {
        let cart = shop.guest_cart(&[("tea", 3)]).await;
        let quote = cart.call("POST /v1/carts/{id}/quote").json(&json!({ "codes": ["TEN"] }));
        let quote = shop.expect(200, quote).await;
        let call = cart.check_out_with("ann@example.com", &json!({ "quote_id": quote["id"] }));
        orders.push(shop.expect(201, call).await);
    }
    let own = shop.expect(201, ordered(&[("tea", 1)], "k")).await;
    assert_eq!((shop.claimed().await, shop.open_orders().await.len()), (2, 3));
    assert_eq!((shop.uses("ten").await, shop.stock("tea").await), ((2, 0), 93));
    let cancel = of_ann("POST /v1/orders/{id}/status", &orders[0]).header("if-match", "\"2\"");
    shop.expect(200, cancel.json(&json!({ "to": "cancelled" }))).await;
    assert_eq!((shop.open_orders().await.len(), shop.uses("ten").await, shop.stock("tea").await), (2, (1, 0), 96));

    assert_eq!(shop.lapsing(Instant::now().plus_seconds(3_700)).await, 2);
    staging::lapse(shop.own(), &id_of(&orders[1]), Instant::now().plus_seconds(3_700)).await.unwrap();
    assert_eq!(shop.head(&orders[1]).await.status, OrderStatus::Cancelled);
    assert_eq!(shop.open_orders().await.into_keys().collect::<Vec<_>>(), [id_of(&own)]);
    assert_eq!((shop.uses("ten").await, shop.stock("tea").await), ((0, 0), 99));
    let read = shop.expect(200, of_ann("GET /v1/orders/{id}", &orders[1])).await;
    assert_eq!(read["status"], "cancelled");
    // An order that nobody claims lapses, too.
    let other = shop.guest_order("ann@example.com").await;
    staging::lapse(shop.own(), &id_of(&other), Instant::now().plus_seconds(3_700)).await.unwrap();
    assert_eq!((shop.stock("tea").await, shop.open_of(&guest("ann@example.com")).await.len()), (99, 0));
    assert_eq!(shop.expect(200, with_token(READ, &other)).await["status"], "cancelled");
}

#[tokio::test]
async fn a_claimed_order_counts_among_the_customers_unpaid_orders() {
    let shop = shop().await;
    shop.limit(&json!({ "max_pending_orders": 2, "max_pending_quantity": 4 })).await;
    let cart = shop.guest_cart(&[("tea", 3)]).await;
    shop.expect(201, cart.check_out("ann@example.com")).await;
    let own = shop.expect(201, ordered(&[("tea", 1)], "k1")).await;
    let second = shop.guest_order("ann@example.com").await;
    assert_eq!(shop.claimed().await, 2, "a claim has no limit of open orders");
    assert_eq!(shop.refusal(ordered(&[("tea", 1)], "k2")).await.1, "too_many_pending_orders");
    for (order, version) in [(&own, 1), (&second, 2)] {
        let order = json!({ "id": order["id"], "version": version });
        shop.expect(200, moved(&order, "cancelled")).await;
    }
    assert_eq!(shop.refusal(ordered(&[("tea", 2)], "k3")).await.1, "quantity_limit");
    shop.expect(201, ordered(&[("tea", 1)], "k4")).await;
    // The address has its own limits again.
    shop.guest_order("ann@example.com").await;
}

#[tokio::test]
async fn only_orders_of_the_customers_own_verified_address_are_claimed() {
    let shop = shop().await;
    shop.sign_up("bob").await;
    let (anns, bobs) = (shop.guest_order("ANN@example.com").await, shop.guest_order("bob@example.com").await);
    let others = shop.guest_order("anna@example.com").await;
    shop.with_address("ann", "ann@example.com", false).await;
    assert_eq!(shop.refusal(claim("ann")).await, (403, "email_unverified".to_owned()));
    shop.with_address("ann", "ann@example.com", true).await;
    for call in [claim("ann").customer("bob"), claim("nobody")] {
        assert_eq!(shop.refusal(call).await, (404, "not_found".to_owned()));
    }
    let anonymous = Call::new("POST /v1/customers/{id}/orders/claim").path("id", "ann");
    assert_eq!(shop.refusal(anonymous).await, (401, "unauthenticated".to_owned()));
    assert_eq!(shop.send(claim("ann").json(&json!({ "email": "bob@example.com" }))).await.status, 422);
    for order in [&anns, &bobs, &others] {
        assert_eq!(shop.head(order).await.meta.version, 1);
    }
    let me = Call::new("POST /v1/customers/{id}/orders/claim").path("id", "me").customer("ann");
    assert_eq!(ids(&shop.send(me).await), [anns["id"].as_str().unwrap()]);
    for order in [&bobs, &others] {
        shop.expect(200, with_token(READ, order)).await;
        assert_eq!(shop.send(of_ann("GET /v1/orders/{id}", order)).await.status, 404);
    }
    // A customer who verifies another address claims the orders of that address.
    shop.with_address("ann", "Anna@Example.com", true).await;
    let by_staff = Call::new("POST /v1/customers/{id}/orders/claim").path("id", "ann").staff("sam");
    assert_eq!(ids(&shop.send(by_staff).await), [others["id"].as_str().unwrap()]);
    assert_eq!(shop.head(&bobs).await.meta.version, 1);
}

/// Unicode folds these addresses to one text, but their domains belong to different people.
#[tokio::test]
async fn an_address_with_the_same_folded_form_claims_nothing() {
    let shop = shop().await;
    let placed = shop.guest_order("ann@straße.example").await;
    shop.with_address("ann", "ann@strasse.example", true).await;
    assert_eq!(shop.claimed().await, 0);
    shop.with_address("ann", "Ann@straße.example", true).await;
    assert_eq!(shop.claimed().await, 1);
    assert_eq!(shop.head(&placed).await.customer_id, ann());
}

#[tokio::test]
async fn a_customer_whose_address_changes_during_a_claim_claims_nothing() {
    let shop = shop().await;
    for (email, is_verified) in [("anna@example.com", true), ("ann@example.com", false)] {
        shop.with_address("ann", "ann@example.com", true).await;
        let placed = shop.guest_order("ann@example.com").await;
        let change = shop.with_address("ann", email, is_verified);
        Recorder::new(&shop).expect_paused(409, claim("ann"), "orders.earlier", change).await;
        assert_eq!(shop.head(&placed).await.customer_id, guest("ann@example.com"));
        shop.expect(200, with_token(READ, &placed)).await;
    }
}

#[tokio::test]
async fn an_erased_customer_claims_nothing() {
    let shop = shop().await;
    let placed = shop.guest_order("ann@example.com").await;
    shop.begin_erasure("ann").await;
    assert_eq!(shop.refusal(claim("ann")).await, (404, "not_found".to_owned()));
    assert_eq!(shop.head(&placed).await.customer_id, guest("ann@example.com"));
}

#[tokio::test]
async fn concurrent_claims_move_each_order_once() {
    let shop = shop().await;
    for _ in 0..5 {
        shop.guest_order("ann@example.com").await;
    }
    let answers = join_all((0..3).map(|_| shop.settled(claim("ann")))).await;
    let mut claimed: Vec<&str> = answers.iter().flat_map(ids).collect();
    claimed.sort_unstable();
    claimed.dedup();
    assert_eq!((answers.iter().flat_map(ids).count(), claimed.len()), (5, 5));
    for id in &claimed {
        let head = shop.head(&json!({ "id": id })).await;
        assert_eq!((head.customer_id.as_str(), head.meta.version), ("ann", 2));
    }
    assert_eq!((shop.open_orders().await.len(), shop.keys_of_guest("ann@example.com").await), (5, vec!["OPEN".into()]));
}

#[tokio::test]
async fn a_claim_and_a_concurrent_change_both_take_effect_or_the_change_is_refused() {
    let shop = shop().await;
    for _ in 0..5 {
        let placed = shop.guest_order("ann@example.com").await;
        let pay = shop.settled(moved(&placed, "paid"));
        let (claimed, paid) = futures::future::join(shop.settled(claim("ann")), pay).await;
        assert_eq!(ids(&claimed), [placed["id"].as_str().unwrap()]);
        assert!([200, 404, 412].contains(&paid.status), "{}", paid.body);
        let (head, is_paid) = (shop.head(&placed).await, paid.status == 200);
        assert_eq!((head.customer_id.as_str(), head.status == OrderStatus::Paid), ("ann", is_paid));
        assert_eq!(shop.open_orders().await.contains_key(&id_of(&placed)), !is_paid);
        assert!(shop.open_of(&guest("ann@example.com")).await.is_empty());
        let copy = shop.own().query(&order::of_customer(&ann(), None, None).unwrap().limit(1)).await.unwrap().items;
        assert_eq!((&copy[0].id, copy[0].status), (&id_of(&placed), head.status));
    }
}

#[tokio::test]
async fn a_claim_of_more_than_25_orders_says_that_some_remain() {
    let shop = Shop::open().await;
    shop.product("tea", 100).await;
    shop.limit(&json!({ "max_pending_orders": 100 })).await;
    for _ in 0..26 {
        shop.guest_order("ann@example.com").await;
    }
    let first = shop.send(claim("ann")).await;
    assert_eq!((ids(&first).len(), &first.body["remaining"]), (25, &json!(true)));
    let rest = shop.send(claim("ann")).await;
    assert_eq!((ids(&rest).len(), &rest.body["remaining"]), (1, &json!(false)));
    assert_eq!(shop.open_orders().await.len(), 26);
}

#[tokio::test]
async fn an_archived_order_stays_with_the_guest() {
    let shop = shop().await;
    let (archived, other) = (shop.guest_order("ann@example.com").await, shop.guest_order("ann@example.com").await);
    shop.expect(200, moved(&archived, "cancelled")).await;
    let mut placed = shop.placed(&archived).await;
    placed.addresses = shop.own().get(&addresses::get(&placed.head).unwrap()).await.unwrap();
    let (expires_at, now) = (Instant::now().plus_seconds(600), Instant::now());
    for transaction in order::retire(&placed, expires_at, now).unwrap() {
        shop.transact(&transaction).await;
    }
    let answer = shop.send(claim("ann")).await;
    assert_eq!((ids(&answer), &answer.body["remaining"]), (vec![other["id"].as_str().unwrap()], &json!(false)));
    let read = shop.expect(200, with_token(READ, &archived)).await;
    assert_eq!((&read["customer_id"], &read["guest"]), (&archived["customer_id"], &archived["guest"]));
}

/// The retirement of an order has begun, and its copy has no time to live yet.
#[tokio::test]
async fn an_order_whose_archiving_has_begun_is_not_claimed() {
    let shop = shop().await;
    let placed = shop.guest_order("ann@example.com").await;
    shop.expect(200, moved(&placed, "cancelled")).await;
    let mut head: Stored<_> = shop.head(&placed).await;
    head.data.expires_at = Some(Instant::now().plus_seconds(600));
    shop.put(&head).await;
    assert_eq!(shop.claimed().await, 0);
    assert_eq!(shop.head(&placed).await.customer_id, guest("ann@example.com"));
}
