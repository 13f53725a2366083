//! Tests the replay of quarantined records. Newer data wins, and a second replay changes nothing.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use ops::OpsError;
use ops::redrive::{Present, Replayed, Sinks, discard, list, names, replay, show};
use search_index::Collection;
use serde_json::{Value, json};
use stream::batch::Record;
use stream::lane;
use stream::sink::Sink;
use stream::verdict::{Reason, Verdict, Verdicts};

use crate::shop::{Bucket, Shop};
use crate::things::product;

/// The search index of a shop, and a sink that records its input and fails on request.
struct TestSinks<'s> {
    shop: &'s Shop,
    other: Other,
}

#[derive(Clone, Default)]
struct Other(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    fails: bool,
    taken: Vec<String>,
}

impl<'s> TestSinks<'s> {
    fn of(shop: &'s Shop) -> Self {
        Self { shop, other: Other::default() }
    }

    fn set_failing(&self, fails: bool) {
        self.other.0.lock().unwrap().fails = fails;
    }

    fn taken(&self) -> Vec<String> {
        self.other.0.lock().unwrap().taken.clone()
    }
}

impl Sinks for TestSinks<'_> {
    fn search(&self) -> BoxFuture<'_, Result<Present, OpsError>> {
        Box::pin(async { Ok(Present::new(self.shop.search.clone(), self.shop.items.clone())) })
    }

    fn open<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Box<dyn Sink>, OpsError>> {
        Box::pin(async { Ok(Box::new(self.other.clone()) as Box<dyn Sink>) })
    }
}

impl Sink for Other {
    fn name(&self) -> &'static str {
        "other"
    }

    fn take<'a>(&'a self, records: &'a [Record<'a>], verdicts: &'a Verdicts) -> BoxFuture<'a, ()> {
        Box::pin(lane::each(records, 1, verdicts, move |record: &Record<'_>| {
            let mut script = self.0.lock().unwrap();
            script.taken.push(record.origin.sequence.to_string());
            let fails = script.fails;
            async move { if fails { Verdict::Failed(Reason::new("scripted", "injected")) } else { Verdict::Done } }
        }))
    }
}

/// Returns an object of the consumer's quarantine with this record.
pub fn aside(consumer: &str, record: &Value) -> String {
    let body = json!({
        "at": "2017-01-01T12:00:00.000Z", "consumer": consumer, "kind": "index_rejects", "reason": "too\nlong",
        "sequence_number": record["dynamodb"]["SequenceNumber"], "event_id": record["eventID"], "record": record,
    });
    body.to_string()
}

/// Returns an object of Lambda's on-failure destination with these records.
pub fn given_up(function: &str, records: &[Value]) -> String {
    let body = json!({
        "requestContext": {"functionArn": function, "condition": "RetryAttemptsExhausted", "approximateInvokeCount": 3},
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
        "version": "1.0", "timestamp": "2017-01-01T12:00:00Z",
        "DDBStreamBatchInfo": {"shardId": "shard-1", "batchSize": records.len()},
        "payload": json!({ "Records": records }).to_string(),
    });
    body.to_string()
}

async fn replayed(bucket: &Bucket, sinks: &TestSinks<'_>) -> Replayed {
    let names = names(&bucket.store).await.unwrap();
    replay(&bucket.store, sinks, &names).await.unwrap()
}

#[tokio::test]
async fn case_36_a_repeated_redrive_keeps_a_newer_update() {
    let (shop, bucket) = (Shop::open().await, Bucket::open().await);
    let sinks = TestSinks::of(&shop);
    let old = shop.put(&product("p1", 1)).await;
    let newer = shop.put(&product("p1", 2)).await;
    let gone = shop.put(&product("gone", 1)).await;
    shop.deliver(&[newer]).await;
    shop.deliver(&[shop.remove(&product("gone", 1)).await]).await;
    let alone = shop.put(&product("p2", 5)).await;

    let fill = || {
        bucket.put("quarantine/2017-01-01/e1-search.json", &aside("search", &old));
        bucket.put("quarantine/2017-01-01/e3-search.json", &aside("search", &gone));
        let batch =
            given_up("arn:aws:lambda:eu-central-1:0:function:shop-StreamSearch-1", &[alone.clone(), old.clone()]);
        bucket.put("aws/lambda/mapping/shard-1/2017/01/01/batch", &batch);
    };
    for _ in 0..2 {
        fill();
        let replayed = replayed(&bucket, &sinks).await;
        assert_eq!((replayed.objects, replayed.records, replayed.is_complete()), (3, 4, true), "{replayed}");
        assert_eq!(bucket.names().await, Vec::<String>::new());
        let found = shop.found(Collection::Products).await;
        assert_eq!(found, [("p1".to_owned(), 2), ("p2".to_owned(), 5)]);
    }
}

#[tokio::test]
async fn a_redrive_indexes_the_present_item_and_not_the_image_in_the_record() {
    let (shop, bucket) = (Shop::open().await, Bucket::open().await);
    let old = shop.put(&product("p1", 1)).await;
    // The consumer never gets the record of this change.
    shop.put(&product("p1", 3)).await;
    bucket.put("quarantine/2017-01-01/e1-search.json", &aside("search", &old));
    assert!(replayed(&bucket, &TestSinks::of(&shop)).await.is_complete());
    assert_eq!(shop.found(Collection::Products).await, [("p1".to_owned(), 3)]);
}

#[tokio::test]
async fn a_batch_discarded_by_a_folded_function_reaches_the_index() {
    let (shop, bucket) = (Shop::open().await, Bucket::open().await);
    let sinks = TestSinks::of(&shop);
    let record = shop.put(&product("p1", 1)).await;
    // With FoldStreamConsumers this function has every sink.
    let function = "arn:aws:lambda:eu-central-1:0:function:shop-StreamEvents-1";
    bucket.put("aws/lambda/mapping/shard-1/2017/01/01/batch", &given_up(function, &[record]));
    assert!(replayed(&bucket, &sinks).await.is_complete());
    assert_eq!(bucket.names().await, Vec::<String>::new());
    assert_eq!(shop.found(Collection::Products).await, [("p1".to_owned(), 1)]);
    assert_eq!(sinks.taken().len(), 3, "bus, audit and derived data");
}

#[tokio::test]
async fn a_failed_object_is_reported_and_kept_until_all_its_records_are_durable() {
    let (shop, bucket) = (Shop::open().await, Bucket::open().await);
    let sinks = TestSinks::of(&shop);
    sinks.set_failing(true);
    let records = [shop.put(&product("p1", 1)).await, shop.put(&product("p2", 1)).await];
    let name = "aws/lambda/mapping/shard-1/2017/01/01/batch";
    bucket.put(name, &given_up("shop-StreamEvents-2", &records));

    let kept = replayed(&bucket, &sinks).await;
    assert_eq!(kept.kept.len(), 1);
    assert_eq!(kept.kept[0].reasons, ["other: scripted: injected"]);
    assert_eq!(bucket.names().await, [name]);

    sinks.set_failing(false);
    assert!(replayed(&bucket, &sinks).await.is_complete());
    assert_eq!(bucket.names().await, Vec::<String>::new());
    assert!(sinks.taken().len() > 2);
}

#[tokio::test]
async fn a_record_that_cannot_be_read_stays_and_the_other_records_are_replayed() {
    let (shop, bucket) = (Shop::open().await, Bucket::open().await);
    let sinks = TestSinks::of(&shop);
    let good = shop.put(&product("p1", 1)).await;
    let mut bad = good.clone();
    bad["dynamodb"]["NewImage"] = json!({"entity": {"S": "Product"}});
    bucket.put("quarantine/2017-01-01/bad-bus.json", &aside("bus", &bad));
    bucket.put("quarantine/2017-01-01/good-search.json", &aside("search", &good));
    bucket.put("quarantine/2017-01-01/odd-search.json", "{");

    let replayed = replayed(&bucket, &sinks).await;
    assert_eq!((replayed.objects, replayed.kept.len()), (1, 2), "{replayed}");
    assert!(replayed.kept[0].reasons[0].contains("malformed_item"), "{replayed}");
    assert_eq!(shop.found(Collection::Products).await, [("p1".to_owned(), 1)]);
}

#[tokio::test]
async fn the_list_has_all_pages_of_objects_and_each_reason_in_one_line() {
    let (shop, bucket) = (Shop::open().await, Bucket::open().await);
    let record = shop.put(&product("p1", 1)).await;
    for number in 0..1_005 {
        bucket.put(&format!("quarantine/2017-01-01/e{number}-bus.json"), &aside("bus", &record));
    }
    bucket.put("aws/lambda/mapping/batch", &given_up("StreamSearch", &[record.clone(), record]));
    let listed = list(&bucket.store).await.unwrap();
    assert_eq!(listed.objects.len(), 1_006);
    let batch = &listed.objects[0];
    assert_eq!((batch.records, batch.by.as_str(), batch.kind.as_str()), (2, "StreamSearch", "RetryAttemptsExhausted"));
    assert_eq!((listed.objects[1].reason.as_str(), listed.objects[1].by.as_str()), ("too long", "bus"));
    assert!(listed.objects.iter().all(|object| object.items == ["Product PRODUCT#p1 PRODUCT"]));
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_replayed_into_the_index_once_its_item_is_repaired() {
    let (shop, bucket) = (Shop::open().await, Bucket::open().await);
    let sinks = TestSinks::of(&shop);
    let name = "quarantine/2017-01-01/e1-search.json";
    bucket.put(name, &aside("search", &shop.put_broken(&product("p1", 2), "name").await));
    let still = replayed(&bucket, &sinks).await;
    assert_eq!((still.objects, still.kept.len()), (0, 1), "{still}");
    assert!(still.kept[0].reasons[0].starts_with("search: malformed_item"), "{still}");

    shop.put(&product("p1", 3)).await;
    let repaired = replayed(&bucket, &sinks).await;
    assert_eq!((repaired.objects, repaired.is_complete()), (1, true), "{repaired}");
    assert_eq!(bucket.names().await, Vec::<String>::new());
    assert_eq!(shop.found(Collection::Products).await, [("p1".to_owned(), 3)]);
}

#[tokio::test]
async fn a_removed_item_is_not_found_any_more_although_its_record_cannot_be_read() {
    let (shop, bucket) = (Shop::open().await, Bucket::open().await);
    shop.put_and_deliver(&product("p1", 4)).await;
    let broken = shop.put_broken(&product("p1", 5), "name").await;
    shop.remove(&product("p1", 5)).await;
    let never = shop.put_broken(&product("p2", 1), "name").await;
    shop.remove(&product("p2", 1)).await;
    bucket.put("aws/lambda/batch", &given_up("StreamSearch", &[]));
    bucket.put("quarantine/2017-01-01/e1-search.json", &aside("search", &broken));
    bucket.put("quarantine/2017-01-01/e2-search.json", &aside("search", &never));
    let replayed = replayed(&bucket, &TestSinks::of(&shop)).await;
    assert!(replayed.is_complete(), "{replayed}");
    assert_eq!(shop.found(Collection::Products).await, []);
    assert_eq!(shop.stored(Collection::Products, &product("p1", 4)).await.unwrap().rev, 5);
}

#[tokio::test]
async fn a_record_of_an_unknown_sink_is_kept_and_the_other_records_are_replayed() {
    let (shop, bucket) = (Shop::open().await, Bucket::open().await);
    let record = shop.put(&product("p1", 1)).await;
    for (name, consumer) in [("e1", "mail"), ("e2", ""), ("e3", "search,mail"), ("e4", "search")] {
        bucket.put(&format!("quarantine/2017-01-01/{name}.json"), &aside(consumer, &record));
    }
    let replayed = replayed(&bucket, &TestSinks::of(&shop)).await;
    assert_eq!((replayed.objects, replayed.kept.len(), replayed.is_complete()), (1, 3, false), "{replayed}");
    assert!(replayed.kept.iter().all(|kept| kept.reasons[0].contains("no sink")), "{replayed}");
    assert_eq!(shop.found(Collection::Products).await, [("p1".to_owned(), 1)]);
}

#[tokio::test]
async fn a_missing_object_is_not_discarded() {
    let bucket = Bucket::open().await;
    let there = "quarantine/2017-01-01/e1-bus.json".to_owned();
    bucket.put(&there, "{");
    // The name is a prefix of an existing name.
    let not_there = "quarantine/2017-01-01/e1-bus".to_owned();
    let discarded = discard(&bucket.store, &[not_there.clone(), there.clone()]).await.unwrap();
    assert_eq!((discarded.objects, &discarded.gone), (1, &vec![not_there.clone()]));
    assert!(discarded.to_string().contains(&format!("NOT FOUND: {not_there}")), "{discarded}");
    assert_eq!(bucket.names().await, Vec::<String>::new());
    bucket.put(&there, "{");
    assert!(discard(&bucket.store, &[there.clone(), "expired/x".to_owned()]).await.is_err());
    assert_eq!(bucket.names().await, [there], "because of one wrong name the whole command is refused");
}

#[tokio::test]
async fn invalid_or_too_deeply_nested_json_is_shown_unchanged() {
    let bucket = Bucket::open().await;
    let name = "quarantine/2017-01-01/e1-bus.json";
    for body in ["[".repeat(100_000), "[".repeat(1_000) + &"]".repeat(1_000), "{broken".to_owned()] {
        bucket.put(name, &body);
        let shown = show(&bucket.store, name).await.unwrap();
        assert_eq!((shown.exit_code(), shown.render(false)), (0, body.clone()));
        assert_eq!(serde_json::from_str::<Value>(&shown.render(true)).unwrap(), json!(body));
    }
    let batch = json!({"payload": json!({"Records": []}).to_string()});
    bucket.put("aws/lambda/batch", &batch.to_string());
    let shown = show(&bucket.store, "aws/lambda/batch").await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&shown.render(true)).unwrap(), json!({"payload": {"Records": []}}));
}

/// Returns the kinds of reasons in the sources of a folder, without the tests.
fn kinds(folder: &Path) -> BTreeSet<String> {
    let mut kinds = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            kinds.append(&mut self::kinds(&path));
            continue;
        }
        let source = std::fs::read_to_string(path).unwrap();
        let source = source.split("#[cfg(test)]").next().unwrap();
        let named = source.split("Reason::new(\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
        kinds.extend(named);
    }
    kinds
}

#[test]
fn the_page_of_failed_records_explains_every_kind() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(root.join("docs/operations/failed-records.md")).unwrap();
    let first_cells = page.lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    let described: BTreeSet<String> =
        first_cells.flat_map(|cell| cell.split(", ")).map(|kind| kind.replace('`', "")).collect();
    let mut all = kinds(&root.join("functions/stream/src"));
    all.append(&mut kinds(&root.join("ops/src/redrive")));
    // The kinds of batches and of foreign objects are not in the sources of the consumer.
    all.extend(["RetryAttemptsExhausted", "unreadable"].map(str::to_owned));
    assert_eq!(described, all);
}
