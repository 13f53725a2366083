//! Stream records: one that cannot be read is set aside whole, and its neighbours are done; nothing that a record holds makes a batch come again.
#![no_main]

use std::time::Duration;

use fuzz::apps::runtime;
use fuzz::sinks::Outside;
use fuzz::table::{Sample, golden};
use libfuzzer_sys::fuzz_target;
use search_index::document_id;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use stream::Consumer;
use stream::batch::{Batch, BatchError, Event};
use stream::quarantine::{PREFIX, Quarantined};
use tokio::runtime::Runtime;
use tokio::time::Instant;

/// The sinks of the consumer.
const SINKS: [&str; 4] = ["search", "bus", "audit", "derived"];
/// Every neighbour's product.
const NEIGHBOURS: [&str; 2] = ["neighbour-1", "neighbour-2"];

struct Stream {
    runtime: Runtime,
    consumer: Consumer,
    outside: Outside,
    neighbours: [String; 2],
}

thread_local! {
    static STREAM: Stream = {
        let outside = Outside::default();
        Stream { runtime: runtime(), consumer: outside.consumer(Sample::table().0), outside, neighbours: NEIGHBOURS.map(neighbour) }
    };
}

/// An event, or one record of it.
#[derive(Deserialize)]
struct Whole {
    #[serde(rename = "Records")]
    records: Vec<Box<RawValue>>,
}

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let records = match serde_json::from_str::<Whole>(text) {
        Ok(whole) => whole.records,
        Err(_) => match serde_json::from_str(text) {
            Ok(record) => vec![record],
            // Lambda sends JSON.
            Err(_) => return,
        },
    };
    let between: Vec<&str> = records.iter().map(|record| record.get()).collect();
    STREAM.with(|stream| {
        let [first, last] = stream.neighbours.each_ref().map(String::as_str);
        let all = [&[first][..], &between, &[last]].concat();
        stream.take(&all);
    });
});

impl Stream {
    fn take(&self, records: &[&str]) {
        let text = format!(r#"{{"Records":[{}]}}"#, records.join(","));
        let event: Event = serde_json::from_str(&text).expect("records are JSON");
        let taken = self.runtime.block_on(async {
            let stop = Instant::now() + Duration::from_secs(60);
            self.consumer.take(&event, stop).await
        });
        let kept = self.outside.take();
        let taken = match taken {
            Ok(taken) => taken,
            Err(BatchError::NoSequenceNumber { position }) => {
                assert!(kept.documents.is_empty() && kept.objects.is_empty(), "half of a batch was done");
                return nameless(records[position]);
            }
        };
        assert_eq!(taken.answer.earliest(), None, "{text}");
        let batch = Batch::decode(&event).expect("it was decoded");
        assert_eq!(batch.records.len() + batch.malformed.len() + batch.foreign, records.len());
        let aside = taken.report.malformed();
        assert!(
            aside.quarantined == batch.malformed.len() && aside.failed + aside.unfinished == 0,
            "{aside:?}: {text}"
        );
        for sink in SINKS {
            let counts = taken.report.counts(sink).expect("a sink of the consumer");
            assert!(
                counts.done + counts.quarantined == batch.records.len() && counts.done >= NEIGHBOURS.len(),
                "{sink}: {counts:?}: {text}"
            );
        }
        for neighbour in NEIGHBOURS {
            assert!(kept.documents.contains(&document_id(&format!("PRODUCT#{neighbour}"), "PRODUCT")), "{text}");
        }
        for (_, object) in kept.objects.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
            let object: Quarantined = serde_json::from_slice(object).expect("what is set aside is read again");
            assert!(records.contains(&object.record.get()), "set aside as it came: {text}");
        }
    }
}

/// What fails a whole batch has no sequence number that an answer could name.
fn nameless(record: &str) {
    let Ok(value) = serde_json::from_str::<Value>(record) else { return };
    let number = value.pointer("/dynamodb/SequenceNumber").and_then(Value::as_str);
    let named = number
        .is_some_and(|number| (1..=40).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit()));
    // A member that is there twice may be read in two ways; without it, in one.
    let event: Event = serde_json::from_value(json!({"Records": [value]})).expect("a record is JSON");
    assert!(!named || Batch::decode(&event).is_ok(), "{record}");
}

fn neighbour(id: &str) -> String {
    let product = golden().into_iter().find(|item| item["entity"]["S"] == "Product").expect("a product");
    let product: Value = serde_json::from_str(&product.to_string().replace("1082185", id)).expect("an item");
    let keys = json!({"PK": product["PK"], "SK": product["SK"]});
    json!({
        "eventID": id, "eventName": "INSERT",
        "dynamodb": {"SequenceNumber": "4421584500000000017450439091", "ApproximateCreationDateTime": 1_486_031_400, "Keys": keys, "NewImage": product},
    })
    .to_string()
}
