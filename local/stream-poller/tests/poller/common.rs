#![allow(dead_code, clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use stream_poller::{
    Destination, DestinationError, DiscardedBatch, FunctionError, Invoke, Mapping, MappingProgress, MappingSettings,
    Pace, Page, Poller, Record, Shard, SourceError, Start, StreamSource,
};

/// Pages are small, so that a test with few records reads several pages.
const PAGE: usize = 7;

#[derive(Clone, Default)]
pub struct MemoryStream(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    shards: Vec<MemoryShard>,
    troubles: VecDeque<SourceError>,
    reads: usize,
}

struct MemoryShard {
    id: String,
    parent: Option<String>,
    records: Vec<Value>,
    closed: bool,
}

impl MemoryStream {
    /// Creates a stream with one open shard, `s1`.
    pub fn new() -> Self {
        let stream = Self::default();
        stream.open("s1", None);
        stream
    }

    pub fn open(&self, id: &str, parent: Option<&str>) {
        self.0.lock().unwrap().shards.push(MemoryShard {
            id: id.to_owned(),
            parent: parent.map(str::to_owned),
            records: Vec::new(),
            closed: false,
        });
    }

    pub fn close(&self, id: &str) {
        self.with(id, |shard| shard.closed = true);
    }

    pub fn trouble(&self, error: SourceError) {
        self.0.lock().unwrap().troubles.push_back(error);
    }

    pub fn reads(&self) -> usize {
        self.0.lock().unwrap().reads
    }

    pub fn push(&self, shard: &str, record: Value) {
        self.with(shard, |shard| shard.records.push(record));
    }

    /// Inserts one item for each number into `s1`. The number is the item's key and the record's
    /// sequence number.
    pub fn insert(&self, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            self.push("s1", insert(number, &number.to_string(), age(0)));
        }
    }

    fn with<T>(&self, id: &str, change: impl FnOnce(&mut MemoryShard) -> T) -> T {
        let mut inner = self.0.lock().unwrap();
        change(inner.shards.iter_mut().find(|s| s.id == id).unwrap())
    }
}

/// Returns the time `seconds` ago, in seconds since 1970.
pub fn age(seconds: u64) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap().as_secs() - seconds
}

pub fn insert(number: u64, key: &str, created: u64) -> Value {
    json!({
        "eventID": number.to_string(), "eventName": "INSERT", "eventVersion": "1.1",
        "eventSource": "aws:dynamodb", "awsRegion": "local",
        "dynamodb": {
            "ApproximateCreationDateTime": created, "Keys": {"PK": {"S": key}},
            "NewImage": {"PK": {"S": key}}, "SequenceNumber": number.to_string(),
            "SizeBytes": 9, "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
    })
}

impl StreamSource for MemoryStream {
    fn stream_arn(&self) -> &str {
        "arn:memory"
    }

    fn shards(&self) -> BoxFuture<'_, Result<Vec<Shard>, SourceError>> {
        Box::pin(async {
            let inner = self.0.lock().unwrap();
            let shard = |shard: &MemoryShard| Shard { id: shard.id.clone(), parent: shard.parent.clone() };
            Ok(inner.shards.iter().map(shard).collect())
        })
    }

    fn iterator<'a>(&'a self, id: &'a str, start: Start) -> BoxFuture<'a, Result<String, SourceError>> {
        Box::pin(async move {
            let index = self.with(id, |shard| match start {
                Start::TrimHorizon => 0,
                Start::Latest => shard.records.len(),
                Start::After(sequence) => {
                    let is_last = |record: &Value| record["dynamodb"]["SequenceNumber"] == sequence.as_str();
                    shard.records.iter().position(is_last).unwrap() + 1
                }
            });
            Ok(format!("{id}/{index}"))
        })
    }

    fn records<'a>(&'a self, iterator: &'a str) -> BoxFuture<'a, Result<Page, SourceError>> {
        Box::pin(async move {
            {
                let mut inner = self.0.lock().unwrap();
                inner.reads += 1;
                if let Some(trouble) = inner.troubles.pop_front() {
                    return Err(trouble);
                }
            }
            let (id, index) = iterator.split_once('/').unwrap();
            let from: usize = index.parse().unwrap();
            let (page, at_end) = self.with(id, |shard| {
                let page: Vec<Value> = shard.records.iter().skip(from).take(PAGE).cloned().collect();
                let at_end = shard.closed && from + page.len() == shard.records.len();
                (page, at_end)
            });
            let next = from + page.len();
            let record = |record| Arc::new(Record::from_api(record, "arn:memory").unwrap());
            Ok(Page {
                records: page.into_iter().map(record).collect(),
                next: (!at_end).then(|| format!("{id}/{next}")),
            })
        })
    }
}

type Script = dyn Fn(usize, &[u64]) -> Result<Value, FunctionError> + Send + Sync;

/// A function with a script. The script gets the number of a call and its sequence numbers, and
/// returns the result.
#[derive(Clone)]
pub struct Function {
    script: Arc<Script>,
    calls: Arc<Mutex<Vec<Vec<u64>>>>,
}

impl Function {
    pub fn new(script: impl Fn(usize, &[u64]) -> Result<Value, FunctionError> + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), calls: Arc::default() }
    }

    pub fn willing() -> Self {
        Self::new(|_, _| Ok(Value::Null))
    }

    pub fn failing_on(bad: u64) -> Self {
        Self::new(move |_, batch| match batch.contains(&bad) {
            true => Err(failed()),
            false => Ok(Value::Null),
        })
    }

    pub fn calls(&self) -> Vec<Vec<u64>> {
        self.calls.lock().unwrap().clone()
    }
}

pub fn failed() -> FunctionError {
    FunctionError::Failed("scripted".to_owned())
}

pub fn failures<T: ToString>(identifiers: &[T]) -> Value {
    let failure = |id: &T| json!({"itemIdentifier": id.to_string()});
    json!({"batchItemFailures": identifiers.iter().map(failure).collect::<Vec<_>>()})
}

/// Returns the sequence numbers in an event. Shortens long numbers to their last 18 digits.
pub fn sequences(payload: &[u8]) -> Vec<u64> {
    let event: Value = serde_json::from_slice(payload).unwrap();
    let number = |record: &Value| {
        let text = record["dynamodb"]["SequenceNumber"].as_str().unwrap();
        text[text.len().saturating_sub(18)..].parse().unwrap()
    };
    event["Records"].as_array().unwrap().iter().map(number).collect()
}

impl Invoke for Function {
    fn invoke(&self, payload: Bytes) -> BoxFuture<'_, Result<Bytes, FunctionError>> {
        Box::pin(async move {
            let batch = sequences(&payload);
            let index = {
                let mut calls = self.calls.lock().unwrap();
                calls.push(batch.clone());
                calls.len() - 1
            };
            tokio::task::yield_now().await;
            (self.script)(index, &batch).map(|answer| answer.to_string().into())
        })
    }
}

/// A destination that refuses the first batches, and stores all later batches.
#[derive(Clone, Default)]
pub struct Bin {
    pub batches: Arc<Mutex<Vec<DiscardedBatch>>>,
    refusals: Arc<Mutex<usize>>,
}

impl Bin {
    pub fn refusing(times: usize) -> Self {
        Self { refusals: Arc::new(Mutex::new(times)), ..Self::default() }
    }

    pub fn contents(&self) -> Vec<Vec<u64>> {
        let batches = self.batches.lock().unwrap();
        batches.iter().map(|b| sequences(&b.payload)).collect()
    }
}

impl Destination for Bin {
    fn discard(&self, batch: DiscardedBatch) -> BoxFuture<'_, Result<(), DestinationError>> {
        Box::pin(async move {
            let mut refusals = self.refusals.lock().unwrap();
            if *refusals > 0 {
                *refusals -= 1;
                return Err(DestinationError("scripted".to_owned()));
            }
            self.batches.lock().unwrap().push(batch);
            Ok(())
        })
    }
}

pub fn settings() -> MappingSettings {
    MappingSettings::for_function("F")
}

pub fn mapping(settings: MappingSettings, function: &Function) -> Mapping {
    Mapping::new(settings, Arc::new(function.clone()), None).unwrap()
}

pub fn mapping_to(settings: MappingSettings, function: &Function, bin: &Bin) -> Mapping {
    let destination: Arc<dyn Destination> = Arc::new(bin.clone());
    Mapping::new(settings, Arc::new(function.clone()), Some(destination)).unwrap()
}

pub async fn start(stream: &MemoryStream, mappings: Vec<Mapping>) -> Poller {
    Poller::start(stream.clone(), mappings, Pace::default()).await.unwrap()
}

/// Waits in simulated time until the poller has settled all records.
pub async fn drain(poller: &Poller) {
    tokio::time::timeout(Duration::from_secs(7200), poller.drained()).await.unwrap();
}

/// Runs one mapping over a stream until all records are settled.
pub async fn run(stream: &MemoryStream, mapping: Mapping) -> MappingProgress {
    let poller = start(stream, vec![mapping]).await;
    drain(&poller).await;
    only(&poller)
}

pub fn only(poller: &Poller) -> MappingProgress {
    poller.progress().mappings.remove(0)
}
