//! Tests of the routes that explore the table, and of the record of its calls and of its stream.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use local::{Log, Options, System};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

fn options() -> Options {
    Options {
        log: Log::Off,
        table_endpoint: None,
        search_endpoint: None,
        ..Options::from_environment(env!("CARGO_BIN_EXE_bodega").into())
    }
}

async fn get(system: &System, path: &str) -> Value {
    let answer = Client::new().get(format!("{}{path}", system.url())).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK, "{path}");
    answer.json().await.unwrap()
}

async fn post(system: &System, path: &str, body: &Value) -> (StatusCode, Value) {
    let answer = Client::new().post(format!("{}{path}", system.url())).json(body).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

async fn ask(system: &System, operation: &str, request: Value) -> (StatusCode, Value) {
    post(system, "/_local/table/requests", &json!({"operation": operation, "request": request})).await
}

/// Creates a product and returns the id of the request.
async fn create_product(system: &System) -> String {
    let body = json!({
        "id": "tea", "name": "Green tea", "brand": "Leaf", "category_path": ["GROCERY", "TEA"],
        "price": {"amount": 349, "currency": "USD"}, "stock": 50,
    });
    let request = Client::new().post(format!("{}/v1/products", system.url())).json(&body);
    let answer = request.bearer_auth(system.token("s", &["staff".to_owned()])).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    answer.headers()["apigw-requestid"].to_str().unwrap().to_owned()
}

fn encoded(id: &str) -> String {
    id.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

#[tokio::test]
async fn a_call_has_its_request_pattern_units_and_items() {
    let system = System::start(options()).await.unwrap();
    let request = create_product(&system).await;
    let calls = get(&system, &format!("/_local/table/calls?request={}", encoded(&request))).await;
    let items = calls["items"].as_array().unwrap();
    let create = items.iter().find(|call| call["pattern"] == "products.create").unwrap();
    assert_eq!(create["request"], request.as_str());
    assert_eq!(create["route"], "POST /v1/products");
    assert_eq!((&create["function"], &create["operation"]), (&json!("Catalog"), &json!("TransactWriteItems")));
    assert_eq!((&create["status"], &create["error"]), (&json!(200), &json!(null)));
    // A transaction costs twice as much on the table, and once on an index.
    let consumed = create["consumed"].as_array().unwrap();
    let on: Vec<&Value> = consumed.iter().map(|units| &units["on"]).collect();
    assert_eq!(on, ["table", "GSI2"]);
    assert!(consumed.iter().all(|units| units["write"].as_f64() > Some(0.0) && units["read"] == 0.0));
    let stock =
        json!({"PK": "STOCK#tea#main#00000000000000000000", "SK": "STOCK", "entity": "Stock", "change": "written"});
    assert!(create["items"].as_array().unwrap().contains(&stock), "{create}");
    assert!(create["body"]["TransactItems"].is_array());

    let answer = Client::new().get(format!("{}/v1/products/tea", system.url())).send().await.unwrap();
    let read = answer.headers()["apigw-requestid"].to_str().unwrap().to_owned();
    let calls = get(&system, &format!("/_local/table/calls?function=Catalog&request={}", encoded(&read))).await;
    let page = &calls["items"][0];
    assert_eq!((&page["pattern"], &page["consumed"][0]["read"]), (&json!("products.page"), &json!(0.5)));
    assert_eq!(page["items"][0]["change"], "read");
    let whole = get(&system, &format!("/_local/table/calls/{}", page["seq"])).await;
    assert_eq!(whole["response"]["Count"], whole["item_count"]);

    let later = get(&system, &format!("/_local/table/calls?cursor={}", page["seq"])).await;
    assert!(later["items"].as_array().unwrap().iter().all(|call| call["seq"].as_u64() > page["seq"].as_u64()));
    let hot = get(&system, "/_local/table/hot").await;
    let tea = hot["items"].as_array().unwrap().iter().find(|place| place["key"] == "PRODUCT#tea").unwrap();
    assert!(tea["reads"].as_u64() >= Some(1) && tea["writes"].as_u64() >= Some(1), "{tea}");
    system.shutdown().await;
}

#[tokio::test]
async fn the_explorers_own_requests_are_hit_by_no_fault_and_are_no_calls() {
    let system = System::start(options()).await.unwrap();
    create_product(&system).await;
    let fault = json!({"target": "table", "kind": "throttle", "rate": 1});
    let added = Client::new().post(format!("{}/_local/faults", system.url())).json(&fault).send().await.unwrap();
    assert!(added.status().is_success());
    let last = |calls: &Value| calls["items"].as_array().unwrap().last().unwrap()["seq"].clone();
    let before = last(&get(&system, "/_local/table/calls").await);
    let key = json!({"PK": {"S": "PRODUCT#tea"}, "SK": {"S": "PRODUCT"}});
    let (status, found) = ask(&system, "GetItem", json!({"Key": key})).await;
    assert_eq!((status, &found["status"]), (StatusCode::OK, &json!(200)));
    assert_eq!(found["response"]["Item"]["name"]["S"], "Green tea");
    assert_eq!(found["response"]["ConsumedCapacity"]["CapacityUnits"], 0.5);
    let (_, refused) = ask(&system, "GetItem", json!({"Key": {}})).await;
    assert_eq!(refused["status"], 400);
    assert!(refused["response"]["__type"].as_str().unwrap().ends_with("ValidationException"), "{refused}");

    let put = json!({"Item": {"PK": {"S": "a"}, "SK": {"S": "b"}}});
    let (status, problem) = ask(&system, "PutItem", put).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(problem["message"].as_str().unwrap().contains("--explorer-write"), "{problem}");
    let (status, problem) = ask(&system, "DeleteTable", json!({})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");

    let all = get(&system, "/_local/table/partitions?prefix=PRODUCT%23").await;
    assert_eq!((all["items"].as_array().unwrap().len(), &all["complete"]), (1, &json!(true)));
    let tea = &all["items"][0];
    assert_eq!((&tea["key"], &tea["entities"]["Product"]), (&json!("PRODUCT#tea"), &json!(1)));
    assert!(tea["bytes"].as_u64() > Some(200), "{tea}");
    let index = get(&system, "/_local/table/partitions?index=GSI2").await;
    let key = index["items"][0]["key"].as_str().unwrap();
    assert!(key.starts_with("CATEGORYLIST#GROCERY#"), "{key}");
    // The stream's consumers may have called the table meanwhile, and the fault refused them.
    let calls = get(&system, &format!("/_local/table/calls?cursor={}", before.as_u64().unwrap())).await;
    for call in calls["items"].as_array().unwrap() {
        assert_eq!(call["error"], "ProvisionedThroughputExceededException", "{call}");
    }
    system.shutdown().await;
}

#[tokio::test]
async fn the_explorer_writes_only_with_the_option() {
    let system = System::start(Options { explorer_write: true, ..options() }).await.unwrap();
    assert_eq!(get(&system, "/_local/table").await["writable"], true);
    let item = json!({"PK": {"S": "a"}, "SK": {"S": "b"}});
    let (_, put) = ask(&system, "PutItem", json!({"Item": item})).await;
    assert_eq!(put["status"], 200, "{put}");
    let (_, found) = ask(&system, "GetItem", json!({"Key": item})).await;
    assert_eq!(found["response"]["Item"], item);
    system.shutdown().await;
}

#[tokio::test]
async fn a_stream_record_has_its_fate_in_each_mapping_and_sink() {
    let system = System::start(options()).await.unwrap();
    let request = create_product(&system).await;
    post(&system, "/_local/drain", &json!({})).await;
    let stream = get(&system, "/_local/stream").await;
    let records = stream["items"].as_array().unwrap();
    let product = records.iter().find(|record| record["entity"] == "Product" && record["event"] == "INSERT").unwrap();
    assert_eq!((&product["PK"], &product["SK"]), (&json!("PRODUCT#tea"), &json!("PRODUCT")));
    assert_eq!((&product["request"], &product["ttl"]), (&json!(request), &json!(false)));
    assert_eq!((&product["new"]["name"]["S"], &product["old"]), (&json!("Green tea"), &json!(null)));
    let sink = |name: &str| product["sinks"].as_array().unwrap().iter().find(|sink| sink["name"] == name).unwrap();
    assert_eq!((&sink("StreamSearch")["verdict"], &sink("StreamSearch")["attempts"]), (&json!("delivered"), &json!(1)));
    assert_eq!(sink("search index")["verdict"], "delivered");
    // The search index has no documents of stocks, so the filter of its mapping excludes them.
    let stock = records.iter().find(|record| record["entity"] == "Stock").unwrap();
    let search = stock["sinks"].as_array().unwrap().iter().find(|sink| sink["name"] == "StreamSearch").unwrap();
    assert_eq!((&search["verdict"], &search["attempts"]), (&json!("filtered"), &json!(0)));
    let last = records.last().unwrap()["seq"].as_u64().unwrap();
    assert_eq!(get(&system, &format!("/_local/stream?cursor={last}")).await["items"], json!([]));
    system.shutdown().await;
}

#[tokio::test]
async fn the_model_has_every_pattern_with_its_routes_and_cost() {
    let system = System::start(options()).await.unwrap();
    let model = get(&system, "/_local/table").await;
    assert_eq!(
        (&model["partition_key"], &model["sort_key"], &model["ttl"]),
        (&json!("PK"), &json!("SK"), &json!("ttl"))
    );
    assert_eq!((&model["writable"], model["indexes"].as_array().unwrap().len()), (&json!(false), 3));
    let patterns: Vec<&Value> =
        model["areas"].as_array().unwrap().iter().flat_map(|area| area["patterns"].as_array().unwrap()).collect();
    assert_eq!(patterns.len(), key_schema::registry::all().count());
    let page = patterns.iter().find(|pattern| pattern["id"] == "products.page").unwrap();
    assert!(page["routes"].as_array().unwrap().contains(&json!("GET /v1/products/{id}")), "{page}");
    assert_eq!(model["prices"], json!({"read_unit": "0.125", "write_unit": "0.625", "region": "us-east-1"}));
    assert!(model["routes"].as_array().unwrap().len() > 100 && model["costs"].as_array().unwrap().len() > 200);
    system.shutdown().await;
}
