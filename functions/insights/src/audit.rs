//! The audit of expirations: a list of the items that were removed after their expiry.

use http_api::contract::rules::{Described, OneOf, described, one_of};
use http_api::contract::{Page, Schema, route};
use http_api::{Problem, Request, Response, Services};
use key_schema::expiration::{self, Expiration, RemovedBy};
use key_schema::instant::Instant;
use serde::Serialize;

const DAY: Described = described(
    r#"{"type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "examples": ["2026-11-20"]}"#,
);
const KINDS: OneOf = one_of(&["Session", "Cart", "Order"]);
const REMOVERS: OneOf = one_of(&["ttl", "unknown"]);
const SEQUENCE_NUMBER: Described = described(r#"{"type": "string", "pattern": "^[0-9]{1,40}$"}"#);

/// List the expired items that were removed on a day
///
/// Returns the sessions, carts and retired orders that DynamoDB removed after their expiry, newest
/// first. There is one entry per removal. Items that their owner removed are not in the list. An
/// entry is kept permanently and contains no customer's id. `archive` is the name of the object
/// with the item in the archive bucket. The bucket deletes the object after its retention time. The
/// list shows removals with a short delay.
#[route(GET "/v1/audit/expirations", id = "listExpirations", who = staff, task = "measurements",
    parameters(day = DAY "The day of the removals in UTC. The default is today.", Limit, Cursor),
    answers(200 = Page<Entry<'_>> "A page of removals" [Link, LeftOut]))]
pub async fn expirations(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let given = request.query_day("day")?;
    let parameters = [("day", request.query("day")?.unwrap_or_default())];
    let page = request.page(&services.cursors, expiration::OF_DAY.id, &parameters).await?;
    // A list of today continues with the same day if midnight falls between two pages.
    let begun = page.after().as_deref().and_then(expiration::day_of);
    let day = given.map(Instant::day).or(begun).unwrap_or_else(|| Instant::now().day());
    page.read(services, expiration::of_day(&day)?).await?.answer(|entry| Entry::from(&entry.data)).await
}

// A removal contains no customer id. The hash of the key identifies the item. The archive object
// shows the item's owner, until the object is deleted.
#[derive(Serialize, Schema)]
#[schema(name = "Expiration")]
struct Entry<'a> {
    /// The kind of the item.
    #[field(rule = KINDS)]
    entity: &'a str,
    /// SHA-256 of the item's key in hexadecimal digits.
    #[field(example = "8c2a5f0e1b7d4963a0f2c5d8e1b4a7093c6f9e2d5b8a1c4f7e0d3b6a9c2f5e81")]
    item: &'a str,
    removed_at: Instant,
    /// `ttl`: DynamoDB removed the expired item. `unknown`: the item was removed by an identity that
    /// is neither DynamoDB nor a caller.
    #[field(rule = REMOVERS)]
    removed_by: RemovedBy,
    /// The sequence number of the removal's stream record.
    #[field(rule = SEQUENCE_NUMBER, example = "100000000000000000001")]
    sequence_number: &'a str,
    /// The name of the object in the archive bucket. It is null if the item was not archived, because
    /// its customer had no profile that was older than the item.
    #[field(example = "expired/1d4b/8c2a-100000000000000000001.json")]
    archive: Option<&'a str>,
}

impl<'a> From<&'a Expiration> for Entry<'a> {
    fn from(entry: &'a Expiration) -> Self {
        let Expiration { kind, item, removed_at, sequence_number, removed_by, archive } = entry;
        Self {
            entity: kind,
            item,
            removed_at: *removed_at,
            removed_by: *removed_by,
            sequence_number,
            archive: archive.as_deref(),
        }
    }
}
