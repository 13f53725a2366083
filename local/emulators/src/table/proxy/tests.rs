#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::super::{EmbeddedTable, Times};
use super::*;
use crate::faults::Fault;

/// A table `shop` with a stream, and a proxy in front of it. Dropping the value ends both.
struct Shop {
    table: EmbeddedTable,
    proxy: FaultProxy,
    http: reqwest::Client,
}

impl Shop {
    async fn open() -> Self {
        let table = EmbeddedTable::start(None).unwrap();
        let delays = Delays { slow: Duration::from_millis(1), silence: Duration::from_millis(1) };
        let proxy = FaultProxy::with_delays(table.url(), delays).await.unwrap();
        let http = reqwest::Client::new();
        let shop = Self { table, proxy, http };
        let created = shop
            .ask(
                "CreateTable",
                json!({
                    "TableName": "shop", "BillingMode": "PAY_PER_REQUEST",
                    "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}],
                    "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
                    "StreamSpecification":
                        {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
                }),
            )
            .await;
        assert_eq!(created.0, 200, "{}", created.1);
        shop
    }

    fn fault(&self, kind: FaultKind) {
        self.proxy.faults().add(Fault { kind, rate: 1.0, count: Some(1), seed: 0 }).unwrap();
    }

    fn fired(&self) -> u64 {
        self.proxy.faults().counts().iter().map(|c| c.fired).sum()
    }

    async fn try_ask(&self, operation: &str, body: Value) -> reqwest::Result<(u16, Value)> {
        let protocol = match operation {
            "DescribeStream" | "GetShardIterator" | "GetRecords" => "DynamoDBStreams_20120810",
            _ => "DynamoDB_20120810",
        };
        let authorization = "AWS4-HMAC-SHA256 Credential=a/20260101/r/dynamodb/aws4_request, \
                             SignedHeaders=host, Signature=0";
        let response = self
            .http
            .post(self.proxy.url())
            .header("content-type", "application/x-amz-json-1.0")
            .header("x-amz-target", format!("{protocol}.{operation}"))
            .header("x-amz-date", "20260101T000000Z")
            .header("authorization", authorization)
            .body(body.to_string())
            .send()
            .await?;
        Ok((response.status().as_u16(), response.json().await?))
    }

    async fn ask(&self, operation: &str, body: Value) -> (u16, Value) {
        self.try_ask(operation, body).await.unwrap()
    }

    async fn put(&self, key: &str) -> (u16, Value) {
        self.ask("PutItem", put(key)).await
    }

    async fn keys(&self) -> Vec<String> {
        let (_, answer) = self.ask("Scan", json!({"TableName": "shop"})).await;
        let mut keys: Vec<String> = answer["Items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["PK"]["S"].as_str().unwrap().to_owned())
            .collect();
        keys.sort();
        keys
    }
}

fn item(key: &str) -> Value {
    json!({"PK": {"S": key}})
}

fn put(key: &str) -> Value {
    json!({"TableName": "shop", "Item": item(key)})
}

fn code(answer: &(u16, Value)) -> (u16, &str) {
    let name = answer.1["__type"].as_str().unwrap();
    (answer.0, name.split_once('#').unwrap().1)
}

#[tokio::test]
async fn without_faults_requests_pass_unchanged() {
    let shop = Shop::open().await;
    assert_eq!(shop.put("a").await, (200, json!({})));
    assert_eq!(shop.keys().await, ["a"]);
    let missing = shop.ask("DescribeTable", json!({"TableName": "none"})).await;
    assert_eq!(code(&missing), (400, "ResourceNotFoundException"));
}

fn transaction(puts: &[&str]) -> Value {
    let puts: Vec<Value> = puts.iter().map(|key| json!({"Put": put(key)})).collect();
    json!({ "TransactItems": puts })
}

#[tokio::test]
async fn requests_that_use_items_of_a_transaction_in_progress_are_refused() {
    let shop = Shop::open().await;
    let schema = Schema { key: vec!["PK".to_owned()], indexes: Vec::new() };
    let times = Times::of_transactions(Duration::from_millis(300));
    shop.proxy.limit(schema, Model { times, ..Model::default() });
    let first = shop.ask("TransactWriteItems", transaction(&["a", "b"]));
    let meanwhile = async {
        while shop.put("b").await.0 == 200 {
            assert!(shop.keys().await.contains(&"b".to_owned()));
        }
        let met = shop.ask("TransactWriteItems", transaction(&["c", "d", "b"])).await;
        let single = shop.put("a").await;
        let read = json!({"TransactItems": [{"Get": {"TableName": "shop", "Key": item("a")}}]});
        let read = shop.ask("TransactGetItems", read).await;
        (met, single, read, shop.put("e").await)
    };
    let (first, (met, single, read, other)) = tokio::join!(first, meanwhile);
    assert_eq!((first.0, other.0), (200, 200));
    assert_eq!(code(&met), (400, "TransactionCanceledException"));
    let reasons: Vec<&str> = met.1["CancellationReasons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|reason| reason["Code"].as_str().unwrap())
        .collect();
    assert_eq!(reasons, ["None", "None", "TransactionConflict"]);
    assert_eq!(code(&single), (400, "TransactionConflictException"));
    assert_eq!(code(&read), (400, "TransactionCanceledException"));
    assert_eq!(shop.proxy.counts().conflicts, 4);
    assert_eq!(shop.put("b").await.0, 200);
    assert_eq!(shop.ask("TransactWriteItems", transaction(&["c", "b"])).await.0, 200);
    assert_eq!(shop.keys().await, ["a", "b", "c", "e"]);
}

#[tokio::test]
async fn a_refused_request_has_no_effect_and_is_counted() {
    let shop = Shop::open().await;
    for (kind, expected) in [
        (FaultKind::Throttle, (400, "ProvisionedThroughputExceededException")),
        (FaultKind::Error, (500, "InternalServerError")),
        (FaultKind::Conflict, (400, "TransactionConflictException")),
    ] {
        shop.proxy.faults().clear();
        shop.fault(kind);
        // Operations on tables and streams never fail.
        let described = shop.ask("DescribeTable", json!({"TableName": "shop"})).await;
        assert_eq!((described.0, shop.fired()), (200, 0));
        assert_eq!(code(&shop.put("a").await), expected);
        assert_eq!(shop.fired(), 1);
        assert!(shop.keys().await.is_empty());
    }
}

#[tokio::test]
async fn a_conflict_cancels_a_transaction_and_one_action_has_the_reason() {
    let shop = Shop::open().await;
    shop.fault(FaultKind::Conflict);
    let actions = json!([{"Put": put("a")}, {"Put": put("b")}, {"Put": put("c")}]);
    let answer = shop.ask("TransactWriteItems", json!({"TransactItems": actions})).await;
    assert_eq!(code(&answer), (400, "TransactionCanceledException"));
    let reasons = answer.1["CancellationReasons"].as_array().unwrap();
    let conflicts = reasons.iter().filter(|reason| reason["Code"] == "TransactionConflict");
    assert_eq!((reasons.len(), conflicts.count()), (3, 1));
    assert!(shop.keys().await.is_empty());
}

#[tokio::test]
async fn a_request_with_a_lost_response_takes_effect_and_a_reset_request_does_not() {
    let shop = Shop::open().await;
    shop.fault(FaultKind::Timeout);
    assert!(shop.try_ask("PutItem", put("lost")).await.is_err());
    shop.fault(FaultKind::Reset);
    assert!(shop.try_ask("PutItem", put("reset")).await.is_err());
    shop.fault(FaultKind::Truncate);
    assert!(shop.try_ask("PutItem", put("truncated")).await.is_err());
    shop.fault(FaultKind::Slow);
    assert_eq!(shop.put("slow").await.0, 200);
    assert_eq!(shop.fired(), 4);
    assert_eq!(shop.keys().await, ["lost", "slow", "truncated"]);
}

#[tokio::test]
async fn a_partial_fault_processes_half_of_a_batch_and_returns_the_rest() {
    let shop = Shop::open().await;
    shop.fault(FaultKind::Partial);
    // The proxy cannot split a single write or a batch of one entry.
    shop.put("z").await;
    let entries =
        |keys: &[&str]| -> Value { keys.iter().map(|key| json!({"PutRequest": {"Item": item(key)}})).collect() };
    let one = json!({"RequestItems": {"shop": entries(&["y"])}});
    assert_eq!(shop.ask("BatchWriteItem", one).await.1["UnprocessedItems"], json!({}));
    assert_eq!(shop.fired(), 0);

    let four = json!({"RequestItems": {"shop": entries(&["a", "b", "c", "d"])}});
    let answer = shop.ask("BatchWriteItem", four).await;
    assert_eq!(answer, (200, json!({"UnprocessedItems": {"shop": entries(&["c", "d"])}})));
    assert_eq!(shop.keys().await, ["a", "b", "y", "z"]);

    shop.fault(FaultKind::Partial);
    let keys = json!({"RequestItems": {"shop": {"Keys": [item("a"), item("b"), item("y")]}}});
    let answer = shop.ask("BatchGetItem", keys).await.1;
    assert_eq!(answer["Responses"]["shop"], json!([item("a")]));
    assert_eq!(answer["UnprocessedKeys"]["shop"]["Keys"], json!([item("b"), item("y")]));
}

#[tokio::test]
async fn the_stream_record_of_a_ttl_deletion_has_the_identity_of_the_service() {
    let shop = Shop::open().await;
    let ttl = json!({"TableName": "shop", "TimeToLiveSpecification":
        {"AttributeName": "ttl", "Enabled": true}});
    assert_eq!(shop.ask("UpdateTimeToLive", ttl).await.0, 200);
    let expired = json!({"TableName": "shop", "Item": {"PK": {"S": "a"}, "ttl": {"N": "1700000000"}}});
    shop.ask("PutItem", expired).await;
    assert_eq!(shop.table.sweep_ttl().unwrap(), 1);

    let records = shop.records().await;
    assert_eq!(records[1]["eventName"], "REMOVE");
    assert_eq!(records[1]["userIdentity"], json!({"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_deletes_every_expired_item_although_the_table_grows_meanwhile() {
    let shop = Arc::new(Shop::open().await);
    let ttl = json!({"TableName": "shop", "TimeToLiveSpecification":
        {"AttributeName": "ttl", "Enabled": true}});
    assert_eq!(shop.ask("UpdateTimeToLive", ttl).await.0, 200);
    for n in 0..100 {
        shop.put(&format!("m{n:03}")).await;
    }
    let put = async |key: &str, ttl: Value| {
        let item = json!({"TableName": "shop", "Item": {"PK": {"S": key}, "ttl": ttl}});
        assert_eq!(shop.ask("PutItem", item).await.0, 200);
    };
    put("z", json!({"N": "1700000000"})).await;
    put("y1", json!({"N": "4000000000"})).await;
    put("y2", json!({"N": "-5"})).await;
    put("y3", json!({"S": "1700000000"})).await;

    let stopped = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (shop, stopped) = (Arc::clone(&shop), Arc::clone(&stopped));
        async move {
            for n in 0..2_000 {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                shop.put(&format!("n{n:04}")).await;
            }
        }
    });
    let sweeper = Arc::clone(&shop);
    let deleted = tokio::task::spawn_blocking(move || sweeper.table.sweep_ttl().unwrap()).await.unwrap();
    stopped.store(true, Ordering::Relaxed);
    writer.await.unwrap();
    assert_eq!(deleted, 1);
    let left = shop.keys().await;
    assert!(left.iter().all(|key| key != "z") && ["y1", "y2", "y3"].iter().all(|key| left.iter().any(|l| l == key)));
}

#[tokio::test]
async fn a_page_of_records_has_at_most_a_megabyte_and_no_record_is_missing() {
    let shop = Shop::open().await;
    let text = "x".repeat(390_000);
    let big = |n: usize| json!({"TableName": "shop", "Item": {"PK": {"S": format!("{n:02}")}, "text": {"S": text}}});
    for n in 0..60 {
        assert_eq!(shop.ask("PutItem", big(n)).await.0, 200);
    }
    let mut iterator = shop.iterator().await;
    let (mut keys, mut largest) = (Vec::new(), 0);
    for _ in 0..60 {
        let (status, page) = shop.ask("GetRecords", json!({"ShardIterator": iterator, "Limit": 1000})).await;
        assert_eq!(status, 200, "{page}");
        largest = largest.max(page.to_string().len());
        let records = page["Records"].as_array().unwrap();
        keys.extend(records.iter().map(|record| record["dynamodb"]["Keys"]["PK"]["S"].as_str().unwrap().to_owned()));
        if records.is_empty() {
            break;
        }
        iterator = page["NextShardIterator"].clone();
    }
    assert_eq!(keys, (0..60).map(|n| format!("{n:02}")).collect::<Vec<_>>());
    assert!((390_000..=MAX_PAGE).contains(&largest), "{largest}");
}

#[tokio::test]
async fn trimmed_records_are_gone_and_later_records_get_higher_numbers() {
    let shop = Shop::open().await;
    for key in ["a", "b", "c"] {
        shop.put(key).await;
    }
    let sequence = |record: &Value| record["dynamodb"]["SequenceNumber"].as_str().unwrap().to_owned();
    let before: Vec<String> = shop.records().await.iter().map(sequence).collect();
    assert_eq!(shop.table.trim_stream("shop", &before[1]).unwrap(), 2);
    assert_eq!(shop.table.trim_stream("shop", &before[2]).unwrap(), 0);
    assert_eq!(shop.table.trim_stream("other", &before[2]).unwrap(), 0);
    shop.put("d").await;
    let after: Vec<String> = shop.records().await.iter().map(sequence).collect();
    assert_eq!((after.len(), &after[0]), (2, &before[2]));
    assert!(after[1] > after[0]);
}

#[tokio::test]
async fn a_data_folder_survives_a_restart_and_is_refused_while_it_is_in_use() {
    let data = std::env::temp_dir().join(format!("bodega-test-{:016x}", fastrand::u64(..)));
    let write = json!({"TableName": "shop", "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST"});
    for expected in [200, 400] {
        let table = EmbeddedTable::start(Some(&data)).unwrap();
        assert!(matches!(EmbeddedTable::start(Some(&data)), Err(Error::InUse(_))));
        let proxy = FaultProxy::start(table.url()).await.unwrap();
        let http = reqwest::Client::new();
        let shop = Shop { table, proxy, http };
        assert_eq!(shop.ask("CreateTable", write.clone()).await.0, expected);
        shop.table.shutdown();
    }
    std::fs::remove_dir_all(data).unwrap();
}

#[tokio::test]
async fn a_request_to_an_unreachable_table_gets_503_and_a_bad_address_is_refused() {
    let shop = Shop::open().await;
    let Shop { table, proxy, http } = shop;
    drop(table);
    let response = http.post(proxy.url()).body("{}").send().await.unwrap();
    assert_eq!(response.status().as_u16(), 503);
    for address in ["https://dynamodb.aws", "127.0.0.1:1", "", "http://a/path"] {
        assert!(matches!(FaultProxy::start(address).await, Err(Error::Upstream(_))));
    }
}

impl Shop {
    /// Returns an iterator at the start of the stream.
    async fn iterator(&self) -> Value {
        let table = self.ask("DescribeTable", json!({"TableName": "shop"})).await.1;
        let arn = &table["Table"]["LatestStreamArn"];
        let stream = self.ask("DescribeStream", json!({"StreamArn": arn})).await.1;
        let shard = &stream["StreamDescription"]["Shards"][0]["ShardId"];
        let from = json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"});
        self.ask("GetShardIterator", from).await.1["ShardIterator"].take()
    }

    async fn records(&self) -> Vec<Value> {
        let iterator = self.iterator().await;
        let page = self.ask("GetRecords", json!({"ShardIterator": iterator})).await.1;
        page["Records"].as_array().unwrap().clone()
    }
}
