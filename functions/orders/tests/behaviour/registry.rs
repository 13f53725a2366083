//! Tests that each route uses the access patterns that it declares.

use std::sync::Arc;

use aws::Service;
use emulators::payments::{PaymentServer, Settings, sign};
use fixture::Recorder;
use futures::future::join_all;
use http_api::sample::Call;
use key_schema::customer::Tier;
use key_schema::guest_cart::MAX_LINES;
use key_schema::id::{CustomerId, OrderId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::Money;
use key_schema::order::RETURNED_AT_ONCE;
use key_schema::order::open::{OpenOrder, OpenOrders};
use key_schema::order::staged::GIVEN_BACK_AT_ONCE;
use key_schema::promotion::{Conditions, Promotion};
use payments::{Account, Keys, Stripe};
use serde_json::{Value, json};
use workflows::stock;

use crate::guests::{Cart, guest, with_token};
use crate::promotions::{named, ten};
use crate::shop::{Shop, checkout, money, moved, order, staff_order, stored};

/// The number of lines of an order that takes several transactions to place.
const LARGE: usize = 60;
/// The number of lines of an order whose cancellation takes three further transactions.
const LARGEST: usize = RETURNED_AT_ONCE + 2 * GIVEN_BACK_AT_ONCE + 1;

fn euros(amount: i64) -> Money {
    Money::new(amount, "EUR".parse().unwrap())
}

/// Returns ann's open orders with entries of orders that do not exist.
fn open_orders(count: u8, most: u64) -> Stored<OpenOrders> {
    let id = |number| OrderId::generate(Instant::now(), [number; 10]);
    stored(OpenOrders {
        customer_id: CustomerId::new("ann").unwrap(),
        expires_at: Instant::now().plus_seconds(3_600),
        entries: (0..count).map(|number| (id(number), OpenOrder { most, lines: 1 })).collect(),
        day: Instant::now().day(),
        placed: 0,
    })
}

fn address() -> Value {
    json!({ "name": "Ann", "line1": "S 1", "city": "Ulm", "postal_code": "89073", "country": "DE" })
}

fn on(route: &'static str, order: &Value) -> Call {
    Call::new(route).path("id", order["id"].as_str().unwrap())
}

/// Places small and large orders, and sends orders that are refused. Returns the order with all
/// `lines`.
async fn place(recorder: &mut Recorder<'_, Shop>, lines: &[(&str, u64)]) -> Value {
    let shop = recorder.shop;
    // The function reads the open orders again if it does not find all lines of one of them.
    shop.put(&open_orders(1, 1_000)).await;
    let repaired = open_orders(0, 0);
    recorder.expect_paused(201, order(&[("tea", 1)], "k1"), "orders.open", shop.put(&repaired)).await;
    for _ in 0..2 {
        recorder.expect(201, order(&[("tea", 1)], "k2")).await;
    }
    let with_reference = |key: &str| {
        let lines = json!([{ "product_id": "tea", "quantity": 1 }]);
        let body = json!({ "customer_id": "ann", "reference": "r1", "lines": lines, "shipping_address": address() });
        Call::new("POST /v1/orders").customer("ann").header("idempotency-key", key).json(&body)
    };
    for _ in 0..2 {
        recorder.expect(201, with_reference("k3")).await;
    }
    recorder.expect(409, with_reference("k4")).await;
    let short = [&lines[..LARGE], &[("salt", 1)]].concat();
    recorder.expect(409, order(&short, "k5")).await;
    // A customer with the largest number of open orders uses the reference again.
    shop.put(&open_orders(20, 1)).await;
    recorder.expect(409, with_reference("k6")).await;
    recorder.expect(201, staff_order(lines, "k7", &json!({}))).await
}

/// Checks out a small cart and a large cart.
async fn check_out(recorder: &mut Recorder<'_, Shop>, lines: &[(&str, u64)]) {
    let shop = recorder.shop;
    // The cached settings expire.
    shop.wait(30);
    shop.put(&open_orders(1, 1_000)).await;
    shop.fill_cart(&[("tea", 1)]).await;
    let (once, repaired) = (checkout().header("idempotency-key", "c1"), open_orders(0, 0));
    let once = once.json(&json!({ "shipping_address": address() }));
    recorder.expect_paused(201, once.clone(), "orders.open", shop.put(&repaired)).await;
    recorder.expect(201, once).await;
    shop.fill_cart(&lines[..LARGE]).await;
    let quote = || Call::new("POST /v1/customers/{id}/cart/quote").path("id", "ann").customer("ann");
    recorder.expect(422, quote().json(&json!({ "shipping_address": "home" }))).await;
    shop.wait(30);
    let quoted = recorder.expect(200, quote().json(&json!({}))).await;
    recorder.expect(201, checkout().json(&json!({ "quote_id": quoted["id"] }))).await;
    shop.fill_cart(&[&lines[..LARGE], &[("salt", 1)]].concat()).await;
    recorder.expect(409, checkout().json(&json!({}))).await;
    promotions(recorder).await;
}

/// Checks out with a code, and enters the code again after its promotion was deleted. The
/// promotions depend on the customer's tier and earlier orders.
async fn promotions(recorder: &mut Recorder<'_, Shop>) {
    let shop = recorder.shop;
    let quote = |code: &str| {
        let call = Call::new("POST /v1/customers/{id}/cart/quote").path("id", "ann").customer("ann");
        call.json(&json!({ "codes": [code] }))
    };
    let tier = Conditions { tier: Some(Tier::Bronze), ..Conditions::default() };
    let first_order = Conditions { first_order: true, ..Conditions::default() };
    let coded = shop.promote(Promotion { conditions: tier, ..ten() }).await;
    let automatic = shop.promote(Promotion { conditions: first_order, ..named("first", None) }).await;
    // The earlier orders of ann, who has open orders, are not read.
    shop.sign_up("bob").await;
    shop.put(&stored(fixture::seed::cart("bob", &[("tea", 1)], 3_600))).await;
    let of_bob = |route: &'static str| Call::new(route).path("id", "bob").customer("bob");
    let quoted = of_bob("POST /v1/customers/{id}/cart/quote").json(&json!({}));
    let quoted = recorder.expect(200, quoted).await;
    let first = of_bob("POST /v1/customers/{id}/cart/checkout").header("idempotency-key", "b1");
    recorder.expect(201, first.json(&json!({ "quote_id": quoted["id"] }))).await;
    shop.replace_cart(&[("tea", 1)]).await;
    let quoted = recorder.expect(200, quote("TEN")).await;
    recorder.expect(201, checkout().json(&json!({ "quote_id": quoted["id"] }))).await;
    shop.replace_cart(&[("tea", 1)]).await;
    let quoted = recorder.expect(200, quote("TEN")).await;
    shop.end(&coded).await;
    recorder.expect(409, checkout().json(&json!({ "quote_id": quoted["id"] }))).await;
    recorder.expect(409, quote("TEN")).await;
    shop.end(&automatic).await;
    // The last use of a hot promotion is leased to a shard.
    let hot = shop.promote(Promotion { limit_total: Some(1_000), ..named("hot", Some("HOT")) }).await;
    shop.count_uses("hot", 999).await;
    let quoted = recorder.expect(200, quote("HOT")).await;
    recorder.expect(201, checkout().json(&json!({ "quote_id": quoted["id"] }))).await;
    shop.replace_cart(&[("tea", 1)]).await;
    recorder.expect(409, quote("HOT")).await;
    shop.end(&hot).await;
}

/// Builds the quote of a guest's cart with these codes.
fn quote_of(cart: &Cart, codes: &[&str]) -> Call {
    cart.call("POST /v1/carts/{id}/quote").json(&json!({ "codes": codes }))
}

/// Checks out guest carts, pays, and cancels. A customer then claims the orders.
async fn guests(recorder: &mut Recorder<'_, Shop>, lines: &[(&str, u64)], provider: &PaymentServer) {
    let shop = recorder.shop;
    shop.wait(30);
    let coded = shop.promote(Promotion { limit_total: Some(9), ..named("guests", Some("GUESTS")) }).await;
    let cart = shop.guest_cart(&lines[..1]).await;
    recorder.expect(409, quote_of(&cart, &["NO"])).await;
    let quoted = recorder.expect(200, quote_of(&cart, &["GUESTS"])).await;
    let mut others = open_orders(1, 1_000);
    others.data.customer_id = guest("ann@example.com");
    shop.put(&others).await;
    others.data.entries.clear();
    let body = json!({ "quote_id": quoted["id"] });
    let (once, repaired) = (cart.check_out_with("ann@example.com", &body), shop.put(&others));
    recorder.expect_paused(201, once.clone(), "orders.open", repaired).await;
    let order = recorder.expect(201, once.clone()).await;
    recorder.expect(201, once).await;
    shop.wait(30);
    let cart = shop.guest_cart(&[&lines[..MAX_LINES - 1], &[("salt", 1)]].concat()).await;
    recorder.expect(409, cart.check_out_with("ann@example.com", &json!({ "shipping_address": address() }))).await;
    shop.end(&coded).await;
    let read = with_token("GET /v1/guest/orders/{id}", &order);
    recorder.expect(200, read.clone()).await;
    let pay = with_token("POST /v1/guest/orders/{id}/payments", &order).json(&json!({ "method": "card" }));
    let pay = pay.header("idempotency-key", "g");
    let begun = recorder.expect(201, pay.clone()).await;
    provider.confirm(begun["client_secret"].as_str().unwrap().split("_secret_").next().unwrap(), None).unwrap();
    recorder.expect(201, pay).await;
    recorder.expect(200, with_token("GET /v1/guest/orders/{id}/payments", &order)).await;
    let version = format!("\"{}\"", recorder.expect(200, read).await["version"]);
    let cancel = with_token("POST /v1/guest/orders/{id}/status", &order).header("if-match", &version);
    recorder.expect(200, cancel.json(&json!({ "to": "cancelled" }))).await;
    let claim = Call::new("POST /v1/customers/{id}/orders/claim").path("id", "ann").customer("ann");
    recorder.expect(200, claim).await;
}

/// Pays an order, refunds it, and cancels the order with the most lines. Returns the paid order.
async fn change(recorder: &mut Recorder<'_, Shop>, largest: &Value) -> Value {
    let shop = recorder.shop;
    shop.priced_product("cocoa", euros(100)).await;
    let addressed = json!({
        "customer_id": "ann", "lines": [{ "product_id": "cocoa", "quantity": 1 }], "shipping_address": address(),
    });
    let cocoa = recorder.expect(201, order(&[], "k8").json(&addressed)).await;
    shop.store_wallet(&[euros(150)]).await;
    let pay = on("POST /v1/orders/{id}/status", &cocoa).customer("ann").header("if-match", "\"1\"");
    recorder.expect(200, pay.json(&json!({ "to": "paid", "pay_from_wallet": true }))).await;
    for _ in 0..2 {
        let refund = on("POST /v1/orders/{id}/refunds", &cocoa).staff("sam").header("idempotency-key", "f1");
        recorder.expect(201, refund.json(&json!({ "amount": euros(40) }))).await;
    }
    // The pieces are in two shards.
    shop.product("mug", 2).await;
    stock::reshard::<()>(shop.own(), &ProductId::new("mug").unwrap(), 2).await.unwrap().unwrap();
    recorder.expect(201, order(&[("mug", 2)], "k9")).await;
    // A stock of the form of an earlier table.
    shop.product("jug", 1).await;
    shop.age_stock("jug").await;
    recorder.expect(201, order(&[("jug", 1)], "k10")).await;
    // The janitor returns the rest of the stock during the request, so the function reads the head
    // again.
    recorder.expect_paused(200, moved(largest, "cancelled"), "orders.give-back", shop.give_back(largest)).await;
    cocoa
}

/// Issues an order's invoice, adds to its log, and reads every list.
async fn read(recorder: &mut Recorder<'_, Shop>, order: &Value) {
    let invoice = recorder.expect(201, on("POST /v1/orders/{id}/invoice", order).staff("sam")).await;
    let number = invoice["number"].to_string();
    let note = on("POST /v1/orders/{id}/log", order).staff("sam").json(&json!({ "text": "Fragile." }));
    recorder.expect(201, note).await;
    let of = |route: &'static str, id: &str| Call::new(route).path("id", id).staff("sam");
    for call in [
        on("POST /v1/orders/{id}/invoice", order).staff("sam"),
        Call::new("GET /v1/invoices/{number}").path("number", &number).customer("ann"),
        on("GET /v1/orders/{id}/log", order).staff("sam"),
        on("GET /v1/orders/{id}", order).customer("ann"),
        on("GET /v1/orders/{id}/lines", order).customer("ann"),
        on("GET /v1/orders/{id}/history", order).customer("ann"),
        Call::new("GET /v1/log").query("day", &Instant::now().day()).staff("sam"),
        Call::new("GET /v1/orders").query("status", "paid").staff("sam"),
        Call::new("GET /v1/orders").query("number", order["number"].as_str().unwrap()).staff("sam"),
        Call::new("GET /v1/picking").staff("sam"),
        of("GET /v1/customers/{id}/orders", "ann"),
        of("GET /v1/customers/{id}/shipments", "ann"),
        of("GET /v1/products/{id}/sales", "tea"),
    ] {
        recorder.expect(200, call).await;
    }
}

/// Pays orders by card, from the wallet and by report of staff, and captures, cancels and refunds.
async fn pay(recorder: &mut Recorder<'_, Shop>, provider: &PaymentServer) {
    let shop = recorder.shop;
    shop.store_wallet(&[money(1_000)]).await;
    for (key, method) in [("y1", "card"), ("y2", "wallet"), ("y3", "manual")] {
        let placed = recorder.expect(201, staff_order(&[("tea", 1)], &format!("{key} order"), &json!({}))).await;
        let of = |route: &'static str| on(route, &placed).staff("sam");
        let body = json!({ "method": method });
        let new = of("POST /v1/orders/{id}/payments").header("idempotency-key", key).json(&body);
        let payment = recorder.expect(201, new.clone()).await;
        recorder.expect(201, new).await;
        let id = payment["id"].as_str().unwrap();
        let at = |route: &'static str| of(route).path("payment", id);
        if let Some(secret) = payment["client_secret"].as_str() {
            let part = json!({ "method": "card", "amount": money(60) });
            let part = recorder.expect(201, of("POST /v1/orders/{id}/payments").json(&part)).await;
            let part = part["id"].as_str().unwrap();
            recorder.expect(200, at("POST /v1/orders/{id}/payments/{payment}/cancel").path("payment", part)).await;
            provider.confirm(secret.split("_secret_").next().unwrap(), None).unwrap();
            recorder.expect(200, of("POST /v1/orders/{id}/payments").json(&body)).await;
            let capture = at("POST /v1/orders/{id}/payments/{payment}/capture").json(&json!({}));
            recorder.expect(200, capture).await;
        }
        let refund =
            at("POST /v1/orders/{id}/payments/{payment}/refunds").header("idempotency-key", &format!("{key} back"));
        let refund = refund.json(&json!({ "amount": money(30), "reason": "R" }));
        for _ in 0..2 {
            recorder.expect(201, refund.clone()).await;
        }
        recorder.expect(200, of("GET /v1/orders/{id}/payments")).await;
        if method == "card" {
            let cancel = of("POST /v1/orders/{id}/status").json(&json!({ "to": "cancelled" }));
            let read = recorder.expect(200, of("GET /v1/orders/{id}")).await;
            recorder.expect(200, cancel.header("if-match", &format!("\"{}\"", read["version"]))).await;
        }
    }
    let event = json!({
        "id": "evt_1", "type": "payment_intent.succeeded",
        "data": { "object": { "object": "payment_intent", "id": "pi_1" } },
    });
    let signature = sign(&["whsec_1"], Instant::now().as_seconds(), &event.to_string());
    let webhook = Call::new("POST /v1/webhooks/stripe").header("stripe-signature", &signature);
    recorder.expect(204, webhook.json(&event)).await;
}

#[tokio::test]
async fn every_route_uses_exactly_the_recorded_patterns() {
    let provider = PaymentServer::start(Settings::default()).await.unwrap();
    let service = Service::new(aws::connector().unwrap(), provider.url(), None);
    let stripe = Stripe::new(service, "sk_test_1".to_owned());
    let shop = Shop::open_with(Account::with(Some(Keys::new(Arc::new(stripe), vec!["whsec_1".to_owned()])))).await;
    let products: Vec<String> = (0..LARGEST).map(|number| format!("p{number:03}")).collect();
    for chunk in products.chunks(50) {
        join_all(chunk.iter().map(|product| shop.product(product, 10))).await;
    }
    shop.product("tea", 100).await;
    shop.product("salt", 0).await;
    let lines: Vec<(&str, u64)> = products.iter().map(|product| (product.as_str(), 1)).collect();
    let mut recorder = Recorder::new(&shop);
    let largest = place(&mut recorder, &lines).await;
    check_out(&mut recorder, &lines).await;
    guests(&mut recorder, &lines, &provider).await;
    let order = change(&mut recorder, &largest).await;
    read(&mut recorder, &order).await;
    pay(&mut recorder, &provider).await;
    recorder.assert_recorded();
}
