//! Tests the maintenance mode: reads are served, and writes are refused by every function.

use std::collections::BTreeSet;

use fixture::records;
use local::System;
use serde_json::{Value as Json, json};

use crate::support::client::{Answer, Call};
use crate::support::openapi::{Operation, api};
use crate::support::table::{put_item, scan};
use crate::support::trial;
use crate::support::world::World;
use crate::support::{clocks_ahead, drain, template, with_own_system};

/// The only write that is served during maintenance, because it can end the maintenance.
const ALWAYS: [&str; 2] = ["PUT /v1/settings", "POST /v1/webhooks/stripe"];

async fn set(system: &System, maintenance: &Json, version: u64) -> Answer {
    let body = json!({
        "values": { "banner": "Ice", "maintenance": maintenance, "orders": { "quote_optional": true } }, "private": {},
    });
    let call = Call::new("PUT", "/v1/settings").staff().header("if-match", &format!("\"{version}\""));
    call.json(&body).send(system).await.expect(200)
}

fn writes() -> impl Iterator<Item = Operation<'static>> {
    api()
        .in_working_order()
        .into_iter()
        .filter(|operation| operation.method != "GET" && !ALWAYS.contains(&operation.key().as_str()))
}

#[test]
fn in_maintenance_every_write_is_refused_and_every_read_is_served() {
    with_own_system(async |system| {
        let world = World::create(system).await;
        set(system, &json!({ "on": true, "retry_after_seconds": 300 }), 1).await;
        clocks_ahead(system, 31).await;
        drain(system).await;
        let before = scan(system).await;
        let (template, mut functions) = (template(), BTreeSet::new());
        for operation in writes() {
            let good = world.good(system, operation).await;
            for call in [good.call(), good.anonymous().customer("bad-ann")] {
                let answer = call.send(system).await;
                let problem = (answer.status, answer.code(), answer.headers.get("retry-after").map(String::as_str));
                assert_eq!(problem, (503, "maintenance", Some("300")), "{}: {}", operation.key(), answer.body);
            }
            let route = template.routes.iter().find(|route| route.to_string() == operation.key()).unwrap();
            functions.insert(route.function.clone());
        }
        // Search has no writes.
        let with_routes: BTreeSet<String> = template.routes.iter().map(|route| route.function.clone()).collect();
        let without: Vec<&String> = with_routes.difference(&functions).collect();
        assert_eq!(without, ["Search"]);
        drain(system).await;
        assert!(scan(system).await == before, "a refused write changed the table");

        for operation in api().operations().filter(|operation| operation.method == "GET") {
            let answer = world.good(system, operation).await.call().send(system).await;
            assert_eq!(trial::unless_done(operation, &answer), None, "{}", operation.key());
        }
        let product = records::product("in-maintenance", 1).to_item().unwrap();
        put_item(system, &serde_json::to_value(product).unwrap()).await;
        drain(system).await;
        let found = Call::new("GET", "/v1/search/products?q=in-maintenance&limit=100").send(system).await.expect(200);
        assert!(found.body.to_string().contains("in-maintenance"), "{}", found.body);

        // A refused change of the settings does not end the maintenance. A valid change by staff
        // ends it.
        let bad = json!({ "values": { "maintenance": { "on": "no" } } });
        let call = Call::new("PUT", "/v1/settings").staff().header("if-match", "\"2\"").json(&bad);
        assert_eq!(call.send(system).await.expect(422).pointers(), ["/values/maintenance/on"]);
        set(system, &json!({ "on": false, "retry_after_seconds": 300 }), 2).await;
        clocks_ahead(system, 62).await;
        for operation in writes() {
            let answer = world.good(system, operation).await.call().send(system).await;
            assert_eq!(trial::unless_done(operation, &answer), None, "{}", operation.key());
        }
    });
}
