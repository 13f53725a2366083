#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::float_cmp)]

use serde_json::{Value, json};

use super::partitions::Place;
use super::*;

const WRITE: Operation = Operation::Write;
const TRANSACT: Operation = Operation::Transact { actions: "TransactItems" };

fn schema() -> Schema {
    Schema { key: vec!["PK".to_owned(), "SK".to_owned()], indexes: vec![("GSI1".to_owned(), "GSI1PK".to_owned())] }
}

fn request(operation: Operation, body: &Value) -> Request {
    schema().request(operation, body.to_string().as_bytes()).unwrap()
}

fn key(pk: &str, sk: &str) -> Value {
    json!({"PK": {"S": pk}, "SK": {"S": sk}})
}

fn update(pk: &str, sk: &str) -> Request {
    request(WRITE, &json!({"TableName": "t", "Key": key(pk, sk), "UpdateExpression": "ADD #0 :0"}))
}

fn put(pk: &str, listed_in: &str, text: usize) -> Request {
    let text = "x".repeat(text);
    let item = json!({"PK": {"S": pk}, "SK": {"S": "A"}, "GSI1PK": {"S": listed_in}, "text": {"S": text}});
    request(WRITE, &json!({"TableName": "t", "Item": item}))
}

fn transaction(keys: &[&str]) -> Request {
    let updates: Vec<Value> =
        keys.iter().map(|pk| json!({"Update": {"TableName": "t", "Key": key(pk, "A")}})).collect();
    request(TRANSACT, &json!({"TransactItems": updates}))
}

fn limits(warm: Throughput) -> Limits {
    Limits::new(Model { warm, ..Model::default() }, 1)
}

fn one_partition() -> Limits {
    limits(Throughput::OF_PARTITION)
}

fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Sends the requests at their times until one is throttled. Returns the number of accepted
/// requests.
fn accepted<'r>(limits: &mut Limits, now: Duration, requests: impl IntoIterator<Item = &'r Request>) -> usize {
    let runs = |request: &&Request| matches!(limits.begin(now, request), Verdict::Runs { .. });
    requests.into_iter().take_while(runs).count()
}

#[test]
fn an_item_takes_a_thousand_write_units_a_second_even_in_a_large_table() {
    let mut limits = limits(Throughput { reads: 100_000, writes: 100_000 });
    let hot = update("A", "A");
    assert_eq!(accepted(&mut limits, at(0), std::iter::repeat_n(&hot, 2_000)), 1_000);
    assert!(matches!(limits.begin(at(0), &hot), Verdict::Throttled { culprit: 0, .. }));
    assert!(matches!(limits.begin(at(0), &update("B", "B")), Verdict::Runs { .. }));
    assert_eq!(accepted(&mut limits, at(500), std::iter::repeat_n(&hot, 2_000)), 500, "half a second later");
    assert_eq!(accepted(&mut limits, at(60_000), std::iter::repeat_n(&hot, 2_000)), 1_000, "it saves one second");
}

#[test]
fn an_item_takes_three_thousand_read_units_a_second() {
    let mut limits = one_partition();
    let get =
        |strong| request(Operation::Read, &json!({"TableName": "t", "Key": key("A", "A"), "ConsistentRead": strong}));
    assert_eq!(accepted(&mut limits, at(0), std::iter::repeat_n(&get(true), 9_000)), 3_000);
    assert_eq!(accepted(&mut limits, at(1_000), std::iter::repeat_n(&get(false), 9_000)), 6_000);
    assert!(matches!(limits.begin(at(1_000), &update("A", "A")), Verdict::Runs { .. }), "writes are counted apart");
}

#[test]
fn a_transaction_takes_two_units_an_item_and_a_large_item_one_unit_a_kilobyte() {
    let mut limits = one_partition();
    let begin = |limits: &mut Limits, request: &Request| {
        let before = limits.counts.write_units;
        let Verdict::Runs { held, .. } = limits.begin(at(0), request) else { return f64::NAN };
        limits.end(&held);
        limits.counts.write_units - before
    };
    assert_eq!(begin(&mut limits, &update("A", "A")), 1.0);
    assert_eq!(begin(&mut limits, &transaction(&["A", "B", "C"])), 6.0);
    assert_eq!(begin(&mut limits, &put("A", "L", 2_500)), 6.0, "three in the table and three in the index");
}

#[test]
fn requests_conflict_with_a_transaction_until_it_ends() {
    let mut limits = one_partition();
    let Verdict::Runs { held, time } = limits.begin(at(0), &transaction(&["A", "B"])) else { panic!("it runs") };
    assert!(time >= at(7), "{time:?}");
    let met = |limits: &mut Limits, request: &Request| match limits.begin(at(5), request) {
        Verdict::Conflicts { culprit, .. } => Some(culprit),
        _ => None,
    };
    assert_eq!(met(&mut limits, &transaction(&["C", "D", "B"])), Some(2));
    assert_eq!(met(&mut limits, &update("A", "A")), Some(0));
    assert_eq!(met(&mut limits, &update("C", "C")), None);
    let read = request(TRANSACT, &json!({"TransactItems": [{"Get": {"TableName": "t", "Key": key("A", "A")}}]}));
    assert_eq!(met(&mut limits, &read), Some(0));
    let plain = request(Operation::Read, &json!({"TableName": "t", "Key": key("A", "A")}));
    assert_eq!(met(&mut limits, &plain), None, "a read of one item never conflicts");
    assert_eq!(limits.counts.conflicts, 3);
    limits.end(&held);
    assert_eq!(met(&mut limits, &transaction(&["A", "B"])), None);
}

#[test]
fn the_warm_throughput_determines_the_partitions() {
    let count = |reads, writes| Partitions::new(Throughput { reads, writes }).count();
    assert_eq!(Partitions::new(Throughput::NEW).count(), 4);
    assert_eq!((count(1, 1), count(1, 40_000), count(30_000, 1), count(3_001, 1_000)), (1, 40, 10, 2));
    let keys: Vec<Request> = (0..40_000).map(|n| update(&format!("key {n}"), "A")).collect();
    let of = |warm| accepted(&mut limits(warm), at(0), &keys);
    let (new, warmed) = (of(Throughput::NEW), of(Throughput { reads: 1, writes: 40_000 }));
    assert!((3_600..=4_000).contains(&new), "{new}");
    assert!(warmed > 30_000, "{warmed}");
}

/// Sends both items' writes ten times a second, at twice the maximum of a partition, for some
/// seconds.
fn heat(limits: &mut Limits, requests: &[&Request], seconds: u64) {
    for tick in 0..seconds * 10 {
        for request in requests {
            for _ in 0..200 / requests.len() {
                limits.begin(at(tick * 100), request);
            }
        }
    }
}

#[test]
fn a_hot_partition_splits_between_its_items_after_sustained_traffic() {
    let mut limits = one_partition();
    let (first, second) = (update("A", "1"), update("A", "2"));
    let after = SPLIT_AFTER.as_secs();
    heat(&mut limits, &[&first, &second], after - 1);
    assert_eq!((limits.places[0].count(), limits.counts.splits), (1, 0), "not yet");
    heat(&mut limits, &[&first, &second], after + 5);
    assert_eq!((limits.places[0].count(), limits.counts.splits), (2, 1));
    let now = at(10_000_000);
    assert_eq!(accepted(&mut limits, now, std::iter::repeat_n(&first, 2_000)), 1_000);
    assert_eq!(accepted(&mut limits, now, std::iter::repeat_n(&second, 2_000)), 1_000, "it has its own partition");
}

#[test]
fn one_hot_item_never_splits() {
    let mut limits = one_partition();
    let hot = update("A", "A");
    heat(&mut limits, &[&hot], 2 * SPLIT_AFTER.as_secs());
    assert_eq!(limits.places[0].count(), 1);
    assert_eq!(accepted(&mut limits, at(10_000_000), std::iter::repeat_n(&hot, 2_000)), 1_000);
}

#[test]
fn a_full_partition_of_an_index_throttles_the_writes_of_the_table() {
    let mut limits = limits(Throughput { reads: 100_000, writes: 100_000 });
    let puts: Vec<Request> = (0..2_000).map(|n| put(&format!("order {n}"), "ALL", 10)).collect();
    assert_eq!(accepted(&mut limits, at(0), &puts), 1_000);
    let elsewhere = put("order", "OTHERS", 10);
    assert!(matches!(limits.begin(at(0), &elsewhere), Verdict::Runs { .. }));
    let into = json!({"TableName": "t", "Key": key("order", "A"), "UpdateExpression": "SET #1 = :1, #0 = :0",
        "ExpressionAttributeNames": {"#0": "GSI1PK", "#1": "x"},
        "ExpressionAttributeValues": {":0": {"S": "ALL"}, ":1": {"S": "y"}}});
    assert!(matches!(limits.begin(at(0), &request(WRITE, &into)), Verdict::Throttled { .. }), "an update, too");
}

#[test]
fn every_kind_of_request_names_its_items() {
    let names = json!({"#pk": "PK", "#sk": "SK"});
    let values = json!({":pk": {"S": "A"}, ":sk": {"S": "B"}});
    let query = json!({"TableName": "t", "KeyConditionExpression": "#pk = :pk AND begins_with(#sk, :sk)",
        "ExpressionAttributeNames": names, "ExpressionAttributeValues": values});
    let mut indexed = query.clone();
    indexed["IndexName"] = json!("GSI1");
    indexed["ExpressionAttributeNames"] = json!({"#pk": "GSI1PK"});
    let batch = json!({"RequestItems": {"t": {"Keys": [key("A", "A"), key("B", "B")]}}});
    let writes = json!({"RequestItems": {"t": [{"PutRequest": {"Item": key("A", "A")}},
        {"DeleteRequest": {"Key": key("B", "B")}}]}});
    for (operation, body, places) in [
        (Operation::Read, query, vec![(0, "A", "")]),
        (Operation::Read, indexed, vec![(1, "A", "")]),
        (Operation::BatchGet, batch, vec![(0, "A", "A"), (0, "B", "B")]),
        (Operation::BatchWrite, writes, vec![(0, "A", "A"), (0, "B", "B")]),
    ] {
        let request = request(operation, &body);
        let found: Vec<_> = request.touches.iter().map(|touch| (touch.place, touch.at.clone())).collect();
        let place = |(place, pk, sk): (usize, &str, &str)| (place, Place::new(&format!("t\n{pk}"), sk));
        assert_eq!(found, places.into_iter().map(place).collect::<Vec<_>>(), "{body}");
    }
    for (operation, body) in [(Operation::Other, json!({"Key": key("A", "A")})), (WRITE, json!({})), (WRITE, json!([]))]
    {
        assert!(schema().request(operation, body.to_string().as_bytes()).is_none(), "{body}");
    }
}

#[test]
fn durations_have_the_configured_mean_and_are_the_same_for_the_same_seed() {
    let times = |seed| {
        let mut limits = Limits::new(Model { seed, ..Model::default() }, 0);
        (0..10_000).map(|_| limits.time(Kind::Transaction)).collect::<Vec<_>>()
    };
    let mut first = times(1);
    assert_eq!(times(1), first);
    assert_ne!(times(2), first);
    let mean = first.iter().sum::<Duration>().as_secs_f64() * 1e3 / 10_000.0;
    assert!((9.8..10.2).contains(&mean), "{mean}");
    first.sort_unstable();
    assert!((at(17)..=at(21)).contains(&first[9_900]), "{:?}", first[9_900]);
}
