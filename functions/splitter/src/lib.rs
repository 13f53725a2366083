//! The splitter, which splits counters and stocks that the table throttles.
//!
//! A shard takes 1,000 write units a second. DynamoDB throttles the writes beyond that, and
//! Contributor Insights reports the most throttled partition keys in CloudWatch. This function reads
//! the report once a minute. It doubles the number of shards of every hot counter, and quadruples
//! that of every hot stock ([`report`]). [`key_schema::counter`] and [`key_schema::product`] explain
//! why the sums remain correct meanwhile.
//!
//! In each round, the function also levels the pieces in the shards of stocks, moves their counted
//! sales to the first item, and merges the shards of stocks that have been calm for an hour.
//!
//! The function `Insights` adds to the counters. If the additions of a request repeatedly conflict,
//! `Insights` itself splits the counter within seconds. If DynamoDB throttles whole requests,
//! `Insights` does not split the counter. Only the report shows these throttles.
//!
//! # Why a schedule instead of an alarm
//!
//! An alarm on throttles sends an event only when its state changes. If a counter is still
//! throttled after its split, the alarm keeps its state and sends no second event. CloudWatch
//! counts in periods of a minute, so more frequent requests return nothing new. A month of requests
//! costs about half a dollar, less than a single rule of Contributor Insights. If an invocation
//! fails, the next invocation does its work.
//!
//! # Why a minute with throttles causes at most one split
//!
//! A report covers the last minutes, including minutes before the last split. So a split names the
//! throttled minute. The table accepts the split only if the counter was not split after that
//! minute began. So repeated or late reports, and two concurrent rounds, cause only one split. The
//! first whole minute after a split is the first minute that shows its effect. So a counter that
//! stays throttled is split again after two to three minutes.

pub mod report;
pub mod round;

use std::time::Duration;

use aws::CloudWatch;
use key_schema::pattern::Pattern;
use key_schema::{counter, instant, product, sales};
use lambda_runtime::{Context, LambdaEvent, service_fn};
use serde::de::IgnoredAny;
use serde_json::Value;
use table::{Measured, Table};
use telemetry::correlation;
use telemetry::emf::{Line, Unit};
use tokio::time::Instant;

use round::{Round, Splitter};

pub const PATTERNS: &[&Pattern] = &[
    &counter::HEAD,
    &counter::SPLIT,
    &product::LIST_SHARDED,
    &product::READ_STOCK,
    &product::READ_SHARDS,
    &product::GROW,
    &product::MOVE_PIECES,
    &product::MERGE,
    &product::UNLIST,
    &sales::COUNTS,
    &sales::FOLD,
];

/// The time before the deadline at which the function stops, so that its response is still sent.
const MARGIN: Duration = Duration::from_secs(2);

/// Runs a round at each invocation, with any event, until Lambda ends the execution environment.
///
/// Environment: `TABLE_NAME` and the SDK's variables.
pub async fn run() -> Result<(), lambda_runtime::Error> {
    telemetry::init("splitter");
    let splitter = &Splitter::new(Table::from_env().await?, CloudWatch::from_env()?);
    lambda_runtime::run(service_fn(move |event: LambdaEvent<IgnoredAny>| async move {
        let (started, left) = (Instant::now(), telemetry::time_left(event.context.deadline()));
        let stop = started + left.saturating_sub(MARGIN);
        // Boxed, because the compiler cannot compute the layout of such deeply nested futures.
        let round = Box::pin(splitter.run_round(instant::Instant::now(), stop));
        let round = correlation::caused_by(Some(&event.context.request_id), round).await;
        report(&event.context, round.as_ref().ok(), started, &splitter.costs());
        round.map_err(lambda_runtime::Error::from)
    }))
    .await
}

fn report(context: &Context, round: Option<&Round>, started: Instant, costs: &[Measured]) {
    let Round { throttled, hot, split, full, moves, merged, failed } = round.copied().unwrap_or_default();
    Line::new()
        .metric("Hot", Unit::Count, f64::from(hot))
        .metric("Split", Unit::Count, f64::from(split))
        .metric("Full", Unit::Count, f64::from(full))
        .metric("Moves", Unit::Count, f64::from(moves))
        .metric("Merged", Unit::Count, f64::from(merged))
        .metric("Failed", Unit::Count, f64::from(failed) + f64::from(u8::from(round.is_none())))
        .metric("Duration", Unit::Milliseconds, started.elapsed().as_secs_f64() * 1000.0)
        .property("request_id", context.request_id.as_str())
        .property("throttled", throttled)
        .property("patterns", costs.iter().map(Value::from).collect::<Vec<Value>>())
        .trace(context.xray_trace_id.as_deref())
        .print();
}
