//! Tests that all effects of a request carry its request id: items, derived items, events, and the
//! log lines of every function involved.

use std::collections::BTreeSet;
use std::time::Duration;

use local::System;
use serde_json::{Value as Json, json};
use tokio::time::Instant;

use crate::control::all;
use crate::support::client::{Answer, Call};
use crate::support::table::scan;
use crate::support::{drain, shop, with_own_system};

/// The line may arrive after the function's response, because the local system reads it from a
/// pipe.
const SOON: Duration = Duration::from_secs(20);

/// Waits until a log line of the function contains this text and matches `wanted`. Then returns all
/// lines with this text.
async fn lines(system: &System, function: &str, containing: &str, wanted: impl Fn(&Json) -> bool) -> Vec<Json> {
    let path = format!("/_local/logs?function={function}&containing={}", shop::segment(containing));
    let until = Instant::now() + SOON;
    loop {
        let answer = Call::new("GET", &path).send(system).await.expect(200);
        let lines: Vec<Json> =
            answer.body["items"].as_array().unwrap().iter().map(|item| item["line"].clone()).collect();
        if lines.iter().any(&wanted) {
            return lines;
        }
        assert!(Instant::now() < until, "{function} has no such line with {containing}: {lines:#?}");
    }
}

async fn line(system: &System, function: &str, containing: &str, wanted: impl Fn(&Json) -> bool) -> Json {
    let found = lines(system, function, containing, &wanted).await;
    found.into_iter().find(|line| wanted(line)).unwrap()
}

fn request_id(answer: &Answer) -> String {
    let id = answer.headers["x-request-id"].clone();
    assert_eq!(answer.headers["apigw-requestid"], id);
    id
}

fn is_trace(id: &Json) -> bool {
    id.as_str().is_some_and(|id| id.starts_with("1-"))
}

/// Returns the entities of the items that carry this request id.
async fn written_for(system: &System, request: &str) -> BTreeSet<String> {
    let items = scan(system).await;
    let written = items.values().filter(|item| item["req"]["S"] == request);
    written.map(|item| item["entity"]["S"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_id_of_a_request_is_in_its_writes_and_their_consequences_and_in_every_log_line() {
    with_own_system(async |system| {
        shop::customer(system, "traced-ann").await;
        shop::products(system, &["traced-tea"], 10).await;
        drain(system).await;
        let body = shop::order_body("traced-ann", &[("traced-tea", 2)]);
        let answer = shop::order_call(&body, "traced").customer("traced-ann").send(system).await.expect(201);
        let (id, order) = (request_id(&answer), answer.body["id"].as_str().unwrap().to_owned());
        drain(system).await;

        let own = line(system, "Orders", &id, |line| line["request_id"] == id.as_str() && line["status"] == 201).await;
        assert_eq!((&own["route"], is_trace(&own["xray_trace_id"])), (&json!("POST /v1/orders"), true), "{own}");
        let place = |cost: &&Json| cost["pattern"] == "orders.place" && cost["write_units"].as_f64() > Some(0.0);
        assert!(own["patterns"].as_array().unwrap().iter().any(|cost| place(&cost)), "{own}");
        assert!(!own.to_string().contains("traced-ann"), "{own}");

        // These are the request's own items, and the items that the consumer derived: sales and
        // their totals.
        let entities = written_for(system, &id).await;
        for entity in ["Order", "OrderLine", "CustomerOrder", "Stock", "Sale", "ProductSales"] {
            assert!(entities.contains(entity), "{entity}: {entities:?}");
        }

        for consumer in ["StreamEvents", "StreamSearch"] {
            let named = |line: &Json| line["correlation_ids"].as_array().is_some_and(|ids| ids.contains(&json!(id)));
            let batch = line(system, consumer, &id, named).await;
            assert!(batch["correlation_id_count"].as_u64() >= Some(1) && is_trace(&batch["xray_trace_id"]), "{batch}");
        }

        let events = all(system, "/_local/events").await;
        let placed = |event: &&Json| event["type"] == "OrderPlaced" && event["data"]["order_id"] == order.as_str();
        let event = events.iter().find(placed).unwrap();
        assert_eq!(event["correlation_id"], id.as_str());
        let trace = event["envelope"]["trace_header"].as_str().unwrap();
        assert!(trace.starts_with("Root=1-"), "{trace}");
        let mail = line(system, "Notifier", &id, |line| line["correlation_id"] == id.as_str()).await;
        assert_eq!((&mail["event"], &mail["event_id"]), (&json!("OrderPlaced"), &event["id"]));
        assert!(written_for(system, &id).await.contains("Mail"));
    });
}

#[test]
fn a_log_line_about_a_quarantined_record_has_the_id_of_the_request_that_wrote_the_item() {
    with_own_system(async |system| {
        let at = "2026-01-01T00:00:00.000Z";
        let item = json!({
            "PK": {"S": "PRODUCT#traced-odd"}, "SK": {"S": "PRODUCT"}, "entity": {"S": "Product"},
            "version": {"N": "1"}, "rev": {"N": "1"},
            "born": {"S": "b1"}, "created_at": {"S": at}, "updated_at": {"S": at}, "price": {"S": "cheap"},
            "req": {"S": "odd-request"},
        });
        crate::support::put_item(system, &item).await;
        drain(system).await;
        let set_aside = |line: &Json| line["level"] == "WARN" && line["correlation_id"] == "odd-request";
        for consumer in ["StreamEvents", "StreamSearch"] {
            let line = line(system, consumer, "odd-request", set_aside).await;
            assert_eq!(line["kind"], "malformed_item", "{line}");
        }
    });
}
