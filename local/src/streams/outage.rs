//! Tests outages with the template's mappings and the real poller, consumer and destination. The
//! search engine and the bus are in memory, and time is simulated.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::time::SystemTime;

use bus::{Event, Outcome};
use key_schema::item::{FromItem, Item, key_of};
use key_schema::key::Key;
use key_schema::request::{BatchGet, BatchWrite, BatchWriteAction, Get, Query, Single, Transaction};
use search_index::{BulkOperation, BulkOutcome, SearchError};
use serde_json::json;
use stream::Consumer;
use stream::ports::{Index, Items, Publisher};
use stream::quarantine::{Entry, Quarantine};
use stream::sink::Sink;
use stream::transitions::Rules;
use stream::verdict::Reason;
use stream_poller::{MappingProgress, Pace, Page, Record, Shard, SourceError, Start, StreamSource};
use table::{Refusal, Refusals, TableError};

use super::*;
use crate::Options;
use crate::token::SigningKey;

struct Records(Vec<Json>);

impl StreamSource for Records {
    fn stream_arn(&self) -> &str {
        "arn:memory"
    }

    fn shards(&self) -> BoxFuture<'_, Result<Vec<Shard>, SourceError>> {
        futures::future::ready(Ok(vec![Shard { id: "shard-1".to_owned(), parent: None }])).boxed()
    }

    fn iterator<'a>(&'a self, _: &'a str, start: Start) -> BoxFuture<'a, Result<String, SourceError>> {
        assert_eq!(start, Start::TrimHorizon, "the template's mappings begin with the oldest record");
        futures::future::ready(Ok("0".to_owned())).boxed()
    }

    fn records<'a>(&'a self, from: &'a str) -> BoxFuture<'a, Result<Page, SourceError>> {
        let records = self.0.iter().skip(from.parse().unwrap());
        let records = records.map(|record| Arc::new(Record::from_api(record.clone(), "arn:memory").unwrap())).collect();
        futures::future::ready(Ok(Page { records, next: Some(self.0.len().to_string()) })).boxed()
    }
}

#[derive(Debug, Default)]
struct World {
    down_until: Option<Instant>,
    /// Id of a document that the engine always rejects with a transient error.
    poison: Option<String>,
    documents: BTreeSet<String>,
    refused_calls: usize,
    published: Vec<String>,
    items: BTreeMap<Key, Item>,
}

#[derive(Debug, Clone, Default)]
struct Ports(Arc<Mutex<World>>);

impl Ports {
    fn of<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        look(&mut self.0.lock().unwrap())
    }
}

impl Index for Ports {
    fn ensure(&self) -> BoxFuture<'_, Result<(), SearchError>> {
        futures::future::ready(Ok(())).boxed()
    }

    fn bulk<'a>(&'a self, operations: &'a [BulkOperation]) -> BoxFuture<'a, Result<Vec<BulkOutcome>, SearchError>> {
        let answer = self.of(|world| {
            if world.down_until.is_some_and(|until| Instant::now() < until) {
                world.refused_calls += 1;
                return Err(SearchError::Unavailable { attempts: 1, reason: "down".to_owned() });
            }
            let take = |operation: &BulkOperation| {
                if world.poison.as_deref() == Some(operation.document_id()) {
                    return BulkOutcome::Retryable { reason: "injected".to_owned() };
                }
                world.documents.insert(operation.document_id().to_owned());
                BulkOutcome::Applied
            };
            Ok(operations.iter().map(take).collect())
        });
        futures::future::ready(answer).boxed()
    }
}

impl Publisher for Ports {
    fn publish<'a>(&'a self, events: &'a [Event]) -> BoxFuture<'a, Vec<Outcome>> {
        self.of(|world| world.published.extend(events.iter().map(|event| event.id.to_string())));
        futures::future::ready(vec![Outcome::Published; events.len()]).boxed()
    }
}

/// Stores the consumer's marks of published events. It has no orders.
impl Items for Ports {
    async fn batch_get<T: FromItem + Clone + Send>(&self, batch: &BatchGet<T>) -> Result<Vec<Option<T>>, TableError> {
        let find = |key| self.of(|world| world.items.get(key).cloned()).map(T::from_item).transpose();
        batch.keys().iter().map(|key| Ok(find(key)?)).collect()
    }

    async fn batch_write(&self, batch: &BatchWrite) -> Result<Vec<BatchWriteAction>, TableError> {
        for action in batch.writes() {
            let BatchWriteAction::Put(item) = action else { panic!("marks are not deleted") };
            self.of(|world| world.items.insert(key_of(item).unwrap(), item.clone()));
        }
        Ok(Vec::new())
    }

    async fn get<T: FromItem + Send>(&self, _: &Get<T>) -> Result<Option<T>, TableError> {
        panic!("marks are read in batches")
    }

    async fn query<T: FromItem + Send>(&self, _: &Query<T>) -> Result<table::Page<T>, TableError> {
        // No order has lines here.
        Ok(table::Page::new(Vec::new(), None))
    }

    async fn write(&self, _: &Single<()>) -> Result<Result<(), Refusal>, TableError> {
        panic!("marks are written without a condition")
    }

    async fn transact<A: Clone + Send + Sync>(
        &self,
        _: &Transaction<A>,
    ) -> Result<Result<(), Refusals<A>>, TableError> {
        panic!("no mark is in a transaction")
    }
}

impl Quarantine for Ports {
    fn put<'a>(&'a self, entry: Entry<'a>) -> BoxFuture<'a, Result<(), Reason>> {
        panic!("a record was quarantined: {}", entry.reason)
    }
}

/// Invokes the consumer as Lambda does.
struct Called(Consumer);

impl Invoke for Called {
    fn invoke(&self, payload: Bytes) -> BoxFuture<'_, Result<Bytes, FunctionError>> {
        async move {
            let event = serde_json::from_slice(&payload).unwrap();
            let taken = self.0.take(&event, Instant::now() + Duration::from_secs(59)).await.unwrap();
            Ok(serde_json::to_vec(&taken.answer).unwrap().into())
        }
        .boxed()
    }
}

/// A stream with its consumers, which have the template's mappings. As in a deployment with
/// `FoldStreamConsumers`, `StreamEvents` has the sinks `search` and `bus`.
struct Rig {
    ports: Ports,
    backends: Arc<Backends>,
    poller: Poller,
}

impl Rig {
    /// Starts the consumers. `change` edits the template's settings for the test.
    async fn start(ports: Ports, records: Vec<Json>, change: impl Fn(&mut MappingSettings)) -> Self {
        let template = Template::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml")).unwrap();
        let options = Options { table_endpoint: None, search_endpoint: None, ..Options::from_environment("".into()) };
        let key = SigningKey::open(None).unwrap();
        let backends = Arc::new(Backends::start(&options, &template, &key).await.unwrap());
        let mapping = |stream: &StreamMapping| {
            let table = Arc::new(ports.clone());
            let rules = Rules { table: "shop".to_owned(), stock_low: 10 };
            let search: Box<dyn Sink> = Box::new(stream::search::Search::new(ports.clone()));
            let bus: Box<dyn Sink> = Box::new(stream::bus::Bus::new(table, ports.clone(), rules));
            let sinks = if stream.function == "StreamEvents" { vec![search, bus] } else { vec![search] };
            let consumer = Consumer::new(sinks, Box::new(ports.clone()), stream::Settings::default());
            let (name, access) = (backends.bucket("FailedRecords").to_owned(), Arc::new(Access::new("r", "a", [])));
            let bucket = Bucket {
                logical_id: "FailedRecords".to_owned(),
                name,
                arn: "arn:aws:s3:::failed".to_owned(),
                cors: Vec::new(),
            };
            let role = Arc::new(MappingRole::of_stream(stream, &access));
            let destination = FailedRecords { backends: Arc::clone(&backends), bucket, role };
            let mut settings = settings(stream);
            change(&mut settings);
            Mapping::new(settings, Arc::new(Called(consumer)), Some(Arc::new(destination))).unwrap()
        };
        let mappings: Vec<Mapping> = template.streams.iter().map(mapping).collect();
        assert_eq!(mappings.len(), 2);
        // From this line on no task waits for anything outside this process, so time can be
        // simulated.
        tokio::time::pause();
        let poller = Poller::start(Records(records), mappings, Pace::default()).await.unwrap();
        tokio::time::timeout(Duration::from_secs(24 * 3600), poller.drained()).await.unwrap();
        Self { ports, backends, poller }
    }

    fn progress(&self) -> BTreeMap<String, MappingProgress> {
        self.poller.progress().mappings.into_iter().map(|mapping| (mapping.function.clone(), mapping)).collect()
    }

    fn failed(&self) -> Vec<Json> {
        let bucket = self.backends.bucket("FailedRecords");
        let names = self.backends.objects.list(bucket, None, 100).unwrap().items.into_iter().map(|object| object.name);
        let read = |name: String| {
            assert!(name.starts_with("aws/lambda/"), "{name}");
            serde_json::from_slice(&self.backends.objects.get(bucket, &name).unwrap().unwrap()).unwrap()
        };
        names.map(read).collect()
    }
}

/// Returns the record of a sample event, with `id` as the item's id, and with the current time.
fn record(sample: &str, id: &str, number: usize) -> Json {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../events").join(sample);
    let event: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let text = event["Records"][0].to_string();
    let own = event["Records"][0]["dynamodb"]["NewImage"]["id"]["S"].as_str().unwrap().to_owned();
    let mut record: Json = serde_json::from_str(&text.replace(&own, id)).unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    record["eventID"] = format!("event-{number}").into();
    record["dynamodb"]["SequenceNumber"] = (100 + number).to_string().into();
    record["dynamodb"]["ApproximateCreationDateTime"] = now.as_secs().into();
    record
}

fn product(number: usize) -> Json {
    record("stream-search-insert.json", &format!("p{number}"), number)
}

fn order(number: usize) -> Json {
    record("stream-events-order-placed.json", &format!("019aa136-7c00-7aaa-8bbb-{number:012}"), number)
}

#[tokio::test]
async fn case_23_in_an_hour_without_the_index_no_event_is_discarded_repeated_or_lost() {
    let ports = Ports::default();
    ports.of(|world| world.down_until = Some(Instant::now() + Duration::from_secs(3600)));
    let records = (1..=12).map(|number| if number % 3 == 0 { order(number) } else { product(number) }).collect();
    let rig = Rig::start(ports, records, |_| {}).await;
    for (function, progress) in rig.progress() {
        assert_eq!((progress.delivered, progress.discarded, progress.lost), (12, 0, 0), "{function}");
        // A mapping with a limit of a hundred retries would have given up during this time.
        assert!(progress.failed_invocations > 4 * 200, "{function}: {}", progress.failed_invocations);
    }
    assert_eq!(rig.failed(), Vec::<Json>::new());
    rig.ports.of(|world| {
        let distinct: BTreeSet<&String> = world.published.iter().collect();
        // Each of the four orders has an event.
        assert_eq!((world.published.len(), distinct.len()), (4, 4), "each event once");
        assert_eq!(world.documents.len(), 12);
        assert!(world.refused_calls > 1_000, "{}", world.refused_calls);
    });
}

#[tokio::test]
async fn the_maximum_age_ends_the_retries_of_the_templates_mappings() {
    let template = Template::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml")).unwrap();
    for stream in &template.streams {
        let (retries, age) = (stream.maximum_retries.unwrap(), stream.maximum_record_age.unwrap());
        let function = &stream.function;
        assert!(Pace::default().retry_most * retries > age, "{function} gives up before its records are {age:?} old");
    }
}

#[tokio::test]
async fn case_35_when_the_retries_are_exhausted_the_destination_keeps_the_whole_batch_and_the_shard_moves_on() {
    let ports = Ports::default();
    let poison = search_index::document_id("PRODUCT#p1", "PRODUCT");
    ports.of(|world| world.poison = Some(poison.clone()));
    // The records fill two batches. The first batch has the document that the engine always
    // rejects.
    let records: Vec<Json> =
        (1..=8).map(|number| if number % 2 == 0 { order(number) } else { product(number) }).collect();
    let rig = Rig::start(ports, records.clone(), |settings| {
        settings.maximum_retry_attempts = Some(20);
        (settings.batch_size, settings.parallelization_factor) = (4, 1);
    })
    .await;
    for (function, progress) in rig.progress() {
        assert_eq!((progress.delivered, progress.discarded, progress.lost), (4, 4, 0), "{function}");
        assert_eq!((progress.failed_invocations, progress.invocations), (21, 22), "{function}");
    }
    let failed = rig.failed();
    assert_eq!(failed.len(), 2);
    for failed in failed {
        assert_eq!(failed["requestContext"]["condition"], "RetryAttemptsExhausted");
        assert_eq!(failed["requestContext"]["approximateInvokeCount"], 21);
        assert_eq!(failed["responseContext"]["functionError"], "the function reported failed records");
        assert_eq!(failed["DDBStreamBatchInfo"]["batchSize"], 4);
        let kept: Json = serde_json::from_str(failed["payload"].as_str().unwrap()).unwrap();
        let mut kept = kept["Records"].as_array().unwrap().clone();
        let mut given = records[..4].to_vec();
        kept.iter_mut().chain(&mut given).for_each(|record| record["eventSourceARN"] = json!("arn:memory"));
        assert_eq!(kept, given, "all records, in order");
    }
    rig.ports.of(|world| {
        // The consumer published the event of each order once, also in the batch with the
        // rejected document.
        let distinct: BTreeSet<&String> = world.published.iter().collect();
        assert_eq!((world.published.len(), distinct.len()), (4, 4));
        assert_eq!(world.documents.len(), 7);
        assert!(!world.documents.contains(&poison));
    });
}
