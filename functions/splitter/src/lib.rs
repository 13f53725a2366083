//! Splits counters that the table throttles.
//!
//! A counter's shard takes 1,000 write units a second; what comes on top DynamoDB refuses, and counts: Contributor Insights keeps in CloudWatch which
//! partition keys are throttled most. This function asks for that report once a minute and doubles the shards of every counter in it
//! ([`key_schema::counter`] says why its sum stays right meanwhile). Additions that meet in a transaction split a counter by themselves within seconds; those that
//! the table refuses before they meet are seen from here alone.
//!
//! # Why a schedule
//!
//! An alarm on the throttles tells of its change only: a counter that is still too hot after its split leaves the alarm as it is, and there is no second
//! event. A minute is the period in which CloudWatch counts, so that nothing is learned by asking more often; a month of it costs about half a dollar, less
//! than one of the rules that count. And an event that is lost, comes twice or fails is made up for by the next.
//!
//! # Why each minute of heat splits once
//!
//! A report tells of the last minutes, also of those before the last split. So a split names the minute that it answers to, and the table takes it
//! only if the counter was not split after that minute began: reports that come twice or late, and two rounds at once, split once. What a split is good for is seen in
//! the first whole minute behind it, and a doubling takes two to three minutes.

pub mod cloudwatch;
pub mod report;
pub mod round;

use std::time::Duration;

use key_schema::instant;
use lambda_runtime::{Context, LambdaEvent, service_fn};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use table::{Measured, Table};
use telemetry::correlation;
use telemetry::emf::{Line, Unit};
use tokio::time::Instant;

use cloudwatch::CloudWatch;
use round::{Round, Splitter};

/// How long before its deadline the function stops, so that its answer still gets out.
const MARGIN: Duration = Duration::from_secs(2);

/// Comes by whenever it is invoked, with whatever, for as long as the runtime lives.
///
/// Environment: `TABLE_NAME` and the SDK's own variables.
///
/// # Errors
/// When the environment lacks what the function needs, or the Runtime API breaks.
pub async fn run() -> Result<(), lambda_runtime::Error> {
    telemetry::init("splitter");
    let splitter = &Splitter::new(Table::from_env().await?, CloudWatch::from_env()?);
    lambda_runtime::run(service_fn(move |event: LambdaEvent<IgnoredAny>| async move {
        let (started, left) = (Instant::now(), telemetry::time_left(event.context.deadline()));
        let stop = started + left.saturating_sub(MARGIN);
        // In a box: the state of the SDK's calls inside the runtime's own is deeper than the compiler likes to lay out.
        let round = Box::pin(splitter.come_by(instant::Instant::now(), stop));
        let round = correlation::caused_by(Some(&event.context.request_id), round).await;
        report(&event.context, round.as_ref().ok(), started, &splitter.costs());
        round.map_err(lambda_runtime::Error::from)
    }))
    .await
}

fn report(context: &Context, round: Option<&Round>, started: Instant, costs: &[Measured]) {
    let Round { throttled, hot, split, full, failed } = round.copied().unwrap_or_default();
    let cost = |measured: &Measured| json!({"pattern": measured.pattern.id, "requests": measured.requests, "units": measured.capacity_units});
    Line::new()
        .metric("Hot", Unit::Count, f64::from(hot))
        .metric("Split", Unit::Count, f64::from(split))
        .metric("Full", Unit::Count, f64::from(full))
        .metric("Failed", Unit::Count, f64::from(failed) + f64::from(u8::from(round.is_none())))
        .metric("Duration", Unit::Milliseconds, started.elapsed().as_secs_f64() * 1000.0)
        .property("request_id", context.request_id.as_str())
        .property("throttled", throttled)
        .property("patterns", costs.iter().map(cost).collect::<Vec<Value>>())
        .trace(context.xray_trace_id.as_deref())
        .print();
}
