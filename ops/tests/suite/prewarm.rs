//! Tests of `ops prewarm`. No emulator has warm throughput, so prepared responses stand for
//! DynamoDB's.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use ops::OpsError;
use ops::prewarm::{PrewarmArgs, Prewarmed, prewarm};
use serde_json::{Value, json};

use crate::capacity::service::Service;

fn client(service: &Service) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .endpoint_url(service.url())
        .retry_config(RetryConfig::disabled())
        .http_client(aws::connector().unwrap())
        .build();
    Client::from_conf(config)
}

fn described() -> (u16, String) {
    let warm = json!({"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 4_000, "Status": "ACTIVE"});
    let index = |name| json!({"IndexName": name, "WarmThroughput": warm});
    let table = json!({"WarmThroughput": warm, "GlobalSecondaryIndexes": [index("GSI1"), index("GSI2")]});
    (200, json!({ "Table": table }).to_string())
}

/// Runs the command against these responses. Returns its result and the requests.
async fn run(answers: Vec<(u16, String)>, args: PrewarmArgs) -> (Result<Prewarmed, OpsError>, Vec<(String, Value)>) {
    let service = Service::start(answers).await;
    let result = prewarm(&client(&service), "shop", &args).await;
    let asked = service
        .asked()
        .into_iter()
        .map(|asked| (asked.target.unwrap_or_default(), serde_json::from_str(&asked.body).unwrap_or_default()));
    (result, asked.collect())
}

#[tokio::test]
async fn the_warm_throughput_of_table_and_indexes_is_raised_in_one_request() {
    let args = PrewarmArgs { writes: Some(40_000), index_writes: Some(10_000), ..PrewarmArgs::default() };
    let (prewarmed, asked) = run(vec![described(), (200, "{}".to_owned())], args).await;
    let prewarmed = prewarmed.unwrap();
    assert_eq!((prewarmed.charged_writes, prewarmed.charged_reads, prewarmed.begun), (48_000, 0, true));
    let warm = |writes| json!({"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": writes});
    let index = |name| json!({"Update": {"IndexName": name, "WarmThroughput": warm(10_000)}});
    let expected = json!({"TableName": "shop", "WarmThroughput": warm(40_000),
        "GlobalSecondaryIndexUpdates": [index("GSI1"), index("GSI2")]});
    assert_eq!(asked.last().unwrap(), &("DynamoDB_20120810.UpdateTable".to_owned(), expected));
    let shown = prewarmed.to_string();
    assert!(shown.contains("4000 → 40000") && shown.contains("AWS charges once for 48000 write units"), "{shown}");
}

#[tokio::test]
async fn a_dry_run_and_a_table_that_is_warm_already_change_nothing() {
    let args = PrewarmArgs { writes: Some(50_000), dry_run: true, ..PrewarmArgs::default() };
    let (prewarmed, asked) = run(vec![described()], args).await;
    let shown = prewarmed.unwrap().to_string();
    assert!(shown.contains("4000 → 50000") && shown.contains("needs a higher quota"), "{shown}");
    assert_eq!(asked.len(), 1);
    let args = PrewarmArgs { writes: Some(4_000), reads: Some(100), ..PrewarmArgs::default() };
    let (prewarmed, asked) = run(vec![described()], args).await;
    let prewarmed = prewarmed.unwrap();
    assert!(!prewarmed.begun && prewarmed.to_string().contains("nothing to do"), "{prewarmed}");
    assert_eq!(asked.len(), 1);
}

#[tokio::test]
async fn the_reason_of_dynamodb_is_shown() {
    let refusal = json!({"__type": "com.amazonaws.dynamodb.v20120810#LimitExceededException",
        "message": "Write capacity is limited to 40000"});
    let args = PrewarmArgs { writes: Some(50_000), ..PrewarmArgs::default() };
    let (prewarmed, _) = run(vec![described(), (400, refusal.to_string())], args.clone()).await;
    let error = prewarmed.unwrap_err();
    assert_eq!(error.to_string(), "the table was not changed: Write capacity is limited to 40000");
    let (prewarmed, _) = run(vec![(200, json!({"Table": {}}).to_string())], args.clone()).await;
    let error = prewarmed.unwrap_err().to_string();
    assert_eq!(error, "DynamoDB does not report the warm throughput of table");
    let (prewarmed, _) = run(Vec::new(), args).await;
    assert_eq!(prewarmed.unwrap_err().exit_code(), 3);
}
