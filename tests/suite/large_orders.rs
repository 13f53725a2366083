//! Tests orders with more lines than one transaction allows. They are placed completely or not at
//! all, even if functions crash.

use futures::future::join_all;
use local::System;
use serde_json::{Value as Json, json};

use crate::support::client::{Answer, Call};
use crate::support::shop::{all, customer, listed, order_call, path, products, step, stock};
use crate::support::{drain, table, with_own_system, with_system};

/// Returns the number of lines of the largest basket in the retail data, or fewer if transactions
/// are slow.
fn lines() -> usize {
    if is_slow() { 100 } else { 161 }
}

/// Returns the maximum number of lines of an order, or fewer if transactions are slow.
fn most() -> usize {
    if is_slow() { 100 } else { MOST }
}

/// DynamoDB Local takes half a second for a hundred actions, and all tests share it.
fn is_slow() -> bool {
    std::env::var_os("AWS_ENDPOINT_URL_DYNAMODB").is_some()
}

/// The maximum number of lines that an order may have.
const MOST: usize = 500;
const STOCK: u64 = 5;
/// The index of the line without stock. The second transaction that reserves lines contains this
/// line.
const SHORT: usize = 77;

fn ids(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}-{n:03}")).collect()
}

async fn shelf(system: &System, prefix: &str, count: usize) -> Vec<String> {
    let ids = ids(prefix, count);
    products(system, &ids.iter().map(String::as_str).collect::<Vec<_>>(), STOCK).await;
    ids
}

fn body(buyer: &str, ids: &[String]) -> Json {
    let lines: Vec<Json> = ids.iter().map(|id| json!({ "product_id": id, "quantity": 1 })).collect();
    json!({ "customer_id": buyer, "lines": lines })
}

async fn stocks(system: &System, ids: &[String]) -> Vec<u64> {
    let calls = ids.iter().map(|id| Call::new("GET", &path(&["products", id, "numbers"])).staff());
    all(system, calls).await.into_iter().map(|answer| answer.expect(200).body["stock"].as_u64().unwrap()).collect()
}

async fn orders_of(system: &System, buyer: &str) -> Vec<Json> {
    listed(system, &path(&["customers", buyer, "orders"]), 100, |path| Call::new("GET", path).staff()).await
}

async fn set_stock(system: &System, product: &str, to: u64) {
    let call = Call::new("PUT", &path(&["products", product, "stock"])).staff().json(&json!({ "set": to }));
    call.send(system).await.expect(200);
}

async fn janitor(system: &System) -> Json {
    let call = Call::new("POST", "/_local/invoke/Janitor").json(&json!({ "grace_seconds": 0 }));
    call.send(system).await.expect(200).body
}

async fn crash(system: &System, point: &str, count: u64) {
    let fault = json!({ "target": "function:Orders", "kind": "crash", "point": point, "rate": 1.0, "count": count });
    Call::new("POST", "/_local/faults").json(&fault).send(system).await.expect(204);
}

#[test]
fn an_order_of_500_lines_that_is_sent_twice_is_placed_once_and_can_be_cancelled() {
    with_system(async |system| {
        let (buyer, ids) = ("large-buyer", shelf(system, "large", most()).await);
        customer(system, buyer).await;
        let body = body(buyer, &ids);
        let first = order_call(&body, "large").customer(buyer).send(system).await.expect(201);
        assert_eq!(first.body["lines"].as_array().unwrap().len(), most());
        assert_eq!(first.body["total"], json!({ "amount": 129 * most(), "currency": "USD" }));
        assert_eq!((&first.body["status"], &first.body["version"]), (&json!("pending"), &json!(1)));
        let again = order_call(&body, "large").customer(buyer).send(system).await.expect(201);
        assert_eq!((&again.raw, &again.headers["etag"]), (&first.raw, &first.headers["etag"]));
        assert_eq!(again.headers["idempotency-replayed"], "true");
        assert_eq!(stocks(system, &ids).await, vec![STOCK - 1; most()]);
        let read = Call::new("GET", &path(&["orders", first.body["id"].as_str().unwrap()]));
        assert_eq!(read.customer(buyer).send(system).await.expect(200).body, first.body);
        assert_eq!(orders_of(system, buyer).await.len(), 1);

        let cancelled = step(&first.body, "cancelled").customer(buyer).send(system).await.expect(200).body;
        assert_eq!((&cancelled["status"], &cancelled["version"]), (&json!("cancelled"), &json!(2)));
        assert_eq!(stocks(system, &ids).await, vec![STOCK; most()]);
        drain(system).await;
    });
}

#[test]
fn a_basket_of_500_lines_with_one_line_beyond_the_stock_is_refused_and_the_error_names_it() {
    with_system(async |system| {
        let (buyer, ids) = ("short-buyer", shelf(system, "short", most()).await);
        customer(system, buyer).await;
        set_stock(system, &ids[SHORT], 0).await;
        let refused = order_call(&body(buyer, &ids), "short").customer(buyer).send(system).await.expect(409);
        assert_eq!(refused.code(), "insufficient_stock");
        let errors = refused.body["errors"].as_array().unwrap();
        assert_eq!((errors.len(), &errors[0]["pointer"]), (1, &json!(format!("/lines/{SHORT}/quantity"))));
        let mut expected = vec![STOCK; most()];
        expected[SHORT] = 0;
        assert_eq!(stocks(system, &ids).await, expected);
        assert!(orders_of(system, buyer).await.is_empty());
        // The same idempotency key is still usable after the refusal.
        set_stock(system, &ids[SHORT], 1).await;
        order_call(&body(buyer, &ids), "short").customer(buyer).send(system).await.expect(201);
        assert_eq!(stock(system, &ids[SHORT]).await, 0);

        let too_many: Vec<String> = (0..=MOST).map(|n| format!("nothing-{n}")).collect();
        let refused = order_call(&body(buyer, &too_many), "more").customer(buyer).send(system).await.expect(422);
        assert_eq!(refused.code(), "too_many_lines");
    });
}

#[test]
fn a_large_order_that_many_clients_send_at_once_is_placed_once() {
    with_system(async |system| {
        let (buyer, ids) = ("twins-buyer", shelf(system, "twins", lines()).await);
        customer(system, buyer).await;
        let body = body(buyer, &ids);
        let calls = (0..6).map(|_| order_call(&body, "twins").customer(buyer).settled(system));
        let answers: Vec<Answer> = join_all(calls).await;
        for answer in &answers {
            let fine = answer.status == 201 || (answer.status, answer.code()) == (409, "idempotency_in_progress");
            assert!(fine, "{} {}", answer.status, answer.body);
        }
        let placed = order_call(&body, "twins").customer(buyer).send(system).await.expect(201);
        assert!(answers.iter().filter(|answer| answer.status == 201).all(|answer| answer.raw == placed.raw));
        assert_eq!(stocks(system, &ids).await, vec![STOCK - 1; lines()]);
        assert_eq!(orders_of(system, buyer).await.len(), 1);
        let other = order_call(&self::body(buyer, &ids[1..]), "twins").customer(buyer).send(system).await.expect(422);
        assert_eq!(other.code(), "idempotency_key_reused");
    });
}

#[test]
fn a_large_order_whose_function_dies_is_undone_and_can_be_sent_again() {
    with_own_system(async |system| {
        let (buyer, ids) = ("dying-buyer", shelf(system, "dying", lines()).await);
        customer(system, buyer).await;
        let body = body(buyer, &ids);
        for (point, undone) in [("orders.staged.begun", 1), ("orders.staged.reserved", 1), ("orders.placed", 0)] {
            crash(system, point, 1).await;
            let key = format!("dying-{point}");
            let died = order_call(&body, &key).customer(buyer).send(system).await;
            assert!(died.status >= 500, "{point}: {}", died.body);
            Call::new("DELETE", "/_local/faults").send(system).await.expect(204);
            if undone == 1 {
                let busy = order_call(&body, &key).customer(buyer).send(system).await.expect(409);
                assert_eq!(busy.code(), "idempotency_in_progress");
            }
            let cleaned = janitor(system).await;
            assert_eq!((&cleaned["undone"], &cleaned["failed"]), (&json!(undone), &json!(0)), "{point}: {cleaned}");
            let order = order_call(&body, &key).customer(buyer).send(system).await.expect(201).body;
            assert_eq!(stocks(system, &ids).await, vec![STOCK - 1; lines()], "{point}");

            crash(system, "orders.moved", 1).await;
            let died = step(&order, "cancelled").customer(buyer).send(system).await;
            assert!(died.status >= 500, "{point}: {}", died.body);
            Call::new("DELETE", "/_local/faults").send(system).await.expect(204);
            assert!(stocks(system, &ids).await.contains(&(STOCK - 1)), "{point}");
            let cleaned = janitor(system).await;
            assert_eq!((&cleaned["finished"], &cleaned["failed"]), (&json!(1), &json!(0)), "{point}: {cleaned}");
            assert_eq!(stocks(system, &ids).await, vec![STOCK; lines()], "{point}");
            let read = Call::new("GET", &path(&["orders", order["id"].as_str().unwrap()]));
            assert_eq!(read.customer(buyer).send(system).await.expect(200).body["status"], "cancelled");
        }
        assert_eq!(orders_of(system, buyer).await.len(), 3, "one for each key");
        drain(system).await;
    });
}

#[test]
fn an_order_that_is_still_being_placed_has_no_log() {
    with_own_system(async |system| {
        let (buyer, ids) = ("unseen-buyer", shelf(system, "unseen", lines()).await);
        customer(system, buyer).await;
        crash(system, "orders.staged.reserved", 1).await;
        let died = order_call(&body(buyer, &ids), "unseen").customer(buyer).send(system).await;
        assert!(died.status >= 500, "{}", died.body);
        Call::new("DELETE", "/_local/faults").send(system).await.expect(204);
        let items = table::scan(system).await;
        let head = items.values().find(|item| item["status"]["S"] == "placing").unwrap();
        let log = |id: &str| path(&["orders", id, "log"]);
        let unseen = log(head["id"]["S"].as_str().unwrap());
        let note = |path: &str| Call::new("POST", path).staff().json(&json!({ "text": "The customer called." }));
        for call in [note(&unseen), Call::new("GET", &unseen).staff()] {
            assert_eq!(call.send(system).await.expect(404).code(), "not_found");
        }
        assert!(!table::entities_naming(system, "").await.contains_key("OrderLog"));

        janitor(system).await;
        let order = order_call(&body(buyer, &ids), "unseen").customer(buyer).send(system).await.expect(201).body;
        let seen = log(order["id"].as_str().unwrap());
        note(&seen).send(system).await.expect(201);
        drain(system).await;
        let lines = Call::new("GET", &seen).staff().send(system).await.expect(200).body;
        assert_eq!(lines["items"][0]["text"], "The customer called.");
    });
}
