//! Runs the consumer over the batches of a file, in a separate process. It counts the consumer's
//! calls and prints the figures.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bus::{EventBus, Outcome};
use futures::future::BoxFuture;
use search_index::{BulkOperation, BulkOutcome, Limits, SearchClient, SearchConfig, SearchError};
use serde::{Deserialize, Serialize};
use storage::objects::{Class, ObjectError, ObjectStore, Put};
use stream::audit::Audit;
use stream::batch::{Event, Record};
use stream::bus::Bus;
use stream::derived::Derived;
use stream::ports::{Index, Objects, Publisher};
use stream::quarantine::{Entry, Quarantine};
use stream::search::Search;
use stream::sink::Sink;
use stream::transitions::Rules;
use stream::verdict::{Reason, Verdicts};
use stream::{Consumer, Settings};
use table::Table;

use crate::BenchError;
use crate::latency::cpu;

/// The time limit of a batch, long enough even under valgrind. The engine's speed is not measured.
const PATIENCE: Duration = Duration::from_secs(600);
/// The maximum number of events in one request to EventBridge.
const EVENTS_OF_A_REQUEST: usize = 10;

#[derive(Debug, clap::Args)]
pub(crate) struct TakerArgs {
    /// The file of batches, one per line.
    #[arg(long)]
    batches: PathBuf,
    /// Names of the sinks, separated by commas.
    #[arg(long, value_delimiter = ',')]
    sinks: Vec<String>,
    /// Hand the sinks one record at a time.
    #[arg(long)]
    one_by_one: bool,
}

/// The figures of all batches.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Totals {
    pub wall_us: u64,
    /// CPU time of all threads.
    pub cpu_us: u64,
    pub calls: Calls,
}

/// The number of requests to each backend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Calls {
    pub table: u64,
    pub search: u64,
    pub bus: u64,
    pub objects: u64,
}

/// Takes the batches and prints the figures.
pub(crate) async fn run(args: TakerArgs) -> Result<(), BenchError> {
    let batches = std::fs::read_to_string(&args.batches)?;
    let table = Arc::new(Table::from_env().await?);
    let [search, bus, objects] = [(); 3].map(|()| Arc::new(AtomicU64::new(0)));
    let settings = Settings::default();
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    for name in &args.sinks {
        let sink: Box<dyn Sink> = match name.as_str() {
            "search" => {
                let limits = Limits { attempt: PATIENCE, total: PATIENCE, ..Limits::default() };
                let endpoint = std::env::var("SEARCH_ENDPOINT")?;
                let client = SearchClient::new(&SearchConfig::new(&endpoint, "bench")?.with_limits(limits));
                client.ensure_indices().await?;
                // Open the connections before the measurement, as in a warm function.
                client.refresh().await?;
                Box::new(Search::open(Counted { port: client, calls: Arc::clone(&search) }).await)
            }
            "bus" => {
                let port = EventBus::from_env()?;
                let rules = Rules { table: table.name().to_owned(), stock_low: settings.stock_low };
                Box::new(Bus::new(Arc::clone(&table), Counted { port, calls: Arc::clone(&bus) }, rules))
            }
            "audit" => {
                let port = ObjectStore::from_env("ARCHIVE_BUCKET")?;
                let archive = Arc::new(Counted { port, calls: Arc::clone(&objects) });
                Box::new(Audit::new(Arc::clone(&table), archive, settings.concurrency))
            }
            "derived" => Box::new(Derived::new(Arc::clone(&table), settings.concurrency)),
            other => return Err(wrong!("unknown sink {other}")),
        };
        sinks.push(if args.one_by_one { Box::new(OneByOne(sink)) } else { sink });
    }
    let consumer = Consumer::new(sinks, Box::new(RefusingQuarantine), settings);
    let _ = table.meter().take();

    let cpu_time = || cpu::of_threads(Path::new("/proc/self"));
    let (started, cpu) = (Instant::now(), cpu_time()?);
    for batch in batches.lines() {
        let event: Event = serde_json::from_str(batch)?;
        let outcome = consumer.take(&event, tokio::time::Instant::now() + PATIENCE).await?;
        if let Some(earliest) = outcome.answer.earliest() {
            return Err(wrong!("the consumer reports record {earliest} as failed"));
        }
    }
    let (wall, cpu) = (started.elapsed(), cpu_time()?.saturating_sub(cpu));

    let [search, bus, objects] = [search, bus, objects].map(|calls| calls.load(Ordering::Relaxed));
    let table_calls = table.meter().take().iter().map(|cost| u64::from(cost.requests)).sum();
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let calls = Calls { table: table_calls, search, bus, objects };
    let totals = Totals { wall_us: micros(wall), cpu_us: micros(cpu), calls };
    println!("{}", serde_json::to_string(&totals)?);
    Ok(())
}

/// A client of a backend (one of the [`stream::ports`]), with a counter of its calls.
struct Counted<P> {
    port: P,
    calls: Arc<AtomicU64>,
}

impl<P> Counted<P> {
    fn count(&self, calls: usize) {
        self.calls.fetch_add(u64::try_from(calls).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl Index for Counted<SearchClient> {
    fn ensure(&self) -> BoxFuture<'_, Result<(), SearchError>> {
        Index::ensure(&self.port)
    }

    /// Counts one request, because the operations of each batch here fit into one request.
    fn bulk<'a>(&'a self, operations: &'a [BulkOperation]) -> BoxFuture<'a, Result<Vec<BulkOutcome>, SearchError>> {
        self.count(1);
        Index::bulk(&self.port, operations)
    }
}

impl Publisher for Counted<EventBus> {
    fn publish<'a>(&'a self, events: &'a [bus::Event]) -> BoxFuture<'a, Vec<Outcome>> {
        self.count(events.len().div_ceil(EVENTS_OF_A_REQUEST));
        Publisher::publish(&self.port, events)
    }
}

impl Objects for Counted<ObjectStore> {
    fn put_new<'a>(&'a self, name: &'a str, body: Vec<u8>, class: Class) -> BoxFuture<'a, Result<Put, ObjectError>> {
        self.count(1);
        Objects::put_new(&self.port, name, body, class)
    }
}

/// A wrapper that gives a sink one record at a time, like the simplest form of that sink.
struct OneByOne(Box<dyn Sink>);

impl Sink for OneByOne {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn take<'a>(&'a self, records: &'a [Record<'a>], verdicts: &'a Verdicts) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            for (position, record) in records.iter().enumerate() {
                let alone = Verdicts::new(1);
                self.0.take(std::slice::from_ref(record), &alone).await;
                if let Some(Some(verdict)) = alone.to_vec().into_iter().next() {
                    verdicts.settle(position, verdict);
                }
            }
        })
    }
}

/// A quarantine that refuses every record, so that an unreadable record fails the measurement.
struct RefusingQuarantine;

impl Quarantine for RefusingQuarantine {
    fn put<'a>(&'a self, entry: Entry<'a>) -> BoxFuture<'a, Result<(), Reason>> {
        let reason = entry.reason.clone();
        Box::pin(async move { Err(reason) })
    }
}
