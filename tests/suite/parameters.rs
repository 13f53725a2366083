//! Tests of systems with another value of one parameter of the template.

use key_schema::instant::Instant;
use key_schema::month::Month;
use serde_json::json;

use crate::control::all;
use crate::events;
use crate::grants::{nothing_is_unused, what_no_sample_does};
use crate::support::client::Call;
use crate::support::table::{add_table, entities_naming};
use crate::support::{drain, shop, with_parameter};

/// Name of the statement with the permissions of `Insights` on the monthly tables.
const SID: &str = "MetricsOfMonths";
/// The remaining consumer with `FoldStreamConsumers`.
const CONSUMER: &str = "StreamEvents";

/// With the value `monthly`, the points of each month are in a separate table.
#[test]
fn points_of_a_month_use_its_table_with_exactly_the_permissions_that_they_need() {
    with_parameter("MetricsTables", "monthly", async |system| {
        let now = Instant::now();
        add_table(system, &Month::of(now).table(system.table())).await;
        let point = json!({ "name": "monthly", "value": 1, "at": now, "id": "a" });
        let store = Call::new("POST", "/v1/metrics").staff().json(&json!({ "points": [point] }));
        assert_eq!(store.send(system).await.expect(200).body["results"][0]["status"], "stored");
        let list = Call::new("GET", "/v1/metrics/monthly").staff().send(system).await.expect(200);
        assert_eq!(list.body["items"], json!([point]));
        let one = format!("/v1/metrics/monthly/points/a?at={now}");
        assert_eq!(Call::new("GET", &one).staff().send(system).await.expect(200).body, point);
        assert!(!entities_naming(system, "monthly").await.contains_key("MetricPoint"));

        let report = Call::new("GET", "/_local/grants").send(system).await.expect(200).body;
        let functions = report["functions"].as_array().unwrap();
        let insights = functions.iter().find(|function| function["function"] == "Insights").unwrap();
        let grants = insights["grants"].as_array().unwrap().iter().filter(|grant| grant["sid"] == SID);
        let used: Vec<_> = grants.map(|grant| (grant["action"].as_str().unwrap(), grant["used"] != 0)).collect();
        let actions = ["dynamodb:BatchWriteItem", "dynamodb:GetItem", "dynamodb:Query"];
        assert_eq!(used, actions.map(|action| (action, true)));
    });
}

/// One consumer with all sinks replaces the two consumers.
#[test]
fn one_consumer_serves_the_index_the_bus_and_the_sales_with_the_permissions_of_both_consumers() {
    with_parameter("FoldStreamConsumers", "true", async |system| {
        let report = Call::new("GET", "/_local/grants").send(system).await.expect(200).body;
        assert!(report["functions"].as_array().unwrap().iter().all(|function| function["function"] != "StreamSearch"));

        shop::products(system, &["folded-tea"], 5).await;
        shop::customer(system, "folded-ann").await;
        let order = shop::order(system, "folded-ann", &[("folded-tea", 2)], "folded").await;
        let id = &order["id"];
        drain(system).await;

        let found = Call::new("GET", "/v1/search/products?q=folded-tea").send(system).await.expect(200).body;
        assert_eq!((&found["total"], &found["items"][0]["id"]), (&json!(1), &json!("folded-tea")));
        let found = Call::new("GET", "/v1/search/orders?q=folded-ann").staff().send(system).await.expect(200).body;
        assert_eq!((&found["total"], &found["items"][0]["id"]), (&json!(1), id));
        let told = all(system, "/_local/events").await;
        assert!(
            told.iter()
                .any(|event| event.to_string().contains("OrderPlaced") && event.to_string().contains(&id.to_string()))
        );
        let sales = shop::path(&["products", "folded-tea", "sales"]);
        let sales = Call::new("GET", &sales).staff().send(system).await.expect(200).body;
        assert_eq!((&sales["items"][0]["order_id"], &sales["items"][0]["quantity"]), (id, &json!(2)));

        let failures = events::failures(system, |function| function == CONSUMER).await;
        assert!(failures.is_empty(), "\n{}", failures.join("\n"));
        what_no_sample_does(system).await;
        nothing_is_unused(system, |function| function == CONSUMER).await;
    });
}
