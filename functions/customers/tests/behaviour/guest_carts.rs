//! Tests of guest carts and of their claims.

use std::collections::BTreeMap;

use fixture::{examples, seed};
use http_api::sample::{Answered, Call};
use key_schema::cart::{self, Cart, CartLine};
use key_schema::customer;
use key_schema::guest_cart::{self, CartToken, GuestCart, LIFETIME_SECONDS, MAX_LINES};
use key_schema::id::{CustomerId, GuestCartId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::MAX_QUANTITY;
use serde_json::{Value, json};

use crate::shop::Shop;

/// A visitor with a guest cart.
struct Visitor<'a> {
    shop: &'a Shop,
    id: String,
    token: String,
}

impl<'a> Visitor<'a> {
    async fn new(shop: &'a Shop) -> Self {
        let created = shop.send(Call::new("POST /v1/carts")).await;
        assert_eq!(created.status, 201, "{}", created.body);
        let text = |name: &str| created.body[name].as_str().unwrap().to_owned();
        Self { shop, id: text("id"), token: text("token") }
    }

    fn call(&self, route: &'static str) -> Call {
        Call::new(route).path("id", &self.id).header("cart-token", &self.token)
    }

    async fn put(&self, product: &str, quantity: u64) -> Answered {
        let put = self.call("PUT /v1/carts/{id}/items/{product}").path("product", product);
        self.shop.send(put.json(&json!({ "quantity": quantity }))).await
    }

    async fn read(&self) -> Answered {
        self.shop.send(self.call("GET /v1/carts/{id}")).await
    }

    async fn claim(&self, customer: &str) -> Answered {
        let call = Call::new("POST /v1/customers/{id}/cart/claim").path("id", customer).customer(customer);
        self.shop.send(call.json(&json!({ "cart_id": self.id, "cart_token": self.token }))).await
    }

    async fn stored(&self) -> Stored<GuestCart> {
        let id = GuestCartId::new(self.id.as_str()).unwrap();
        self.shop.own().get(&guest_cart::get(&id).unwrap()).await.unwrap().unwrap()
    }
}

async fn shop() -> Shop {
    let shop = Shop::open().await;
    for customer in ["ann", "bob"] {
        shop.customer(customer).await;
    }
    for product in ["p0", "p1"] {
        shop.product(product).await;
    }
    shop
}

fn quantities(cart: &Answered) -> Vec<(&str, u64)> {
    assert_eq!(cart.status, 200, "{}", cart.body);
    let items = cart.body["items"].as_array().unwrap();
    items.iter().map(|item| (item["product_id"].as_str().unwrap(), item["quantity"].as_u64().unwrap())).collect()
}

async fn cart_of(shop: &Shop, customer: &str) -> Answered {
    shop.send(Call::new("GET /v1/customers/{id}/cart").path("id", customer).customer(customer)).await
}

#[tokio::test]
async fn a_visitor_without_an_account_fills_and_reads_and_removes_a_cart() {
    let shop = shop().await;
    let visitor = Visitor::new(&shop).await;
    assert_eq!(visitor.read().await.body["items"], json!([]));
    let line = visitor.put("p0", 2).await;
    assert_eq!((line.status, &line.body["total"]["amount"]), (200, &json!(200)));
    assert_eq!(visitor.put("p1", 1).await.status, 200);
    let cart = visitor.read().await;
    assert_eq!(quantities(&cart), [("p0", 2), ("p1", 1)]);
    shop.put(&seed::stored(seed::stock("p1".parse().unwrap(), 1))).await;
    let two = visitor.put("p1", 2).await.body;
    assert_eq!((&two["in_stock"], &two["available"]), (&json!(true), &json!(false)));
    assert_eq!(visitor.read().await.body["items"][1]["available"], json!(false));
    assert_eq!(visitor.put("p1", 1).await.body["available"], json!(true));
    let added = |cart: &Answered| cart.body["items"][0]["added_at"].clone();
    visitor.put("p0", 2).await;
    assert_eq!(added(&visitor.read().await), added(&cart), "a repeated request changes nothing");
    assert_eq!((&cart.body["subtotal"]["amount"], &cart.body["token"]), (&json!(300), &Value::Null));
    let remove = || visitor.call("DELETE /v1/carts/{id}/items/{product}").path("product", "p0");
    for _ in 0..2 {
        assert_eq!(shop.send(remove()).await.status, 204);
    }
    assert_eq!(quantities(&visitor.read().await), [("p1", 1)]);
    for _ in 0..2 {
        assert_eq!(shop.send(visitor.call("DELETE /v1/carts/{id}")).await.status, 204);
    }
    assert_eq!((visitor.read().await.status, visitor.put("p0", 1).await.status), (404, 404));
}

#[tokio::test]
async fn a_new_guest_cart_is_empty_and_its_request_has_no_body() {
    let shop = shop().await;
    for body in [json!({"items": [{"product_id": "p0", "quantity": 1}]}), json!([]), json!("x")] {
        let refused = shop.send(Call::new("POST /v1/carts").json(&body)).await;
        assert_eq!((refused.status, refused.code()), (422, Some("invalid_body")), "{body}");
    }
    assert_eq!(shop.send(Call::new("POST /v1/carts").json(&json!({}))).await.status, 201);
}

#[tokio::test]
async fn each_change_of_a_line_prolongs_the_cart() {
    let shop = shop().await;
    let visitor = Visitor::new(&shop).await;
    let created = visitor.stored().await.expires_at;
    visitor.put("p0", 1).await;
    let before = Instant::now();
    visitor.put("p0", 2).await;
    let cart = visitor.stored().await;
    assert!(cart.expires_at >= before.plus_seconds(LIFETIME_SECONDS) && cart.expires_at > created);
}

#[tokio::test]
async fn a_cart_does_not_exist_for_a_caller_without_its_token() {
    let shop = shop().await;
    let mut visitor = Visitor::new(&shop).await;
    visitor.put("p0", 1).await;
    let (before, hash) = (visitor.stored().await, CartToken::given(&visitor.token).hash());
    assert_eq!(before.token_hash, hash);
    assert_ne!(before.token_hash, visitor.token);
    let token = std::mem::take(&mut visitor.token);
    for wrong in ["", "x", &hash, &token[1..], &token.to_uppercase()] {
        visitor.token = wrong.to_owned();
        for route in ["GET /v1/carts/{id}", "DELETE /v1/carts/{id}"] {
            assert_eq!(shop.send(visitor.call(route)).await.status, 404, "{route} with {wrong:?}");
        }
        let remove = visitor.call("DELETE /v1/carts/{id}/items/{product}").path("product", "p0");
        assert_eq!((visitor.put("p0", 9).await.status, shop.send(remove).await.status), (404, 404), "{wrong:?}");
        if !wrong.is_empty() {
            assert_eq!(visitor.claim("ann").await.status, 404, "{wrong:?}");
        }
    }
    let without = Call::new("GET /v1/carts/{id}").path("id", &visitor.id);
    assert_eq!(shop.send(without).await.status, 404);
    assert_eq!(visitor.stored().await, before);
}

#[tokio::test]
async fn a_guest_cart_has_a_limited_number_of_lines_and_only_products_of_the_catalogue() {
    let shop = Shop::open().await;
    let visitor = Visitor::new(&shop).await;
    for number in 0..=MAX_LINES {
        shop.product(&format!("p{number}")).await;
        let expected = if number < MAX_LINES { (200, None) } else { (422, Some("too_many_lines")) };
        let put = visitor.put(&format!("p{number}"), 1).await;
        assert_eq!((put.status, put.code()), expected, "line {number}");
    }
    assert_eq!(visitor.put("p0", 7).await.status, 200);
    assert_eq!(visitor.put("none", 1).await.code(), Some("unknown_product"));
}

#[tokio::test]
async fn a_claim_adds_the_lines_once_however_often_it_is_repeated() {
    let shop = shop().await;
    let visitor = Visitor::new(&shop).await;
    visitor.put("p0", 2).await;
    visitor.put("p1", 1).await;
    let put = Call::new("PUT /v1/customers/{id}/cart/items/{product}").path("id", "ann").path("product", "p1");
    shop.send(put.customer("ann").json(&json!({ "quantity": 5 }))).await;
    for _ in 0..3 {
        assert_eq!(quantities(&visitor.claim("ann").await), [("p0", 2), ("p1", 6)]);
    }
    assert_eq!(quantities(&cart_of(&shop, "ann").await), [("p0", 2), ("p1", 6)]);
    // The guest cart is used up, also for another customer who knows the token.
    assert_eq!((visitor.claim("bob").await.status, visitor.read().await.status), (404, 404));
    assert_eq!(visitor.put("p0", 1).await.status, 404);
    let stored = visitor.stored().await;
    assert!(stored.lines.is_empty() && !format!("{stored:?}").contains("ann"), "{stored:?}");
}

#[tokio::test]
async fn the_example_of_claimed_lines_on_the_page_on_pricing_holds() {
    let shop = shop().await;
    let (_, example) = examples::pricing().into_iter().find(|(_, of)| of.get("guest_cart").is_some()).unwrap();
    let lines = |name: &str| -> Vec<(String, u64, String)> { serde_json::from_value(example[name].clone()).unwrap() };
    let stored = |name: &str| -> BTreeMap<ProductId, CartLine> {
        let line = |(product, quantity, at): (String, u64, String)| {
            let added_at = format!("2026-11-20T{at}:00.000Z").parse().unwrap();
            (ProductId::new(product).unwrap(), CartLine { quantity, added_at })
        };
        lines(name).into_iter().map(line).collect()
    };
    let visitor = Visitor::new(&shop).await;
    let mut guest = visitor.stored().await;
    guest.data.lines = stored("guest_cart");
    shop.put(&guest).await;
    shop.put(&seed::stored(Cart { lines: stored("cart"), ..seed::cart("ann", &[], 60) })).await;
    let claimed: Vec<(String, u64)> = serde_json::from_value(example["claimed"].clone()).unwrap();
    let claimed: Vec<_> = claimed.iter().map(|(product, quantity)| (product.as_str(), *quantity)).collect();
    assert_eq!(quantities(&visitor.claim("ann").await), claimed);
}

#[tokio::test]
async fn a_repeated_claim_after_the_cart_was_emptied_adds_nothing() {
    let shop = shop().await;
    let visitor = Visitor::new(&shop).await;
    visitor.put("p0", 2).await;
    assert_eq!(visitor.claim("ann").await.status, 200);
    let empty = Call::new("DELETE /v1/customers/{id}/cart").path("id", "ann").customer("ann");
    assert_eq!(shop.send(empty).await.status, 204);
    assert_eq!(quantities(&visitor.claim("ann").await), []);
}

/// A visitor's browser may remove the guest cart before it repeats the claim.
#[tokio::test]
async fn a_claimed_guest_cart_keeps_the_mark_of_its_claim() {
    let shop = shop().await;
    let visitor = Visitor::new(&shop).await;
    visitor.put("p0", 2).await;
    assert_eq!(visitor.claim("ann").await.status, 200);
    assert_eq!(shop.send(visitor.call("DELETE /v1/carts/{id}")).await.status, 404);
    assert_eq!(quantities(&visitor.claim("ann").await), [("p0", 2)]);
    assert!(visitor.stored().await.claim.is_some());
}

/// The janitor removes a cart that an erasure has left and that is older than the new profile. A
/// claim gives the cart a new creation time, so the janitor keeps it.
#[tokio::test]
async fn a_cart_that_is_older_than_the_profile_is_kept_after_a_claim_into_it() {
    let shop = shop().await;
    let ann: CustomerId = "ann".parse().unwrap();
    let profile = shop.own().get(&customer::get(&ann).unwrap()).await.unwrap().unwrap();
    let mut leftover = seed::stored(seed::cart("ann", &[("p1", 1)], 60));
    leftover.meta.created_at = profile.meta.created_at.plus_seconds(-60);
    shop.put(&leftover).await;
    let visitor = Visitor::new(&shop).await;
    visitor.put("p0", 2).await;
    assert_eq!(visitor.claim("ann").await.status, 200);
    let earlier = cart::discard_earlier(&ann, profile.meta.created_at).unwrap();
    assert!(shop.own().write(&earlier).await.unwrap().is_err());
    assert_eq!(quantities(&cart_of(&shop, "ann").await), [("p1", 1), ("p0", 2)]);
}

#[tokio::test]
async fn concurrent_claims_and_changes_neither_lose_nor_double_a_line() {
    let shop = shop().await;
    let visitor = Visitor::new(&shop).await;
    visitor.put("p0", 2).await;
    let line = |number: u64| {
        let put = Call::new("PUT /v1/customers/{id}/cart/items/{product}").path("id", "ann");
        let put = put.path("product", &format!("p{number}")).customer("ann");
        shop.send(put.json(&json!({ "quantity": number })))
    };
    for number in 2..6 {
        shop.product(&format!("p{number}")).await;
    }
    line(1).await;
    let claims = futures::future::join_all((0..8).map(|_| visitor.claim("ann")));
    let lines = futures::future::join_all((2..6).map(line));
    let (claims, lines) = futures::future::join(claims, lines).await;
    assert!(claims.iter().all(|claim| claim.status == 200), "{claims:?}");
    assert!(lines.iter().all(|line| line.status == 200), "{lines:?}");
    let cart = cart_of(&shop, "ann").await;
    let mut stored = quantities(&cart);
    stored.sort_unstable();
    assert_eq!(stored, [("p0", 2), ("p1", 1), ("p2", 2), ("p3", 3), ("p4", 4), ("p5", 5)]);
}

#[tokio::test]
async fn a_claim_needs_a_profile_and_an_open_cart_and_room_for_its_lines() {
    let shop = shop().await;
    let visitor = Visitor::new(&shop).await;
    visitor.put("p1", MAX_QUANTITY).await;
    assert_eq!(visitor.claim("nobody").await.status, 404);
    for number in 2..=MAX_LINES {
        shop.product(&format!("p{number}")).await;
    }
    for number in 2..=MAX_LINES {
        visitor.put(&format!("p{number}"), 1).await;
    }
    // The products q0, q1 and so on leave room for one line fewer than the guest cart has.
    let own: Vec<String> = (0..=cart::MAX_LINES - MAX_LINES).map(|number| format!("q{number}")).collect();
    let own: Vec<(&str, u64)> = own.iter().map(|product| (product.as_str(), 1)).collect();
    shop.put(&seed::stored(seed::cart("ann", &own, 60))).await;
    let full = visitor.claim("ann").await;
    assert_eq!((full.status, full.code()), (422, Some("too_many_lines")));
    assert_eq!(quantities(&cart_of(&shop, "ann").await).len(), own.len());
    // Bob's cart has no lines. After two claims, the pieces of a product do not exceed the limit.
    shop.cart("bob", 0, -60).await;
    let claimed = visitor.claim("bob").await;
    assert_eq!(quantities(&claimed).iter().find(|(product, _)| *product == "p1"), Some(&("p1", MAX_QUANTITY)));
    let other = Visitor::new(&shop).await;
    other.put("p1", 1).await;
    let claimed = other.claim("bob").await;
    assert_eq!(quantities(&claimed).iter().find(|(product, _)| *product == "p1"), Some(&("p1", MAX_QUANTITY)));
}

#[tokio::test]
async fn an_expired_guest_cart_is_missing() {
    let shop = shop().await;
    let (now, token) = (Instant::now(), CartToken::new([7; 32]));
    let cart = GuestCart {
        id: GuestCartId::generate(now, [7; 10]),
        token_hash: token.hash(),
        expires_at: now.plus_seconds(-1),
        lines: [].into(),
        claim: None,
    };
    shop.put(&seed::stored(cart.clone())).await;
    let visitor = Visitor { shop: &shop, id: cart.id.to_string(), token: token.as_str().to_owned() };
    let statuses = [visitor.read().await, visitor.put("p0", 1).await, visitor.claim("ann").await];
    assert_eq!(statuses.map(|answer| answer.status), [404; 3]);
}
