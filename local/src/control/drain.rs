//! `POST /_local/drain`: waits until the consumers and subscribers have processed all earlier
//! writes.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use search_index::Collection;
use serde::Deserialize;
use serde_json::{Value, json};
use stream_poller::MappingProgress;

use super::Control;
use super::answer::Problem;
use super::objects;

const LONGEST_SECONDS: u64 = 3600;
/// Maximum number of rounds. In each round, subscribers process events. Their writes can cause
/// events for the next round. An order that gets a picking station needs the most rounds: one each
/// for the payment, the station and the notification. If events still appear after the last round,
/// other clients are writing.
const ROUNDS: usize = 8;

#[derive(Debug, Deserialize)]
pub(super) struct Parameters {
    #[serde(default = "default_timeout")]
    timeout_s: u64,
}

fn default_timeout() -> u64 {
    60
}

pub(super) async fn drain(
    State(control): State<Arc<Control>>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<Value>, Problem> {
    if !(1..=LONGEST_SECONDS).contains(&parameters.timeout_s) {
        let message = format!("timeout_s must be a number from 1 to {LONGEST_SECONDS}");
        return Err(Problem::bad_request(message));
    }
    let bound = Duration::from_secs(parameters.timeout_s);
    let drained = tokio::time::timeout(bound, settled(&control)).await;
    let progress = control.poller.progress();
    // Every mapping reads the same records. So the number of records is the largest number that a
    // mapping has settled.
    let settled = |mapping: &MappingProgress| mapping.delivered + mapping.filtered + mapping.discarded + mapping.lost;
    let records = progress.mappings.iter().map(settled).max().unwrap_or(0);
    let lag: usize = progress.mappings.iter().map(|mapping| mapping.pending).sum();
    if drained.is_err() {
        let events = control.subscribers.pending();
        let mut message =
            format!("the consumers have not caught up: {lag} records and {events} deliveries are unfinished");
        // `lag` counts only records that have been read. So the message also names a shard that
        // cannot be read.
        let mut shards = progress.mappings.iter().flat_map(|mapping| &mapping.shards);
        if let Some(trouble) = shards.find_map(|shard| shard.trouble.as_ref()) {
            message = format!("{message}, and a shard cannot be read: {trouble}");
        }
        return Err(Problem::timed_out(message));
    }
    control.index.refresh().await.map_err(|error| Problem::failed(&error))?;
    let count = async |collection| {
        let counted = control.index.count(collection).await;
        counted.map_err(|error| Problem::failed(&error))
    };
    let mut answer = json!({
        "records": records,
        "quarantined": objects::quarantined(&control)?,
        "lag": 0,
        "index": {
            "products": count(Collection::Products).await?,
            "orders": count(Collection::Orders).await?,
        },
    });
    let failures = control.subscribers.count_failures();
    if failures > 0
        && let Some(answer) = answer.as_object_mut()
    {
        answer.insert("failures".to_owned(), failures.into());
    }
    Ok(Json(answer))
}

/// Waits alternately for the stream and for the subscribers, until there is no new event, or until
/// the maximum number of rounds. The waits must alternate, because subscribers write to the table,
/// and these writes cause further events.
async fn settled(control: &Control) {
    let mut before = None;
    for _ in 0..ROUNDS {
        control.poller.drained().await;
        // With `u64::MAX`, `published` returns an empty page. The page's `next` is the number of
        // accepted events.
        let accepted = control.backends.events.published(u64::MAX, 1).next;
        if before == Some(accepted) {
            return;
        }
        control.subscribers.settled(accepted).await;
        before = Some(accepted);
    }
}
