//! The queue of picking jobs. A paid order waits for one of the warehouse's picking stations. At
//! most `PICKING_STATIONS` orders have a station at a time.
//!
//! The messages of the SQS queue are events of the bus: an order was paid, shipped or cancelled.
//! The function writes the step of each message in a separate transaction ([`picking`]). Then it
//! gives free stations to waiting orders. It changes no order's status. `GET /v1/picking` shows the
//! waiting orders and the orders with a station.
//!
//! Messages arrive at least once and in any order. The response names unreadable messages and
//! messages with a failed step. If the function fails to give out stations, the response names all
//! messages. SQS delivers only the named messages again. If they keep failing, SQS moves them to
//! the dead-letter queue.

pub mod message;
pub mod picking;

use std::time::Duration;

use bus::queue::{Answer, Batch, Message};
use key_schema::pattern::Pattern;
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::Value;
use table::{Measured, SetupError, Table};
use telemetry::emf::{Line, Unit};
use tokio::time::Instant;

use picking::Picking;

pub const PATTERNS: &[&Pattern] = &[
    &key_schema::picking::STATIONS,
    &key_schema::picking::WAITING,
    &key_schema::picking::WAIT,
    &key_schema::picking::ADMIT,
    &key_schema::picking::LEAVE,
];

/// The time before the deadline at which the function stops, so that its response is still sent.
const MARGIN: Duration = Duration::from_secs(1);
const DEFAULT_STATIONS: usize = 10;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Table(#[from] SetupError),
    /// `PICKING_STATIONS` is not a valid number of stations.
    #[error(
        "the environment variable PICKING_STATIONS must be a number from 1 to {}",
        key_schema::picking::MAX_STATIONS
    )]
    Stations,
}

/// Handles messages of the picking queue until Lambda shuts down the execution environment.
///
/// Environment: `TABLE_NAME`, the SDK's variables, and optionally `PICKING_STATIONS` (1 to 100,
/// default 10).
pub async fn run() -> Result<(), lambda_runtime::Error> {
    telemetry::init("fulfilment");
    let stations = stations(std::env::var("PICKING_STATIONS").ok().as_deref())?;
    let picking = &Picking::new(Table::from_env().await.map_err(StartError::from)?, stations);
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Batch>| async move {
        let (started, left) = (Instant::now(), telemetry::time_left(event.context.deadline()));
        let stop = started + left.saturating_sub(MARGIN);
        // Boxed, because the compiler cannot compute the layout of such deeply nested futures.
        let answer = Box::pin(picking.take(&event.payload, stop)).await;
        report(&event, &answer, started, &picking.costs());
        Ok::<_, lambda_runtime::Error>(answer)
    }))
    .await
}

fn stations(given: Option<&str>) -> Result<usize, StartError> {
    let Some(text) = given.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(DEFAULT_STATIONS) };
    let number = text.parse().ok().filter(|number| (1..=key_schema::picking::MAX_STATIONS).contains(number));
    number.ok_or(StartError::Stations)
}

fn report(event: &LambdaEvent<Batch>, answer: &Answer, started: Instant, costs: &[Measured]) {
    let causes: Vec<String> = event.payload.records.iter().filter_map(Message::cause).collect();
    Line::new()
        .metric("Messages", Unit::Count, count(event.payload.records.len()))
        .metric("Failed", Unit::Count, count(answer.failed().len()))
        .metric("Duration", Unit::Milliseconds, started.elapsed().as_secs_f64() * 1000.0)
        .property("request_id", event.context.request_id.as_str())
        .property("patterns", costs.iter().map(Value::from).collect::<Vec<Value>>())
        .causes(&causes.iter().map(String::as_str).collect())
        .trace(event.context.xray_trace_id.as_deref())
        .print();
}

/// Converts a count. The result is exact, because a batch has at most 10,000 messages.
#[allow(clippy::cast_precision_loss)]
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_number_of_stations_is_1_to_100_and_10_by_default() {
        assert_eq!(stations(None).unwrap(), 10);
        assert_eq!(stations(Some("")).unwrap(), 10);
        assert_eq!(stations(Some(" 3 ")).unwrap(), 3);
        for bad in ["0", "101", "-1", "ten", "1.5"] {
            assert!(matches!(stations(Some(bad)), Err(StartError::Stations)), "{bad}");
        }
    }
}
