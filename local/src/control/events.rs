//! `GET /_local/events` and `GET /_local/mail`: published events and sent messages.
//!
//! The lists are in the order of acceptance. An event or message that was accepted twice appears
//! twice.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use emulators::events::Published;
use serde_json::{Value, json};

use super::Control;
use super::answer::{PAGE, Parameters, Problem, paged};

pub(super) async fn events(
    State(control): State<Arc<Control>>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<Value>, Problem> {
    let page = control.backends.events.published(parameters.after()?, PAGE);
    Ok(Json(paged(page, event)))
}

pub(super) async fn mail(
    State(control): State<Arc<Control>>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<Value>, Problem> {
    let page = control.backends.mail.sent(parameters.after()?, PAGE);
    Ok(Json(paged(page, |mail| json!(mail))))
}

/// Returns the event's detail, with its envelope in the field `envelope`.
fn event(published: Published) -> Value {
    let envelope = json!({
        "id": published.event_id,
        "source": published.source,
        "detail_type": published.detail_type,
        "time": published.time,
        "bus": published.bus,
        "trace_header": published.trace_header,
    });
    match published.detail {
        Value::Object(mut detail) => {
            detail.insert("envelope".to_owned(), envelope);
            Value::Object(detail)
        }
        other => json!({"detail": other, "envelope": envelope}),
    }
}
