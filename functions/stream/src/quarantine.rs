//! Records that cannot be taken, kept whole with the reason, so that the shard moves on.

use std::sync::Arc;

use futures::future::BoxFuture;
use key_schema::id::{Born, check};
use key_schema::instant::Instant;
use key_schema::item::{EncodeError, Stored};
use key_schema::quarantine::{LIFETIME_SECONDS, Quarantined, put};
use table::{Table, WriteError};

use crate::batch::Origin;
use crate::ledger::Reason;

/// The longest record that is kept whole, in bytes of JSON: the rest of DynamoDB's 400 KB per item is left to its other attributes. Two images
/// can exceed it; then key and place are kept, which lead to the item.
pub const MAX_RECORD_BYTES: usize = 350 * 1024;
/// The longest reason that is kept.
const MAX_REASON_BYTES: usize = 2 * 1024;
/// How far back the stream's own time of a record is believed: a stream keeps its records for 24 hours.
const BELIEVED_SECONDS: i64 = 48 * 60 * 60;

/// Where records are set aside.
pub trait Quarantine: Send + Sync {
    /// Keeps one record; repeating it changes nothing.
    fn put<'a>(&'a self, entry: Entry<'a>) -> BoxFuture<'a, Result<(), Reason>>;
}

/// One record to be set aside.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The sinks that have not taken it, separated by commas.
    pub consumer: &'a str,
    /// The record.
    pub origin: &'a Origin<'a>,
    /// Why.
    pub reason: &'a Reason,
}

/// Sets records aside in the table itself.
#[derive(Debug)]
pub struct InTable(pub Arc<Table>);

impl Quarantine for InTable {
    fn put<'a>(&'a self, entry: Entry<'a>) -> BoxFuture<'a, Result<(), Reason>> {
        Box::pin(async move {
            let item = entry.item(Instant::now()).map_err(|error| Reason::new("quarantine", error))?;
            let put = put(&item).map_err(|error: EncodeError| Reason::new("quarantine", error))?;
            match self.0.write(&put).await {
                // Refused: an earlier delivery set it aside.
                Ok(()) | Err(WriteError::Refused(_)) => Ok(()),
                Err(WriteError::Table(error)) => Err(Reason::new("quarantine", error)),
            }
        })
    }
}

impl Entry<'_> {
    /// The item, if it is set aside `now`.
    fn item(&self, now: Instant) -> Result<Stored<Quarantined>, key_schema::id::IdError> {
        let Origin { sequence, event_id, written_at, .. } = self.origin;
        // A record without a good id of its own is told apart by its place, which every record here has.
        let event_id = event_id.as_deref().filter(|id| check(id).is_ok()).unwrap_or(sequence.as_str());
        // The day is part of the key. That of the record is the same for every delivery, that of the writing would make two items of one record
        // that is retried over midnight. A time that no stream can give is not believed: nobody would look for the record there.
        let believed = now.plus_seconds(-BELIEVED_SECONDS)..=now.plus_seconds(BELIEVED_SECONDS);
        let day = written_at.filter(|at| believed.contains(at)).unwrap_or(now).day();
        let record = Quarantined {
            event_id: event_id.to_owned(),
            day,
            at: now,
            expires_at: now.plus_seconds(LIFETIME_SECONDS),
            consumer: self.consumer.to_owned(),
            reason: shortened(self.reason.to_string()),
            record: self.origin.excerpt(MAX_RECORD_BYTES).into_owned(),
        };
        Ok(Stored::new(record, Born::new(sequence.as_str())?, now))
    }
}

fn shortened(mut reason: String) -> String {
    if reason.len() > MAX_REASON_BYTES {
        reason.truncate(reason.floor_char_boundary(MAX_REASON_BYTES));
        reason.push('…');
    }
    reason
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn entry(origin: &Origin<'_>) -> Quarantined {
        let reason = Reason::new("malformed_item", "ä".repeat(2_000));
        let now = "2017-01-02T00:00:01.000Z".parse().unwrap();
        Entry { consumer: "search", origin, reason: &reason }.item(now).unwrap().data
    }

    fn origin(event_id: Option<&str>, written_at: Option<&str>, text: &'static str) -> Origin<'static> {
        Origin {
            sequence: "42".parse().unwrap(),
            event_id: event_id.map(str::to_owned),
            written_at: written_at.map(|at| at.parse().unwrap()),
            text,
        }
    }

    #[test]
    fn every_delivery_of_a_record_gives_the_same_key_also_over_midnight() {
        let kept = entry(&origin(Some("e1"), Some("2017-01-01T23:59:59.000Z"), "{}"));
        assert_eq!((kept.event_id.as_str(), kept.day.as_str()), ("e1", "2017-01-01"));
    }

    #[test]
    fn an_odd_time_or_event_id_neither_hides_nor_blocks_the_record() {
        for written_at in [None, Some("1970-01-01T00:00:00.000Z"), Some("9999-01-01T00:00:00.000Z")] {
            assert_eq!(entry(&origin(None, written_at, "{}")).day, "2017-01-02");
        }
        let endless = "e".repeat(5_000);
        for event_id in [None, Some(""), Some("a\u{0}b"), Some(endless.as_str())] {
            assert_eq!(entry(&origin(event_id, None, "{}")).event_id, "42");
        }
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let reason = entry(&origin(None, None, "{}")).reason;
        assert!(reason.len() <= MAX_REASON_BYTES + '…'.len_utf8());
        assert!(reason.ends_with("ä…"));
    }
}
