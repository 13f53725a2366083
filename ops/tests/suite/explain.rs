//! Tests of `ops explain`.

use std::process::Command;

use key_schema::id::CustomerId;
use key_schema::{customer, follow, order};
use serde_json::Value;

/// Runs `ops explain` without any environment. Returns its exit status, output and standard error.
fn explain(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ops")).arg("explain").args(arguments).env_clear().output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn json(arguments: &[&str]) -> Value {
    let (status, out, said) = explain(&[arguments, &["--json"]].concat());
    assert_eq!(status, Some(0), "{said}");
    serde_json::from_str(&out).unwrap()
}

fn pattern<'a>(routes: &'a Value, id: &str) -> &'a Value {
    routes[0]["patterns"]
        .as_array()
        .unwrap()
        .iter()
        .find(|pattern| pattern["id"] == id)
        .unwrap_or_else(|| panic!("{id}"))
}

#[test]
fn a_route_is_explained_with_the_keys_of_the_schema() {
    let ann = CustomerId::new("ann#1").unwrap();
    let expected = order::of_customer(&ann, None, None).unwrap();
    for arguments in [
        ["GET /v1/customers/{id}/orders", "id=ann#1"],
        ["GET /v1/customers/{id}/orders", "customer=ann#1"],
        ["GET /v1/customers/ann#1/orders", "unused=x"],
    ] {
        let routes = json(&arguments);
        let shown = pattern(&routes, "orders.of-customer");
        let condition = &shown["condition"];
        assert_eq!(condition["partitions"][0], expected.partitions()[0].as_str(), "{arguments:?}");
        assert_eq!(condition["partitions"][0], "CUSTOMER#ann%231");
        assert_eq!((&condition["is_range"], &condition["is_descending"]), (&true.into(), &true.into()));
        assert_eq!(
            (&shown["operation"], &shown["index"], &shown["consistency"]),
            (&"Query".into(), &"table".into(), &"eventual".into())
        );
        assert_eq!(shown["cost"][0]["half_read_units"], 3);
        assert_eq!(shown["cost"][0]["entities"]["CustomerOrder"].as_u64().map(|count| count > 0), Some(true));
    }
    let since = json(&["GET /v1/customers/{id}/orders", "id=ann", "from=2026-11-01T00:00:00.000Z"]);
    assert_ne!(pattern(&since, "orders.of-customer")["condition"]["sort"][0], "ORDER#");
}

#[test]
fn a_sharded_list_shows_each_partition_and_the_projection_of_its_index() {
    let routes = json(&["GET /v1/customers/{id}/followers", "id=c1"]);
    let shown = pattern(&routes, "follows.followers");
    let ann = CustomerId::new("c1").unwrap();
    let expected: Vec<String> = follow::followers(&ann).unwrap().partitions().iter().map(ToString::to_string).collect();
    assert_eq!(shown["condition"]["partitions"], serde_json::json!(expected));
    assert_eq!((&shown["shards"], &shown["index"]), (&4.into(), &"GSI1".into()));
    assert!(shown["projection"].as_array().unwrap().contains(&"customer_id".into()));
}

#[test]
fn a_write_shows_the_key_of_the_item_that_it_changes() {
    let routes = json(&["PATCH /v1/customers/{id}", "id=c1"]);
    let condition = &pattern(&routes, "customers.update")["condition"];
    let get = customer::get(&CustomerId::new("c1").unwrap()).unwrap();
    assert_eq!(condition["partitions"][0], get.key().pk.as_str());
    assert_eq!(condition["sort"][0], get.key().sk.as_str());
    // The transaction names further items, whose keys need values that were not given.
    assert!(pattern(&routes, "customers.rename").get("condition").is_none());
}

#[test]
fn an_unknown_route_suggests_similar_routes_and_a_wrong_value_is_named() {
    for (arguments, part) in [
        (vec!["GET /v1/customer/{id}/orders"], "\"GET /v1/customers/{id}/orders\""),
        (vec!["GET /v1/customers/{id}/orders", "id"], "NAME=VALUE"),
        (vec!["GET /v1/customers/{id}/orders", "id="], "customer"),
        (vec!["GET /v1/customers/{id}/orders", "id=c1", "from=yesterday"], "from"),
        (vec!["every minute: Janitor"], "there is no route"),
        (vec!["nothing like it"], "there is no route"),
        (vec![], "<ROUTE>"),
        (vec!["GET /v1/orders", "--all"], "--all"),
    ] {
        let (status, _, said) = explain(&arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    let (_, _, said) = explain(&[&"x".repeat(100_000)]);
    assert!(said.len() < 200_000 && !said.contains("did you mean"));
}

#[test]
fn all_routes_are_explained() {
    let routes = json(&["--all"]);
    let routes = routes.as_array().unwrap();
    assert!(routes.len() > 100, "{}", routes.len());
    for route in routes {
        let searches = route["route"].as_str().unwrap().contains("/v1/search/");
        assert_eq!(route["patterns"].as_array().unwrap().is_empty(), searches, "{}", route["route"]);
    }
    let (status, out, _) = explain(&["--all"]);
    assert_eq!(status, Some(0));
    assert!(out.contains("afterwards StreamEvents") && out.contains("revocations.get"), "{out}");
}
