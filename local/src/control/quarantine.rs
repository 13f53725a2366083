//! `GET /_local/quarantine`: stream records that were set aside, by the consumer itself (one record
//! that it cannot read) or by the stream mapping (a batch that was tried too often).

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use key_schema::quarantine;
use serde::Deserialize;
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use super::Control;
use super::problem::Problem;

const PAGE: usize = 100;

#[derive(Debug, Deserialize)]
pub(super) struct Parameters {
    cursor: Option<String>,
}

pub(super) async fn list(
    State(control): State<Arc<Control>>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<Value>, Problem> {
    let start: usize = match parameters.cursor.as_deref().map(str::parse) {
        Some(Ok(start)) => start,
        Some(Err(_)) => return Err(Problem::bad_request("this is no cursor of this list")),
        None => 0,
    };
    let all = all(&control).await?;
    let end = start.saturating_add(PAGE);
    let next_cursor = (all.len() > end).then(|| end.to_string());
    let items: Vec<Value> = all.into_iter().skip(start).take(PAGE).collect();
    Ok(Json(json!({"items": items, "next_cursor": next_cursor})))
}

/// Everything set aside as long as it is kept, the consumer's by day.
pub(super) async fn all(control: &Control) -> Result<Vec<Value>, Problem> {
    let mut items = Vec::new();
    let today = OffsetDateTime::now_utc();
    let days = quarantine::LIFETIME_SECONDS / Duration::DAY.whole_seconds();
    for ago in (0..=days).rev() {
        let day = (today - Duration::days(ago)).date().to_string();
        let query = quarantine::list(&day).map_err(|error| Problem::failed(&error))?;
        for partition in query.partitions() {
            let found = control.dynamodb.partition(&control.backends.table, partition.as_str()).await;
            for item in found.map_err(|error| Problem::failed(&error))? {
                items.push(entry(&item));
            }
        }
    }
    for batch in control.discarded.list() {
        items.push(json!({"by": "mapping", "batch": batch}));
    }
    Ok(items)
}

fn entry(item: &Value) -> Value {
    let text = |name: &str| item.get(name).and_then(|value| value.get("S")).cloned();
    json!({
        "by": "consumer",
        "event_id": text("event_id"),
        "consumer": text("consumer"),
        "at": text("at"),
        "reason": text("reason"),
        "record": text("record"),
    })
}
