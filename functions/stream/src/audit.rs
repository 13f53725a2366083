//! Sink `audit`: archives expired items and records that they expired.
//!
//! The sink handles removals by DynamoDB. It also handles removals by an unknown identity, and
//! records that the identity was unknown. It ignores removals by a caller, such as a sign-out.
//!
//! # Why each removal is recorded once
//!
//! The names of the archive object and the audit entry contain the record's sequence number and a
//! hash of the item's key. The sink writes the object and the entry only if they do not exist. The
//! object's content depends only on the record. So another delivery of a record writes nothing
//! twice, and completes the work after a crash. The object is written before the entry, so no entry
//! names an object that was never written.
//!
//! # Owners
//!
//! A session or a cart is archived only if its customer currently has a profile that is older than
//! the item. The sink reads the profile with strong consistency. If the customer has no profile, no
//! later erasure would remove the archived item. The janitor removes objects that were archived
//! before an erasure ([`key_schema::erasure`]). The expiry is recorded in any case, because an
//! audit entry names no customer. Orders are accounting records and are always archived.
//!
//! # Archived items
//!
//! The sink archives sessions, carts and retired orders, and ignores all other items. An order
//! expires item by item. The head gets an audit entry. The order's lines, its
//! history and the customer's copy of the head are archived without an entry.
//!
//! An item is decoded into its entity and encoded again. So an attribute that the schema does not
//! know is not archived.

use std::sync::Arc;

use futures::future::BoxFuture;
use key_schema::entity::AnyEntity;
use key_schema::expiration::{self, Expiration, RemovedBy};
use key_schema::id::{CustomerId, IdError};
use key_schema::instant::Instant;
use key_schema::item::EncodeError;
use key_schema::key::KeyError;
use key_schema::session::Session;
use storage::objects::{Class, ObjectError};
use table::TableError;

use crate::archive::{self, Archived, ItemKey};
use crate::batch::{Mutation, Record, Remover};
use crate::lane;
use crate::ports::{Items, Objects};
use crate::sink::Sink;
use crate::verdict::{Reason, Verdict, Verdicts};

/// The tolerance between the clocks of the stream and of a function, in seconds. The time of a
/// removal may be this much earlier than the item's creation.
const CLOCK_SECONDS: i64 = 24 * 60 * 60;
/// The maximum time between an item's expiry and its removal, in seconds. DynamoDB does not remove
/// items that expired more than five years ago.
const LATEST_SECONDS: i64 = 5 * 366 * 24 * 60 * 60;

#[derive(Debug)]
pub struct Audit<I, O> {
    table: Arc<I>,
    archive: Arc<O>,
    concurrency: usize,
}

impl<I: Items, O: Objects> Audit<I, O> {
    /// Creates a sink on this table and archive. The sink takes up to `concurrency` items at once.
    #[must_use]
    pub const fn new(table: Arc<I>, archive: Arc<O>, concurrency: usize) -> Self {
        Self { table, archive, concurrency }
    }

    async fn keep(&self, record: &Record<'_>, expired: &Expired<'_>) -> Result<(), KeepError> {
        let archive = match self.may_archive(expired).await? {
            true => Some(self.archive(record, expired).await?),
            false => None,
        };
        if expired.is_recorded {
            self.record(record, expired, archive).await?;
            telemetry::crash_point("stream.audit.recorded");
        }
        Ok(())
    }

    /// Returns whether the owner exists now and existed when the item was created. Returns true for
    /// items without an owner.
    async fn may_archive(&self, expired: &Expired<'_>) -> Result<bool, KeepError> {
        let Some(customer) = expired.owner else { return Ok(true) };
        let owner = self.table.get(&key_schema::archive::owner(customer)?).await?;
        Ok(owner.is_some_and(|owner| owner.created_at <= expired.began_at))
    }

    async fn archive(&self, record: &Record<'_>, expired: &Expired<'_>) -> Result<String, KeepError> {
        let name = archive::name(expired.item, &record.key, &record.origin.sequence)?;
        let object = Archived {
            entity: expired.item.name().to_owned(),
            key: ItemKey::from(&record.key),
            removed_at: expired.removed_at,
            removed_by: expired.by,
            sequence_number: record.origin.sequence.to_string(),
            item: expired.item.to_item()?,
        };
        // A `Value` sorts its members, so every delivery writes the same bytes.
        let body = serde_json::to_value(&object).and_then(|value| serde_json::to_vec(&value))?;
        self.archive.put_new(&name, body, expired.class).await?;
        telemetry::crash_point("stream.audit.archived");
        Ok(name)
    }

    async fn record(
        &self,
        record: &Record<'_>,
        expired: &Expired<'_>,
        archive: Option<String>,
    ) -> Result<(), KeepError> {
        let entry = Expiration {
            kind: expired.item.name().to_owned(),
            item: archive::hash(&record.key),
            removed_at: expired.removed_at,
            sequence_number: record.origin.sequence.to_string(),
            removed_by: expired.by,
            archive,
        };
        // A refusal means that an earlier delivery recorded the removal.
        let _ = self.table.write(&expiration::record(&entry.stored()?)?).await?;
        Ok(())
    }
}

impl<I: Items, O: Objects> Sink for Audit<I, O> {
    fn name(&self) -> &'static str {
        "audit"
    }

    fn take<'a>(&'a self, records: &'a [Record<'a>], verdicts: &'a Verdicts) -> BoxFuture<'a, ()> {
        Box::pin(lane::each(records, self.concurrency, verdicts, move |record| async move {
            let Some(expired) = expired(record) else { return Verdict::Done };
            self.keep(record, &expired).await.map_or_else(Verdict::from, |()| Verdict::Done)
        }))
    }
}

struct Expired<'r> {
    item: &'r AnyEntity,
    /// The customer whose erasure deletes the archived item, or `None` for accounting
    /// records.
    owner: Option<&'r CustomerId>,
    began_at: Instant,
    removed_at: Instant,
    by: RemovedBy,
    class: Class,
    /// Whether the item gets an audit entry.
    is_recorded: bool,
}

fn expired<'r>(record: &'r Record<'_>) -> Option<Expired<'r>> {
    let Mutation::Removed { old: item, by } = &record.change else { return None };
    let by = match by {
        Remover::Expiry => RemovedBy::Ttl,
        Remover::Unknown => RemovedBy::Unknown,
        Remover::Caller => return None,
    };
    // The cold class suits an order, which is kept for years and rarely read. Sessions and carts
    // are small, and the cold class charges each object as at least 128 KB for at least 90 days.
    let (owner, began_at, expires_at, class, is_recorded) = match item {
        AnyEntity::Session(session) => {
            // The pattern names every field of a session. So with a new field this code does not
            // compile until a developer decides here whether the field is secret. The present
            // fields are not secret: the id grants no access, and the sign-in is a hash.
            let Session { id: _, customer_id, expires_at, device: _, sign_in: _ } = &session.data;
            (Some(customer_id), session.meta.created_at, *expires_at, Class::Standard, true)
        }
        AnyEntity::Cart(cart) => {
            (Some(&cart.customer_id), cart.meta.created_at, cart.expires_at, Class::Standard, true)
        }
        AnyEntity::Order(order) => (None, order.meta.created_at, order.expires_at?, Class::Cold, true),
        AnyEntity::OrderLine(line) => (None, line.meta.created_at, line.expires_at?, Class::Cold, false),
        AnyEntity::OrderStatusEvent(event) => (None, event.meta.created_at, event.expires_at?, Class::Cold, false),
        AnyEntity::Payment(payment) => (None, payment.meta.created_at, payment.expires_at?, Class::Cold, false),
        AnyEntity::PaymentOperation(part) => (None, part.meta.created_at, part.expires_at?, Class::Cold, false),
        AnyEntity::CustomerOrder(copy) => (None, copy.meta.created_at, copy.expires_at?, Class::Cold, false),
        _ => return None,
    };
    let removed_at = removed_at(record.origin.written_at, began_at, expires_at);
    Some(Expired { item, owner, began_at, removed_at, by, class, is_recorded })
}

/// Returns when an item was removed. The time is part of the entry's key, so it must depend on the
/// record alone. The item's expiry replaces a missing or implausible time. The present time cannot
/// replace it, because the present time differs between deliveries.
fn removed_at(written_at: Option<Instant>, created_at: Instant, expires_at: Instant) -> Instant {
    let believed = created_at.plus_seconds(-CLOCK_SECONDS)..=expires_at.plus_seconds(LATEST_SECONDS);
    written_at.filter(|at| believed.contains(at)).unwrap_or(expires_at)
}

#[derive(Debug, thiserror::Error)]
enum KeepError {
    #[error(transparent)]
    Archive(#[from] ObjectError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Sequence(#[from] IdError),
}

impl From<KeepError> for Verdict {
    fn from(error: KeepError) -> Self {
        match error {
            KeepError::Archive(error) => Self::Failed(Reason::new("archive", error)),
            // The owner's profile cannot be decoded, and no retry changes that.
            KeepError::Table(TableError::Decode(error)) => Self::Refused(Reason::new("malformed_owner", error)),
            KeepError::Table(error) => Self::Failed(Reason::new("table", error)),
            // No retry changes the item.
            error => Self::Refused(Reason::new("unarchivable_item", error)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_removal_has_the_time_of_its_record_unless_that_time_is_implausible() {
        let at = |text: &str| text.parse::<Instant>().unwrap();
        let (created, expires) = (at("2026-11-01T00:00:00.000Z"), at("2026-11-20T00:00:00.000Z"));
        let dated = |written: Option<&str>| removed_at(written.map(at), created, expires);
        for good in [
            "2026-11-20T00:00:01.000Z",
            "2026-11-22T10:00:00.000Z",
            "2026-11-10T00:00:00.000Z",
            "2031-11-20T00:00:00.000Z",
        ] {
            assert_eq!(dated(Some(good)), at(good));
        }
        for odd in
            [None, Some("1970-01-01T00:00:00.000Z"), Some("2026-10-30T00:00:00.000Z"), Some("9999-01-01T00:00:00.000Z")]
        {
            assert_eq!(dated(odd), expires, "{odd:?}");
        }
    }
}
