//! The audit of expirations: a list of the items that were removed after their expiry.

use http_api::{Problem, Request, Response, Services};
use key_schema::expiration::{self, Expiration, RemovedBy};
use key_schema::instant::Instant;
use serde::Serialize;

/// GET audit/expirations?day=: lists the removals of a day in UTC (default: today), newest first.
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

/// A removal, as staff see it. It contains no customer id. The hash of the key identifies the item.
/// The archive object shows the item's owner, until the object is deleted.
#[derive(Serialize)]
struct Entry<'a> {
    entity: &'a str,
    item: &'a str,
    removed_at: Instant,
    removed_by: RemovedBy,
    sequence_number: &'a str,
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
