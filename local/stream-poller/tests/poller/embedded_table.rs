use std::sync::Arc;

use crate::common::{Function, drain, mapping, settings};
use emulators::table::EmbeddedTable;
use serde_json::{Value, json};
use stream_poller::{Endpoint, HttpStream, MappingSettings, Pace, Poller, SequenceNumber, SourceError, Swept};

struct Shop {
    table: EmbeddedTable,
    http: reqwest::Client,
}

impl Shop {
    async fn open() -> Self {
        let shop = Self { table: EmbeddedTable::start(None).unwrap(), http: reqwest::Client::new() };
        let table = json!({
            "TableName": "shop", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
            "StreamSpecification":
                {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        });
        shop.ask("CreateTable", table).await;
        shop
    }

    async fn ask(&self, operation: &str, body: Value) -> Value {
        let response = self
            .http
            .post(self.table.url())
            .header("content-type", "application/x-amz-json-1.0")
            .header("x-amz-target", format!("DynamoDB_20120810.{operation}"))
            .header("x-amz-date", "20260101T000000Z")
            .header(
                "authorization",
                "AWS4-HMAC-SHA256 Credential=a/20260101/r/dynamodb/aws4_request, \
                 SignedHeaders=host, Signature=0",
            )
            .body(body.to_string())
            .send()
            .await
            .unwrap();
        let status = response.status();
        let answer = response.text().await.unwrap();
        assert!(status.is_success(), "{answer}");
        answer.parse().unwrap()
    }

    async fn put(&self, key: &str, ttl: u64) {
        let item = json!({"PK": {"S": key}, "ttl": {"N": ttl.to_string()}});
        self.ask("PutItem", json!({"TableName": "shop", "Item": item})).await;
    }

    async fn stream(&self, table: &str) -> Result<HttpStream, SourceError> {
        let endpoint = Endpoint {
            table_url: self.table.url().to_owned(),
            stream_url: self.table.url().to_owned(),
            access_key_id: "local".to_owned(),
            region: "us-east-1".to_owned(),
            swept: Swept::default(),
        };
        HttpStream::of_table(endpoint, table).await
    }

    async fn poller(&self, mappings: Vec<stream_poller::Mapping>) -> Poller {
        let stream = self.stream("shop").await.unwrap();
        Poller::start(stream, mappings, Pace::default()).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_record_reaches_every_mapping_and_may_then_be_trimmed() {
    let shop = Shop::open().await;
    let (all, some) = (Function::willing(), Function::willing());
    let parallel = MappingSettings { parallelization_factor: 4, ..settings() };
    let filters = vec![json!({"dynamodb": {"Keys": {"PK": {"S": [{"suffix": "7"}]}}}}).to_string()];
    let filtering = MappingSettings { filters, ..settings() };
    let poller = shop.poller(vec![mapping(parallel, &all), mapping(filtering, &some)]).await;
    for batch in 0..100_u32 {
        let put = |n: u32| json!({"PutRequest": {"Item": {"PK": {"S": (batch * 25 + n).to_string()}}}});
        let puts: Vec<Value> = (0..25).map(put).collect();
        shop.ask("BatchWriteItem", json!({"RequestItems": {"shop": puts}})).await;
    }
    drain(&poller).await;
    let progress = poller.progress().mappings;
    assert_eq!((progress[0].delivered, progress[0].filtered), (2500, 0));
    assert_eq!((progress[1].delivered, progress[1].filtered), (250, 2250));
    assert_eq!(some.calls().concat().len(), 250);

    let mut consumed = poller.consumed();
    let last = progress[0].shards[0].position.clone();
    consumed.wait_for(|consumed| *consumed == last).await.unwrap();
    let last = last.as_ref().map(SequenceNumber::as_str).unwrap();
    assert_eq!(shop.table.trim_stream("shop", last).unwrap(), 2499);
    shop.put("later", 0).await;
    drain(&poller).await;
    assert_eq!(poller.progress().mappings[0].delivered, 2501);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_without_change_is_not_delivered_and_a_ttl_deletion_names_dynamodb() {
    let shop = Shop::open().await;
    let ttl = json!({"AttributeName": "ttl", "Enabled": true});
    shop.ask("UpdateTimeToLive", json!({"TableName": "shop", "TimeToLiveSpecification": ttl})).await;
    let function = Function::willing();
    let filters =
        vec![json!({"userIdentity": {"type": ["Service"], "principalId": ["dynamodb.amazonaws.com"]}}).to_string()];
    let expired = Function::willing();
    let poller = shop
        .poller(vec![mapping(settings(), &function), mapping(MappingSettings { filters, ..settings() }, &expired)])
        .await;
    shop.put("a", 1_700_000_000).await;
    shop.put("a", 1_700_000_000).await;
    shop.table.sweep_ttl().unwrap();
    drain(&poller).await;
    assert_eq!(function.calls().concat().len(), 2, "the function gets one insert and one deletion");
    assert_eq!(expired.calls().concat().len(), 1);
}

#[tokio::test]
async fn a_missing_table_has_no_stream() {
    let shop = Shop::open().await;
    assert!(matches!(shop.stream("other").await, Err(SourceError::NoStream(_))));
    let function: Arc<dyn stream_poller::Invoke> = Arc::new(Function::willing());
    let filters = vec!["nonsense".to_owned()];
    let refused = stream_poller::Mapping::new(MappingSettings { filters, ..settings() }, function, None);
    assert!(refused.is_err_and(|error| error.to_string().contains("the stream mapping of F")));
}
