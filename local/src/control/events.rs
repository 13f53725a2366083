//! `GET /_local/events` and `GET /_local/mail`: published events and sent messages.
//! `GET /_local/failures` and `POST /_local/failures/redrive`: messages in dead-letter queues.
//!
//! The lists of events and mail are in the order of acceptance. An event or message that was
//! accepted twice appears twice.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use emulators::Page;
use emulators::events::Published;
use event_bus::GivenUp;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

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

/// Returns a page of the messages in dead-letter queues, queue by queue. The oldest message of a
/// queue comes first.
pub(super) async fn failures(
    State(control): State<Arc<Control>>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<Value>, Problem> {
    let after = parameters.after()?;
    let all = control.subscribers.failures();
    let total = u64::try_from(all.len()).unwrap_or(u64::MAX);
    let skipped = usize::try_from(after).unwrap_or(usize::MAX);
    let items: Vec<GivenUp> = all.into_iter().skip(skipped).take(PAGE).collect();
    let next = after.saturating_add(u64::try_from(items.len()).unwrap_or(u64::MAX));
    let page = Page { items, next, more: next < total };
    Ok(Json(paged(page, |given_up| failure(&control, given_up))))
}

/// Sends all messages back to the queue or function that they were meant for.
pub(super) async fn redrive(State(control): State<Arc<Control>>) -> Json<Value> {
    Json(json!({"redriven": control.subscribers.redrive().await}))
}

fn failure(control: &Control, given_up: GivenUp) -> Value {
    let message = given_up.message;
    let body = serde_json::from_str(&message.body).unwrap_or(Value::String(message.body));
    json!({
        "queue": control.subscribers.name(&given_up.queue),
        "for": control.subscribers.name(&given_up.to),
        "message": {
            "id": message.id,
            "sent": OffsetDateTime::from(message.sent).format(&Rfc3339).ok(),
            "receive_count": message.receive_count,
            "body": body,
        },
    })
}
