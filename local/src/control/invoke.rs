//! `POST /_local/invoke/{function}`: invokes a function by hand, as `aws lambda invoke` does.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use runtime_api::InvokeError;
use serde::de::IgnoredAny;
use tokio::time::Instant;

use super::Control;
use super::problem::Problem;

/// Every function's timeout is shorter.
const TIMEOUT: Duration = Duration::from_secs(900);

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
            let names = control.functions.names().join(", ");
            Problem::not_found(format!("there is no function {name}; the functions are {names}"))
        }
        InvokeError::PayloadTooLarge(_) => Problem::bad_request(error.to_string()),
        InvokeError::Deadline => Problem::timed_out(error.to_string()),
        InvokeError::Function(_) | InvokeError::Throttled | InvokeError::Stopped => Problem::failed(&error),
    })?;
    Ok(([(CONTENT_TYPE, "application/json")], answer).into_response())
}
