//! Stream records and scripted sinks for the tests.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use stream::Settings;
use stream::batch::{Event, Record};
use stream::consumer::{BatchOutcome, Consumer};
use stream::lane;
use stream::quarantine::{Entry, Quarantine};
use stream::sink::Sink;
use stream::verdict::{Reason, Verdict, Verdicts};
use tokio::time::Instant;

pub use fixture::records::{image, insert, line, meta, modify, order, product, remove, retired};

/// Returns a batch in Lambda's form.
pub fn event(records: &[Value]) -> Event {
    serde_json::from_str(&json!({ "Records": records }).to_string()).unwrap()
}

/// Runs a batch with enough time for a slow machine.
pub async fn run(consumer: &Consumer, records: &[Value]) -> BatchOutcome {
    consumer.take(&event(records), Instant::now() + Duration::from_secs(600)).await.unwrap()
}

/// Runs a batch and returns the sequence number in the response.
pub async fn earliest(consumer: &Consumer, records: &[Value]) -> Option<String> {
    run(consumer, records).await.answer.earliest().map(ToString::to_string)
}

/// Returns a consumer that has these sinks and takes one lane at a time. Also returns its
/// quarantine, which is in memory.
pub fn consumer(sinks: impl IntoIterator<Item = Box<dyn Sink>>) -> (Consumer, Arc<MemoryQuarantine>) {
    let quarantine = Arc::new(MemoryQuarantine::default());
    let settings = Settings { concurrency: 1, ..Settings::default() };
    (Consumer::new(sinks.into_iter().collect(), Box::new(SharedQuarantine(quarantine.clone())), settings), quarantine)
}

/// A scripted sink, which takes one record at a time.
#[derive(Clone)]
pub struct Scripted(Arc<Script>);

pub struct Script {
    name: &'static str,
    fails: Mutex<BTreeSet<String>>,
    hangs: Option<String>,
    taken: Mutex<Vec<String>>,
}

impl Scripted {
    /// Creates a sink that fails the records with these sequence numbers until it recovers.
    pub fn failing(name: &'static str, fails: &[&str]) -> Self {
        Self::new(name, fails, None)
    }

    /// Creates a sink that hangs at this record.
    pub fn hanging(at: &str) -> Self {
        Self::new("scripted", &[], Some(at.to_owned()))
    }

    fn new(name: &'static str, fails: &[&str], hangs: Option<String>) -> Self {
        let fails = Mutex::new(fails.iter().map(|sequence| (*sequence).to_owned()).collect());
        Self(Arc::new(Script { name, fails, hangs, taken: Mutex::default() }))
    }

    /// Lets every record succeed from now on.
    pub fn recover(&self) {
        self.0.fails.lock().unwrap().clear();
    }

    /// Returns the sequence numbers of the attempted records, in order.
    pub fn attempted(&self) -> Vec<String> {
        self.0.taken.lock().unwrap().clone()
    }

    pub fn boxed(&self) -> Box<dyn Sink> {
        Box::new(self.clone())
    }
}

impl Sink for Scripted {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn take<'a>(&'a self, records: &'a [Record<'a>], verdicts: &'a Verdicts) -> BoxFuture<'a, ()> {
        Box::pin(lane::each(records, 1, verdicts, move |record: &Record<'_>| {
            let sequence = record.origin.sequence.to_string();
            async move {
                self.0.taken.lock().unwrap().push(sequence.clone());
                if self.0.hangs.as_ref() == Some(&sequence) {
                    std::future::pending::<()>().await;
                }
                if self.0.fails.lock().unwrap().contains(&sequence) {
                    return Verdict::Failed(Reason::new("scripted", "injected"));
                }
                Verdict::Done
            }
        }))
    }
}

/// A quarantine in memory.
#[derive(Default)]
pub struct MemoryQuarantine {
    kept: Mutex<Vec<QuarantinedRecord>>,
    broken: Mutex<bool>,
}

/// A quarantined record.
#[derive(Debug, Clone, PartialEq)]
pub struct QuarantinedRecord {
    pub consumer: String,
    pub sequence: String,
    pub kind: &'static str,
    pub text: String,
}

struct SharedQuarantine(Arc<MemoryQuarantine>);

impl MemoryQuarantine {
    /// Makes every write to the quarantine fail from now on, or succeed again.
    pub fn set_broken(&self, broken: bool) {
        *self.broken.lock().unwrap() = broken;
    }

    /// Returns the quarantined records.
    pub fn kept(&self) -> Vec<QuarantinedRecord> {
        self.kept.lock().unwrap().clone()
    }

    /// Returns the sequence numbers of the quarantined records.
    pub fn sequences(&self) -> Vec<String> {
        self.kept().into_iter().map(|record| record.sequence).collect()
    }
}

impl Quarantine for SharedQuarantine {
    fn put<'a>(&'a self, entry: Entry<'a>) -> BoxFuture<'a, Result<(), Reason>> {
        Box::pin(async move {
            if *self.0.broken.lock().unwrap() {
                return Err(Reason::new("quarantine", "injected"));
            }
            self.0.kept.lock().unwrap().push(QuarantinedRecord {
                consumer: entry.consumer.to_owned(),
                sequence: entry.origin.sequence.to_string(),
                kind: entry.reason.kind,
                text: entry.origin.text.to_owned(),
            });
            Ok(())
        })
    }
}
