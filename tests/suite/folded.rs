//! Tests `FoldStreamConsumers`: one consumer with all sinks replaces the two consumers.

use serde_json::json;

use crate::control::all;
use crate::events;
use crate::grants::{nothing_is_unused, what_no_sample_does};
use crate::support::client::Call;
use crate::support::{drain, shop, with_parameter};

/// The remaining consumer.
const CONSUMER: &str = "StreamEvents";

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
