//! `/_local/…`: lets tests and operators inspect the local system and inject faults. These routes
//! are not deployed.

mod answer;
mod drain;
mod events;
mod faults;
mod functions;
mod host;
mod index;
mod objects;
mod payments;
mod sign_in;
mod stream;
mod table;
mod tokens;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use runtime_api::Functions;
use search_index::SearchClient;
use serde_json::{Value as Json, json};
use stream_poller::Poller;
use template::{Cors, TableDefinition};

use self::answer::Problem;
pub(crate) use self::host::loopback_only;
pub(crate) use self::sign_in::SignIns;
pub(crate) use self::table::Explorer;
pub(crate) use self::tokens::{issuer_endpoint, issuer_router};
use crate::backends::Backends;
use crate::crash::CrashPoints;
use crate::dynamodb::DynamoDb;
use crate::grants::Grants;
use crate::subscribers::Subscribers;
use crate::token::SigningKey;

pub(crate) struct Control {
    pub(crate) poller: Poller,
    pub(crate) subscribers: Subscribers,
    pub(crate) index: SearchClient,
    pub(crate) functions: Arc<Functions>,
    pub(crate) crash_points: CrashPoints,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) grants: Grants,
    pub(crate) key: SigningKey,
    pub(crate) backends: Arc<Backends>,
    pub(crate) dynamodb: DynamoDb,
    pub(crate) table: TableDefinition,
    /// The pages that may request tokens.
    pub(crate) cors: Option<Cors>,
    pub(crate) sign_ins: SignIns,
    pub(crate) explorer: Explorer,
}

/// Returns the routes below `/_local`, and `/health`.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(control: Arc<Control>) -> Router<S> {
    Router::new()
        .route("/_local/drain", post(drain::drain))
        .route("/_local/index/{collection}", get(index::list))
        .route("/_local/events", get(events::events))
        .route("/_local/mail", get(events::mail))
        .route("/_local/payments", get(payments::list))
        .route("/_local/payments/{id}/{action}", post(payments::steer))
        .route("/_local/archive", get(objects::archive))
        .route("/_local/quarantine", get(objects::quarantine))
        .route("/_local/failures", get(events::failures))
        .route("/_local/failures/redrive", post(events::redrive))
        .route("/_local/logs", get(functions::logs))
        .route("/_local/environment", get(environment))
        .route("/_local/grants", get(grants))
        .route("/_local/ttl-sweep", post(sweep))
        .route("/_local/tokens", post(tokens::issue).layer(from_fn_with_state(Arc::clone(&control), tokens::to_pages)))
        .nest(tokens::ISSUER_PATH, sign_in::routes().layer(from_fn_with_state(Arc::clone(&control), tokens::to_pages)))
        .route("/_local/invoke/{function}", post(functions::invoke))
        .route("/_local/faults", get(faults::list).post(faults::add).delete(faults::clear))
        .route("/_local/table", get(table::model))
        .route("/_local/table/requests", post(table::send))
        .route("/_local/table/partitions", get(table::partitions))
        .route("/_local/table/calls", get(table::calls))
        .route("/_local/table/calls/{seq}", get(table::call))
        .route("/_local/table/hot", get(table::hot))
        .route("/_local/stream", get(stream::records))
        .layer(from_fn(loopback_only))
        .route("/health", get(health))
        .with_state(control)
}

async fn health() -> axum::Json<Json> {
    axum::Json(json!({"status": "ok"}))
}

/// Returns the environment variables for other programs that use this system, such as the
/// operations tool.
async fn environment(State(control): State<Arc<Control>>) -> axum::Json<BTreeMap<String, String>> {
    axum::Json(control.environment.clone())
}

/// Returns for each function its denied calls, and how often each of its permissions was used.
async fn grants(State(control): State<Arc<Control>>) -> axum::Json<Json> {
    axum::Json(json!({"functions": control.grants.report()}))
}

/// Deletes the expired items now, and returns their number.
async fn sweep(State(control): State<Arc<Control>>) -> Result<axum::Json<Json>, Problem> {
    let backends = &control.backends;
    let Some(table) = backends.embedded.clone() else {
        let sweep = control.dynamodb.sweep(&control.table, &backends.table, &backends.swept);
        let removed = sweep.await.map_err(|error| Problem::failed(&error))?;
        return Ok(axum::Json(json!({"removed": removed})));
    };
    let swept = tokio::task::spawn_blocking(move || table.sweep_ttl()).await;
    match swept {
        Ok(Ok(removed)) => Ok(axum::Json(json!({"removed": removed}))),
        Ok(Err(error)) => Err(Problem::failed(&error)),
        Err(error) => Err(Problem::failed(&error)),
    }
}
