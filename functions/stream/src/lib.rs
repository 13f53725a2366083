//! The consumer of the table's stream.
//!
//! The crate is deployed twice. `StreamSearch` updates the search index (`SINKS=search`).
//! `StreamEvents` publishes events, archives expired items and derives data
//! (`SINKS=bus,audit,derived`). So an outage of the search engine does not delay the other sinks.
//! `SINKS=search,bus,audit,derived` runs all sinks in one function.
//!
//! # The path of a batch
//!
//! ```text
//! {"Records": [raw, raw, …]} ── batch ──▶ records ──▶ sink ──▶ verdicts ─┐
//!                                │                 └▶ sink ──▶ verdicts ─┼──▶ answer: the earliest record
//!                                └─ malformed ──▶ quarantine ─▶ verdicts ┘    that is not durable everywhere
//! ```
//!
//! - [`batch`] decodes records one by one. An unreadable record is quarantined alone
//!   ([`quarantine`]). A record without a sequence number fails the invocation, because a response
//!   could not name it.
//! - A [`sink::Sink`] receives all records at once and reports an outcome for each. [`lane`]
//!   serves sinks that take records one at a time. It takes the records of one item in order, and
//!   the records of different items concurrently. After a failure it attempts no more records of
//!   the item.
//! - [`answer`] names one record: the earliest that at least one sink has not made durable. Lambda
//!   delivers again from there, so every sink must be able to take a record twice. A record without
//!   an outcome counts as unfinished, never as done.
//! - Before its deadline the consumer stops ([`Settings`]). Unsettled records are then unfinished.
//!
//! # Why the sinks converge
//!
//! Lambda delivers at least once and in order for each item. After a failure it delivers again
//! from the failed record. Bisected and redriven batches repeat records long after newer ones.
//! So no sink relies on the order of arrival:
//!
//! - The search index orders documents by the item's `rev` ([`search`]).
//! - Derived data is a copy or a total ([`derived`]). Copies are also ordered by `rev`. One
//!   transaction changes a total together with the sales row that contributes to it.
//! - The id of an event depends only on its change ([`transitions`], [`mod@bus`]).
//!
//! A new sink is one file with an implementation of [`sink::Sink`], and one line in [`sink::open`].

pub mod answer;
pub mod archive;
pub mod audit;
pub mod batch;
pub mod bus;
pub mod consumer;
pub mod derived;
pub mod documents;
pub mod lane;
pub mod order_lines;
pub mod ports;
pub mod quarantine;
pub mod report;
pub mod search;
pub mod sequence;
mod settings;
pub mod sink;
pub mod transitions;
pub mod verdict;

use key_schema::pattern::Pattern;
use key_schema::{expiration, leaderboard, like, mark, membership, order, product, region, sales, variant};
use lambda_runtime::{LambdaEvent, service_fn};
use telemetry::correlation;

pub use consumer::Consumer;
pub use settings::{Settings, StartError};

pub const PATTERNS: &[&Pattern] = &[
    &product::copies::COPY_STOCK,
    &product::copies::COPY_SHARDS,
    &product::copies::COPY_RATING,
    &membership::OF_PRODUCT,
    &membership::REFRESH,
    &variant::REFRESH,
    &order::LINES,
    &order::HEAD,
    &sales::DERIVED,
    &sales::APPLY,
    &region::EDIT,
    &like::SUM,
    &leaderboard::DAYS,
    &leaderboard::STORE_RANK,
    &expiration::RECORD,
    &key_schema::archive::OWNER,
    &mark::KNOWN,
    &mark::KEEP,
];

/// Takes batches until Lambda shuts down the execution environment.
///
/// Environment:
/// - all sinks: `SINKS`, `TABLE_NAME`, `FAILED_RECORDS_BUCKET`, the SDK's variables, and the
///   optional variables of [`Settings::from_env`]
/// - `search`: `SEARCH_ENDPOINT`, `SEARCH_INDEX_PREFIX`, and optionally `SEARCH_SERVICE`
/// - `bus`: `BUS_NAME`
/// - `audit`: `ARCHIVE_BUCKET`
pub async fn run() -> Result<(), lambda_runtime::Error> {
    telemetry::init("stream");
    let consumer = Consumer::from_env().await;
    // The runtime prints the debug form of this error. This line is readable for operators.
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
