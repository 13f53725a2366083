use http_api::contract::rules::{Described, described, list};
use http_api::contract::{Node, Page, RuleSchema, Schema, Schemas, route};
use http_api::{Problem, Request, Response, Services};
use key_schema::customer;
use key_schema::id::{CustomerId, is_guest};
use key_schema::instant::Instant;
use key_schema::order::SYSTEM;
use key_schema::quota::Quota;
use serde::Serialize;
use serde_json::{Map, Value};
use workflows::personal::{self, Kind, Record};
use workflows::removal::RemovalError;

use crate::erase::removal_failed;
use crate::owner;

/// The list in the scope of the cursor. The pages have several access patterns.
const LIST: &str = "customers.data";

const ATTRIBUTES: Described = described(r#"{"type": "object", "additionalProperties": true}"#);

/// A record with the kind of list from which it is.
#[derive(Serialize, Schema)]
#[schema(page = "DataPage")]
struct DataRecord<'a> {
    #[field(rule = Kinds, example = "profile")]
    kind: &'static str,
    #[serde(flatten)]
    item: DataPart<'a>,
    #[field(rule = list::<DataPart<'_>>(0..=usize::MAX), left_out)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<DataPart<'a>>,
}

/// A stored item that belongs to a record, such as a line of an order.
#[derive(Serialize, Schema)]
struct DataPart<'a> {
    /// The name of the stored entity, such as `OrderLine`.
    #[field(example = "Customer")]
    entity: &'a str,
    /// The attributes of the item.
    #[field(rule = ATTRIBUTES, example = {"id": "ann", "email": "ann@example.com", "name": "Ann Ångström"})]
    data: &'a Map<String, Value>,
}

impl<'a> From<&'a Record> for DataPart<'a> {
    fn from(Record { entity, data, .. }: &'a Record) -> Self {
        Self { entity, data }
    }
}

struct Kinds;

impl RuleSchema for Kinds {
    fn schema(&self, _: &mut Schemas) -> Node {
        Node::one_of(&Kind::ALL.map(Kind::name))
    }
}

/// Read a copy of a customer's data
///
/// Returns all stored data of the customer, kind by kind, such as for a request for access under the
/// GDPR. A page has records of one kind, so it can have fewer than `limit`. Follow `next_cursor`
/// until it is null. The texts of documents and pictures are not in the copy. The routes of documents
/// and products return them. Notes and ids of staff are left out. A customer can read 1,000 pages a
/// day. The pages of staff are not counted.
#[route(GET "/v1/customers/{id}/data", id = "readCustomerData", who = owner, task = "profile", path(id: CustomerId),
    parameters(Limit, Cursor), answers(200 = Page<DataRecord<'_>> "A page of records" [Link, LeftOut]),
    refuses(quota_exceeded = "a customer can read 1,000 pages a day"))]
pub async fn copy(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    // The cursor names the kind and the sort key at which the page ends.
    let owner = owner(request)?;
    let parameters = [("customer", owner.customer().as_str())];
    let mut page = request.page(&services.cursors, LIST, &parameters).await?;
    let (mut kind, mut after) = position(page.after());
    // A page may take many reads, so the pages of a customer are limited. Those of staff are not.
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
        let entries: Vec<_> = found
            .items
            .iter()
            .map(|record| DataRecord {
                kind: kind.name(),
                item: record.into(),
                parts: record.parts.iter().map(DataPart::from).collect(),
            })
            .collect();
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
    let is_own = |by: &Value| by.as_str().is_some_and(|by| by == customer.as_str() || by == SYSTEM || is_guest(by));
    if record.data.get("by").is_some_and(|by| !is_own(by)) {
        record.data.remove("by");
        record.data.remove("note");
        // Staff wrote it about a refund.
        record.data.remove("reason");
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
