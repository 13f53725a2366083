//! The consumer of the table's stream.
//!
//! One crate, deployed twice: `StreamSearch` keeps the search index (`SINKS=search`), `StreamEvents` derives data from committed changes
//! (`SINKS=derived`), so that an outage of the search engine delays nothing else. `SINKS=search,derived` folds both into one.
//!
//! # What a batch goes through
//!
//! ```text
//! {"Records": [raw, raw, …]} ── batch ──▶ records ──▶ sink ──▶ ledger ─┐
//!                                │                 └▶ sink ──▶ ledger ─┼──▶ answer: the earliest record
//!                                └─ malformed ──▶ quarantine ─▶ ledger ┘    that is not durable everywhere
//! ```
//!
//! - [`batch`] decodes records one by one. One that cannot be read is set aside alone ([`quarantine`]); one without a sequence number fails the
//!   invocation, because nothing could name it.
//! - A [`sink::Sink`] gets all records at once and says of each what became of it. [`lane`] gives a sink that takes records one at a time their
//!   order inside a key, concurrency across keys, and the rule that nothing of a key is attempted behind a failure.
//! - [`answer`] names one record: the earliest that some sink has not made durable. Lambda delivers from there again, so every sink must be
//!   able to take a record twice; the other way round, a record that no sink answered for counts as unfinished, never as done.
//! - Before its deadline the consumer stops where it is ([`Settings`]), and what is not settled then is unfinished.
//!
//! # Why it converges
//!
//! Lambda delivers at least once, in order inside an item, and after a failure again from the failed record on; bisecting and redriving replay records
//! long after newer ones. So no sink trusts the order of arrival: the search index orders documents by the item's `rev` ([`search`]), and
//! derived data is either a copy ordered in the same way, or written in one transaction with the proof that it was ([`derived`]), and an event has an
//! id that is a function of its change ([`transitions`], [`mod@bus`]).
//!
//! A new sink is one file with an implementation of [`sink::Sink`] and one line in [`sink::open`].

pub mod answer;
pub mod archive;
pub mod audit;
pub mod batch;
pub mod bus;
pub mod consumer;
pub mod derived;
pub mod documents;
pub mod lane;
pub mod ledger;
pub mod ports;
pub mod quarantine;
pub mod report;
pub mod search;
pub mod sequence;
mod settings;
pub mod sink;
pub mod transitions;

use lambda_runtime::{LambdaEvent, service_fn};
use telemetry::correlation;

pub use consumer::Consumer;
pub use settings::{Settings, StartError};

/// Takes batches for as long as the runtime lives.
///
/// Environment: `SINKS`, `TABLE_NAME`, `FAILED_RECORDS_BUCKET`; for the search sink `SEARCH_ENDPOINT` and `SEARCH_INDEX_PREFIX`, for the bus
/// `BUS_NAME`, for the audit `ARCHIVE_BUCKET`; the SDK's own variables, and the optional ones of [`Settings::from_env`].
///
/// # Errors
/// [`StartError`] for an environment that cannot work, and when the Lambda Runtime API cannot be reached.
pub async fn run() -> Result<(), lambda_runtime::Error> {
    telemetry::init("stream");
    let consumer = Consumer::from_env().await;
    // What ends a process is shown by its runtime as code would, and this one is for people.
    let consumer = &consumer.inspect_err(|error| tracing::error!(cause = %error, "the consumer cannot start"))?;
    lambda_runtime::run(service_fn(move |event: LambdaEvent<batch::Event>| async move {
        let stop = consumer.settings().stop(event.context.deadline());
        let trace = event.context.xray_trace_id.as_deref();
        let taken = correlation::traced(trace, Box::pin(consumer.take(&event.payload, stop))).await?;
        taken.report.print(&event.context.request_id, trace);
        Ok::<_, lambda_runtime::Error>(taken.answer)
    }))
    .await
}
