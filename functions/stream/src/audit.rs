//! Sink `audit`: what expired is archived, and that it expired is recorded.
//!
//! Only removals by DynamoDB itself count, and those by an identity that is neither DynamoDB's nor a caller's, which are labelled so. What a
//! caller removes, a customer who signs out above all, leaves no trace here.
//!
//! # Why each removal is there once
//!
//! Archive object and audit entry are named by the item's key and the record's sequence number, and written only where there is none; all that
//! is in them is a function of the record. So a record that is delivered again finds its object and its entry, and completes what a
//! crash has left out: the entry is written behind the object, and never names one that is not there.
//!
//! # Whose it was
//!
//! Of who is no customer (any more) nothing is archived, because nobody could take it out again: a session or a cart is archived only if it began under a profile
//! that is there now, read strongly. What is archived before an erasure the janitor finds ([`key_schema::erasure`]). That something expired is recorded all the same,
//! for an entry names nobody. Orders are the books, and are archived whosever they were.
//!
//! # What is archived
//!
//! Sessions, carts and retired orders, nothing of what the consumer itself writes. An order expires item by item: its head has the
//! audit entry, its lines, history and the customer's copy are archived beside it without one of their own.
//!
//! An item is archived as the schema knows it: it was decoded into its entity and is encoded again, so an attribute that the schema does not know
//! (a token that somebody once stored with a session) stays behind.

use std::sync::Arc;

use futures::future::BoxFuture;
use key_schema::entity::AnyEntity;
use key_schema::expiration::{self, Expiration, RemovedBy};
use key_schema::id::{CustomerId, IdError};
use key_schema::instant::Instant;
use key_schema::item::EncodeError;
use key_schema::key::KeyError;
use key_schema::session::Session;
use objects::{Class, ObjectError};
use table::{TableError, WriteError};

use crate::archive::{self, Archived, Place};
use crate::batch::{Change, Record, Remover};
use crate::lane;
use crate::ledger::{Ledger, Reason, Verdict};
use crate::ports::{Items, Objects};
use crate::sink::Sink;

/// How much earlier than its item was created a removal may be dated: two clocks differ.
const CLOCK_SECONDS: i64 = 24 * 60 * 60;
/// How long after its time an item is removed at the latest: DynamoDB leaves alone what expired over five years ago.
const LATEST_SECONDS: i64 = 5 * 366 * 24 * 60 * 60;

/// The audit sink.
#[derive(Debug)]
pub struct Audit<I, O> {
    table: Arc<I>,
    archive: Arc<O>,
    concurrency: usize,
}

impl<I: Items, O: Objects> Audit<I, O> {
    /// A sink over this table and archive that takes up to `concurrency` items at once.
    #[must_use]
    pub const fn new(table: Arc<I>, archive: Arc<O>, concurrency: usize) -> Self {
        Self { table, archive, concurrency }
    }

    async fn keep(&self, record: &Record<'_>, expired: &Expired<'_>) -> Result<(), KeepError> {
        let archive = match self.is_somebodys(expired).await? {
            true => Some(self.archive(record, expired).await?),
            false => None,
        };
        if expired.is_recorded {
            self.record(record, expired, archive).await?;
            telemetry::crash_point("stream.audit.recorded");
        }
        Ok(())
    }

    /// Whether the customer is there whose it was, and was when it began.
    async fn is_somebodys(&self, expired: &Expired<'_>) -> Result<bool, KeepError> {
        let Some(customer) = expired.owner else { return Ok(true) };
        let owner = self.table.get(&key_schema::archive::owner(customer)?).await?;
        Ok(owner.is_some_and(|owner| owner.created_at <= expired.began_at))
    }

    /// The name of the object that the item lies in from now on.
    async fn archive(&self, record: &Record<'_>, expired: &Expired<'_>) -> Result<String, KeepError> {
        let name = archive::name(expired.item, &record.key, &record.origin.sequence)?;
        let object = Archived {
            entity: expired.item.name().to_owned(),
            key: Place::from(&record.key),
            removed_at: expired.removed_at,
            removed_by: expired.by,
            sequence_number: record.origin.sequence.to_string(),
            item: expired.item.to_item()?,
        };
        // By way of a value, whose members are in order: every delivery writes the same bytes.
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
        match self.table.write(&expiration::record(&entry.stored()?)?).await {
            // Refused: an earlier delivery recorded it.
            Ok(()) | Err(WriteError::Refused(_)) => Ok(()),
            Err(WriteError::Table(error)) => Err(error.into()),
        }
    }
}

impl<I: Items, O: Objects> Sink for Audit<I, O> {
    fn name(&self) -> &'static str {
        "audit"
    }

    fn take<'a>(&'a self, records: &'a [Record<'a>], ledger: &'a Ledger) -> BoxFuture<'a, ()> {
        Box::pin(lane::each(records, self.concurrency, ledger, move |record| async move {
            let Some(expired) = expired(record) else { return Verdict::Done };
            self.keep(record, &expired).await.map_or_else(Verdict::from, |()| Verdict::Done)
        }))
    }
}

/// An item that expired.
struct Expired<'r> {
    item: &'r AnyEntity,
    /// Who takes it along when erased; nobody where the books need it.
    owner: Option<&'r CustomerId>,
    began_at: Instant,
    removed_at: Instant,
    by: RemovedBy,
    class: Class,
    /// Whether it has an audit entry of its own.
    is_recorded: bool,
}

fn expired<'r>(record: &'r Record<'_>) -> Option<Expired<'r>> {
    let Change::Removed { old: item, by } = &record.change else { return None };
    let by = match by {
        Remover::Expiry => RemovedBy::Ttl,
        Remover::Unknown => RemovedBy::Unknown,
        Remover::Caller => return None,
    };
    // An order is kept for years and hardly ever looked at: the cold class. Sessions and carts are not: they are small and many, and that class
    // charges an object as if it had 128 KB, for 90 days at least.
    let (owner, began_at, expires_at, class, is_recorded) = match item {
        AnyEntity::Session(session) => {
            // Every attribute of a session is named here: one that is added does not compile until it is judged. None of these is a
            // secret, the id included: it names the session in URLs and opens nothing.
            let Session { id: _, customer_id, expires_at, device: _ } = &session.data;
            (Some(customer_id), session.meta.created_at, *expires_at, Class::Standard, true)
        }
        AnyEntity::Cart(cart) => {
            (Some(&cart.customer_id), cart.meta.created_at, cart.expires_at, Class::Standard, true)
        }
        AnyEntity::Order(order) => (None, order.meta.created_at, order.expires_at?, Class::Cold, true),
        AnyEntity::OrderLine(line) => (None, line.meta.created_at, line.expires_at?, Class::Cold, false),
        AnyEntity::OrderStatusEvent(event) => (None, event.meta.created_at, event.expires_at?, Class::Cold, false),
        AnyEntity::CustomerOrder(copy) => (None, copy.meta.created_at, copy.expires_at?, Class::Cold, false),
        _ => return None,
    };
    let removed_at = removed_at(record.origin.written_at, began_at, expires_at);
    Some(Expired { item, owner, began_at, removed_at, by, class, is_recorded })
}

/// When an item was removed. It is part of the entry's key, so that the record alone decides: a stream's time that cannot be right, or is missing,
/// is replaced by the time at which the item expired, not by the clock of whoever takes the record, which another delivery reads later.
fn removed_at(written_at: Option<Instant>, created_at: Instant, expires_at: Instant) -> Instant {
    let believed = created_at.plus_seconds(-CLOCK_SECONDS)..=expires_at.plus_seconds(LATEST_SECONDS);
    written_at.filter(|at| believed.contains(at)).unwrap_or(expires_at)
}

/// Why an expired item was not kept.
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
            // The profile is unreadable: no retry changes that.
            KeepError::Table(TableError::Decode(error)) => Self::Refused(Reason::new("malformed_owner", error)),
            KeepError::Table(error) => Self::Failed(Reason::new("table", error)),
            // No retry changes what the item is.
            error => Self::Refused(Reason::new("unarchivable_item", error)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_removal_is_dated_by_the_stream_unless_that_cannot_be_right() {
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
