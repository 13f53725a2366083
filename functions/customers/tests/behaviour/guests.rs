//! Tests of the data of guests, who have orders but no profile: the erasure, and the copy of the
//! data.

use fixture::seed::{self, stored};
use http_api::sample::{Answered, Call};
use key_schema::customer::{self, Customer};
use key_schema::guest_cart::CartToken;
use key_schema::id::{CustomerId, OrderId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::addresses::{self, Destination, Guest, OrderAddresses};
use key_schema::order::guest::OrderToken;
use key_schema::order::{self, Order, PlacedOrder};
use serde_json::{Value, json};

use crate::shop::{Shop, if_match, money};

fn guest(email: &str) -> CustomerId {
    CustomerId::guest(&email.parse().unwrap())
}

impl Shop {
    /// Places an order of a guest, sent to Zürich, `minute` minutes after a fixed instant.
    async fn order_of(&self, email: &str, name: &str, minute: i64) -> Stored<Order> {
        let (customer, at) = (guest(email), Instant::EPOCH.plus_seconds(1_700_000_000 + 60 * minute));
        let id = OrderId::generate(at, [8; 10]);
        let addresses = OrderAddresses {
            guest: Some(Guest { email: email.parse().unwrap(), name: name.to_owned() }),
            ..seed::order_addresses(id.as_str(), customer.as_str())
        };
        let order = Order {
            destination: addresses.shipping_address.as_ref().map(Destination::from),
            by_customer: true,
            token_hash: Some(OrderToken::of(&CartToken::given("token"), &id).hash()),
            ..Order::new(id.clone(), customer.clone(), at, money(100), 1)
        };
        let stored = |line| Stored::new(line, seed::born(), at);
        let lines = vec![stored(seed::line(&id, 1, "p0".parse().unwrap()))];
        let mut placed = PlacedOrder::new(Stored::new(order, seed::born(), at), lines, customer.as_str());
        placed.addresses = Some(Stored::new(addresses, seed::born(), at));
        self.transact(&order::place(&placed, &[]).unwrap()).await;
        placed.head
    }

    async fn has_addresses(&self, order: &Stored<Order>) -> bool {
        self.own().get(&addresses::get(order).unwrap()).await.unwrap().is_some()
    }

    async fn head(&self, order: &Stored<Order>) -> Stored<Order> {
        self.own().get(&order::head(&order.id).unwrap()).await.unwrap().unwrap()
    }
}

async fn shop() -> Shop {
    let shop = Shop::open().await;
    shop.product("p0").await;
    shop
}

fn erase(customer: &CustomerId) -> Call {
    Call::new("DELETE /v1/customers/{id}").path("id", customer.as_str()).header("if-match", "*")
}

#[tokio::test]
async fn staff_erase_a_guest_whose_orders_keep_country_and_city() {
    let shop = shop().await;
    let first = shop.order_of("Gil@example.com", "Gil", 0).await;
    let second = shop.order_of("GIL@Example.com", "Gilberte", 1).await;
    let others = shop.order_of("mia@example.com", "Mia", 2).await;
    assert!(shop.has_addresses(&first).await && shop.has_addresses(&second).await);
    let id = guest("gil@example.com");
    assert_eq!(shop.refusal(erase(&id)).await, (401, "unauthenticated".to_owned()));
    assert_eq!(shop.refusal(erase(&id).customer("bob")).await, (404, "not_found".to_owned()));
    assert_eq!(shop.refusal(erase(&id).customer(id.as_str())).await, (403, "forbidden".to_owned()));
    assert!(shop.has_addresses(&first).await);

    for _ in 0..2 {
        let erased = shop.send(erase(&id).staff("sam")).await;
        assert_eq!((erased.status, &erased.body), (204, &Value::Null), "{}", erased.body);
        assert!(!shop.has_addresses(&first).await && !shop.has_addresses(&second).await);
    }
    let text = format!("{:?}", shop.items("").await);
    for word in ["Gil", "gil@", "GIL@"] {
        assert!(!text.contains(word), "{word} is still there");
    }
    for order in [&first, &second] {
        assert_eq!(shop.head(order).await, *order, "the order itself stays");
        assert_eq!(order.destination.as_ref().unwrap().city, "Zürich");
    }
    assert!(shop.has_addresses(&others).await);
    let missing = shop.send(erase(&"nobody".parse().unwrap()).staff("sam")).await;
    assert_eq!(missing.status, 404, "only a guest has no profile");
}

#[tokio::test]
async fn the_erasure_of_a_customer_removes_the_addresses_of_the_orders_as_a_guest() {
    let shop = shop().await;
    shop.customer("ann").await;
    shop.customer("bob").await;
    let own = shop.order_of("ANN@example.com", "Ann the guest", 0).await;
    let others = shop.order_of("bob@example.com", "Bob", 1).await;
    shop.expect(204, if_match(erase(&"ann".parse().unwrap()), 1).customer("ann")).await;
    assert!(!shop.has_addresses(&own).await && shop.has_addresses(&others).await);
    assert_eq!(shop.head(&own).await, own);
    assert!(!format!("{:?}", shop.items("").await).contains("Ann the guest"));
}

/// A customer may enter anybody's address, and must not remove the name of its owner.
#[tokio::test]
async fn the_erasure_of_a_customer_with_an_unverified_address_leaves_the_guests_of_this_address() {
    let shop = shop().await;
    let unproven = Customer { email_verified: false, ..seed::customer("ann") };
    shop.transact(&customer::create(&stored(unproven)).unwrap()).await;
    let order = shop.order_of("ann@example.com", "Ann", 0).await;
    shop.expect(204, if_match(erase(&"ann".parse().unwrap()), 1).customer("ann")).await;
    assert!(shop.has_addresses(&order).await);
}

#[tokio::test]
async fn staff_read_a_copy_of_a_guests_data_without_the_hash_of_the_token() {
    let shop = shop().await;
    let order = shop.order_of("Gil@example.com", "Gil", 0).await;
    let event = order::history(&order, order::OrderStatus::Paid, Instant::now(), "sam", Some("shelf 7".to_owned()));
    shop.put(&stored(event)).await;
    shop.order_of("mia@example.com", "Mia", 1).await;
    let copy = || Call::new("GET /v1/customers/{id}/data").path("id", guest("gil@example.com").as_str());
    assert_eq!(shop.refusal(copy().customer("bob")).await.0, 404);
    let (records, _) = shop.all(&copy().staff("sam"), 1).await;
    let kinds: Vec<_> = records.iter().map(|record| record["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["orders", "order_addresses"]);
    assert_eq!(records[1]["data"]["guest"], json!({ "email": "Gil@example.com", "name": "Gil" }));
    assert_eq!(records[1]["data"]["shipping_address"]["city"], "Zürich");
    let parts = records[0]["parts"].as_array().unwrap();
    let head = parts.iter().find(|part| part["entity"] == "Order").unwrap();
    assert_eq!((&head["data"]["id"], head["data"].get("token_hash")), (&json!(order.id), None), "{head}");
    let text = json!(records).to_string();
    assert!(!text.contains(order.token_hash.as_ref().unwrap()) && !text.contains("Mia"));
    assert!(!text.contains("shelf") && !text.contains("sam"), "{text}");
    let steps = parts.iter().filter(|part| part["entity"] == "OrderStatusEvent");
    let by: Vec<_> = steps.map(|step| step["data"].get("by").cloned()).collect();
    assert_eq!(by, [Some(json!(order.customer_id)), None], "the guest placed the order, and staff moved it");
}

/// The author of a step before the claim is the guest.
#[tokio::test]
async fn the_copy_of_a_customers_data_has_the_steps_of_the_guest() {
    let shop = shop().await;
    shop.customer("ann").await;
    let order = shop.order_of("ann@example.com", "Ann", 0).await;
    let mut claimed = order.clone();
    claimed.data.customer_id = "ann".parse().unwrap();
    shop.put(&claimed).await;
    shop.put(&stored(order::CustomerOrder::of(&claimed))).await;
    let copy = Call::new("GET /v1/customers/{id}/data").path("id", "ann").customer("ann");
    let (records, _) = shop.all(&copy, 1).await;
    let order = records.iter().find(|record| record["kind"] == "orders").unwrap();
    let step = order["parts"].as_array().unwrap().iter().find(|part| part["entity"] == "OrderStatusEvent").unwrap();
    assert_eq!(step["data"]["by"], json!(guest("ann@example.com")), "{step}");
}

#[tokio::test]
async fn nobody_creates_a_profile_or_an_item_of_a_profile_for_a_guest() {
    let shop = shop().await;
    let id = guest("gil@example.com");
    let order = shop.order_of("gil@example.com", "Gil", 0).await;
    let before = shop.items("").await;
    let profile = |id: &CustomerId| json!({ "id": id, "email": "gil@example.com", "username": "gil", "name": "Gil" });
    for id in [&id, &CustomerId::guests()] {
        let new = Call::new("POST /v1/customers").json(&profile(id));
        let by_staff = shop.send(new.clone().staff("sam")).await;
        assert_eq!((by_staff.status, by_staff.pointers()), (422, vec!["/id"]), "{}", by_staff.body);
        let own = shop.send(new.customer(id.as_str())).await;
        assert_eq!((own.status, own.code()), (403, Some("forbidden")), "{}", own.body);
    }
    let home = json!({ "name": "Gil", "line1": "Am See 1", "city": "Ulm", "postal_code": "89073", "country": "DE" });
    let of = |route: &'static str| Call::new(route).path("id", id.as_str()).staff("sam").header("if-match", "\"1\"");
    let answers: Vec<Answered> = futures::future::join_all([
        shop.send(of("GET /v1/customers/{id}")),
        shop.send(of("PATCH /v1/customers/{id}").json(&json!({ "name": "Other" }))),
        shop.send(of("PUT /v1/customers/{id}/addresses/{name}").path("name", "home").json(&home)),
        shop.send(
            of("PUT /v1/customers/{id}/cart/items/{product}").path("product", "p0").json(&json!({ "quantity": 1 })),
        ),
        shop.send(of("POST /v1/customers/{id}/sessions").json(&json!({ "device": "phone" }))),
        shop.send(of("POST /v1/customers/{id}/email/verification")),
    ])
    .await;
    for answer in answers {
        assert_eq!((answer.status, answer.code()), (404, Some("not_found")), "{}", answer.body);
    }
    assert_eq!(shop.items("").await, before);
    assert!(shop.has_addresses(&order).await);
}
