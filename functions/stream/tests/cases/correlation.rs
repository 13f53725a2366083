//! Tests of correlation: the request id with which a record is processed.

use std::sync::{Arc, Mutex};

use bus::Kind;
use futures::future::BoxFuture;
use key_schema::order::OrderStatus;
use serde_json::{Value, json};
use stream::batch::{Batch, Record};
use stream::lane;
use stream::sink::Sink;
use stream::transitions::Rules;
use stream::verdict::{Verdict, Verdicts};
use telemetry::correlation;

use crate::support::{consumer, earliest, event, insert, modify, order, product, remove};

#[tokio::test]
async fn a_record_is_processed_with_the_id_of_its_request() {
    let caused = |mut record: Value, image: &str, id: Value| {
        record["dynamodb"][image]["req"] = id;
        record
    };
    let of = |sequence: &str| insert(sequence, &product(&format!("p{sequence}"), 1));
    let (old, new) = (product("p6", 1), product("p6", 2));
    let records = [
        caused(of("1"), "NewImage", json!({"S": "request-1"})),
        of("2"),
        caused(of("3"), "NewImage", json!({"N": "3"})),
        caused(of("4"), "NewImage", json!({"S": "two words"})),
        caused(remove("5", &product("p5", 1)), "OldImage", json!({"S": "request-5"})),
        caused(
            caused(modify("6", &old, &new), "OldImage", json!({"S": "request-5"})),
            "NewImage",
            json!({"S": "request-6"}),
        ),
        caused(modify("7", &old, &new), "OldImage", json!({"S": "request-5"})),
    ];
    let sink = Causes::default();
    let (consumer, _) = consumer([Box::new(sink.clone()) as Box<dyn Sink>]);
    assert_eq!(earliest(&consumer, &records).await, None);
    let mut known = sink.0.lock().unwrap().clone();
    known.sort();
    let none = |sequence: &str| (sequence.to_owned(), None);
    let some = |sequence: &str, id: &str| (sequence.to_owned(), Some(id.to_owned()));
    // The request of a removal is unknown, because the old image has the id of an earlier request.
    let expected =
        [some("1", "request-1"), none("2"), none("3"), none("4"), none("5"), some("6", "request-6"), none("7")];
    assert_eq!(known, expected);
}

/// A record's sequence number, and the request id with which it was processed.
type Processed = (String, Option<String>);

/// A sink that keeps the request id with which it processes each record.
#[derive(Clone, Default)]
struct Causes(Arc<Mutex<Vec<Processed>>>);

impl Sink for Causes {
    fn name(&self) -> &'static str {
        "causes"
    }

    fn take<'a>(&'a self, records: &'a [Record<'a>], verdicts: &'a Verdicts) -> BoxFuture<'a, ()> {
        Box::pin(lane::each(records, 8, verdicts, move |record: &Record<'_>| async move {
            tokio::task::yield_now().await;
            let cause = correlation::cause().map(|id| id.to_string());
            self.0.lock().unwrap().push((record.origin.sequence.to_string(), cause));
            Verdict::Done
        }))
    }
}

#[test]
fn an_event_has_the_id_of_its_request_but_its_own_id_does_not_depend_on_the_request() {
    let rules = Rules { table: "shop".to_owned(), stock_low: 10 };
    let plain = insert("1", &order("o1", OrderStatus::Pending, 1, 1));
    let mut caused = plain.clone();
    caused["dynamodb"]["NewImage"]["req"] = json!({"S": "request-1"});
    let batch = event(&[plain, caused]);
    let batch = Batch::decode(&batch).unwrap();
    let events: Vec<_> = batch.records.iter().filter_map(|record| rules.event(record).unwrap()).collect();
    let [without, with] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((with.kind(), with.correlation_id.as_deref()), (Kind::OrderPlaced, Some("request-1")));
    assert_eq!((without.correlation_id.as_ref(), &without.id, &without.data), (None, &with.id, &with.data));
}
