//! `GET /_local/index/products` and `…/orders`: the documents in the search index.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use search_index::{Collection, SearchAfter};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Control;
use super::answer::Problem;

const PAGE: u32 = 1000;

#[derive(Debug, Deserialize)]
pub(super) struct Parameters {
    cursor: Option<String>,
}

/// Returns a page of the documents that are not tombstones, ascending by id.
pub(super) async fn list(
    State(control): State<Arc<Control>>,
    Path(collection): Path<String>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<Value>, Problem> {
    let collection = match collection.as_str() {
        "products" => Collection::Products,
        "orders" => Collection::Orders,
        other => return Err(Problem::not_found(format!("there is no index of {other}"))),
    };
    let after = match parameters.cursor.as_deref().map(read_cursor) {
        Some(None) => return Err(Problem::bad_request("the cursor does not belong to this list")),
        Some(after) => after,
        None => None,
    };
    let page = control.index.list(collection, PAGE, after.as_ref()).await;
    let page = page.map_err(|error| Problem::failed(&error))?;
    let items: Vec<Value> = page.items.iter().map(|item| json!({"id": item.id, "version": item.version})).collect();
    let next_cursor = page.next.as_ref().and_then(write_cursor);
    Ok(Json(json!({"items": items, "next_cursor": next_cursor})))
}

fn read_cursor(cursor: &str) -> Option<SearchAfter> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn write_cursor(after: &SearchAfter) -> Option<String> {
    let json = serde_json::to_vec(after).ok()?;
    Some(URL_SAFE_NO_PAD.encode(json))
}
