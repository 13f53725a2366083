//! The table's stream in simulated time, and the consumer that Lambda calls with its records.
//!
//! The poller of the local system emulates Lambda's event source mapping, with the settings of
//! template.yaml. A DynamoDB stream has a shard for each partition of its table. The embedded table
//! has only one, so [`SplitStream`] divides its records by partition key.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use emulators::table::LimitedTable;
use futures::future::BoxFuture;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use stream::batch::Event;
use stream::consumer::Consumer;
use stream::derived::Derived;
use stream::quarantine::{Entry, Quarantine};
use stream::verdict::Reason;
use stream_poller::{
    FunctionError, Invoke, Mapping, MappingSettings, Pace, Page, Poller, Record, Shard, SourceError, Start,
    StreamSource,
};
use template::Template;
use tokio::time::Instant;

use super::simulation::Simulation;
use crate::BenchError;
use crate::loaded::NAME;

/// The function that counts sales.
const FUNCTION: &str = "StreamEvents";
/// Lambda reads each shard four times a second. Source: Lambda Developer Guide, "Using AWS Lambda
/// with Amazon DynamoDB".
const POLL: Duration = Duration::from_millis(250);
/// The most records of a page.
const PAGE: usize = 1_000;
/// The function's timeout in template.yaml, less the margin in which it responds.
const TIMEOUT: Duration = Duration::from_secs(59);

/// The orders that the consumer has not counted yet.
#[derive(Debug, Default)]
pub(super) struct Uncounted {
    placed: BTreeMap<String, Instant>,
    /// The orders that were counted before the client had their response.
    early: BTreeMap<String, Instant>,
    /// How long each order waited until it was counted.
    pub(super) lags: Vec<Duration>,
}

impl Uncounted {
    pub(super) fn place(&mut self, id: String, at: Instant) {
        match self.early.remove(&id) {
            Some(counted) => self.lags.push(counted.saturating_duration_since(at)),
            None => drop(self.placed.insert(id, at)),
        }
    }

    fn count(&mut self, id: &str) {
        match self.placed.remove(id) {
            Some(placed) => self.lags.push(placed.elapsed()),
            None => drop(self.early.insert(id.to_owned(), Instant::now())),
        }
    }

    /// Returns the age of the oldest order that is not counted.
    pub(super) fn lag(&self) -> Duration {
        self.placed.values().min().map(Instant::elapsed).unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.placed.len()
    }
}

/// Begins to consume the stream. Dropping the poller ends it.
pub(super) async fn consume(
    shop: &Arc<Simulation>,
    shards: u32,
    uncounted: &Arc<Mutex<Uncounted>>,
) -> Result<Poller, BenchError> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
    let template = Template::read(&path)?;
    let mapping = template.streams.iter().find(|mapping| mapping.function == FUNCTION);
    let mapping = mapping.ok_or_else(|| wrong!("template.yaml has no mapping of {FUNCTION}"))?;
    let settings = MappingSettings {
        batch_size: usize::try_from(mapping.batch_size)?,
        batching_window: mapping.batching_window,
        parallelization_factor: usize::try_from(mapping.parallelization_factor)?,
        maximum_retry_attempts: mapping.maximum_retries,
        bisect_on_function_error: mapping.bisect_on_error,
        report_batch_item_failures: mapping.report_batch_item_failures,
        filters: mapping.filters.iter().map(ToString::to_string).collect(),
        ..MappingSettings::for_function(FUNCTION)
    };
    let function = Function { shop: Arc::clone(shop), idle: Mutex::default(), uncounted: Arc::clone(uncounted) };
    let pace = Pace { idle: POLL, idle_most: POLL, ..Pace::default() };
    let stream = SplitStream::of(Arc::clone(shop.limited()), shards).await?;
    Ok(Poller::start(stream, vec![Mapping::new(settings, Arc::new(function), None)?], pace).await?)
}

/// The deployed function with the sink `derived`. Each concurrent call has an environment of its
/// own.
struct Function {
    shop: Arc<Simulation>,
    idle: Mutex<Vec<Consumer>>,
    uncounted: Arc<Mutex<Uncounted>>,
}

impl Function {
    fn environment(&self) -> Consumer {
        let settings = stream::Settings::default();
        let sink = Derived::new(Arc::new(self.shop.client()), settings.concurrency);
        Consumer::new(vec![Box::new(sink)], Box::new(NoQuarantine(AtomicU64::new(0))), settings)
    }

    async fn call(&self, payload: &[u8]) -> Result<Bytes, BenchError> {
        let consumer = lock(&self.idle).pop().unwrap_or_else(|| self.environment());
        let event: Event = serde_json::from_slice(payload)?;
        let taken = consumer.take(&event, Instant::now() + TIMEOUT).await.map_err(|error| wrong!("{error}"))?;
        lock(&self.idle).push(consumer);
        let earliest = taken.answer.earliest().map(ToString::to_string);
        let is_done =
            |sequence: &str| earliest.as_ref().is_none_or(|first| (sequence.len(), sequence) < (first.len(), first));
        let payload: Value = serde_json::from_slice(payload)?;
        let mut uncounted = lock(&self.uncounted);
        for record in payload.get("Records").and_then(Value::as_array).into_iter().flatten() {
            let text = |pointer| record.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let is_order = text("/eventName") == "INSERT" && text("/dynamodb/NewImage/entity/S") == "Order";
            if is_order && is_done(text("/dynamodb/SequenceNumber")) {
                uncounted.count(text("/dynamodb/NewImage/id/S"));
            }
        }
        Ok(serde_json::to_vec(&taken.answer)?.into())
    }
}

impl Invoke for Function {
    fn invoke(&self, payload: Bytes) -> BoxFuture<'_, Result<Bytes, FunctionError>> {
        Box::pin(async move { self.call(&payload).await.map_err(|error| FunctionError::Failed(error.to_string())) })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A quarantine that fails. No order of the simulation has a record that a sink refuses.
struct NoQuarantine(AtomicU64);

impl Quarantine for NoQuarantine {
    fn put<'a>(&'a self, entry: Entry<'a>) -> BoxFuture<'a, Result<(), Reason>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { Err(entry.reason.clone()) })
    }
}

struct SplitStream {
    table: Arc<LimitedTable>,
    arn: String,
    state: Mutex<State>,
}

struct State {
    iterator: String,
    read_at: Option<Instant>,
    shards: Vec<Queue>,
}

/// The records of a shard. `first` is the position of the oldest record that is kept.
#[derive(Default)]
struct Queue {
    first: usize,
    records: VecDeque<Arc<Record>>,
}

impl SplitStream {
    async fn of(table: Arc<LimitedTable>, shards: u32) -> Result<Self, BenchError> {
        let table = table;
        let described = ask(&table, "DescribeTable", &json!({"TableName": NAME})).await?;
        let text = |value: &Value, pointer| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let missing = || wrong!("the table has no stream");
        let arn = text(&described, "/Table/LatestStreamArn").ok_or_else(missing)?;
        let described = ask(&table, "DescribeStream", &json!({"StreamArn": arn})).await?;
        let shard = text(&described, "/StreamDescription/Shards/0/ShardId").ok_or_else(missing)?;
        let begin = json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"});
        let begin = ask(&table, "GetShardIterator", &begin).await?;
        let iterator = text(&begin, "/ShardIterator").ok_or_else(missing)?;
        let shards = (0..shards.max(1)).map(|_| Queue::default()).collect();
        Ok(Self { table, arn, state: Mutex::new(State { iterator, read_at: None, shards }) })
    }

    /// Divides the new records of the table among the shards.
    async fn read(&self) -> Result<(), BenchError> {
        loop {
            let iterator = {
                let mut state = lock(&self.state);
                if state.read_at == Some(Instant::now()) {
                    return Ok(());
                }
                state.read_at = Some(Instant::now());
                state.iterator.clone()
            };
            let mut page = ask(&self.table, "GetRecords", &json!({"ShardIterator": iterator, "Limit": PAGE})).await?;
            let Some(Value::Array(records)) = page.get_mut("Records").map(Value::take) else {
                return Err(wrong!("a page without records"));
            };
            let is_full = records.len() == PAGE;
            let mut state = lock(&self.state);
            if let Some(next) = page.get("NextShardIterator").and_then(Value::as_str) {
                next.clone_into(&mut state.iterator);
            }
            let mut last = None;
            for record in records {
                let mut hasher = DefaultHasher::new();
                record.pointer("/dynamodb/Keys/PK/S").and_then(Value::as_str).hash(&mut hasher);
                let shard = hasher.finish() % state.shards.len() as u64;
                let record = Arc::new(Record::from_api(record, &self.arn)?);
                last = Some(record.sequence().clone());
                if let Some(queue) = state.shards.get_mut(usize::try_from(shard)?) {
                    queue.records.push_back(record);
                }
            }
            if let Some(last) = last {
                self.table.trim_stream(NAME, last.as_str())?;
            }
            if !is_full {
                return Ok(());
            }
            state.read_at = None;
        }
    }
}

async fn ask(table: &LimitedTable, operation: &str, body: &Value) -> Result<Value, BenchError> {
    let response = table.forward(operation, body.to_string().as_bytes());
    let (status, body) = (response.status(), response.into_body().collect().await?.to_bytes());
    if status.is_success() { Ok(serde_json::from_slice(&body)?) } else { Err(wrong!("{operation}: {status}")) }
}

impl StreamSource for SplitStream {
    fn stream_arn(&self) -> &str {
        &self.arn
    }

    fn shards(&self) -> BoxFuture<'_, Result<Vec<Shard>, SourceError>> {
        let count = lock(&self.state).shards.len();
        Box::pin(async move { Ok((0..count).map(|shard| Shard { id: shard.to_string(), parent: None }).collect()) })
    }

    fn iterator<'a>(&'a self, shard_id: &'a str, _: Start) -> BoxFuture<'a, Result<String, SourceError>> {
        Box::pin(async move { Ok(format!("{shard_id}:0")) })
    }

    fn records<'a>(&'a self, iterator: &'a str) -> BoxFuture<'a, Result<Page, SourceError>> {
        Box::pin(async move {
            self.read().await.map_err(|error| SourceError::Unavailable(error.to_string()))?;
            let wrong = || SourceError::Malformed("an iterator of another stream");
            let (shard, position) = iterator.split_once(':').ok_or_else(wrong)?;
            let shard: usize = shard.parse().map_err(|_| wrong())?;
            let position: usize = position.parse().map_err(|_| wrong())?;
            let mut state = lock(&self.state);
            let queue = state.shards.get_mut(shard).ok_or_else(wrong)?;
            // The only reader of the shard has read the records before this position.
            while queue.first < position && queue.records.pop_front().is_some() {
                queue.first += 1;
            }
            let records: Vec<Arc<Record>> = queue.records.iter().take(PAGE).cloned().collect();
            let next = position + records.len();
            Ok(Page { records, next: Some(format!("{shard}:{next}")) })
        })
    }
}
