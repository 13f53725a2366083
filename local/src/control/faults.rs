//! `/_local/faults`: makes the table or the search engine fail.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use emulators::table::{Fault, FaultKind, Faults};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Control;
use super::problem::Problem;

/// `{"target":"table","kind":"throttle","rate":0.3,"count":10,"seed":1}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    target: String,
    kind: FaultKind,
    #[serde(default = "always")]
    rate: f64,
    count: Option<u32>,
    #[serde(default)]
    seed: u64,
}

fn always() -> f64 {
    1.0
}

/// The faults in force, by target, and how often each has struck.
pub(super) async fn list(State(control): State<Arc<Control>>) -> Json<Value> {
    let search = control.backends.search.as_ref();
    Json(json!({
        "table": control.backends.proxy.faults().counts(),
        "search": search.map(|search| search.faults().counts()).unwrap_or_default(),
    }))
}

/// Puts a fault in force.
pub(super) async fn add(
    State(control): State<Arc<Control>>,
    request: Result<Json<Request>, JsonRejection>,
) -> Result<StatusCode, Problem> {
    let Json(request) = request.map_err(|error| Problem::bad_request(error.body_text()))?;
    let fault = Fault { kind: request.kind, rate: request.rate, count: request.count, seed: request.seed };
    let added = target(&control, &request.target)?.add(fault);
    added.map_err(|error| Problem::bad_request(error.to_string()))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Puts every fault out of force.
pub(super) async fn clear(State(control): State<Arc<Control>>) -> StatusCode {
    control.backends.proxy.faults().clear();
    if let Some(search) = &control.backends.search {
        search.faults().clear();
    }
    StatusCode::NO_CONTENT
}

fn target<'a>(control: &'a Control, name: &str) -> Result<&'a Faults, Problem> {
    match name {
        "table" => Ok(control.backends.proxy.faults()),
        "search" => match &control.backends.search {
            Some(search) => Ok(search.faults()),
            None => Err(Problem::not_here("another search engine has its own faults")),
        },
        other => Err(Problem::bad_request(format!("{other} is no target: table and search are"))),
    }
}
