//! `GET /_local/events` and `GET /_local/mail`: what the functions published and sent, in the order in which it was
//! taken. What was taken twice stands there twice.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use emulators::events::Published;
use serde_json::{Value, json};

use super::Control;
use super::paging::{self, PAGE, Parameters};
use super::problem::Problem;

/// A page of the events that the buses took.
pub(super) async fn events(
    State(control): State<Arc<Control>>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<Value>, Problem> {
    let page = control.backends.events.published(parameters.after()?, PAGE);
    Ok(Json(paging::answer(page, event)))
}

/// A page of the messages that were sent.
pub(super) async fn mail(
    State(control): State<Arc<Control>>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<Value>, Problem> {
    let page = control.backends.mail.sent(parameters.after()?, PAGE);
    Ok(Json(paging::answer(page, |mail| json!(mail))))
}

/// The event itself, and how it was put.
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
