use futures::future::join_all;
use local::System;
use serde_json::{Value as Json, json};

use crate::support::client::{Answer, Call};
use crate::support::shop::{customer, listed, moved, order, path, products, step, step_with, stock};
use crate::support::with_system;

fn usd(amount: i64) -> Json {
    json!({ "amount": amount, "currency": "USD" })
}

async fn deposit(system: &System, buyer: &str, amount: i64) {
    let call = Call::new("POST", &path(&["customers", buyer, "wallet", "deposits"])).staff();
    let call = call.json(&json!({ "amount": usd(amount) })).header("idempotency-key", &format!("{buyer}-{amount}"));
    call.send(system).await.expect(201);
}

async fn balance(system: &System, buyer: &str) -> Json {
    let call = Call::new("GET", &path(&["customers", buyer, "wallet"])).customer(buyer);
    call.send(system).await.expect(200).body["balance"].clone()
}

async fn entries(system: &System, buyer: &str) -> Vec<(String, i64)> {
    let list = path(&["customers", buyer, "wallet", "entries"]);
    let all = listed(system, &list, 100, |path| Call::new("GET", path).customer(buyer)).await;
    let entry =
        |entry: &Json| (entry["kind"].as_str().unwrap().to_owned(), entry["amount"]["amount"].as_i64().unwrap());
    all.iter().map(entry).collect()
}

fn pay(order: &Json) -> Call {
    step_with(order, &json!({ "to": "paid", "pay_from_wallet": true }))
}

fn refund(order: &Json, amount: i64, key: &str) -> Call {
    let call = Call::new("POST", &path(&["orders", order["id"].as_str().unwrap(), "refunds"]));
    call.json(&json!({ "amount": usd(amount) })).header("idempotency-key", key)
}

fn kinds(entries: &[(String, i64)]) -> Vec<(&str, i64)> {
    entries.iter().map(|(kind, amount)| (kind.as_str(), *amount)).collect()
}

#[test]
fn an_order_is_paid_from_the_wallet_by_its_owner_and_the_money_returns_with_the_goods() {
    with_system(async |system| {
        let (buyer, product) = ("pay-buyer", "pay-product");
        customer(system, buyer).await;
        products(system, &[product], 10).await;
        let order = order(system, buyer, &[(product, 2)], "pay").await;
        let poor = pay(&order).customer(buyer).send(system).await.expect(409);
        assert_eq!(poor.code(), "insufficient_funds");
        deposit(system, buyer, 257).await;
        assert_eq!(pay(&order).customer(buyer).send(system).await.expect(409).code(), "insufficient_funds");
        deposit(system, buyer, 100).await;
        let stranger = pay(&order).customer("pay-stranger").send(system).await;
        assert_eq!(stranger.status, 404);
        // Only staff may record a payment by other means.
        assert_eq!(step(&order, "paid").customer(buyer).send(system).await.expect(403).code(), "forbidden");
        let paid = pay(&order).customer(buyer).send(system).await.expect(200).body;
        assert_eq!((&paid["status"], &paid["version"]), (&json!("paid"), &json!(2)));
        let payment = &paid["payments"][0];
        let said = (&payment["method"], &payment["amount"], &payment["refunded"], &payment["by"]);
        assert_eq!(said, (&json!("wallet"), &usd(258), &usd(0), &json!(buyer)));
        assert_eq!(pay(&order).customer(buyer).send(system).await.expect(412).code(), "version_mismatch");
        assert_eq!(balance(system, buyer).await, usd(99));

        let cancelled = step(&paid, "cancelled").customer(buyer).send(system).await.expect(200).body;
        assert_eq!((&cancelled["refunded"], &cancelled["payments"][0]["refunded"]), (&usd(258), &usd(258)));
        assert_eq!(cancelled["payments"].as_array().unwrap().len(), 1);
        let read = Call::new("GET", &path(&["orders", order["id"].as_str().unwrap()])).customer(buyer);
        assert_eq!(read.send(system).await.expect(200).body, cancelled);
        assert_eq!((balance(system, buyer).await, stock(system, product).await), (usd(357), 10));
        let entries = entries(system, buyer).await;
        assert_eq!(kinds(&entries), [("refund", 258), ("payment", -258), ("deposit", 100), ("deposit", 257)]);
    });
}

#[test]
fn staff_can_refund_an_order_in_parts_but_never_more_than_its_total() {
    with_system(async |system| {
        let (buyer, product) = ("part-buyer", "part-product");
        customer(system, buyer).await;
        products(system, &[product], 10).await;
        let unpaid = order(system, buyer, &[(product, 1)], "part").await;
        assert_eq!(refund(&unpaid, 1, "part-0").staff().send(system).await.expect(409).code(), "illegal_transition");
        let paid = moved(system, unpaid, &["paid", "picking", "shipped", "delivered"]).await;
        assert_eq!(refund(&paid, 1, "part-1").customer(buyer).send(system).await.expect(403).code(), "forbidden");
        let first = refund(&paid, 100, "part-2").staff().send(system).await.expect(201);
        assert_eq!((&first.body["amount"], &first.body["refunded"]), (&usd(100), &usd(100)));
        let again = refund(&paid, 100, "part-2").staff().send(system).await.expect(201);
        assert_eq!((&again.raw, again.headers["idempotency-replayed"].as_str()), (&first.raw, "true"));
        let reused = refund(&paid, 10, "part-2").staff().send(system).await.expect(422);
        assert_eq!(reused.code(), "idempotency_key_reused");
        let more = refund(&paid, 30, "part-3").staff().send(system).await.expect(422);
        assert_eq!(more.body["errors"][0]["pointer"], "/amount/amount");
        // Concurrent refunds never exceed the amount that is not yet refunded.
        let calls = (0..8).map(|n| refund(&paid, 7, &format!("part-many-{n}")).staff().settled(system));
        let answers: Vec<Answer> = join_all(calls).await;
        let done = answers.iter().filter(|answer| answer.status == 201).count();
        assert!(answers.iter().all(|answer| [201, 422].contains(&answer.status)), "{answers:?}");
        assert_eq!(done, 4);
        let left = 29 - 7 * i64::try_from(done).unwrap();
        let path = path(&["orders", paid["id"].as_str().unwrap()]);
        let read = Call::new("GET", &path).staff().send(system).await.expect(200).body;
        assert_eq!((&read["refunded"], &read["payments"][0]["refunded"]), (&usd(129 - left), &usd(129 - left)));
        assert_eq!(balance(system, buyer).await, usd(129 - left));

        // The order was not paid from the wallet, so staff chooses the amount of the refund.
        let more = step_with(&read, &json!({ "to": "returned", "refund": usd(left + 1) })).staff();
        assert_eq!(more.send(system).await.expect(422).body["errors"][0]["pointer"], "/refund/amount");
        let unknown = step_with(&read, &json!({ "to": "cancelled", "refund": usd(1) })).customer(buyer);
        assert_eq!(unknown.send(system).await.expect(422).body["errors"][0]["pointer"], "/refund");
        let returned = step_with(&read, &json!({ "to": "returned", "refund": usd(left) })).staff();
        assert_eq!(returned.send(system).await.expect(200).body["refunded"], usd(129));
        assert_eq!((balance(system, buyer).await, stock(system, product).await), (usd(129), 10));
    });
}

#[test]
fn invoices_are_numbered_without_a_gap_also_when_many_are_issued_at_once() {
    with_system(async |system| {
        let (buyer, product) = ("invoice-buyer", "invoice-product");
        customer(system, buyer).await;
        products(system, &[product], 100).await;
        let mut orders = Vec::new();
        for n in 0..6 {
            orders.push(order(system, buyer, &[(product, 1)], &format!("invoice-{n}")).await);
        }
        let issue =
            |order: &Json| Call::new("POST", &path(&["orders", order["id"].as_str().unwrap(), "invoice"])).staff();
        // Each order's invoice is requested twice.
        let answers = join_all(orders.iter().chain(&orders).map(|order| issue(order).settled(system))).await;
        assert!(answers.iter().all(|answer| [200, 201].contains(&answer.status)), "{answers:?}");
        let mut numbers = Vec::new();
        for order in &orders {
            let invoice = issue(order).send(system).await;
            assert!([200, 201].contains(&invoice.status));
            let number = invoice.body["number"].as_u64().unwrap();
            numbers.push(number);
            let found = |caller: Call| caller.send(system);
            let location = format!("/v1/invoices/{number}");
            let read = found(Call::new("GET", &location).customer(buyer)).await.expect(200);
            assert_eq!((&read.body, &read.body["order_id"]), (&invoice.body, &order["id"]));
            assert_eq!(
                found(Call::new("GET", &location).customer("invoice-stranger")).await.expect(404).code(),
                "not_found"
            );
            let path = path(&["orders", order["id"].as_str().unwrap()]);
            assert_eq!(found(Call::new("GET", &path).customer(buyer)).await.expect(200).body["invoice_number"], number);
        }
        numbers.sort_unstable();
        // Other tests issue invoices at the same time. The numbers in between belong to those
        // invoices and must exist.
        for number in numbers[0]..=numbers[numbers.len() - 1] {
            Call::new("GET", &format!("/v1/invoices/{number}")).staff().send(system).await.expect(200);
        }
        numbers.dedup();
        assert_eq!(numbers.len(), orders.len(), "a number of its own for each");

        let cancelled = order(system, buyer, &[(product, 1)], "invoice-cancelled").await;
        let cancelled = moved(system, cancelled, &["cancelled"]).await;
        assert_eq!(issue(&cancelled).send(system).await.expect(409).code(), "illegal_transition");
        let refused = Call::new("GET", "/v1/invoices/x").staff().send(system).await.expect(422);
        assert_eq!(refused.code(), "invalid_id");
        // These are other spellings of an invoice's number. They are not its id.
        for other in [format!("0{}", numbers[0]), format!("+{}", numbers[0]), format!("%2B{}", numbers[0])] {
            let missing = Call::new("GET", &format!("/v1/invoices/{other}")).staff().send(system).await.expect(404);
            assert_eq!(missing.code(), "not_found");
        }
    });
}
