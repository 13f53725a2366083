//! The stream's consumer, batch by batch, and the same with one search call a record.
//!
//! The engine runs in another process, so the CPU time of this one is the consumer's: decoding, folding, documents, the search client. Batches
//! are JSON text that was made before, as Lambda hands them over. Every variant begins with empty indices, and must leave what all the
//! others left.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use rustix::time::{ClockId, clock_gettime};
use search_index::{BulkOperation, BulkOutcome, Collection, Limits, SearchClient, SearchConfig, SearchError};
use serde::Serialize;
use stream::batch::{Event, Record};
use stream::ledger::{Ledger, Reason};
use stream::ports::Index;
use stream::quarantine::{Entry, Quarantine};
use stream::search::Search;
use stream::sink::Sink;
use stream::{Consumer, Settings};

use crate::engine::Engine;
use crate::{BenchError, records};

/// Records in a batch: some, and the most that Lambda takes by the kilobyte for such records.
const BATCHES: [usize; 2] = [100, 1_000];
/// Long enough for any batch: how quick the engine is is not what is measured.
const PATIENCE: Duration = Duration::from_secs(600);

/// What one variant took.
#[derive(Debug, Serialize)]
struct Figures {
    variant: String,
    records: u64,
    records_per_second: f64,
    cpu_us_per_record: f64,
    search_calls: u64,
}

/// How many times less the batches take than one call a record.
#[derive(Debug, Serialize)]
struct Ratios {
    variant: String,
    fewer_calls: f64,
    less_cpu: f64,
}

#[derive(Debug, Serialize)]
struct Measured {
    figures: Vec<Figures>,
    ratios: Vec<Ratios>,
}

/// Measures, prints the table, and writes the figures to a file.
pub(crate) async fn run(number: u64, json: Option<&Path>) -> Result<(), BenchError> {
    let records = records::records(number)?;
    let engine = Engine::start()?;
    let mut figures = Vec::new();
    for size in BATCHES {
        figures.push(measure(&engine, &format!("batches of {size}"), &records, size, false).await?);
    }
    figures.push(measure(&engine, "one call a record", &records, 100, true).await?);
    let ratios = ratios(&figures);
    let measured = Measured { figures, ratios };
    print!("{}", measured.table());
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&measured).map_err(BenchError::wrong)?;
        std::fs::write(path, text + "\n")?;
    }
    Ok(())
}

async fn measure(
    engine: &Engine,
    variant: &str,
    records: &[String],
    size: usize,
    one_by_one: bool,
) -> Result<Figures, BenchError> {
    let limits = Limits { attempt: PATIENCE, total: PATIENCE, ..Limits::default() };
    let prefix = variant.replace(' ', "-");
    let client = SearchClient::new(&SearchConfig::new(&engine.url, &prefix)?.with_limits(limits));
    client.ensure_indices().await?;
    let calls = Arc::new(AtomicU64::new(0));
    let search = Search::open(Counted { client: client.clone(), calls: Arc::clone(&calls) }).await;
    let sink: Box<dyn Sink> = if one_by_one { Box::new(OneByOne(search)) } else { Box::new(search) };
    let consumer = Consumer::new(vec![sink], Box::new(Nowhere), Settings::default());
    let batches: Vec<String> =
        records.chunks(size).map(|records| format!(r#"{{"Records":[{}]}}"#, records.join(","))).collect();
    // Connections are there, as in a function that has run before.
    client.refresh().await?;

    let (started, cpu) = (Instant::now(), cpu_time());
    for batch in &batches {
        let event: Event = serde_json::from_str(batch).map_err(BenchError::wrong)?;
        let taken = consumer.take(&event, tokio::time::Instant::now() + PATIENCE).await;
        let taken = taken.map_err(BenchError::wrong)?;
        if let Some(earliest) = taken.answer.earliest() {
            return Err(BenchError::Wrong(format!("{variant}: record {earliest} was not taken")));
        }
    }
    let (took, cpu) = (started.elapsed(), cpu_time().saturating_sub(cpu));

    client.refresh().await?;
    let mut documents = 0;
    for collection in Collection::ALL {
        documents += client.count(collection).await?;
    }
    let expected = distinct(records.len());
    if documents != expected {
        return Err(BenchError::Wrong(format!("{variant}: {documents} documents of {expected}")));
    }
    let number = u64::try_from(records.len()).unwrap_or(u64::MAX);
    let each = f64::from(u32::try_from(number).unwrap_or(u32::MAX)).max(1.0);
    Ok(Figures {
        variant: variant.to_owned(),
        records: number,
        records_per_second: each / took.as_secs_f64().max(f64::EPSILON),
        cpu_us_per_record: cpu.as_secs_f64() * 1e6 / each,
        search_calls: calls.load(Ordering::Relaxed),
    })
}

/// Of a thousand records the second half changes what the first half creates.
fn distinct(records: usize) -> u64 {
    let items = records / 1_000 * 500 + (records % 1_000).min(500);
    u64::try_from(items).unwrap_or(u64::MAX)
}

/// What this process has computed so far, on all its threads.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let (seconds, nanos) =
        (u64::try_from(time.tv_sec).unwrap_or_default(), u32::try_from(time.tv_nsec).unwrap_or_default());
    Duration::new(seconds, nanos)
}

fn ratios(figures: &[Figures]) -> Vec<Ratios> {
    let Some((alone, batched)) = figures.split_last() else { return Vec::new() };
    let calls = |figures: &Figures| f64::from(u32::try_from(figures.search_calls).unwrap_or(u32::MAX));
    let ratio = |figures: &Figures| Ratios {
        variant: figures.variant.clone(),
        fewer_calls: calls(alone) / calls(figures).max(1.0),
        less_cpu: alone.cpu_us_per_record / figures.cpu_us_per_record.max(f64::EPSILON),
    };
    batched.iter().map(ratio).collect()
}

impl Measured {
    fn table(&self) -> String {
        let mut table =
            format!("{:<20} {:>10} {:>12} {:>16} {:>12}\n", "", "records", "records/s", "CPU µs/record", "bulk calls");
        for Figures { variant, records, records_per_second, cpu_us_per_record, search_calls } in &self.figures {
            // Writing to a string does not fail.
            let _ = writeln!(
                table,
                "{variant:<20} {records:>10} {records_per_second:>12.0} {cpu_us_per_record:>16.1} {search_calls:>12}"
            );
        }
        for Ratios { variant, fewer_calls, less_cpu } in &self.ratios {
            let _ = writeln!(
                table,
                "{variant}: {fewer_calls:.0} times fewer calls (goal 20), {less_cpu:.1} times less CPU (goal 5) than one call a record"
            );
        }
        table
    }
}

/// The engine, its bulk calls counted. Each is one request: no batch here has more operations than fit one.
struct Counted {
    client: SearchClient,
    calls: Arc<AtomicU64>,
}

impl Index for Counted {
    fn ensure(&self) -> BoxFuture<'_, Result<(), SearchError>> {
        Index::ensure(&self.client)
    }

    fn bulk<'a>(&'a self, operations: &'a [BulkOperation]) -> BoxFuture<'a, Result<Vec<BulkOutcome>, SearchError>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Index::bulk(&self.client, operations)
    }
}

/// The consumer as one would first write it: the same sink, given one record at a time.
struct OneByOne<S>(S);

impl<S: Sink> Sink for OneByOne<S> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn take<'a>(&'a self, records: &'a [Record<'a>], ledger: &'a Ledger) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            for (position, record) in records.iter().enumerate() {
                let alone = Ledger::new(1);
                self.0.take(std::slice::from_ref(record), &alone).await;
                if let Some(Some(verdict)) = alone.verdicts().into_iter().next() {
                    ledger.settle(position, verdict);
                }
            }
        })
    }
}

/// Nothing is set aside in a measurement: what cannot be taken fails.
struct Nowhere;

impl Quarantine for Nowhere {
    fn put<'a>(&'a self, entry: Entry<'a>) -> BoxFuture<'a, Result<(), Reason>> {
        let reason = entry.reason.clone();
        Box::pin(async move { Err(reason) })
    }
}
