//! `GET /_local/logs` and `POST /_local/invoke/{function}`: the functions' newest log lines, and the
//! invocation of a function by hand, as by `aws lambda invoke`.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use runtime_api::InvokeError;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Control;
use super::answer::{PAGE, Problem};

/// Every function's timeout is shorter.
const TIMEOUT: Duration = Duration::from_secs(900);

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

/// Invokes the function with the request's JSON body. An empty body means `{}`.
pub(super) async fn invoke(
    State(control): State<Arc<Control>>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Response, Problem> {
    let payload = if body.is_empty() { Bytes::from_static(b"{}") } else { body };
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(&payload) {
        return Err(Problem::bad_request(format!("the event must be JSON: {error}")));
    }
    let answer = control.functions.invoke(&name, payload, Instant::now() + TIMEOUT).await;
    let answer = answer.map_err(|error| match error {
        InvokeError::UnknownFunction(name) => {
            let names = control.functions.names();
            let hint = template::near::hint(&name, names.iter().copied());
            Problem::not_found(format!("there is no function {name}{hint}; the functions are {}", names.join(", ")))
        }
        InvokeError::PayloadTooLarge(_) => Problem::bad_request(error.to_string()),
        InvokeError::Deadline => Problem::timed_out(error.to_string()),
        InvokeError::Function(_) | InvokeError::Throttled | InvokeError::Stopped => Problem::failed(&error),
    })?;
    Ok(([(CONTENT_TYPE, "application/json")], answer).into_response())
}
