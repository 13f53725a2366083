use std::ops::Range;
use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};

use super::world::{ALL_PRODUCTS, COUPON, CUSTOMERS, Cart, Moved, PRICE, PRODUCTS, World, customer, product};
use crate::support::{Answer, if_match};

const MOST_LINES: usize = 161;
/// Maximum attempts to put a line into a cart, and maximum attempts to read the cart.
const PUTS: usize = 10;

const FAULTS: &[(&str, u32)] =
    &[("throttle", 25), ("error", 15), ("reset", 15), ("timeout", 1), ("slow", 10), ("conflict", 30)];
/// Faults of the payment provider. The provider stores the response of an `error`.
const CALLS: &[(&str, u32)] = &[
    ("throttle", 10),
    ("conflict", 10),
    ("error", 2),
    ("error_after", 2),
    ("reset", 5),
    ("truncate", 5),
    ("slow", 5),
    ("timeout", 1),
    ("timeout_before", 1),
    ("wrong_signature", 5),
];
/// Functions, and their crash points during work on orders. No order lapses in this test, so
/// `orders.lapsed` is not among them.
const CRASHES: &[(&str, &str)] = &[
    ("Orders", "orders.placed"),
    ("Orders", "orders.moved"),
    ("Orders", "orders.staged.begun"),
    ("Orders", "orders.staged.reserved"),
    ("Orders", "orders.staged.undone"),
    ("Orders", "orders.staged.given_back"),
    ("Janitor", "orders.staged.undone"),
    ("Janitor", "orders.staged.given_back"),
    ("Orders", "payments.begun"),
    ("Orders", "payments.called"),
    ("Cashier", "payments.recorded"),
];

impl World<'_> {
    pub async fn step(&self, mut rng: Rng, dice: u8) {
        let rng = &mut rng;
        let (c, other) = (rng.usize(0..CUSTOMERS), rng.usize(0..CUSTOMERS));
        let by = (rng.u8(0..3) == 0).then(|| customer(c));
        match dice {
            0..=27 => {
                let mut body = json!({"customer_id": customer(c), "lines": lines(rng)});
                // A few orders compete for the same reference.
                if rng.u8(0..50) == 0 {
                    body["reference"] = format!("r{}", rng.u8(0..20)).into();
                }
                self.create(rng, by, "/v1/orders".to_owned(), body).await;
            }
            28 | 29 => self.check_out(rng).await,
            30..=57 => self.walk(rng).await,
            58..=64 => {
                let path = format!("/v1/customers/{}/wallet/deposits", customer(c));
                let body = json!({"amount": money(rng, 100..20_000), "note": format!("n{:x}", rng.u64(..))});
                self.create(rng, None, path, body).await;
            }
            65..=73 => {
                let mut body = json!({"from": customer(c), "to": customer(other), "amount": money(rng, 1..5_000)});
                if rng.bool() {
                    body["note"] = format!("n{:x}", rng.u64(..)).into();
                }
                self.create(rng, by, "/v1/transfers".to_owned(), body).await;
            }
            74..=77 => {
                let Some((order, _)) = self.an_order(rng) else { return };
                let body = json!({"amount": usd(rng.i64(1..PRICE * 3))});
                self.create(rng, None, format!("/v1/orders/{order}/refunds"), body).await;
            }
            78..=80 => {
                let Some((order, _)) = self.an_order(rng) else { return };
                let answer = self.clients.staff("POST", &format!("/v1/orders/{order}/invoice"), &[], None).await;
                if matches!(answer.status, 200 | 201) {
                    self.invoices.lock().unwrap().push((order, answer.body));
                }
            }
            81..=86 => self.pay(rng).await,
            87..=90 => self.follow(rng).await,
            91 => self.spread(rng).await,
            92 => {
                self.clean(rng.u8(0..2)).await;
            }
            93 => self.round().await,
            94..=96 => {
                let (target, faults) = if rng.u8(0..3) == 0 { ("payments", CALLS) } else { ("table", FAULTS) };
                let (kind, most) = faults[rng.usize(0..faults.len())];
                if kind.starts_with("error") {
                    self.cards.lock().unwrap().has_stored_errors |= target == "payments";
                }
                self.clients
                    .fault(json!({
                        "target": target, "kind": kind, "rate": 0.2, "count": rng.u32(1..=most), "seed": rng.u32(..),
                    }))
                    .await;
            }
            97 | 98 => {
                let (function, point) = CRASHES[rng.usize(0..CRASHES.len())];
                let mut fault = json!({
                    "target": format!("function:{function}"), "kind": "crash", "rate": 0.5, "count": 1,
                    "seed": rng.u32(..),
                });
                if rng.u8(0..5) > 0 {
                    fault["point"] = point.into();
                }
                self.clients.fault(fault).await;
            }
            _ => drop(self.clients.local("DELETE", "/_local/faults", None).await),
        }
    }

    /// Changes the number of shards of a stock. A request without an answer may have changed it.
    pub async fn spread(&self, rng: &mut Rng) {
        let path = format!("/v1/products/{}/stock/shards", product(rng.usize(0..PRODUCTS)));
        let shards = [1, 1, 2, 3, 8, 16][rng.usize(0..6)];
        self.clients.staff("PUT", &path, &[], Some(&json!({"shards": shards}))).await;
    }

    /// Changes the status of an order once, because `If-Match` prevents a second change. After a
    /// lost response, the check of the table shows whether the status changed.
    async fn walk(&self, rng: &mut Rng) {
        let Some((order, owner)) = self.an_order(rng) else { return };
        let found = self.clients.staff("GET", &format!("/v1/orders/{order}"), &[], None).await;
        let (wallet, cancelled) = (json!({"to": "paid", "pay_from_wallet": true}), json!({"to": "cancelled"}));
        let mut body = match found.body["status"].as_str() {
            Some("pending") => {
                [wallet.clone(), wallet.clone(), json!({"to": "paid"}), cancelled.clone()][rng.usize(0..4)].clone()
            }
            Some("paid") => [json!({"to": "picking"}), cancelled.clone()][rng.usize(0..2)].clone(),
            Some("picking") => [json!({"to": "shipped"}), cancelled.clone()][rng.usize(0..2)].clone(),
            Some("shipped") => json!({"to": "delivered"}),
            Some("delivered") => json!({"to": "returned"}),
            _ => return,
        };
        let owners = body == wallet || body == cancelled && found.body["status"] != "picking";
        let by = (owners && rng.bool()).then_some(owner);
        if by.is_none() && ["cancelled", "returned"].iter().any(|to| body["to"] == *to) && rng.u8(0..6) == 0 {
            body["refund"] = usd(rng.i64(0..PRICE * 2));
            self.chosen.lock().unwrap().insert(order.clone());
        }
        let version = if_match(&found);
        let path = format!("/v1/orders/{order}/status");
        let take = || async {
            let answer = self.call(by.as_deref(), ("POST", &path), &version, Some(&body)).await;
            if answer.status == 200 {
                self.moved(&found, &body, by.as_deref().unwrap_or("staff"), &answer);
            }
        };
        if rng.u8(0..8) == 0 {
            futures::join!(take(), take());
        } else if rng.u8(0..8) == 0 {
            let _ = tokio::time::timeout(Duration::from_millis(rng.u64(1..60)), take()).await;
        } else {
            take().await;
        }
    }

    /// `found` is the order before the change. The order in the answer can have later changes,
    /// because the function reads it again after its calls of the payment provider.
    pub fn moved(&self, found: &Answer, asked: &Value, by: &str, answer: &Answer) {
        let mut steps = answer.body["history"].as_array().unwrap().iter();
        let step = steps.find(|step| step["status"] == asked["to"]).unwrap_or(&Value::Null);
        let seen = (&answer.body["id"], &step["status"], &step["by"]);
        assert_eq!(seen, (&found.body["id"], &asked["to"], &json!(by)), "not the requested step: {answer:?}");
        let text = |name: &str| step[name].as_str().unwrap().to_owned();
        let (order, version) = (found.body["id"].as_str().unwrap().to_owned(), found.body["version"].as_u64().unwrap());
        let moved = Moved { order, version: version + 1, status: text("status"), at: text("at"), by: text("by") };
        self.moved.lock().unwrap().push(moved);
    }

    /// Fills a customer's cart once and checks it out, with or without a key, sometimes several
    /// times at once.
    async fn check_out(&self, rng: &mut Rng) {
        let Some(customer) = self.an_empty_cart() else { return };
        let count = if rng.u8(0..6) == 0 { rng.usize(47..=60) } else { rng.usize(1..6) };
        let first = rng.usize(0..PRODUCTS);
        for n in 0..count {
            let path = format!("/v1/customers/{customer}/cart/items/{}", product((first + n) % PRODUCTS));
            let body = json!({"quantity": n % 3 + 1});
            for _ in 0..PUTS {
                if self.call(Some(&customer), ("PUT", &path), &[], Some(&body)).await.status == 200 {
                    break;
                }
            }
        }
        let Some(lines) = self.cart_of(&customer).await else { return };
        self.carts.lock().unwrap().insert(customer.clone(), Cart { lines, ..Cart::default() });
        let path = format!("/v1/customers/{customer}/cart/checkout");
        let body = if rng.u8(0..3) > 0 { self.quote(&customer).await } else { json!({}) };
        if rng.bool() {
            return self.create(rng, Some(customer), path, body).await;
        }
        let attempt = || async {
            let fresh = self.carts.lock().unwrap().get(&customer).unwrap().orders.is_empty();
            let answer = self.call(Some(&customer), ("POST", &path), &[], Some(&body)).await;
            assert!(fresh || answer.status != 201, "an empty cart was checked out: {answer:?}");
            let mut carts = self.carts.lock().unwrap();
            let cart = carts.get_mut(&customer).unwrap();
            match answer.status {
                201 => {
                    self.order_placed(&answer.body);
                    cart.orders.push(answer.body);
                }
                400..500 => {}
                _ => cart.unknown = true,
            }
        };
        match rng.u8(0..6) {
            0 => drop(futures::join!(attempt(), attempt(), attempt())),
            1 => {
                if tokio::time::timeout(Duration::from_millis(rng.u64(1..60)), attempt()).await.is_err() {
                    self.carts.lock().unwrap().get_mut(&customer).unwrap().unknown = true;
                }
            }
            2 => {
                attempt().await;
                attempt().await;
            }
            _ => attempt().await,
        }
    }

    /// Returns the body of a checkout with a quote. The quote has the coupon while uses are left.
    async fn quote(&self, customer: &str) -> Value {
        let address = json!({
            "name": "C", "line1": "Main street 1", "city": "Basel", "postal_code": "4000", "country": "CH",
        });
        let path = format!("/v1/customers/{customer}/cart/quote");
        for codes in [json!([COUPON]), json!([])] {
            let body = json!({"shipping_address": address, "codes": codes});
            let answer = self.call(Some(customer), ("POST", &path), &[], Some(&body)).await;
            if answer.status == 200 {
                return json!({"quote_id": answer.body["id"]});
            }
        }
        json!({})
    }

    async fn cart_of(&self, customer: &str) -> Option<std::collections::BTreeMap<String, u64>> {
        for _ in 0..PUTS {
            let answer = self.call(Some(customer), ("GET", &format!("/v1/customers/{customer}/cart")), &[], None).await;
            if answer.status == 200 {
                let items = answer.body["items"].as_array().unwrap().iter();
                let line = |item: &Value| {
                    (item["product_id"].as_str().unwrap().to_owned(), item["quantity"].as_u64().unwrap())
                };
                return Some(items.map(line).collect());
            }
        }
        None
    }
}

/// Returns an amount, mostly in the shop's currency and sometimes in euros.
fn money(rng: &mut Rng, amounts: Range<i64>) -> Value {
    let currency = ["USD", "USD", "USD", "EUR"][rng.usize(0..4)];
    json!({"amount": rng.i64(amounts), "currency": currency})
}

pub fn usd(amount: i64) -> Value {
    json!({"amount": amount, "currency": "USD"})
}

/// Returns the lines of an order: a few, more than fit into one transaction, or so many that
/// several transactions return them to stock.
fn lines(rng: &mut Rng) -> Vec<Value> {
    let (first, products, lines) = match rng.u8(0..128) {
        // These lines also use the products of the smaller orders. If one of those products is out
        // of stock, the whole order must be undone.
        0 => (0, ALL_PRODUCTS, rng.usize(200..=400)),
        1 | 2 => (PRODUCTS, ALL_PRODUCTS - PRODUCTS, rng.usize(200..=400)),
        3..=10 => (0, PRODUCTS, rng.usize(40..=MOST_LINES)),
        _ => (0, PRODUCTS, rng.usize(1..6)),
    };
    lines_of(first, rng.usize(0..products), products, lines)
}

/// Returns this many lines of products. Some of the products have a low initial stock.
pub fn scarce(rng: &mut Rng, lines: usize) -> Vec<Value> {
    lines_of(0, rng.usize(0..PRODUCTS), PRODUCTS, lines)
}

/// Returns this many lines of products that always have enough stock.
pub fn plenty(rng: &mut Rng, lines: usize) -> Vec<Value> {
    let products = ALL_PRODUCTS - PRODUCTS;
    lines_of(PRODUCTS, rng.usize(0..products), products, lines)
}

fn lines_of(first: usize, begin: usize, products: usize, lines: usize) -> Vec<Value> {
    let line = |n: usize| json!({"product_id": product(first + (begin + n) % products), "quantity": n % 3 + 1});
    (0..lines).map(line).collect()
}
