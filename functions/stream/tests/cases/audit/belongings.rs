//! Tests of the removed items of a customer, and of the time of a removal.

use std::io::{Error, ErrorKind, Read as _};
use std::process::Command;
use std::time::Duration;

use emulators::faults::{Fault, FaultKind};
use key_schema::archive::belongings;
use key_schema::expiration;
use key_schema::instant::Instant;
use key_schema::order::OrderStatus;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::{Shop, cart, expire, session};
use crate::support::{meta, order};

#[tokio::test]
async fn the_archived_belongings_of_a_customer_are_found_by_the_customers_id_alone() {
    let shop = Shop::open().await;
    shop.sign_up("c2", meta(1).created_at).await;
    let mut strangers = session("s3");
    strangers.data.customer_id = "c2".parse().unwrap();
    let batch =
        [expire("1", &session("s1")), expire("2", &session("s2")), expire("3", &cart()), expire("4", &strangers)];
    assert_eq!(shop.take(&batch).await, None);
    let names = shop.bucket.names();
    let under = |customer: &str| {
        let collections = belongings(&customer.parse().unwrap()).unwrap();
        collections.map(|prefix| names.iter().filter(|name| name.starts_with(&prefix)).count())
    };
    assert_eq!((names.len(), under("c1"), under("c2")), (4, [2, 1], [1, 0]));
}

#[tokio::test]
async fn an_erased_customers_expired_items_are_recorded_but_not_archived() {
    let shop = Shop::open().await;
    assert_eq!(shop.take(&[expire("1", &session("s1"))]).await, None);
    shop.erase("c1").await;
    let late = [expire("2", &session("s2")), expire("3", &cart())];
    for _ in 0..2 {
        assert_eq!(shop.take(&late).await, None);
    }
    assert_eq!(shop.counts().await, (1, 3));
    let named: Vec<bool> = shop.entries().await.iter().map(|entry| entry.archive.is_some()).collect();
    assert_eq!(named.iter().filter(|named| **named).count(), 1, "{named:?}");
    // If a record is replayed after its object was deleted, the item is not archived again.
    shop.bucket.store.delete(&shop.bucket.names()[0]).await.unwrap();
    assert_eq!(shop.take(&[expire("1", &session("s1"))]).await, None);
    assert_eq!(shop.counts().await, (0, 3));
    // The item is older than the new profile of a customer who signed up again.
    shop.sign_up("c1", Instant::now()).await;
    assert_eq!(shop.take(&late).await, None);
    assert_eq!(shop.counts().await, (0, 3));
    // Orders of an erased customer are archived, because they are accounting records.
    let mut head = order("o1", OrderStatus::Delivered, 6, 1);
    head.data.expires_at = Some("2017-01-01T11:00:00.000Z".parse().unwrap());
    assert_eq!(shop.take(&[expire("5", &head)]).await, None);
    assert_eq!(shop.counts().await, (1, 4));
}

#[tokio::test]
async fn a_record_is_retried_while_its_owners_profile_cannot_be_read() {
    let shop = Shop::open().await;
    let away = Fault { kind: FaultKind::Throttle, rate: 1.0, count: None, seed: 0 };
    let _throttles = shop.test.count_throttles();
    shop.test.faults().add_to_keys(away, "CUSTOMER#").unwrap();
    assert_eq!(shop.take(&[expire("7", &session("s1"))]).await.as_deref(), Some("7"));
    assert_eq!(shop.counts().await, (0, 0));
    shop.test.faults().clear();
    assert_eq!(shop.take(&[expire("7", &session("s1"))]).await, None);
    assert_eq!(shop.counts().await, (1, 1));
}

#[tokio::test]
async fn a_removal_without_a_plausible_time_gets_the_time_of_the_expiry_in_every_delivery() {
    let shop = Shop::open().await;
    for time in [Value::Null, json!(0), json!("soon"), json!(1e30)] {
        let mut record = expire("7", &session("s1"));
        record["dynamodb"]["ApproximateCreationDateTime"] = time;
        assert_eq!(shop.take(&[record]).await, None);
    }
    assert_eq!(shop.counts().await, (1, 1));
    assert_eq!(shop.entries().await[0].removed_at, session("s1").expires_at);
}

/// A consumer that calls the table at its start does not start while the table fails.
#[tokio::test]
async fn a_consumer_starts_although_the_table_does_not_answer() {
    let runtime = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = runtime.local_addr().unwrap().to_string();
    let mut program = Command::new(env!("CARGO_BIN_EXE_stream"));
    let names = ["FUNCTION_NAME", "FUNCTION_VERSION", "LOG_GROUP_NAME", "LOG_STREAM_NAME"];
    program
        .env_clear()
        .envs([("SINKS", "audit"), ("TABLE_NAME", "t"), ("ARCHIVE_BUCKET", "a"), ("FAILED_RECORDS_BUCKET", "f")])
        // Nothing listens on this port.
        .envs([("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1"), ("AWS_REGION", "us-east-1")])
        .envs([("AWS_ACCESS_KEY_ID", "local"), ("AWS_SECRET_ACCESS_KEY", "local")])
        .envs(names.map(|name| (format!("AWS_LAMBDA_{name}"), "stream")))
        .envs([("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"), ("AWS_LAMBDA_RUNTIME_API", address.as_str())]);
    let mut program = program.spawn().unwrap();
    // The program asks Lambda for work when it has started.
    let asked = timeout(Duration::from_secs(60), runtime.accept()).await;
    let read = asked.map_err(|_| Error::from(ErrorKind::TimedOut)).flatten().and_then(|(stream, _)| {
        let mut stream = stream.into_std()?;
        stream.set_nonblocking(false)?;
        let mut head = vec![0; 4096];
        let bytes = stream.read(&mut head)?;
        Ok(String::from_utf8_lossy(&head[..bytes]).into_owned())
    });
    program.kill().unwrap();
    program.wait().unwrap();
    assert!(read.as_ref().is_ok_and(|head| head.contains("/runtime/invocation/next")), "{read:?}");
}

/// DynamoDB may remove an item up to five years after its expiry.
#[tokio::test]
async fn a_late_removal_keeps_its_time_but_an_implausible_time_becomes_the_time_of_the_expiry() {
    let shop = Shop::open().await;
    let removed = |sequence: &str, at: &str| {
        let mut record = expire(sequence, &session("s1"));
        let seconds = at.parse::<Instant>().unwrap().as_seconds();
        record["dynamodb"]["ApproximateCreationDateTime"] = json!(seconds);
        record
    };
    let batch = [removed("1", "2021-01-01T11:00:00.000Z"), removed("2", "2023-01-01T11:00:00.000Z")];
    assert_eq!(shop.take(&batch).await, None);
    let late = shop.table.query(&expiration::of_day("2021-01-01").unwrap()).await.unwrap().items;
    assert_eq!((late.len(), shop.entries().await.len()), (1, 1));
}
