//! Tests orders that are not paid in time, and the limits of unpaid orders.

use std::collections::BTreeSet;

use futures::future::join_all;
use local::System;
use serde_json::{Value as Json, json};

use crate::control::all;
use crate::support::client::{Answer, Call};
use crate::support::shop::{customer, order, order_body, order_call, path, products, step, stock};
use crate::support::{drain, with_own_system};

const HOUR: i64 = 3_600;

async fn fault(system: &System, fault: &Json) {
    Call::new("POST", "/_local/faults").json(fault).send(system).await.expect(204);
}

/// Sets a function's clock forward.
async fn ahead(system: &System, function: &str, seconds: i64) {
    let clock = json!({ "target": format!("function:{function}"), "kind": "clock", "seconds": seconds });
    fault(system, &clock).await;
}

async fn janitor(system: &System) -> Answer {
    Call::new("POST", "/_local/invoke/Janitor").json(&json!({})).send(system).await
}

async fn read(system: &System, order: &Json) -> Json {
    let call = Call::new("GET", &path(&["orders", order["id"].as_str().unwrap()])).staff();
    call.send(system).await.expect(200).body
}

/// Returns the status changes since the order was placed, each as status, author and note.
fn steps(order: &Json) -> Vec<(&str, &str, Option<&str>)> {
    let steps = order["history"].as_array().unwrap().iter().skip(1);
    steps.map(|step| (step["status"].as_str().unwrap(), step["by"].as_str().unwrap(), step["note"].as_str())).collect()
}

/// Returns the events of an order's status changes, each as the new status and the reason.
async fn changes(system: &System, order: &Json) -> Vec<(String, Option<String>)> {
    let events = all(system, "/_local/events").await;
    let text = |value: &Json| value.as_str().map(str::to_owned);
    let of_order = |event: &&Json| event["type"] == "OrderStatusChanged" && event["data"]["order_id"] == order["id"];
    // The bus may deliver an event twice, with the same id.
    let mut known = BTreeSet::new();
    let first = |event: &&Json| known.insert(text(&event["id"]));
    let shown = |event: &Json| (text(&event["data"]["to"]).unwrap(), text(&event["data"]["reason"]));
    events.iter().filter(of_order).filter(first).map(shown).collect()
}

#[test]
fn an_unpaid_order_lapses_after_an_hour_and_its_history_its_event_and_its_mail_say_why() {
    with_own_system(async |system| {
        customer(system, "late-ann").await;
        products(system, &["late-tea"], 10).await;
        let unpaid = order(system, "late-ann", &[("late-tea", 4)], "unpaid").await;
        let paid = order(system, "late-ann", &[("late-tea", 1)], "paid").await;
        step(&paid, "paid").staff().send(system).await.expect(200);
        let body = order_body("late-ann", &[("late-tea", 2)]);
        let exempt = order_call(&body, "exempt").staff().send(system).await.expect(201).body;
        assert!(unpaid["lapses_at"].is_string() && exempt["lapses_at"].is_null(), "{unpaid} {exempt}");

        ahead(system, "Janitor", HOUR - 60).await;
        janitor(system).await.expect(200);
        assert_eq!((&read(system, &unpaid).await["status"], stock(system, "late-tea").await), (&json!("pending"), 3));
        ahead(system, "Janitor", HOUR).await;
        janitor(system).await.expect(200);
        let lapsed = read(system, &unpaid).await;
        assert_eq!((&lapsed["status"], &lapsed["version"]), (&json!("cancelled"), &json!(2)));
        assert_eq!(steps(&lapsed), [("cancelled", "system", Some("lapsed"))]);
        assert_eq!(stock(system, "late-tea").await, 7);
        for other in [&paid, &exempt] {
            assert_ne!(read(system, other).await["status"], "cancelled");
        }

        // The order has lapsed, so it can no longer be paid.
        let late = step(&unpaid, "paid").staff().send(system).await.expect(412);
        assert_eq!(late.code(), "version_mismatch");
        assert_eq!(step(&lapsed, "paid").staff().send(system).await.expect(409).code(), "illegal_transition");
        janitor(system).await.expect(200);
        drain(system).await;
        assert_eq!(changes(system, &unpaid).await, [("cancelled".to_owned(), Some("lapsed".to_owned()))]);
        assert_eq!(changes(system, &paid).await, [("paid".to_owned(), None)]);
        let mails = all(system, "/_local/mail").await;
        assert_eq!(mails.iter().filter(|mail| mail["subject"] == "Your order has lapsed").count(), 1);
    });
}

#[test]
fn if_clients_and_two_janitors_change_orders_at_once_each_order_changes_once() {
    with_own_system(async |system| {
        // The clients do not touch the last two orders, so only the janitors cancel them.
        let (count, raced) = (14, 12);
        customer(system, "race-ann").await;
        products(system, &["race-tea"], 100).await;
        let mut orders = Vec::new();
        for number in 0..count {
            orders.push(order(system, "race-ann", &[("race-tea", 3)], &format!("race-{number}")).await);
        }
        ahead(system, "Janitor", HOUR).await;
        let calls = orders[..raced].iter().enumerate().map(|(at, order)| {
            let to = if at % 2 == 0 { "paid" } else { "cancelled" };
            step(order, to).staff().send(system)
        });
        let (answers, ..) = futures::join!(join_all(calls), janitor(system), janitor(system));
        janitor(system).await.expect(200);
        drain(system).await;

        let mut paid = 0;
        for (order, answer) in orders.iter().zip(answers.iter().map(Some).chain([None, None])) {
            let found = read(system, order).await;
            let steps = steps(&found);
            let events = changes(system, order).await;
            let [(status, by, note)] = steps[..] else { panic!("{steps:?}") };
            match answer {
                Some(answer) if by == "system" => {
                    assert!(answer.status == 412 || answer.code() == "illegal_transition", "{}", answer.body);
                }
                Some(answer) => assert_eq!(answer.status, 200, "{}", answer.body),
                None => assert_eq!(by, "system"),
            }
            assert_eq!(note, (by == "system").then_some("lapsed"));
            assert_eq!(events, [(status.to_owned(), note.map(str::to_owned))]);
            paid += u64::from(status == "paid");
        }
        assert_eq!(stock(system, "race-tea").await, 100 - 3 * paid);
        // The lapsed orders no longer count as unpaid, so the customer may again place 20.
        for number in 0..20 {
            order(system, "race-ann", &[("race-tea", 1)], &format!("again-{number}")).await;
        }
    });
}

#[test]
fn a_lapse_that_a_crash_interrupts_is_finished_by_the_next_round_of_the_janitor() {
    with_own_system(async |system| {
        let ids: Vec<String> = (0..120).map(|number| format!("half-{number:03}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        customer(system, "half-ann").await;
        products(system, &ids, 5).await;
        let lines: Vec<(&str, u64)> = ids.iter().map(|id| (*id, 2)).collect();
        let unpaid = order(system, "half-ann", &lines, "half").await;
        ahead(system, "Janitor", HOUR).await;
        let crash = json!({ "target": "function:Janitor", "kind": "crash", "point": "orders.lapsed", "count": 1 });
        fault(system, &crash).await;
        // Either this run or a scheduled run of the janitor crashes.
        janitor(system).await;
        let faults = Call::new("GET", "/_local/faults").send(system).await.expect(200).body;
        assert_eq!(faults["function:Janitor"][0]["fired"], 1, "{faults}");
        assert_eq!(stock(system, ids[119]).await, 3, "the stock of the last line is not back yet");
        // The janitor finishes the order only after the grace period.
        ahead(system, "Janitor", 2 * HOUR).await;
        janitor(system).await.expect(200);
        let lapsed = read(system, &unpaid).await;
        assert_eq!(steps(&lapsed), [("cancelled", "system", Some("lapsed"))]);
        for id in &ids {
            assert_eq!(stock(system, id).await, 5, "{id}");
        }
        drain(system).await;
        assert_eq!(changes(system, &unpaid).await.len(), 1);
    });
}

#[test]
fn of_30_concurrent_orders_20_are_placed_and_the_limits_follow_the_settings() {
    with_own_system(async |system| {
        customer(system, "many-ann").await;
        products(system, &["many-tea"], 100).await;
        let call = |number: usize| {
            order_call(&order_body("many-ann", &[("many-tea", 1)]), &format!("many-{number}")).customer("many-ann")
        };
        let answers = join_all((0..30).map(|number| call(number).settled(system))).await;
        let mut placed = 0;
        for answer in answers {
            match (answer.status, answer.code()) {
                (201, _) => placed += 1,
                other => assert_eq!(other, (409, "too_many_pending_orders"), "{}", answer.body),
            }
        }
        assert_eq!((placed, stock(system, "many-tea").await), (20, 80));

        let settings = json!({ "values": { "orders": { "max_pending_orders": 21, "max_pending_quantity": 22 } } });
        let put = Call::new("PUT", "/v1/settings").staff().header("if-none-match", "*").json(&settings);
        put.send(system).await.expect(201);
        ahead(system, "Orders", 30).await;
        let too_many_pieces = order_call(&order_body("many-ann", &[("many-tea", 3)]), "pieces").customer("many-ann");
        let refused = too_many_pieces.send(system).await.expect(409);
        assert_eq!((refused.code(), refused.pointers()), ("quantity_limit", vec!["/lines/0/quantity"]));
        call(100).send(system).await.expect(201);
        assert_eq!(call(101).send(system).await.expect(409).code(), "too_many_pending_orders");
        let staffs = order_call(&order_body("many-ann", &[("many-tea", 50)]), "staffs").staff();
        staffs.send(system).await.expect(201);
    });
}
