//! Tests `MetricsTables`. With the value `monthly`, the points of each month are in a separate
//! table.

use key_schema::instant::Instant;
use key_schema::month::Month;
use serde_json::json;

use crate::support::client::Call;
use crate::support::table::{add_table, entities_naming};
use crate::support::with_parameter;

/// Name of the statement with the permissions of `Insights` on the monthly tables.
const SID: &str = "MetricsOfMonths";

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
