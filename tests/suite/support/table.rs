use std::collections::BTreeMap;

use local::System;
use serde_json::{Value as Json, json};

use super::client::http;

/// Puts an item in DynamoDB JSON into the table, unchanged.
pub async fn put_item(system: &System, item: &Json) {
    call(system, "PutItem", json!({ "Item": item })).await;
}

/// Returns all items by partition key and sort key, in DynamoDB JSON. The heartbeat is left out:
/// the janitor writes it each minute, and no test may depend on whether a minute has passed.
pub async fn scan(system: &System) -> BTreeMap<(String, String), Json> {
    let mut found = BTreeMap::new();
    let mut start = None;
    loop {
        let mut parameters = json!({ "ConsistentRead": true });
        if let Some(start) = start {
            parameters["ExclusiveStartKey"] = start;
        }
        let mut page = call(system, "Scan", parameters).await;
        let Json::Array(items) = page["Items"].take() else { panic!("a scan without items: {page}") };
        for item in items.into_iter().filter(|item| item["entity"]["S"] != "Heartbeat") {
            let key = |name: &str| item[name]["S"].as_str().unwrap().to_owned();
            found.insert((key("PK"), key("SK")), item);
        }
        match page["LastEvaluatedKey"].take() {
            Json::Null => return found,
            last => start = Some(last),
        }
    }
}

/// Creates a further table with the table's key.
pub async fn add_table(system: &System, name: &str) {
    let key = [("PK", "HASH"), ("SK", "RANGE")];
    let definitions = key.map(|(name, _)| json!({ "AttributeName": name, "AttributeType": "S" }));
    let schema = key.map(|(name, kind)| json!({ "AttributeName": name, "KeyType": kind }));
    let table = json!({
        "TableName": name, "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": definitions, "KeySchema": schema,
    });
    call(system, "CreateTable", table).await;
}

/// Counts, for each entity, the items that contain this text anywhere.
pub async fn entities_naming(system: &System, text: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for item in scan(system).await.into_values().filter(|item| item.to_string().contains(text)) {
        *counts.entry(item["entity"]["S"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

async fn call(system: &System, operation: &str, mut parameters: Json) -> Json {
    let credential = format!("{}/20260101/us-east-1/dynamodb/aws4_request", system.access_key());
    if parameters["TableName"].is_null() {
        parameters["TableName"] = system.table().into();
    }
    let answer = http()
        .post(system.table_url())
        .header("content-type", "application/x-amz-json-1.0")
        .header("x-amz-target", format!("DynamoDB_20120810.{operation}"))
        // Neither DynamoDB Local nor the embedded table checks the signature. DynamoDB Local has
        // a separate database for each access key and region.
        .header("x-amz-date", "20260101T000000Z")
        .header("authorization", format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host, Signature=0"))
        .body(parameters.to_string())
        .send()
        .await
        .unwrap();
    let (status, text) = (answer.status(), answer.text().await.unwrap());
    assert!(status.is_success(), "{operation}: {text}");
    serde_json::from_str(&text).unwrap()
}
