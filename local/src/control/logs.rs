//! `GET /_local/logs`: what the functions have written lately.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Control;
use super::paging::PAGE;

#[derive(Debug, Deserialize)]
pub(super) struct Parameters {
    /// Whose lines; everybody's unless said.
    function: Option<String>,
    /// What they contain: the id of a request, for instance.
    #[serde(default)]
    containing: String,
}

/// The newest lines, oldest first, each with its function. What is JSON is shown as that.
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
