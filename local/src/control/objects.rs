//! `GET /_local/archive` and `GET /_local/quarantine`: the objects in the buckets.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use emulators::objects::ObjectInfo;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Control;
use super::answer::{Parameters, Problem};

/// Number of objects per page. It is small, because the page contains the contents of the objects.
const PAGE: usize = 100;
const COUNTED: usize = 10_000;
const ARCHIVE: &str = "Archive";
const FAILED_RECORDS: &str = "FailedRecords";

/// Returns a page of the archive of expired items, sorted by name.
pub(super) async fn archive(
    State(control): State<Arc<Control>>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<Value>, Problem> {
    list(&control, ARCHIVE, &parameters, |info, content| {
        json!({
            "name": info.name,
            "size": info.size,
            "class": info.class,
            "modified": OffsetDateTime::from(info.modified).format(&Rfc3339).ok(),
            "content": content,
        })
    })
}

/// The quarantine contains batches that a stream mapping gave up, and records that a consumer
/// cannot process.
pub(super) async fn quarantine(
    State(control): State<Arc<Control>>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<Value>, Problem> {
    list(&control, FAILED_RECORDS, &parameters, |info, mut content| {
        if info.name.starts_with("quarantine/")
            && let Some(record) = content.as_object_mut()
        {
            record.insert("by".to_owned(), "consumer".into());
            record.insert("name".to_owned(), info.name.into());
            return content;
        }
        json!({"by": "mapping", "name": info.name, "batch": content})
    })
}

pub(super) fn quarantined(control: &Control) -> Result<usize, Problem> {
    let bucket = control.backends.bucket(FAILED_RECORDS);
    let mut count = 0;
    let mut after: Option<String> = None;
    loop {
        let page = control.backends.objects.list(bucket, after.as_deref(), COUNTED);
        let page = page.map_err(|error| Problem::failed(&error))?;
        count += page.items.len();
        after = page.next;
        if after.is_none() {
            return Ok(count);
        }
    }
}

fn list(
    control: &Control,
    bucket: &str,
    parameters: &Parameters,
    show: impl Fn(ObjectInfo, Value) -> Value,
) -> Result<Json<Value>, Problem> {
    let after = match parameters.cursor.as_deref().map(read_cursor) {
        Some(None) => return Err(Problem::bad_request("the cursor does not belong to this list")),
        Some(after) => after,
        None => None,
    };
    let objects = &control.backends.objects;
    let bucket = control.backends.bucket(bucket);
    let page = objects.list(bucket, after.as_deref(), PAGE).map_err(|error| Problem::failed(&error))?;
    let mut items = Vec::with_capacity(page.items.len());
    for info in page.items {
        // An object that was deleted since it was listed is left out.
        if let Some(body) = objects.get(bucket, &info.name).map_err(|error| Problem::failed(&error))? {
            let content = serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into());
            items.push(show(info, content));
        }
    }
    let next_cursor = page.next.map(|name| URL_SAFE_NO_PAD.encode(name));
    Ok(Json(json!({"items": items, "next_cursor": next_cursor})))
}

fn read_cursor(cursor: &str) -> Option<String> {
    String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()
}
