use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use emulators::payments::{Mode, PaymentServer};
use fastrand::Rng;
use futures::StreamExt as _;
use local::System;
use serde_json::{Value, json};

use super::CLIENTS;
use super::cards::Cards;
use crate::support::{Answer, Clients};

/// Most orders choose from this many products. Most giant orders use the products after them.
pub const PRODUCTS: usize = 170;
pub const ALL_PRODUCTS: usize = 570;
/// The initial stock of every fourth of the first [`PRODUCTS`] products. It is so low that some
/// orders are refused.
const SCARCE: u64 = 60;
const PLENTY: u64 = 1_000_000;
pub const PRICE: i64 = 129;
pub const CUSTOMERS: usize = 6;
/// The price of shipping of an order with a quote.
pub const SHIPPING: i64 = 500;
/// The tax of goods and shipping of an order with a quote. Prices do not include it.
pub const TAX_BASIS_POINTS: i64 = 810;
/// The id and the code of the coupon, its discount, and its limit.
pub const COUPON: &str = "coupon";
pub const DISCOUNT_BASIS_POINTS: i64 = 1_000;
pub const COUPON_USES: u64 = 12;
/// The number of carts of a schedule is the number of its steps divided by this constant.
const STEPS_A_CART: usize = 50;
/// The maximum number of attempts at a request until its outcome is known, and of runs of the
/// janitor at the end.
const RESENDS: usize = 20;
/// The number of orders from which a payment by card chooses.
const NEWEST: usize = 24;

/// A request that must take effect at most once.
#[derive(Debug, Clone)]
pub struct Request {
    /// The customer, or `None` for staff.
    pub by: Option<String>,
    pub key: String,
    pub path: String,
    pub body: Value,
}

impl Request {
    /// Returns the `sub` of the caller.
    pub fn caller(&self) -> &str {
        self.by.as_deref().unwrap_or("staff")
    }

    pub fn is_checkout(&self) -> bool {
        self.path.ends_with("/checkout")
    }

    /// Returns the order that the request pays.
    pub fn pays(&self) -> Option<&str> {
        self.path.strip_prefix("/v1/orders/")?.strip_suffix("/payments")
    }

    /// Returns the order and the payment that the request refunds.
    pub fn refunds(&self) -> Option<(&str, &str)> {
        self.path.strip_prefix("/v1/orders/")?.strip_suffix("/refunds")?.split_once("/payments/")
    }

    /// Returns the order whose refund to the wallet the request wants.
    pub fn refunds_order(&self) -> Option<&str> {
        self.path.strip_prefix("/v1/orders/")?.strip_suffix("/refunds").filter(|order| !order.contains('/'))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The request succeeded with this response.
    Done(Answer),
    /// The request was refused and had no effect.
    Refused,
    Unknown,
}

/// Requests with an outcome, by key.
pub type Requests = BTreeMap<String, (Request, Outcome)>;

/// A filled cart and its attempts to check out.
#[derive(Debug, Default)]
pub struct Cart {
    pub lines: BTreeMap<String, u64>,
    /// Orders of acknowledged checkouts without a key.
    pub orders: Vec<Value>,
    /// Whether an attempt without a key has an unknown outcome.
    pub unknown: bool,
}

/// An acknowledged status change of an order.
#[derive(Debug)]
pub struct Moved {
    pub order: String,
    /// The order's version after the change.
    pub version: u64,
    pub status: String,
    pub at: String,
    pub by: String,
}

pub struct World<'a> {
    pub clients: Clients,
    pub provider: &'a PaymentServer,
    pub cards: Mutex<Cards>,
    /// The requests and their outcomes, by key.
    pub requests: Mutex<Requests>,
    doubts: Mutex<BTreeMap<String, usize>>,
    /// Acknowledged orders with their customers and numbers of lines.
    placed: Mutex<Vec<(String, String, usize)>>,
    pub carts: Mutex<BTreeMap<String, Cart>>,
    /// Customers with an unused cart.
    empty: Mutex<Vec<String>>,
    pub moved: Mutex<Vec<Moved>>,
    /// Orders with their acknowledged invoices.
    pub invoices: Mutex<Vec<(String, Value)>>,
    /// Orders that staff tried to cancel or to return with a refund of their own choice.
    pub chosen: Mutex<BTreeSet<String>>,
}

impl<'a> World<'a> {
    /// `capture` is the setting `payments.capture`.
    pub async fn open(system: &'a System, steps: usize, capture: &str) -> Self {
        let carts: Vec<String> = (0..steps / STEPS_A_CART).map(|n| format!("cart{n}")).collect();
        let customers = || (0..CUSTOMERS).map(customer).chain(carts.iter().cloned());
        let clients = Clients::of(system, customers());
        let products = (0..ALL_PRODUCTS).map(|n| {
            let body = json!({
                "id": product(n), "name": "Thing", "brand": "Private", "category_path": ["GROCERY"],
                "price": {"amount": PRICE, "currency": "USD"}, "stock": initial_stock(n),
            });
            ("/v1/products", body)
        });
        let customers = customers().map(|id| {
            let body = json!({"id": id, "email": format!("{id}@example.com"), "username": id, "name": "C"});
            ("/v1/customers", body)
        });
        futures::stream::iter(products.chain(customers))
            .for_each_concurrent(CLIENTS, async |(path, body)| {
                clients.staff("POST", path, &[], Some(&body)).await.expect(201);
            })
            .await;
        // These settings keep orders from lapsing when clocks jump, and raise the limits for
        // customers. Orders without a quote have neither shipping nor tax.
        let orders = json!({
            "pending_minutes": 43_200, "max_pending_orders": 1_000, "max_pending_quantity": 1_000_000_000,
            "max_pending_lines": 500_000, "quote_optional": true,
        });
        let zone = json!({"countries": ["CH"], "methods": [{
            "id": "post", "name": "Post", "days": [1, 3], "rates": [{"price": {"amount": SHIPPING, "currency": "USD"}}],
        }]});
        let rule = json!({
            "country": "CH", "category": "standard", "rate_basis_points": TAX_BASIS_POINTS, "included": false,
        });
        let first = [("if-none-match", "*".to_owned())];
        for (path, body) in [
            ("/v1/settings", json!({"values": {"orders": orders, "payments": {"capture": capture}}})),
            ("/v1/shipping/zones/ch", zone),
            ("/v1/tax/rules/ch", rule),
        ] {
            clients.staff("PUT", path, &first, Some(&body)).await.expect(201);
        }
        let coupon = json!({
            "id": COUPON, "name": "Coupon", "code": COUPON, "kind": "percentage", "value": DISCOUNT_BASIS_POINTS,
            "limit_total": COUPON_USES, "limit_per_customer": 1,
        });
        clients.staff("POST", "/v1/promotions", &[], Some(&coupon)).await.expect(201);
        // The steps of the test deliver the events of the provider.
        system.payments().set_mode(Mode::Never);
        Self {
            clients,
            provider: system.payments(),
            cards: Mutex::default(),
            requests: Mutex::default(),
            doubts: Mutex::default(),
            placed: Mutex::default(),
            carts: Mutex::default(),
            empty: Mutex::new(carts),
            moved: Mutex::default(),
            invoices: Mutex::default(),
            chosen: Mutex::default(),
        }
    }

    pub fn an_empty_cart(&self) -> Option<String> {
        self.empty.lock().unwrap().pop()
    }

    pub async fn call(
        &self,
        by: Option<&str>,
        (method, path): (&str, &str),
        headers: &[(&str, String)],
        body: Option<&Value>,
    ) -> Answer {
        match by {
            Some(id) => self.clients.customer(id, method, path, headers, body).await,
            None => self.clients.staff(method, path, headers, body).await,
        }
    }

    /// An acknowledged request must receive the same response again.
    pub async fn send(&self, request: &Request) -> Outcome {
        let key = [("idempotency-key", request.key.clone())];
        let before = {
            let mut requests = self.requests.lock().unwrap();
            requests.entry(request.key.clone()).or_insert((request.clone(), Outcome::Unknown)).1.clone()
        };
        *self.doubts.lock().unwrap().entry(request.key.clone()).or_default() += 1;
        let answer = self.call(request.by.as_deref(), ("POST", &request.path), &key, Some(&request.body)).await;
        let outcome = self.learn(request, &before, answer);
        if outcome != Outcome::Unknown {
            *self.doubts.lock().unwrap().get_mut(&request.key).unwrap() -= 1;
        }
        outcome
    }

    /// `before` is the request's outcome when the attempt was sent.
    fn learn(&self, request: &Request, before: &Outcome, answer: Answer) -> Outcome {
        let acknowledged = matches!(before, Outcome::Done(_));
        // The provider may refuse a payment or a refund after its request was acknowledged.
        let is_settled_later = request.pays().is_some() || request.refunds().is_some();
        let is_declined = is_settled_later && answer.body["code"] == "payment_declined";
        assert!(
            !acknowledged || !(200..500).contains(&answer.status) || answer.status == 201 || is_declined,
            "{} was acknowledged before and is refused now: {answer:?}",
            request.key
        );
        let outcome = match answer.status {
            201 => Outcome::Done(answer),
            // Another request has made a payment by card of this amount, so this one made none.
            200 if request.pays().is_some() => {
                self.entered(request, &answer);
                Outcome::Refused
            }
            // Another attempt at the same request is in progress, or the janitor has not undone a
            // crashed attempt yet.
            409 if answer.body["code"] == "idempotency_in_progress" => Outcome::Unknown,
            400..500 => Outcome::Refused,
            _ => Outcome::Unknown,
        };
        let mut requests = self.requests.lock().unwrap();
        let known = &mut requests.get_mut(&request.key).unwrap().1;
        match (&*known, &outcome) {
            (Outcome::Done(first), Outcome::Done(again)) => {
                let is_same = if is_settled_later { first.body["id"] == again.body["id"] } else { first == again };
                assert!(is_same, "{}: the second response differs: {first:?} and {again:?}", request.key);
            }
            // One of two concurrent attempts may be refused before the other succeeds. The refusal
            // may arrive last.
            (Outcome::Done(_), _) => {}
            // A later attempt may succeed after a refusal.
            (_, Outcome::Done(answer)) => {
                self.entered(request, answer);
                *known = outcome.clone();
            }
            _ => *known = outcome.clone(),
        }
        outcome
    }

    fn entered(&self, request: &Request, answer: &Answer) {
        if request.path == "/v1/orders" || request.is_checkout() {
            self.order_placed(&answer.body);
        }
        if let Some(order) = request.pays() {
            self.cards.lock().unwrap().enter(order, &answer.body);
        }
    }

    pub fn order_placed(&self, body: &Value) {
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        let lines = body["lines"].as_array().unwrap().len();
        self.placed.lock().unwrap().push((text("id"), text("customer_id"), lines));
    }

    /// Giant orders are rare, so some calls choose only among them.
    pub fn an_order(&self, rng: &mut Rng) -> Option<(String, String)> {
        let placed = self.placed.lock().unwrap();
        let giant = rng.u8(0..12) == 0;
        let candidates: Vec<_> = placed.iter().filter(|(_, _, lines)| !giant || *lines >= 200).collect();
        let (order, customer, _) = candidates.get(rng.usize(0..candidates.len().max(1)))?;
        Some((order.clone(), customer.clone()))
    }

    /// Returns one of the newest orders, because older ones are often paid.
    pub fn a_new_order(&self, rng: &mut Rng) -> Option<(String, String)> {
        let placed = self.placed.lock().unwrap();
        let newest = placed.len().saturating_sub(NEWEST);
        let (order, customer, _) = placed.get(newest + rng.usize(0..NEWEST.min(placed.len()).max(1)))?;
        Some((order.clone(), customer.clone()))
    }

    /// Sends a request once, several times, or from a client that disconnects.
    pub async fn create(&self, rng: &mut Rng, by: Option<String>, path: String, body: Value) {
        let request = Request { by, key: format!("k{:016x}", rng.u64(..)), path, body };
        match rng.u8(0..20) {
            0 => {
                futures::join!(self.send(&request), self.send(&request), self.send(&request));
            }
            1 | 2 => {
                let patience = Duration::from_millis(rng.u64(1..60));
                let _ = tokio::time::timeout(patience, self.send(&request)).await;
            }
            3 => {
                self.send(&request).await;
                self.send(&request).await;
            }
            _ => {
                self.send(&request).await;
            }
        }
    }

    /// Sends a request until it succeeds or is refused, with some retries. Returns the created
    /// record.
    pub async fn insist(&self, rng: &mut Rng, path: String, body: Value) -> Option<Value> {
        let request = Request { by: None, key: format!("k{:016x}", rng.u64(..)), path, body };
        for _ in 0..RESENDS {
            match self.send(&request).await {
                Outcome::Done(answer) => return Some(answer.body),
                Outcome::Refused => return None,
                Outcome::Unknown => {}
            }
        }
        None
    }

    /// Runs the janitor, for unfinished orders that are at least `grace` seconds old. Clients may
    /// be active at the same time.
    pub async fn clean(&self, grace: u8) -> Answer {
        let body = json!({"grace_seconds": grace});
        self.clients.staff("POST", "/_local/invoke/Janitor", &[], Some(&body)).await
    }

    /// Settles a run after the troubles: the janitor finishes all work, and every request gets a
    /// known outcome.
    pub async fn settle(&self) {
        let mut left = Value::Null;
        for _ in 0..RESENDS {
            left = self.clean(0).await.body;
            if left["found"] == 0 {
                break;
            }
        }
        assert_eq!(left["found"], 0, "the janitor still finds unfinished work");
        self.settle_cards().await;
        let unknown: Vec<Request> = {
            let (requests, doubts) = (self.requests.lock().unwrap(), self.doubts.lock().unwrap());
            let open = |request: &Request| doubts.get(&request.key).is_none_or(|attempts| *attempts > 0);
            let open =
                requests.values().filter(|(request, outcome)| !matches!(outcome, Outcome::Done(_)) && open(request));
            open.map(|(request, _)| request.clone()).collect()
        };
        println!("sending {} requests again", unknown.len());
        futures::stream::iter(unknown)
            .for_each_concurrent(CLIENTS, |request| async move {
                for _ in 0..RESENDS {
                    if self.send(&request).await != Outcome::Unknown {
                        return;
                    }
                }
                panic!("the outcome of {request:?} is unknown");
            })
            .await;
        self.settle_calls().await;
    }
}

pub fn product(n: usize) -> String {
    format!("p{n:03}")
}

pub fn customer(n: usize) -> String {
    format!("c{n}")
}

pub fn initial_stock(n: usize) -> u64 {
    if n < PRODUCTS && n.is_multiple_of(4) { SCARCE } else { PLENTY }
}
