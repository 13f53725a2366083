use fastrand::Rng;
use serde_json::{Value, json};

use super::super::cards::intent_of;
use super::super::steps::{plenty, scarce, usd};
use super::super::world::{CUSTOMERS, Outcome, PRICE, Request, World, customer};
use super::{GIANT, LARGE, RETURN_POINT, ROUNDS, order};
use crate::support::{Answer, if_match};

impl World<'_> {
    /// Places a large order and cancels it. Then places a second order, which is refused if one of
    /// its products is out of stock.
    pub(super) async fn large(&self, mut rng: Rng) {
        let (plenty, scarce) = (order(plenty(&mut rng, LARGE)), order(scarce(&mut rng, LARGE)));
        if let Some(order) = self.place(&mut rng, plenty).await {
            self.go(&order, json!({"to": "cancelled"})).await;
        }
        self.place(&mut rng, scarce).await;
    }

    /// Crashes the function while it places an order, so that a partial reservation remains. No
    /// client retries the request before the janitor runs.
    pub(super) async fn leave_half_placed(&self, rng: &mut Rng) {
        self.crash_orders_once("orders.staged.reserved").await;
        let body = order(plenty(rng, GIANT));
        let request = Request { by: None, key: format!("k{:016x}", rng.u64(..)), path: "/v1/orders".to_owned(), body };
        assert_eq!(self.send(&request).await, Outcome::Unknown);
    }

    /// Crashes the function while it cancels an order, so that only a part of the stock is
    /// returned.
    pub(super) async fn leave_half_cancelled(&self, rng: &mut Rng) {
        let body = order(plenty(rng, GIANT));
        let Some(order) = self.place(rng, body).await else { return };
        self.crash_orders_once(RETURN_POINT).await;
        let (path, version) = (format!("/v1/orders/{order}/status"), [("if-match", "\"1\"".to_owned())]);
        let answer = self.clients.staff("POST", &path, &version, Some(&json!({"to": "cancelled"}))).await;
        assert!(answer.status >= 500, "{}: the function has not crashed", answer.status);
    }

    /// Call it only while no other client is active.
    async fn crash_orders_once(&self, point: &str) {
        self.clients.fault(json!({"target": "function:Orders", "kind": "crash", "point": point, "count": 1})).await;
    }

    /// Places an order, pays it, picks it and ships it. Its events cause messages and picking jobs.
    /// An order that ships at once may get no station, so `is_picked` waits for it.
    pub(super) async fn paid(&self, mut rng: Rng, is_picked: bool) {
        let body = json!({"customer_id": customer(rng.usize(0..CUSTOMERS)), "lines": plenty(&mut rng, 2)});
        let Some(order) = self.place(&mut rng, body).await else { return };
        for to in ["paid", "picking", "shipped"] {
            self.go(&order, json!({"to": to})).await;
            if is_picked && to == "paid" {
                self.clients.staff("POST", "/_local/drain?timeout_s=30", &[], None).await;
            }
        }
    }

    /// Places an order, pays it by card, and refunds a part, as a customer, a browser and staff do.
    /// Another order is cancelled before Bodega knows that the customer has paid.
    pub(super) async fn paid_by_card(&self, mut rng: Rng) {
        for is_late in [false, true] {
            let body = json!({"customer_id": customer(rng.usize(0..CUSTOMERS)), "lines": plenty(&mut rng, 2)});
            let Some(order) = self.place(&mut rng, body).await else { continue };
            let path = format!("/v1/orders/{order}/payments");
            let Some(payment) = self.try_hard(&mut rng, path.clone(), json!({"method": "card"})).await else {
                continue;
            };
            let (Some(intent), id) = (intent_of(&payment), payment["id"].as_str().unwrap()) else { continue };
            self.give_card(intent);
            if is_late {
                self.go(&order, json!({"to": "cancelled"})).await;
            }
            self.tell(intent).await;
            self.clients.staff("POST", "/_local/drain?timeout_s=300", &[], None).await;
            let body = json!({"amount": usd(PRICE), "reason": "damaged"});
            self.try_hard(&mut rng, format!("{path}/{id}/refunds"), body).await;
        }
        self.round().await;
    }

    /// Sends a request until its outcome is known. Gives up soon, because the provider repeats a
    /// stored error.
    async fn try_hard(&self, rng: &mut Rng, path: String, body: Value) -> Option<Value> {
        let request = Request { by: None, key: format!("k{:016x}", rng.u64(..)), path, body };
        for _ in 0..3 {
            match self.send(&request).await {
                Outcome::Done(answer) => return Some(answer.body),
                Outcome::Refused => return None,
                Outcome::Unknown => {}
            }
        }
        None
    }

    /// Ships the orders at the picking stations, so that waiting orders can be admitted.
    pub(super) async fn free_the_stations(&self) {
        let picking = self.clients.staff("GET", "/v1/picking", &[], None).await;
        for job in picking.body["jobs"].as_array().into_iter().flatten() {
            let order = job["order_id"].as_str().unwrap();
            for to in ["picking", "shipped"] {
                self.go(order, json!({"to": to})).await;
            }
        }
    }

    pub(super) async fn erase_somebody(&self, id: &str) {
        let body = json!({"id": id, "email": format!("{id}@example.com"), "username": id, "name": "C"});
        let (path, version) = (format!("/v1/customers/{id}"), [("if-match", "\"1\"".to_owned())]);
        for _ in 0..ROUNDS {
            if matches!(self.clients.staff("POST", "/v1/customers", &[], Some(&body)).await.status, 201 | 409) {
                break;
            }
        }
        let mut last = Answer::default();
        for _ in 0..ROUNDS {
            last = self.clients.staff("DELETE", &path, &version, None).await;
            if matches!(last.status, 204 | 404) {
                return;
            }
        }
        panic!("the erasure of {id} does not succeed: {last:?}");
    }

    /// Moves a category with its own products and one product of another category.
    pub(super) async fn move_a_category(&self, name: &str) {
        for (n, category) in [name, name, "ELSEWHERE"].into_iter().enumerate() {
            let body = json!({
                "id": format!("{name}-{n}"), "name": "Thing", "brand": "Private", "category_path": [category],
                "price": {"amount": 129, "currency": "USD"}, "stock": 1,
            });
            // Retry until the product exists. The move of an empty category would miss many of
            // the crash points.
            for _ in 0..ROUNDS {
                if matches!(self.clients.staff("POST", "/v1/products", &[], Some(&body)).await.status, 201 | 409) {
                    break;
                }
            }
        }
        let guest = format!("/v1/products/{name}-2/categories/{name}");
        for _ in 0..ROUNDS {
            if matches!(self.clients.staff("PUT", &guest, &[], None).await.status, 200..=204) {
                break;
            }
        }
        let to = json!({"to": [format!("{name}-moved")]});
        let path = format!("/v1/categories/{name}/move");
        let mut last = Answer::default();
        for hour in 1..=2 * ROUNDS {
            last = self.clients.staff("POST", &path, &[], Some(&to)).await;
            match last.status {
                200 => return,
                // The move waits until no request that read the old path can still be running. The
                // janitor's clock advances, so that the test need not wait.
                202 => {
                    self.clients
                        .fault(json!({"target": "function:Janitor", "kind": "clock", "seconds": hour * 3_600}))
                        .await;
                    self.clean(0).await;
                }
                _ => {}
            }
        }
        panic!("the move of the category does not succeed: {last:?}");
    }

    /// Places an order, with some retries. Returns its id.
    async fn place(&self, rng: &mut Rng, body: Value) -> Option<String> {
        self.insist(rng, "/v1/orders".to_owned(), body).await.map(|order| order["id"].as_str().unwrap().to_owned())
    }

    /// Moves an order by one step, with some retries.
    async fn go(&self, order: &str, body: Value) {
        for _ in 0..ROUNDS {
            let found = self.clients.staff("GET", &format!("/v1/orders/{order}"), &[], None).await;
            let version = if_match(&found);
            let path = format!("/v1/orders/{order}/status");
            let answer = self.clients.staff("POST", &path, &version, Some(&body)).await;
            if answer.status == 200 {
                return self.moved(&found, &body, "staff", &answer);
            }
            if matches!(answer.status, 409) {
                return;
            }
        }
    }
}
