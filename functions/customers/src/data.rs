use http_api::{Problem, Request, Response, Services};
use key_schema::customer;
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::order::SYSTEM;
use key_schema::quota::Quota;
use serde::Serialize;
use workflows::personal::{self, Kind, Record};
use workflows::removal::RemovalError;

use crate::erase::removal_failed;
use crate::owner;

/// The list in the scope of the cursor. The pages have several access patterns.
const LIST: &str = "customers.data";

/// A record with the kind of list from which it is.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    kind: &'static str,
    #[serde(flatten)]
    record: &'a Record,
}

/// GET /v1/customers/{id}/data: returns a copy of the customer's data, kind by kind. A page has
/// records of one kind. The cursor names the kind and the sort key at which the page ends.
///
/// A page may take many reads, so the pages of a customer are limited. Those of staff are not.
pub async fn copy(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let parameters = [("customer", owner.customer().as_str())];
    let mut page = request.page(&services.cursors, LIST, &parameters).await?;
    let (mut kind, mut after) = position(page.after());
    if !owner.is_staff() {
        services.open_for_writes().await?;
        let now = Instant::now();
        let counted = services.table.write(&customer::count_data_page(owner.customer(), now)?).await?;
        counted.map_err(|_| Problem::quota_exceeded(Quota::DataPages, now))?;
    }
    // The loop ends, because each turn reads the kind after the previous one.
    loop {
        let read = personal::read(&services.table, kind, owner.customer(), page.limit(), after.take());
        let mut found = read.await.map_err(|error: RemovalError| removal_failed(error))?;
        page.leave_out(found.left_out());
        if found.items.is_empty()
            && found.next.is_none()
            && let Some(next) = kind.next()
        {
            kind = next;
            continue;
        }
        for record in &mut found.items {
            hide(record, owner.customer());
        }
        let entries: Vec<_> = found.items.iter().map(|record| Entry { kind: kind.name(), record }).collect();
        let end = |kept| match found.end(kept) {
            Some(key) => Some(format!("{}:{key}", kind.name())),
            None => kind.next().map(|next| next.name().to_owned()),
        };
        return page.answer(&entries, end).await;
    }
}

/// Returns the kind and the sort key at which the previous page ended.
fn position(after: Option<String>) -> (Kind, Option<String>) {
    let Some(after) = after else { return (Kind::Profile, None) };
    let (name, key) = after.split_once(':').map_or((after.as_str(), None), |(name, key)| (name, Some(key)));
    // A sealed cursor names a kind, except after a release that removed the kind.
    (Kind::of(name).unwrap_or(Kind::Profile), key.map(str::to_owned))
}

/// Removes the internal notes and the ids of staff.
fn hide(record: &mut Record, customer: &CustomerId) {
    if record.data.get("by").is_some_and(|by| by != customer.as_str() && by != SYSTEM) {
        record.data.remove("by");
        record.data.remove("note");
    }
    // A draft names who began it.
    if let Some(draft) = record.data.get_mut("draft").and_then(|draft| draft.as_object_mut())
        && draft.get("by").is_some_and(|by| by != customer.as_str())
    {
        draft.remove("by");
    }
    for part in &mut record.parts {
        hide(part, customer);
    }
}
