//! The consumer, which passes a batch to every sink.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::{join, join_all};
use futures::stream;
use storage::objects::ObjectStore;
use table::Table;
use tokio::time::{Instant, timeout_at};

use crate::answer::Answer;
use crate::batch::{Batch, BatchError, Event, Origin};
use crate::quarantine::{Entry, InStore, Quarantine};
use crate::report::Report;
use crate::settings::{self, Settings, StartError};
use crate::sink::{self, Shared, Sink};
use crate::verdict::{Verdict, Verdicts};

/// The consumer: the sinks of this deployment and the parts that they share.
pub struct Consumer {
    name: String,
    sinks: Vec<Box<dyn Sink>>,
    quarantine: Box<dyn Quarantine>,
    settings: Settings,
    table: Option<Arc<Table>>,
}

#[derive(Debug)]
pub struct BatchOutcome {
    pub answer: Answer,
    pub report: Report,
}

impl Consumer {
    /// Creates a consumer from the environment ([`crate::run`] lists the variables).
    pub async fn from_env() -> Result<Self, StartError> {
        let names = std::env::var("SINKS").ok();
        let names = settings::sinks(names.as_deref())?;
        let settings = Settings::from_env()?;
        let table = Arc::new(Table::from_env().await?);
        let shared = Shared { table: table.clone(), settings };
        let mut sinks = Vec::with_capacity(names.len());
        for name in names {
            sinks.push(sink::open(name, &shared).await?);
        }
        let failed = ObjectStore::from_env("FAILED_RECORDS_BUCKET").map_err(StartError::Objects)?;
        let consumer = Self::new(sinks, Box::new(InStore(Arc::new(failed))), settings);
        Ok(Self { table: Some(table), ..consumer })
    }

    /// Creates a consumer with these sinks. It has no table, so its reports contain no consumed
    /// capacity.
    #[must_use]
    pub fn new(sinks: Vec<Box<dyn Sink>>, quarantine: Box<dyn Quarantine>, settings: Settings) -> Self {
        let name = sinks.iter().map(|sink| sink.name()).collect::<Vec<_>>().join(",");
        Self { name, sinks, quarantine, settings, table: None }
    }

    #[must_use]
    pub const fn settings(&self) -> Settings {
        self.settings
    }

    /// Passes a batch to the sinks until every record is settled, or until `stop`.
    ///
    /// # Errors
    /// [`BatchError`] if a record has no usable sequence number. Then no sink has received the
    /// batch.
    pub async fn take(&self, event: &Event, stop: Instant) -> Result<BatchOutcome, BatchError> {
        let started = Instant::now();
        let batch = Batch::decode(event)?;
        let records: Vec<&Origin<'_>> = batch.records.iter().map(|record| &record.origin).collect();
        let malformed: Vec<&Origin<'_>> = batch.malformed.iter().map(|malformed| &malformed.origin).collect();
        let verdicts_of_sinks: Vec<Verdicts> = self.sinks.iter().map(|_| Verdicts::new(records.len())).collect();
        let aside = Verdicts::new(malformed.len());
        for (position, malformed) in batch.malformed.iter().enumerate() {
            aside.settle(position, Verdict::Refused(malformed.reason.clone()));
        }

        let sinks = self.sinks.iter().zip(&verdicts_of_sinks).map(|(sink, verdicts)| async {
            sink.take(&batch.records, verdicts).await;
            self.set_aside(sink.name(), &records, verdicts).await;
        });
        let work = join(join_all(sinks), self.set_aside(&self.name, &malformed, &aside));
        let in_time = timeout_at(stop, work).await.is_ok();

        let unfinished = |origins: &[&Origin<'_>], verdicts: &Verdicts| {
            let open = origins
                .iter()
                .zip(verdicts.to_vec())
                .filter(|(_, verdict)| !verdict.as_ref().is_some_and(Verdict::is_durable));
            open.map(|(origin, _)| origin.sequence.clone()).min()
        };
        let earliest = verdicts_of_sinks.iter().filter_map(|verdicts| unfinished(&records, verdicts)).min();
        let earliest = earliest.into_iter().chain(unfinished(&malformed, &aside)).min();

        let mut report = Report::new(&self.name, &batch, in_time, earliest.as_ref());
        for (sink, verdicts) in self.sinks.iter().zip(&verdicts_of_sinks) {
            report.sink(sink.name(), &batch, &verdicts.to_vec());
        }
        report.aside(&batch, &aside.to_vec());
        report.finish(started.elapsed(), self.table.as_deref().map(|table| table.meter().take()).unwrap_or_default());
        Ok(BatchOutcome { answer: Answer::from_earliest(earliest), report })
    }

    /// Quarantines the refused records. A record that cannot be quarantined fails, and Lambda
    /// delivers it again.
    async fn set_aside(&self, consumer: &str, origins: &[&Origin<'_>], verdicts: &Verdicts) {
        stream::iter(verdicts.refused())
            .for_each_concurrent(self.settings.concurrency, |(position, reason)| async move {
                let Some(origin) = origins.get(position) else { return };
                let entry = Entry { consumer, origin, reason: &reason };
                let verdict = match self.quarantine.put(entry).await {
                    Ok(()) => {
                        let (sequence_number, correlation_id) = (origin.sequence.as_str(), origin.cause.as_deref());
                        let kind = reason.kind;
                        tracing::warn!(consumer, sequence_number, correlation_id, kind, "a record was quarantined");
                        Verdict::Quarantined
                    }
                    Err(failure) => Verdict::Failed(failure),
                };
                verdicts.settle(position, verdict);
            })
            .await;
    }
}
