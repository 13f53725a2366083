//! Paging of lists in a fixed order. A cursor is the number of entries on all earlier pages.

use emulators::Page;
use serde::Deserialize;
use serde_json::{Value, json};

use super::problem::Problem;

pub(super) const PAGE: usize = 1000;

#[derive(Debug, Deserialize)]
pub(super) struct Parameters {
    pub(super) cursor: Option<String>,
}

impl Parameters {
    /// Returns the number of entries on all earlier pages.
    pub(super) fn after(&self) -> Result<u64, Problem> {
        match self.cursor.as_deref().map(str::parse) {
            None => Ok(0),
            Some(Ok(after)) => Ok(after),
            Some(Err(_)) => Err(Problem::bad_request("the cursor does not belong to this list")),
        }
    }
}

pub(super) fn answer<T>(page: Page<T>, item: impl Fn(T) -> Value) -> Value {
    let next_cursor = page.more.then(|| page.next.to_string());
    let items: Vec<Value> = page.items.into_iter().map(item).collect();
    json!({"items": items, "next_cursor": next_cursor})
}
