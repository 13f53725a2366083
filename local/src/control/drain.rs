//! `POST /_local/drain`: waits until everything written before has passed the consumer.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use search_index::Collection;
use serde::Deserialize;
use serde_json::{Value, json};
use stream_poller::MappingProgress;

use super::Control;
use super::problem::Problem;
use super::quarantine;

const LONGEST_SECONDS: u64 = 3600;

#[derive(Debug, Deserialize)]
pub(super) struct Parameters {
    /// How long to wait at most.
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
        let message = format!("timeout_s is a number from 1 to {LONGEST_SECONDS}");
        return Err(Problem::bad_request(message));
    }
    let bound = Duration::from_secs(parameters.timeout_s);
    let drained = tokio::time::timeout(bound, control.poller.drained()).await;
    let progress = control.poller.progress();
    // Every mapping reads the same records, so the farthest one has seen them all.
    let settled = |mapping: &MappingProgress| mapping.delivered + mapping.filtered + mapping.discarded + mapping.lost;
    let records = progress.mappings.iter().map(settled).max().unwrap_or(0);
    let lag: usize = progress.mappings.iter().map(|mapping| mapping.pending).sum();
    if drained.is_err() {
        return Err(Problem::timed_out(format!("the consumer has not caught up: {lag} records to go")));
    }
    control.index.refresh().await.map_err(|error| Problem::failed(&error))?;
    let count = async |collection| {
        let counted = control.index.count(collection).await;
        counted.map_err(|error| Problem::failed(&error))
    };
    Ok(Json(json!({
        "records": records,
        "quarantined": quarantine::all(&control).await?.len(),
        "lag": 0,
        "index": {
            "products": count(Collection::Products).await?,
            "orders": count(Collection::Orders).await?,
        },
    })))
}
