//! `/_local/…`: how tests and operators of the local system look behind the API and make trouble.
//! Nothing of it is deployed.

mod drain;
mod faults;
mod index;
mod problem;
mod quarantine;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::{get, post};
use search_index::SearchClient;
use serde_json::{Value as Json, json};
use stream_poller::Poller;

use self::problem::Problem;
use crate::dynamodb::DynamoDb;
use crate::streams::Discarded;
use crate::system::Backends;

/// What these endpoints look at.
pub(crate) struct Control {
    pub(crate) poller: Poller,
    pub(crate) index: SearchClient,
    pub(crate) discarded: Arc<Discarded>,
    pub(crate) dynamodb: DynamoDb,
    pub(crate) backends: Backends,
}

/// The routes below `/_local`, and `/health`.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(control: Arc<Control>) -> Router<S> {
    Router::new()
        .route("/health", get(health))
        .route("/_local/drain", post(drain::drain))
        .route("/_local/index/{collection}", get(index::list))
        .route("/_local/quarantine", get(quarantine::list))
        .route("/_local/ttl-sweep", post(sweep))
        .route("/_local/faults", get(faults::list).post(faults::add).delete(faults::clear))
        .with_state(control)
}

async fn health() -> axum::Json<Json> {
    axum::Json(json!({"status": "ok"}))
}

/// Deletes the expired items now.
async fn sweep(State(control): State<Arc<Control>>) -> Result<axum::Json<Json>, Problem> {
    let Some(table) = control.backends.embedded.clone() else {
        return Err(Problem::not_here("another DynamoDB sweeps its tables itself, when it likes"));
    };
    let swept = tokio::task::spawn_blocking(move || table.sweep_ttl()).await;
    match swept {
        Ok(Ok(removed)) => Ok(axum::Json(json!({"removed": removed}))),
        Ok(Err(error)) => Err(Problem::failed(&error)),
        Err(error) => Err(Problem::failed(&error)),
    }
}
