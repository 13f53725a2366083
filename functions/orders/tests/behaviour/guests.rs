//! Tests of the orders of guests: the checkout of a guest cart, the token of an order, and the
//! limits of an email address.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::{join, join_all};
use http_api::sample::{Answered, Call};
use key_schema::cart::CartLine;
use key_schema::customer::Tier;
use key_schema::guest_cart::{self, CartToken, GuestCart, MAX_LINES};
use key_schema::id::{CustomerId, GuestCartId, ProductId};
use key_schema::instant::Instant;
use key_schema::order::guest::OrderToken;
use key_schema::order::open;
use key_schema::promotion::{Conditions, Promotion};
use key_schema::quota::Quota;
use serde_json::{Value, json};

use crate::payments::{Till, intent};
use crate::promotions::{discounts, named, ten};
use crate::quote::{address, usd};
use crate::shop::{Shop, checkout, errors, money, moved, order, reasons, stored};

const QUOTE: &str = "POST /v1/carts/{id}/quote";
const CHECKOUT: &str = "POST /v1/carts/{id}/checkout";
const READ: &str = "GET /v1/guest/orders/{id}";
const MOVE: &str = "POST /v1/guest/orders/{id}/status";
const PAYMENTS: &str = "GET /v1/guest/orders/{id}/payments";
const PAY: &str = "POST /v1/guest/orders/{id}/payments";

/// A guest's cart with its token.
#[derive(Debug, Clone)]
pub struct Cart {
    pub id: String,
    pub token: String,
}

impl Cart {
    pub fn call(&self, route: &'static str) -> Call {
        Call::new(route).path("id", &self.id).header("cart-token", &self.token)
    }

    /// Builds the checkout of a guest with this address and the name Gil.
    pub fn check_out(&self, email: &str) -> Call {
        self.check_out_with(email, &json!({}))
    }

    /// Builds a checkout with these further fields.
    pub fn check_out_with(&self, email: &str, more: &Value) -> Call {
        let mut body = json!({ "email": email, "name": "Gil" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.call(CHECKOUT).json(&body)
    }

    fn quote(&self, body: &Value) -> Call {
        self.call(QUOTE).json(body)
    }
}

impl Shop {
    /// Stores a guest cart with these lines, in this sequence.
    pub async fn guest_cart(&self, lines: &[(&str, u64)]) -> Cart {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let cart = Cart { id: format!("cart-{number}"), token: format!("{number:064x}") };
        self.store_guest_cart(&cart, lines, 3_600).await;
        cart
    }

    async fn store_guest_cart(&self, cart: &Cart, lines: &[(&str, u64)], seconds: i64) {
        let now = Instant::now();
        let line = |(at, (product, quantity)): (i64, &(&str, u64))| {
            (ProductId::new(*product).unwrap(), CartLine { quantity: *quantity, added_at: now.plus_seconds(at) })
        };
        self.put(&stored(GuestCart {
            id: GuestCartId::new(cart.id.as_str()).unwrap(),
            token_hash: CartToken::given(&cart.token).hash(),
            expires_at: now.plus_seconds(seconds),
            lines: (0_i64..).zip(lines).map(line).collect::<BTreeMap<_, _>>(),
            claim: None,
        }))
        .await;
    }

    async fn has_guest_cart(&self, cart: &Cart) -> bool {
        let id = GuestCartId::new(cart.id.as_str()).unwrap();
        self.own().get(&guest_cart::get(&id).unwrap()).await.unwrap().is_some()
    }

    /// Places an order of a guest for one piece of tea.
    pub async fn guest_order(&self, email: &str) -> Value {
        let cart = self.guest_cart(&[("tea", 1)]).await;
        self.expect(201, cart.check_out(email)).await
    }

    /// Returns the ids of a customer's or a guest's open orders.
    pub async fn open_of(&self, customer: &CustomerId) -> Vec<String> {
        let open = self.own().get(&open::get(customer).unwrap()).await.unwrap();
        open.map(|open| open.entries.keys().map(ToString::to_string).collect()).unwrap_or_default()
    }

    /// Reads an order as staff.
    pub async fn by_staff(&self, order: &Value) -> Value {
        self.expect(200, about("GET /v1/orders/{id}", order).staff("sam")).await
    }
}

/// Returns the id of the guests with this address.
pub fn guest(email: &str) -> CustomerId {
    CustomerId::guest(&email.parse().unwrap())
}

fn about(route: &'static str, order: &Value) -> Call {
    Call::new(route).path("id", order["id"].as_str().unwrap())
}

/// Builds a request about an order with the token of its checkout.
pub fn with_token(route: &'static str, order: &Value) -> Call {
    about(route, order).header("order-token", order["order_token"].as_str().unwrap())
}

/// Builds a guest's request that cancels an order of this version.
fn cancel(order: &Value, version: u64) -> Call {
    with_token(MOVE, order).header("if-match", &format!("\"{version}\"")).json(&json!({ "to": "cancelled" }))
}

fn refused(answer: &Answered) -> (u16, &str) {
    (answer.status, answer.code().unwrap_or_default())
}

/// Opens a shop with 100 pieces of tea for a dollar.
pub async fn shop() -> Shop {
    let shop = Shop::open().await;
    shop.product("tea", 100).await;
    shop
}

#[tokio::test]
async fn a_guest_orders_the_contents_of_a_cart_and_gets_a_token_that_opens_the_order() {
    let shop = shop().await;
    shop.product("rice", 10).await;
    let cart = shop.guest_cart(&[("tea", 2), ("rice", 1)]).await;
    let quote = shop.expect(200, cart.quote(&json!({}))).await;
    assert_eq!((&quote["totals"]["total"], shop.stock("tea").await), (&usd(300), 100));
    let more = json!({ "quote_id": quote["id"], "expected_total": usd(300) });
    let placed = shop.send(cart.check_out_with("Gil@Example.com", &more)).await;
    assert_eq!((placed.status, placed.version()), (201, Some(1)), "{}", placed.body);
    let order = &placed.body;
    let path = format!("/v1/guest/orders/{}", order["id"].as_str().unwrap());
    assert_eq!(placed.header("location"), Some(path.as_str()));
    assert_eq!(
        (&order["status"], &order["total"], order["lines"].as_array().unwrap().len()),
        (&json!("pending"), &usd(300), 2)
    );
    assert_eq!(order["guest"], json!({ "email": "Gil@Example.com", "name": "Gil" }));
    let id = order["customer_id"].as_str().unwrap();
    assert!(id.starts_with("guest:") && !id.contains("gil"), "{id}");
    assert_eq!(order["order_token"].as_str().unwrap().len(), 64);
    assert!(order["lapses_at"].is_string() && shop.head(order).await.by_customer, "{order}");
    assert!(!shop.has_guest_cart(&cart).await);
    assert_eq!((shop.stock("tea").await, shop.stock("rice").await), (98, 9));
    assert_eq!(shop.open_of(&guest("gil@example.com")).await, [order["id"].as_str().unwrap()]);

    let read = shop.send(with_token(READ, order)).await;
    let mut expected = order.clone();
    expected.as_object_mut().unwrap().remove("order_token");
    assert_eq!((read.status, read.version(), &read.body), (200, Some(1), &expected));
    assert_eq!(read.body["history"][0]["by"], order["customer_id"]);
    assert_eq!(shop.by_staff(order).await, expected);
}

#[tokio::test]
async fn a_guest_orders_the_largest_cart() {
    let shop = shop().await;
    let products: Vec<String> = (0..MAX_LINES).map(|number| format!("p{number:02}")).collect();
    for product in &products {
        shop.product(product, 5).await;
    }
    let lines: Vec<_> = products.iter().map(|product| (product.as_str(), 2)).collect();
    let cart = shop.guest_cart(&lines).await;
    let more = json!({ "shipping_address": address("CH") });
    let placed = shop.expect(201, cart.check_out_with("gil@example.com", &more)).await;
    assert_eq!((placed["lines"].as_array().unwrap().len(), shop.has_guest_cart(&cart).await), (MAX_LINES, false));
    let read = shop.expect(200, with_token(READ, &placed)).await;
    assert_eq!((&read["guest"], &read["shipping_address"]), (&placed["guest"], &address("CH")));
    let again = shop.send(cart.check_out_with("gil@example.com", &more)).await;
    assert_eq!((again.status, &again.body), (201, &placed));
    shop.expect(200, cancel(&placed, 1)).await;
    assert_eq!((shop.stock("p00").await, shop.stock("p29").await), (5, 5));
    assert!(shop.open_of(&guest("gil@example.com")).await.is_empty());

    let cart = shop.guest_cart(&[&lines[1..], &[("tea", 101)]].concat()).await;
    let short = shop.send(cart.check_out("gil@example.com")).await;
    assert_eq!((refused(&short), short.pointers()), ((409, "insufficient_stock"), vec!["/items/29/quantity"]));
    assert!(!short.body.to_string().contains("only"), "only staff see the exact stock: {}", short.body);
    assert!(shop.has_guest_cart(&cart).await && shop.open_of(&guest("gil@example.com")).await.is_empty());
    assert_eq!((shop.stock("p00").await, shop.stock("tea").await), (5, 100));
}

#[tokio::test]
async fn a_wrong_or_missing_token_of_a_cart_gets_404_and_changes_nothing() {
    let shop = shop().await;
    let (cart, other) = (shop.guest_cart(&[("tea", 1)]).await, shop.guest_cart(&[("tea", 1)]).await);
    let before = shop.items("").await;
    let body = json!({ "email": "gil@example.com", "name": "Gil" });
    let long = "a".repeat(201);
    for route in [QUOTE, CHECKOUT] {
        let call = |id: &str| Call::new(route).path("id", id).json(&body);
        for call in [
            call(&cart.id),
            call(&cart.id).header("cart-token", ""),
            call(&cart.id).header("cart-token", &other.token),
            call(&cart.id).header("cart-token", &CartToken::given(&cart.token).hash()),
            call(&cart.id).header("cart-token", &long),
            call(&cart.id).header("order-token", &cart.token),
            call("no-cart").header("cart-token", &cart.token),
            call(&cart.id).header("cart-token", &other.token).header("idempotency-key", "k"),
        ] {
            assert_eq!(shop.refusal(call).await, (404, "not_found".to_owned()), "{route}");
        }
    }
    assert_eq!(shop.items("").await, before);

    let expired = shop.guest_cart(&[("tea", 1)]).await;
    shop.store_guest_cart(&expired, &[("tea", 1)], -1).await;
    assert_eq!(shop.refusal(expired.quote(&json!({}))).await, (404, "not_found".to_owned()));
    assert_eq!(shop.refusal(expired.check_out("gil@example.com")).await, (404, "not_found".to_owned()));
    assert_eq!(shop.stock("tea").await, 100);
}

#[tokio::test]
async fn an_empty_cart_and_a_wrong_address_or_name_are_refused() {
    let shop = shop().await;
    let empty = shop.guest_cart(&[]).await;
    assert_eq!(shop.refusal(empty.quote(&json!({}))).await, (422, "cart_empty".to_owned()));
    assert_eq!(shop.refusal(empty.check_out("gil@example.com")).await, (422, "cart_empty".to_owned()));
    let cart = shop.guest_cart(&[("tea", 1)]).await;
    for (body, pointer) in [
        (json!({ "email": "gil", "name": "Gil" }), "/email"),
        (json!({ "email": null, "name": "Gil" }), "/email"),
        (json!({ "name": "Gil" }), "/email"),
        (json!({ "email": "gil@example.com" }), "/name"),
        (json!({ "email": "gil@example.com", "name": "" }), "/name"),
        (json!({ "email": "gil@example.com", "name": "Gil", "customer_id": "ann" }), "/customer_id"),
        (json!({ "email": "gil@example.com", "name": "Gil", "shipping_address": "home" }), "/shipping_address"),
        (json!({ "email": "gil@example.com", "name": "Gil", "billing_address": address("CH") }), "/shipping_address"),
    ] {
        let answer = shop.send(cart.call(CHECKOUT).json(&body)).await;
        assert_eq!((answer.status, answer.pointers()), (422, vec![pointer]), "{body}: {}", answer.body);
    }
    for (body, pointer) in [
        (json!({ "email": "gil" }), "/email"),
        (json!({ "name": "" }), "/name"),
        (json!({ "shipping_address": "home" }), "/shipping_address"),
    ] {
        let answer = shop.send(cart.quote(&body)).await;
        assert_eq!((answer.status, answer.pointers()), (422, vec![pointer]), "{body}: {}", answer.body);
    }
    assert!(shop.has_guest_cart(&cart).await && shop.stock("tea").await == 100);
}

#[tokio::test]
async fn a_quote_is_valid_only_for_its_cart() {
    let shop = shop().await;
    let (cart, other) = (shop.guest_cart(&[("tea", 1)]).await, shop.guest_cart(&[("tea", 1)]).await);
    shop.fill_cart(&[("tea", 1)]).await;
    let quote = shop.expect(200, cart.quote(&json!({}))).await;
    let of_ann = shop.quoted(&json!({})).await.body;
    let with = |quote: &Value| json!({ "quote_id": quote["id"] });
    let refusals = [
        shop.send(other.check_out_with("gil@example.com", &with(&quote))).await,
        shop.send(checkout().json(&with(&quote))).await,
        shop.send(cart.check_out_with("gil@example.com", &with(&of_ann))).await,
    ];
    for answer in &refusals {
        assert_eq!(refused(answer), (409, "quote_expired"), "{}", answer.body);
    }
    for field in ["shipping_address", "billing_address"] {
        let both = json!({ "quote_id": quote["id"], field: address("CH") });
        let both = shop.send(cart.check_out_with("gil@example.com", &both)).await;
        assert_eq!((both.status, both.pointers()), (422, vec!["/quote_id"]), "{}", both.body);
    }
    assert_eq!(shop.stock("tea").await, 100);
    // The quote does not depend on the address.
    shop.expect(201, cart.check_out_with("other@example.com", &with(&quote))).await;
    assert_eq!(shop.check_out(&with(&of_ann)).await.status, 201);
}

#[tokio::test]
async fn with_pricing_rules_a_guest_needs_a_quote_and_pays_shipping_and_tax() {
    let shop = Shop::open().await;
    shop.add_zone().await;
    shop.add_tax("all", "standard", 100_000, false).await;
    shop.sell_with("tea", 1000, |_| {}).await;
    let cart = shop.guest_cart(&[("tea", 2)]).await;
    let plain = shop.send(cart.check_out_with("gil@example.com", &json!({ "shipping_address": address("CH") }))).await;
    assert_eq!(refused(&plain), (409, "quote_required"), "{}", plain.body);
    let missing = shop.send(cart.quote(&json!({}))).await;
    assert_eq!((missing.status, missing.pointers()), (422, vec!["/shipping_address"]));
    let quote = shop.expect(200, cart.quote(&json!({ "shipping_address": address("CH") }))).await;
    let with = json!({ "quote_id": quote["id"] });
    shop.sell_with("rice", 100, |_| {}).await;
    shop.store_guest_cart(&cart, &[("tea", 2), ("rice", 1)], 3_600).await;
    let changed = shop.send(cart.check_out_with("gil@example.com", &with)).await;
    assert_eq!(refused(&changed), (409, "quote_changed"), "{}", changed.body);
    shop.store_guest_cart(&cart, &[("tea", 2)], 3_600).await;
    let placed = shop.expect(201, cart.check_out_with("gil@example.com", &with)).await;
    assert_eq!((&placed["total"], &placed["totals"]), (&usd(2750), &quote["totals"]));
    let read = shop.expect(200, with_token(READ, &placed)).await;
    assert_eq!((&read["shipping_address"], &read["shipping_method"]["id"]), (&address("CH"), &json!("post")));
}

#[tokio::test]
async fn a_shop_that_requires_an_address_requires_it_of_guests() {
    let shop = shop().await;
    shop.limit(&json!({ "shipping_address_required": true })).await;
    let cart = shop.guest_cart(&[("tea", 1)]).await;
    let missing = shop.send(cart.check_out("gil@example.com")).await;
    assert_eq!((missing.status, missing.pointers()), (422, vec!["/shipping_address"]), "{}", missing.body);
    let more = json!({ "shipping_address": address("CH"), "billing_address": address("DE") });
    let placed = shop.expect(201, cart.check_out_with("gil@example.com", &more)).await;
    assert_eq!((&placed["shipping_address"], &placed["billing_address"]), (&address("CH"), &address("DE")));
}

#[tokio::test]
async fn a_repeated_checkout_returns_the_order_and_its_token_again() {
    for key in [None, Some("k")] {
        let shop = shop().await;
        let (cart, other) = (shop.guest_cart(&[("tea", 1)]).await, shop.guest_cart(&[("tea", 1)]).await);
        let keyed = |call: Call| key.iter().fold(call, |call, key| call.header("idempotency-key", key));
        let first = shop.send(keyed(cart.check_out("gil@example.com"))).await;
        assert_eq!((first.status, first.header("idempotency-replayed")), (201, None), "{}", first.body);
        // A payment and a change of the price do not change the response.
        shop.reprice("tea", money(125)).await;
        shop.expect(200, moved(&first.body, "paid")).await;
        let again = shop.send(keyed(cart.check_out("gil@example.com"))).await;
        assert_eq!((again.status, again.header("idempotency-replayed")), (201, Some("true")), "{}", again.body);
        assert_eq!((&again.body, again.header("location")), (&first.body, first.header("location")));
        assert!(again.body["order_token"].is_string());

        let reused = shop.send(keyed(cart.check_out("other@example.com"))).await;
        assert_eq!(refused(&reused), (422, "idempotency_key_reused"), "{}", reused.body);
        // Somebody else may know the id of the cart and guess the body, but not the token.
        for token in [&other.token, "wrong", first.body["order_token"].as_str().unwrap()] {
            for email in ["gil@example.com", "other@example.com"] {
                let call = keyed(Cart { token: token.to_owned(), ..cart.clone() }.check_out(email));
                let wrong = shop.send(call).await;
                assert_eq!(refused(&wrong), (404, "not_found"), "{email}: {}", wrong.body);
                assert!(!wrong.body.to_string().contains(first.body["id"].as_str().unwrap()), "{}", wrong.body);
            }
        }
        assert_eq!(shop.stock("tea").await, 99);
        // The same key and body for another cart is another order.
        let second = shop.send(keyed(other.check_out("gil@example.com"))).await;
        assert_eq!(second.status, 201, "{}", second.body);
        assert!(second.body["id"] != first.body["id"] && second.body["order_token"] != first.body["order_token"]);
    }
}

/// The first attempt may have used up what the second attempt would be refused for.
#[tokio::test]
async fn a_repeated_checkout_gets_its_order_although_it_would_be_refused_now() {
    let shop = Shop::open().await;
    shop.product("tea", 1).await;
    shop.limit(&json!({ "max_pending_orders": 1, "max_orders_per_day": 1 })).await;
    let cart = shop.guest_cart(&[("tea", 1)]).await;
    let first = shop.expect(201, cart.check_out("gil@example.com")).await;
    // The cart was not removed for the eyes of the second attempt, which reads it before.
    shop.store_guest_cart(&cart, &[("tea", 1)], 3_600).await;
    let again = shop.send(cart.check_out("gil@example.com")).await;
    assert_eq!((again.status, &again.body), (201, &first), "{}", again.body);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let reused = shop.send(cart.check_out("other@example.com")).await;
    assert_eq!(reused.code(), Some("idempotency_key_reused"), "{}", reused.body);
    assert_eq!((shop.stock("tea").await, shop.items("ORDER#").await.len()), (0, 3));
}

#[tokio::test]
async fn concurrent_checkouts_of_a_cart_place_one_order() {
    let shop = shop().await;
    let cart = shop.guest_cart(&[("tea", 1)]).await;
    let answers = join_all((0..4).map(|_| shop.settled(cart.check_out("gil@example.com")))).await;
    for answer in &answers {
        assert_eq!((answer.status, &answer.body), (201, &answers[0].body), "{}", answer.body);
    }
    let replayed = answers.iter().filter(|answer| answer.header("idempotency-replayed").is_some()).count();
    assert_eq!((replayed, shop.stock("tea").await), (3, 99));

    let cart = shop.guest_cart(&[("tea", 1)]).await;
    let keyed = cart.check_out("gil@example.com").header("idempotency-key", "k");
    let (one, two) = join(shop.settled(cart.check_out("gil@example.com")), shop.settled(keyed)).await;
    let [placed, other] = if one.status == 201 { [one, two] } else { [two, one] };
    assert_eq!((placed.status, shop.stock("tea").await), (201, 98), "{}", placed.body);
    assert!([(409, "conflict"), (404, "not_found")].contains(&refused(&other)), "{}", other.body);
}

#[tokio::test]
async fn only_the_token_of_an_order_opens_its_routes() {
    let till = Till::open().await;
    till.product("rice", 10).await;
    let (order, other) = (till.guest_order("gil@example.com").await, till.guest_order("gil@example.com").await);
    let stored = till.head(&order).await.token_hash.clone().unwrap();
    let (token, of_other) = (order["order_token"].as_str().unwrap(), other["order_token"].as_str().unwrap());
    assert!(token != of_other && stored != token);
    let before = till.items("").await;
    for (route, body) in [
        (READ, Value::Null),
        (PAYMENTS, Value::Null),
        (PAY, json!({ "method": "card" })),
        (MOVE, json!({ "to": "cancelled" })),
    ] {
        let call = || {
            let call = about(route, &order).header("if-match", "\"1\"");
            if body.is_null() { call } else { call.json(&body) }
        };
        for call in [
            call(),
            call().header("order-token", ""),
            call().header("order-token", of_other),
            call().header("order-token", &stored),
            call().header("order-token", &token.to_uppercase()),
            call().header("cart-token", token),
            call().customer("ann"),
            call().staff("sam"),
        ] {
            assert_eq!(till.refusal(call).await, (404, "not_found".to_owned()), "{route} {body}");
        }
        let unknown = json!({ "id": "019aa136-7c00-7aaa-8bbb-000000000201", "order_token": token });
        let missing = with_token(route, &unknown).header("if-match", "\"1\"");
        let missing = if body.is_null() { missing } else { missing.json(&body) };
        assert_eq!(till.refusal(missing).await, (404, "not_found".to_owned()), "{route}");
    }
    assert_eq!(till.items("").await, before, "a refused request writes nothing");
    assert!(till.server.accounts().is_empty());
    // The routes of customers take no token of an order.
    for route in ["GET /v1/orders/{id}", "GET /v1/orders/{id}/payments", "GET /v1/orders/{id}/lines"] {
        let anonymous = till.refusal(with_token(route, &order)).await;
        assert_eq!(anonymous, (401, "unauthenticated".to_owned()), "{route}");
        let customer = till.refusal(with_token(route, &order).customer("ann")).await;
        assert_eq!(customer, (404, "not_found".to_owned()), "{route}");
        till.ok(about(route, &order).staff("sam")).await;
    }
    let text = format!("{:?}", till.items("").await);
    assert!(text.contains(&stored) && !text.contains(token) && !text.contains(of_other));
}

#[tokio::test]
async fn an_order_of_a_customer_has_no_token() {
    let shop = shop().await;
    let placed = shop.expect(201, order(&[("tea", 1)], "k")).await;
    assert_eq!((placed.get("order_token"), placed.get("guest")), (None, None));
    let id = placed["id"].as_str().unwrap().parse().unwrap();
    for token in ["", "null", OrderToken::of(&CartToken::given(""), &id).as_str()] {
        let call = about(READ, &placed).header("order-token", token);
        assert_eq!(shop.refusal(call).await, (404, "not_found".to_owned()), "{token}");
    }
}

#[tokio::test]
async fn a_guest_pays_by_card_and_sees_the_payment() {
    let till = Till::open().await;
    let order = till.guest_order("gil@example.com").await;
    let card = || with_token(PAY, &order).json(&json!({ "method": "card" }));
    let begun = till.send(card().header("idempotency-key", "p")).await;
    let path = format!("/v1/guest/orders/{}/payments", order["id"].as_str().unwrap());
    assert_eq!((begun.status, begun.header("location")), (201, Some(path.as_str())), "{}", begun.body);
    let again = till.send(card().header("idempotency-key", "p")).await;
    assert_eq!((again.status, again.header("idempotency-replayed")), (201, Some("true")), "{}", again.body);
    assert_eq!((&again.body, again.header("location")), (&begun.body, Some(path.as_str())));
    let reused = with_token(PAY, &order).header("idempotency-key", "p");
    let reused = till.refusal(reused.json(&json!({ "method": "card", "amount": usd(1) }))).await;
    assert_eq!(reused, (422, "idempotency_key_reused".to_owned()));
    till.server.confirm(&intent(&begun.body), None).unwrap();
    let paid = till.expect(200, card()).await;
    assert_eq!(
        (&paid["id"], &paid["status"], &paid["by"]),
        (&begun.body["id"], &json!("captured"), &order["customer_id"])
    );
    let read = till.expect(200, with_token(READ, &order)).await;
    assert_eq!((&read["status"], &read["payments"]), (&json!("paid"), &json!([paid])));
    let list = till.send(with_token(PAYMENTS, &order)).await;
    assert_eq!((list.status, &list.body["items"][0]["id"]), (200, &paid["id"]), "{}", list.body);
    assert_eq!(list.body["items"].as_array().unwrap().len(), 1);
    assert!(till.open_of(&guest("gil@example.com")).await.is_empty());
    // The key belongs to one order.
    let other = till.guest_order("gil@example.com").await;
    let begun = with_token(PAY, &other).header("idempotency-key", "p").json(&json!({ "method": "card" }));
    assert_eq!(till.send(begun).await.header("idempotency-replayed"), None);
}

#[tokio::test]
async fn a_guest_has_no_wallet_and_cannot_do_what_only_staff_may_do() {
    let shop = shop().await;
    let order = shop.guest_order("gil@example.com").await;
    for method in ["wallet", "manual"] {
        let answer = shop.send(with_token(PAY, &order).json(&json!({ "method": method }))).await;
        assert_eq!((answer.status, answer.pointers()), (422, vec!["/method"]), "{}", answer.body);
    }
    for (body, pointer) in [
        (json!({ "to": "paid" }), "/to"),
        (json!({ "to": "picking" }), "/to"),
        (json!({ "to": "shipped" }), "/to"),
        (json!({ "to": "returned" }), "/to"),
        (json!({ "to": "cancelled", "pay_from_wallet": true }), "/pay_from_wallet"),
        (json!({ "to": "cancelled", "refund": usd(1) }), "/refund"),
        (json!({ "to": "cancelled", "message": "Sorry" }), "/message"),
    ] {
        let answer = shop.send(with_token(MOVE, &order).header("if-match", "\"1\"").json(&body)).await;
        assert_eq!((answer.status, answer.pointers()), (422, vec![pointer]), "{body}: {}", answer.body);
    }
    // Staff cannot pay from a wallet that does not exist, either.
    let call = about("POST /v1/orders/{id}/status", &order).staff("sam").header("if-match", "\"1\"");
    let answer = shop.send(call.json(&json!({ "to": "paid", "pay_from_wallet": true }))).await;
    assert_eq!(refused(&answer), (409, "insufficient_funds"), "{}", answer.body);
    let staff = about("POST /v1/orders/{id}/payments", &order).staff("sam").json(&json!({ "method": "wallet" }));
    assert_eq!(shop.refusal(staff).await, (409, "insufficient_funds".to_owned()));
    assert_eq!(shop.by_staff(&order).await["version"], 1);
}

#[tokio::test]
async fn a_guest_cancels_an_order_that_is_not_in_picking() {
    let shop = shop().await;
    let order = shop.guest_order("gil@example.com").await;
    let without = with_token(MOVE, &order).json(&json!({ "to": "cancelled" }));
    assert_eq!(shop.send(without).await.status, 428);
    assert_eq!(shop.refusal(cancel(&order, 2)).await, (412, "version_mismatch".to_owned()));
    let body = json!({ "to": "cancelled", "note": "wrong size" });
    let cancelled = shop.send(with_token(MOVE, &order).header("if-match", "\"1\"").json(&body)).await;
    assert_eq!((cancelled.status, cancelled.version()), (200, Some(2)), "{}", cancelled.body);
    assert_eq!(cancelled.body["history"][1]["note"], "wrong size", "{}", cancelled.body);
    assert_eq!((&cancelled.body["status"], &cancelled.body["guest"]), (&json!("cancelled"), &order["guest"]));
    assert_eq!(cancelled.body["history"][1]["by"], order["customer_id"]);
    assert!(shop.open_of(&guest("gil@example.com")).await.is_empty());
    assert_eq!(shop.stock("tea").await, 100);
    assert_eq!(shop.refusal(cancel(&order, 2)).await, (409, "illegal_transition".to_owned()));

    let order = shop.guest_order("gil@example.com").await;
    let paid = shop.expect(200, moved(&order, "paid")).await;
    shop.expect(200, moved(&paid, "picking")).await;
    assert_eq!(shop.refusal(cancel(&order, 3)).await, (403, "forbidden".to_owned()));
    let invoiced = shop.guest_order("gil@example.com").await;
    shop.expect(200, moved(&invoiced, "paid")).await;
    shop.expect(201, about("POST /v1/orders/{id}/invoice", &invoiced).staff("sam")).await;
    let version = shop.by_staff(&invoiced).await["version"].as_u64().unwrap();
    assert_eq!(shop.refusal(cancel(&invoiced, version)).await, (403, "forbidden".to_owned()));
}

#[tokio::test]
async fn the_money_of_a_guests_card_goes_back_to_the_card_and_not_to_a_wallet() {
    for by_guest in [true, false] {
        let till = Till::open().await;
        let order = till.guest_order("gil@example.com").await;
        let card = || with_token(PAY, &order).json(&json!({ "method": "card" }));
        let intent = intent(&till.expect(201, card()).await);
        till.server.confirm(&intent, None).unwrap();
        till.expect(200, card()).await;
        let refund = about("POST /v1/orders/{id}/refunds", &order).staff("sam").header("idempotency-key", "r");
        let refund = till.refusal(refund.json(&json!({ "amount": usd(100) }))).await;
        assert_eq!(refund, (409, "illegal_transition".to_owned()));
        let paid = till.by_staff(&order).await;
        let version = paid["version"].as_u64().unwrap();
        let call = if by_guest { cancel(&order, version) } else { moved(&paid, "cancelled") };
        let cancelled = till.expect(200, call).await;
        assert_eq!((&cancelled["status"], &cancelled["refunded"]), (&json!("cancelled"), &usd(500)));
        assert_eq!((till.books(&intent).captured, till.books(&intent).refunded), (500, 500));
        let keys = till.keys("").await;
        assert!(!keys.iter().any(|(pk, _)| pk.contains("WALLET")), "{keys:?}");
    }
}

/// Staff reported the money, so only staff can give it back, and not to a wallet.
#[tokio::test]
async fn the_money_that_staff_received_from_a_guest_is_not_refunded_to_a_wallet() {
    let shop = shop().await;
    let order = shop.guest_order("gil@example.com").await;
    let paid = shop.expect(200, moved(&order, "paid")).await;
    let refund = about("POST /v1/orders/{id}/refunds", &order).staff("sam").header("idempotency-key", "r");
    let refund = shop.refusal(refund.json(&json!({ "amount": usd(100) }))).await;
    assert_eq!(refund, (409, "illegal_transition".to_owned()));
    let version = format!("\"{}\"", paid["version"]);
    let with_refund = about("POST /v1/orders/{id}/status", &order).staff("sam").header("if-match", &version);
    let with_refund = with_refund.json(&json!({ "to": "cancelled", "refund": usd(100) }));
    assert_eq!(shop.refusal(with_refund).await, (409, "illegal_transition".to_owned()));
    let cancelled = shop.expect(200, moved(&paid, "cancelled")).await;
    assert_eq!((cancelled.get("refunded"), shop.stock("tea").await), (None, 100));
    assert!(!format!("{:?}", shop.keys("").await).contains("WALLET"));
}

#[tokio::test]
async fn a_guest_gets_no_notes_and_no_ids_of_staff() {
    let shop = shop().await;
    let order = shop.guest_order("gil@example.com").await;
    let call = about("POST /v1/orders/{id}/payments", &order).staff("sam");
    shop.expect(201, call.json(&json!({ "method": "manual" }))).await;
    let body = json!({ "to": "picking", "note": "shelf 7", "message": "Soon" });
    let call = about("POST /v1/orders/{id}/status", &order).staff("sam").header("if-match", "\"2\"");
    shop.expect(200, call.json(&body)).await;
    let read = shop.expect(200, with_token(READ, &order)).await;
    let payments = shop.expect(200, with_token(PAYMENTS, &order)).await;
    for seen in [&read, &payments] {
        assert!(!seen.to_string().contains("sam") && !seen.to_string().contains("shelf"), "{seen}");
    }
    assert_eq!((&read["history"][2]["status"], &read["history"][2]["message"]), (&json!("picking"), &json!("Soon")));
    assert_eq!(payments["items"].as_array().unwrap().len(), 1);
    let staffs = shop.by_staff(&order).await;
    assert_eq!((&staffs["history"][2]["note"], &staffs["guest"]), (&json!("shelf 7"), &order["guest"]));
}

#[tokio::test]
async fn the_limits_of_unpaid_orders_apply_to_an_address_in_any_spelling() {
    let shop = shop().await;
    shop.limit(&json!({ "max_pending_orders": 2, "max_pending_quantity": 5 })).await;
    let first = shop.guest_order("gil@example.com").await;
    let cart = shop.guest_cart(&[("tea", 5)]).await;
    let over = shop.send(cart.check_out("GIL@example.COM")).await;
    assert_eq!((refused(&over), reasons(&over)), ((409, "quantity_limit"), vec!["quantity_limit"]), "{}", over.body);
    assert_eq!(errors(&over)[0].0, "/items/0/quantity");
    assert!(shop.has_guest_cart(&cart).await);
    shop.guest_order("Gil@Example.com").await;
    let third = shop.guest_cart(&[("tea", 1)]).await;
    let over = shop.send(third.check_out("gil@EXAMPLE.com")).await;
    assert_eq!(refused(&over), (409, "too_many_pending_orders"), "{}", over.body);
    // Other addresses and customers have their own limits, even with the same address.
    shop.guest_order("mia@example.com").await;
    shop.guest_order("ann@example.com").await;
    shop.guest_order("ann@example.com").await;
    for key in ["k1", "k2"] {
        shop.expect(201, order(&[("tea", 1)], key)).await;
    }
    assert_eq!(shop.refusal(order(&[("tea", 1)], "k3")).await.1, "too_many_pending_orders");
    shop.expect(200, cancel(&first, 1)).await;
    shop.expect(201, third.check_out("gil@EXAMPLE.com")).await;
}

#[tokio::test]
async fn an_address_places_a_limited_number_of_orders_a_day() {
    let shop = shop().await;
    shop.limit(&json!({ "max_orders_per_day": 2 })).await;
    for email in ["gil@example.com", "GIL@example.com"] {
        let order = shop.guest_order(email).await;
        shop.expect(200, cancel(&order, 1)).await;
    }
    let cart = shop.guest_cart(&[("tea", 1)]).await;
    let over = shop.send(cart.check_out("Gil@example.com")).await;
    assert_eq!(refused(&over), (429, "quota_exceeded"), "{}", over.body);
    assert!(over.header("retry-after").is_some() && shop.has_guest_cart(&cart).await);
    shop.expect(201, cart.check_out("mia@example.com")).await;
    shop.expect(201, order(&[("tea", 1)], "k")).await;
}

#[tokio::test]
async fn the_bounds_of_an_address_hold_for_concurrent_checkouts() {
    let shop = shop().await;
    shop.limit(&json!({ "max_pending_orders": 3 })).await;
    let mut carts = Vec::new();
    for _ in 0..8 {
        carts.push(shop.guest_cart(&[("tea", 1)]).await);
    }
    let answers = join_all(carts.iter().map(|cart| shop.settled(cart.check_out("gil@example.com")))).await;
    let placed = answers.iter().filter(|answer| answer.status == 201).count();
    let over = answers.iter().filter(|answer| answer.code() == Some("too_many_pending_orders")).count();
    assert_eq!((placed, over, shop.stock("tea").await), (3, 5, 97));
}

#[tokio::test]
async fn a_setting_disables_the_orders_of_guests_but_not_those_that_were_placed() {
    let shop = shop().await;
    let (first, cart) = (shop.guest_cart(&[("tea", 1)]).await, shop.guest_cart(&[("tea", 1)]).await);
    let placed = shop.expect(201, first.check_out("gil@example.com")).await;
    shop.limit(&json!({ "guest_orders": false })).await;
    shop.wait(30);
    for call in [cart.quote(&json!({})), cart.check_out("gil@example.com")] {
        assert_eq!(shop.refusal(call).await, (403, "guest_orders_disabled".to_owned()));
    }
    assert!(shop.has_guest_cart(&cart).await);
    assert_eq!(shop.expect(201, first.check_out("gil@example.com")).await, placed, "a repeated request");
    shop.expect(201, order(&[("tea", 1)], "k")).await;
    shop.expect(200, with_token(READ, &placed)).await;
    shop.expect(200, cancel(&placed, 1)).await;
}

#[tokio::test]
async fn the_unknown_codes_of_all_guests_count_together() {
    let shop = shop().await;
    shop.promote(ten()).await;
    shop.use_up(&CustomerId::guests(), Quota::GuestCodes, 2).await;
    let guess = async |codes: &[&str]| {
        let cart = shop.guest_cart(&[("tea", 1)]).await;
        shop.send(cart.quote(&json!({ "codes": codes }))).await
    };
    let unknown = guess(&["NO"]).await;
    assert_eq!((refused(&unknown), unknown.pointers()), ((409, "promotion_unknown"), vec!["/codes/0"]));
    assert_eq!(guess(&["TEN"]).await.status, 200, "a known code is not counted");
    assert_eq!(guess(&["NONE"]).await.code(), Some("promotion_unknown"));
    // From now on, a guest does not learn which codes exist.
    for code in ["NO", "TEN"] {
        let over = guess(&[code]).await;
        assert_eq!(refused(&over), (429, "quota_exceeded"), "{}", over.body);
        let seconds: i64 = over.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=86_400).contains(&seconds), "{seconds}");
    }
    assert_eq!(guess(&[]).await.status, 200);
    // Customers have their own quota.
    shop.fill_cart(&[("tea", 1)]).await;
    assert_eq!(shop.with_codes(&["NO"]).await.code(), Some("promotion_unknown"));
    assert_eq!(shop.with_codes(&["TEN"]).await.status, 200);
}

#[tokio::test]
async fn promotions_that_depend_on_the_customer_need_an_account() {
    let tier = Conditions { tier: Some(Tier::Bronze), ..Conditions::default() };
    let first_order = Conditions { first_order: true, ..Conditions::default() };
    for dependent in [
        Promotion { conditions: tier, ..ten() },
        Promotion { conditions: first_order, ..ten() },
        Promotion { limit_per_customer: Some(5), ..ten() },
    ] {
        let shop = shop().await;
        shop.promote(dependent.clone()).await;
        shop.promote(Promotion { id: "auto".parse().unwrap(), code: None, ..dependent }).await;
        let cart = shop.guest_cart(&[("tea", 1)]).await;
        let answer = shop.send(cart.quote(&json!({ "codes": ["TEN"] }))).await;
        assert_eq!(refused(&answer), (409, "promotion_not_applicable"), "{}", answer.body);
        assert_eq!((answer.pointers(), reasons(&answer)), (vec!["/codes/0"], vec!["account_required"]));
        let quote = shop.expect(200, cart.quote(&json!({}))).await;
        assert_eq!((discounts(&quote), &quote["totals"]["total"]), (vec![], &usd(100)));
        let placed = cart.check_out_with("gil@example.com", &json!({ "quote_id": quote["id"] }));
        assert_eq!(shop.expect(201, placed).await["total"], usd(100));
        // A customer gets the automatic promotion.
        shop.fill_cart(&[("tea", 1)]).await;
        assert_eq!(discounts(&shop.with_codes(&[]).await.body), [("auto", 10)]);
    }
}

#[tokio::test]
async fn a_promotion_that_became_dependent_since_the_quote_is_not_granted() {
    let shop = shop().await;
    let coded = shop.promote(ten()).await;
    let cart = shop.guest_cart(&[("tea", 1)]).await;
    let quote = shop.expect(200, cart.quote(&json!({ "codes": ["TEN"] }))).await;
    let mut limited = coded.clone();
    limited.data.limit_per_customer = Some(1);
    shop.put(&limited).await;
    let answer = shop.send(cart.check_out_with("gil@example.com", &json!({ "quote_id": quote["id"] }))).await;
    assert_eq!((answer.status, reasons(&answer)), (409, vec!["account_required"]), "{}", answer.body);
    assert!(shop.has_guest_cart(&cart).await);
}

#[tokio::test]
async fn a_limited_promotion_counts_the_uses_of_guests_and_customers_together() {
    let shop = shop().await;
    shop.promote(Promotion { limit_total: Some(1), ..ten() }).await;
    shop.promote(named("auto", None)).await;
    let cart = shop.guest_cart(&[("tea", 1)]).await;
    let codes = json!({ "codes": ["ten"] });
    let quote = shop.expect(200, cart.quote(&codes)).await;
    assert_eq!(discounts(&quote), [("auto", 10), ("ten", 9)]);
    let placed = cart.check_out_with("gil@example.com", &json!({ "quote_id": quote["id"] }));
    let placed = shop.expect(201, placed).await;
    assert_eq!((&placed["total"], &placed["discounts"]), (&usd(81), &quote["discounts"]));
    let other = shop.guest_cart(&[("tea", 1)]).await;
    assert_eq!(shop.refusal(other.quote(&codes)).await.1, "promotion_used_up");
    shop.fill_cart(&[("tea", 1)]).await;
    assert_eq!(shop.with_codes(&["TEN"]).await.code(), Some("promotion_used_up"));
    shop.expect(200, cancel(&placed, 1)).await;
    assert_eq!(shop.uses("ten").await.0, 0);
    let quote = shop.expect(200, other.quote(&codes)).await;
    let again = other.check_out_with("mia@example.com", &json!({ "quote_id": quote["id"] }));
    shop.expect(201, again).await;
    assert_eq!(shop.uses("ten").await.0, 1);
}

#[tokio::test]
async fn a_caller_with_the_id_of_a_guest_is_refused() {
    let shop = shop().await;
    let placed = shop.guest_order("gil@example.com").await;
    let id = placed["customer_id"].as_str().unwrap();
    let lines = json!([{ "product_id": "tea", "quantity": 1 }]);
    let new = json!({ "customer_id": id, "lines": lines });
    for call in [
        about("GET /v1/orders/{id}", &placed),
        about("GET /v1/orders/{id}/payments", &placed),
        about("POST /v1/orders/{id}/status", &placed).header("if-match", "\"1\"").json(&json!({ "to": "cancelled" })),
        Call::new("GET /v1/customers/{id}/orders").path("id", id),
        Call::new("POST /v1/customers/{id}/orders/claim").path("id", id),
        Call::new("POST /v1/orders").header("idempotency-key", "k").json(&new),
        Call::new("POST /v1/customers/{id}/cart/checkout").path("id", "me").json(&json!({})),
    ] {
        for claims in [json!({ "sub": id }), json!({ "sub": id, "cognito:groups": "[staff]" })] {
            let answer = shop.send(call.clone().claims(claims)).await;
            assert_eq!(refused(&answer), (403, "forbidden"), "{}: {}", call.name(), answer.body);
        }
    }
    // Staff cannot order for a guest, who has no profile.
    let call = Call::new("POST /v1/orders").staff("sam").header("idempotency-key", "k").json(&new);
    assert_eq!(shop.refusal(call).await, (404, "not_found".to_owned()));
    let claim = Call::new("POST /v1/customers/{id}/orders/claim").path("id", id).staff("sam");
    assert_eq!(shop.refusal(claim).await, (404, "not_found".to_owned()));
    assert_eq!(shop.by_staff(&placed).await["version"], 1);
}
