//! `GET /_local/logs`: the functions' newest log lines.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Control;
use super::paging::PAGE;

#[derive(Debug, Deserialize)]
pub(super) struct Parameters {
    /// Name of the function. Without it, the list has the lines of all functions.
    function: Option<String>,
    /// Text that the lines contain, for example a request id.
    #[serde(default)]
    containing: String,
}

/// Returns the newest lines, oldest first, each with its function. A JSON line is returned as JSON.
pub(super) async fn logs(
    State(control): State<Arc<Control>>,
    Query(Parameters { function, containing }): Query<Parameters>,
) -> Json<Value> {
    let lines = control.functions.lines(function.as_deref(), &containing, PAGE);
    let shown = lines.into_iter().map(|line| {
        let value = serde_json::from_str(&line.text).unwrap_or(Value::String(line.text));
        json!({"function": line.function, "line": value})
    });
    Json(json!({"items": shown.collect::<Vec<Value>>()}))
}
