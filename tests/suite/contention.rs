//! Tests concurrent clients. The stock stays exact, only one of several requests with the same key
//! or reference places an order, and a refused request writes no items.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt as _;
use local::System;
use serde_json::{Value as Json, json};

use crate::support::client::{Answer, Call};
use crate::support::shop::{all, customer_call, listed, moved, order_body, order_call, path, products, stock};
use crate::support::table::entities_naming;
use crate::support::{drain, with_slow_transactions, with_system};

const ROUNDS: usize = 12;

/// Sends all calls at the same time. Repeats a call whose response is 503.
async fn at_once(system: &System, calls: impl IntoIterator<Item = Call>) -> Vec<Answer> {
    let calls: Vec<_> = calls.into_iter().map(|call| call.settled(system)).collect();
    futures::future::join_all(calls).await
}

async fn customers(system: &System, prefix: &str, count: usize) -> Vec<String> {
    let ids: Vec<String> = (0..count).map(|n| format!("{prefix}-c{n}")).collect();
    for answer in all(system, ids.iter().map(|id| customer_call(id))).await {
        answer.expect(201);
    }
    ids
}

/// Counts the responses by status and code.
fn outcomes(answers: &[Answer]) -> BTreeMap<(u16, &str), usize> {
    let mut counts = BTreeMap::new();
    for answer in answers {
        *counts.entry((answer.status, answer.code())).or_default() += 1;
    }
    counts
}

fn is_replay(answer: &Answer) -> bool {
    answer.headers.get("idempotency-replayed").is_some_and(|value| value == "true")
}

fn ids<'a>(orders: impl IntoIterator<Item = &'a Json>) -> BTreeSet<&'a str> {
    orders.into_iter().map(|order| order["id"].as_str().unwrap()).collect()
}

async fn orders_of(system: &System, customers: &[String]) -> Vec<Json> {
    let lists = customers.iter().map(|id| async move {
        listed(system, &path(&["customers", id, "orders"]), 100, |path| Call::new("GET", path).customer(id)).await
    });
    futures::stream::iter(lists).buffered(4).concat().await
}

/// Returns the expected number of items by entity after this many orders of one product. Each order
/// has one line and one idempotency key. `buyers` is the number of customers, and `before` has the
/// earlier counts.
fn stored(before: &BTreeMap<String, usize>, orders: usize, buyers: usize) -> BTreeMap<String, usize> {
    let mut stored = before.clone();
    for entity in ["Order", "OrderLine", "OrderStatusEvent", "CustomerOrder", "IdempotencyRecord", "Sale"] {
        stored.insert(entity.to_owned(), orders);
    }
    // The orders share one product, so there is one total. No leaderboard counts unpaid orders.
    stored.insert("ProductSales".to_owned(), 1);
    stored.insert("OpenOrders".to_owned(), buyers);
    stored
}

#[test]
fn exactly_50_of_200_orders_for_a_product_with_50_in_stock_are_placed() {
    with_system(async |system| {
        let buyers = customers(system, "rush", 8).await;
        products(system, &["rush-product"], 50).await;
        let before = entities_naming(system, "rush-").await;
        let calls = (0..200).map(|n| {
            let buyer = &buyers[n % buyers.len()];
            order_call(&order_body(buyer, &[("rush-product", 1)]), &format!("rush-{n}")).customer(buyer)
        });
        let answers = at_once(system, calls).await;
        assert_eq!(outcomes(&answers), [((201, ""), 50), ((409, "insufficient_stock"), 150)].into());
        for refused in answers.iter().filter(|answer| answer.status == 409) {
            assert_eq!(refused.pointers(), ["/lines/0/quantity"], "{}", refused.body);
        }
        assert_eq!(stock(system, "rush-product").await, 0);

        let placed = answers.iter().filter(|answer| answer.status == 201).map(|answer| &answer.body);
        let listed = orders_of(system, &buyers).await;
        assert_eq!(listed.len(), 50);
        assert_eq!(ids(&listed), ids(placed));
        let distinct: BTreeSet<&str> = listed.iter().map(|order| order["customer_id"].as_str().unwrap()).collect();
        let distinct = distinct.len();
        drain(system).await;
        // A refused order leaves no order, line, status event, customer's copy or idempotency
        // record.
        assert_eq!(entities_naming(system, "rush-").await, stored(&before, 50, distinct));
    });
}

#[test]
fn a_basket_with_one_line_beyond_the_stock_takes_no_stock_for_its_other_lines() {
    with_system(async |system| {
        let buyers = customers(system, "mixed", 4).await;
        products(system, &["mixed-plenty", "mixed-few", "mixed-none"], 1000).await;
        for (product, left) in [("mixed-few", 5), ("mixed-none", 0)] {
            let call = Call::new("PUT", &path(&["products", product, "stock"])).staff();
            call.json(&json!({ "set": left })).send(system).await.expect(200);
        }
        let calls = (0..40).map(|n| {
            let buyer = &buyers[n % buyers.len()];
            // The product `mixed-few` is in the first or the second line. Every fourth basket also
            // has a product without stock.
            let lines: &[(&str, u64)] = match n % 4 {
                0 => &[("mixed-plenty", 2), ("mixed-few", 1)],
                1 => &[("mixed-few", 1), ("mixed-plenty", 2)],
                2 => &[("mixed-plenty", 2), ("mixed-few", 6)],
                _ => &[("mixed-few", 6), ("mixed-plenty", 2), ("mixed-none", 1)],
            };
            order_call(&order_body(buyer, lines), &format!("mixed-{n}")).customer(buyer)
        });
        let answers = at_once(system, calls).await;
        assert_eq!(outcomes(&answers), [((201, ""), 5), ((409, "insufficient_stock"), 35)].into());
        for (n, refused) in answers.iter().enumerate().filter(|(_, answer)| answer.status == 409) {
            let expected: &[&str] = match n % 4 {
                0 | 2 => &["/lines/1/quantity"],
                1 => &["/lines/0/quantity"],
                _ => &["/lines/0/quantity", "/lines/2/quantity"],
            };
            assert_eq!(refused.pointers(), expected, "{}", refused.body);
        }
        assert_eq!(stock(system, "mixed-few").await, 0);
        assert_eq!(stock(system, "mixed-plenty").await, 1000 - 2 * 5);
        assert_eq!(stock(system, "mixed-none").await, 0);
        assert_eq!(orders_of(system, &buyers).await.len(), 5);
    });
}

#[test]
fn a_key_sent_20_times_at_once_creates_one_order_and_one_response() {
    with_system(async |system| {
        let buyer = &customers(system, "again", 1).await[0];
        products(system, &["again-product"], 100).await;
        let before = entities_naming(system, "again-").await;
        // Two requests conflict only if their timing happens to overlap, so the test runs several
        // rounds.
        for round in 1..=ROUNDS {
            // In some rounds half of the requests send another body with the same key.
            let others = if round % 3 == 0 { 3 } else { 2 };
            let wanted =
                |n: usize| order_body(buyer, &[("again-product", if n.is_multiple_of(2) { 2 } else { others })]);
            let call = |n| order_call(&wanted(n), &format!("again-{round}")).customer(buyer);
            let answers = at_once(system, (0..20).map(call)).await;
            let placed: Vec<(usize, &Answer)> =
                answers.iter().enumerate().filter(|(_, answer)| answer.status == 201).collect();
            let (first, _) = placed[0];
            for (n, refused) in answers.iter().enumerate().filter(|(_, answer)| answer.status != 201) {
                let expected = if wanted(n) == wanted(first) {
                    (409, "idempotency_in_progress")
                } else {
                    (422, "idempotency_key_reused")
                };
                assert_eq!((refused.status, refused.code()), expected, "{}", refused.body);
            }
            for (n, answer) in &placed {
                assert_eq!(wanted(*n), wanted(first));
                assert_eq!(answer.raw, answers[first].raw);
                for header in ["location", "etag"] {
                    assert_eq!(answer.headers[header], answers[first].headers[header]);
                }
            }
            // A request that is repeated after a 503 may find the order of its first attempt. Then all
            // responses are replays.
            let first = placed.iter().filter(|(_, answer)| !is_replay(answer)).count();
            assert!(first <= 1, "all other responses replay the first one");
        }
        let orders = orders_of(system, std::slice::from_ref(buyer)).await;
        assert_eq!(orders.len(), ROUNDS);
        let paid: u64 = orders.iter().map(|order| order["total"]["amount"].as_u64().unwrap()).sum();
        assert_eq!(stock(system, "again-product").await, 100 - paid / 129);
        drain(system).await;
        assert_eq!(entities_naming(system, "again-").await, stored(&before, ROUNDS, 1));
    });
}

#[test]
fn a_repeated_key_gets_the_first_response_and_callers_do_not_share_keys() {
    with_system(async |system| {
        let buyers = customers(system, "replay", 2).await;
        products(system, &["replay-product"], 2).await;
        let [one, other] = [&buyers[0], &buyers[1]];
        let body = order_body(one, &[("replay-product", 2)]);
        let call = || order_call(&body, "replay").customer(one);
        let first = call().send(system).await.expect(201);
        assert!(!is_replay(&first));

        // The replay still returns the first response after changes of the order, the stock and the
        // product.
        let mut order = moved(system, first.body.clone(), &["paid"]).await;
        for to in [None, Some("picking"), Some("cancelled")] {
            order = moved(system, order, to.as_slice()).await;
            let replay = call().send(system).await.expect(201);
            assert!(is_replay(&replay));
            assert_eq!(replay.raw, first.raw);
            assert_eq!(replay.headers["etag"], "\"1\"");
        }
        assert_eq!(stock(system, "replay-product").await, 2);

        let changed = order_call(&order_body(one, &[("replay-product", 1)]), "replay").customer(one);
        assert_eq!(changed.send(system).await.expect(422).code(), "idempotency_key_reused");
        let theirs = order_call(&order_body(other, &[("replay-product", 1)]), "replay").customer(other);
        let theirs = theirs.send(system).await.expect(201);
        let staffs = order_call(&order_body(one, &[("replay-product", 1)]), "replay").staff();
        let staffs = staffs.send(system).await.expect(201);
        assert!(!is_replay(&theirs) && !is_replay(&staffs));
        assert_eq!(ids([&first.body, &theirs.body, &staffs.body]).len(), 3);
        assert_eq!(stock(system, "replay-product").await, 0);
        let keyless = Call::new("POST", "/v1/orders").customer(one).json(&body).send(system).await.expect(400);
        assert_eq!(keyless.code(), "idempotency_key_missing");
        // The key does not keep a refusal. Once there is stock, the same request succeeds.
        let refused = || order_call(&body, "replay later").customer(one);
        assert_eq!(refused().send(system).await.expect(409).code(), "insufficient_stock");
        moved(system, theirs.body, &["cancelled"]).await;
        moved(system, staffs.body, &["cancelled"]).await;
        assert!(!is_replay(&refused().send(system).await.expect(201)));
    });
}

#[test]
fn each_customer_places_one_order_per_reference_and_each_refusal_has_the_location_of_that_order() {
    with_system(async |system| {
        let buyers = customers(system, "named", 4).await;
        products(system, &["named-product"], 100).await;
        let calls = (0..20).map(|n| {
            let buyer = &buyers[n % buyers.len()];
            let mut body = order_body(buyer, &[("named-product", 1)]);
            body["reference"] = json!("named #1/Ä");
            order_call(&body, &format!("named-{n}")).customer(buyer)
        });
        let answers = at_once(system, calls).await;
        assert_eq!(outcomes(&answers), [((201, ""), 4), ((409, "already_exists"), 16)].into());
        for (at, buyer) in buyers.iter().enumerate() {
            let own: Vec<&Answer> = answers.iter().skip(at).step_by(buyers.len()).collect();
            let placed = own.iter().find(|answer| answer.status == 201).unwrap();
            assert!(own.iter().all(|answer| answer.headers["location"] == placed.headers["location"]));
            let found = Call::new("GET", &placed.headers["location"]).customer(buyer).send(system).await.expect(200);
            assert_eq!(found.body, placed.body);
            assert_eq!(ids(&orders_of(system, std::slice::from_ref(buyer)).await), ids([&placed.body]));
        }
        assert_eq!(stock(system, "named-product").await, 96);
    });
}

#[test]
fn a_cart_that_is_checked_out_many_times_at_once_makes_one_order() {
    with_system(async |system| {
        let buyers = customers(system, "cart", 2).await;
        products(system, &["cart-1", "cart-2"], 100).await;
        // Without a key, a repeated checkout finds an empty cart. With a key it returns the first
        // response.
        for (buyer, key) in buyers.iter().zip([None, Some("cart")]) {
            for (product, quantity) in [("cart-1", 2), ("cart-2", 1)] {
                let line = Call::new("PUT", &path(&["customers", buyer, "cart", "items", product])).customer(buyer);
                line.json(&json!({ "quantity": quantity })).send(system).await.expect(200);
            }
            let checkout = || {
                let call = Call::new("POST", &path(&["customers", buyer, "cart", "checkout"])).customer(buyer);
                let call = call.json(&json!({}));
                key.iter().fold(call, |call, key| call.header("idempotency-key", key))
            };
            let answers = at_once(system, (0..10).map(|_| checkout())).await;
            let placed: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 201).collect();
            for refused in answers.iter().filter(|answer| answer.status != 201) {
                let known = [(422, "cart_empty"), (409, "conflict"), (409, "idempotency_in_progress")];
                assert!(known.contains(&(refused.status, refused.code())), "{} {}", refused.status, refused.body);
            }
            assert!(placed.iter().all(|answer| answer.raw == placed[0].raw));
            assert!(key.is_some() || placed.len() == 1, "{}", placed.len());
            let lines = placed[0].body["lines"].as_array().unwrap();
            let sold: Vec<_> =
                lines.iter().map(|line| (line["product_id"].as_str().unwrap(), &line["quantity"])).collect();
            assert_eq!(sold, [("cart-1", &json!(2)), ("cart-2", &json!(1))]);

            let cart = Call::new("GET", &path(&["customers", buyer, "cart"])).customer(buyer).send(system).await;
            assert_eq!(cart.body, json!({ "items": [], "subtotal": null, "expires_at": null }));
            assert_eq!(ids(&orders_of(system, std::slice::from_ref(buyer)).await), ids([&placed[0].body]));
            let later = checkout().send(system).await;
            match key {
                None => assert_eq!((later.status, later.code()), (422, "cart_empty")),
                Some(_) => assert_eq!((later.status, &later.raw), (201, &placed[0].raw)),
            }
        }
        assert_eq!([stock(system, "cart-1").await, stock(system, "cart-2").await], [96, 98]);
    });
}

#[test]
fn each_conflicting_order_in_a_slow_transaction_is_placed_or_refused() {
    with_slow_transactions(Duration::from_millis(20), async |system| {
        let buyers = customers(system, "hot", 12).await;
        products(system, &["hot-product"], 10).await;
        let call = |n: usize| {
            order_call(&order_body(&buyers[n], &[("hot-product", 1)]), &format!("hot-{n}")).customer(&buyers[n])
        };
        let mut open: Vec<usize> = (0..buyers.len()).collect();
        let mut outcomes = BTreeMap::<(u16, String), usize>::new();
        // In each round at least one request must get a response other than 503.
        while !open.is_empty() {
            let answers = at_once(system, open.iter().map(|n| call(*n))).await;
            let (busy, told): (Vec<_>, Vec<_>) = open.iter().zip(answers).partition(|(_, answer)| answer.status == 503);
            assert!(!told.is_empty(), "{} orders without a response", open.len());
            for (_, answer) in told {
                *outcomes.entry((answer.status, answer.code().to_owned())).or_default() += 1;
            }
            open = busy.into_iter().map(|(n, _)| *n).collect();
        }
        assert_eq!(outcomes, [((201, String::new()), 10), ((409, "insufficient_stock".to_owned()), 2)].into());
        assert!(system.counts().conflicts > 0, "no requests conflicted");
        assert_eq!(stock(system, "hot-product").await, 0);
        assert_eq!(orders_of(system, &buyers).await.len(), 10);
    });
}
