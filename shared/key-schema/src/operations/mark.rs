//! Marks: records that a consumer has processed an event, so that a repeated delivery is not
//! processed again.
//!
//! A consumer writes the mark after the work, never before. If it fails in between, the work is
//! repeated. With the mark written first, a failure would lose the work. So marks do not suffice
//! for work that must never run twice.

use item_model::prelude::*;

use crate::id::{Born, IdError};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::request::{BatchGet, BatchWrite, BatchWriteAction};

/// The lifetime of a mark. After it, the mark's event can no longer be delivered again. A stream
/// keeps its records for 24 hours. After that, Lambda's on-failure destination or the quarantine
/// may keep a record for 30 more days. The remaining time is a margin.
pub const LIFETIME_SECONDS: i64 = 35 * 24 * 60 * 60;

entity! {
    /// A record that a consumer has processed an event.
    Mark = "Mark" {
        fixed {
            /// The name of the consumer that processed the event.
            purpose: String,
            event_id: String,
            /// The instant at which the consumer last processed the event.
            at: Instant,
            /// The instant at which the mark expires, which is also its time to live.
            expires_at: Instant,
        }
        mutable {}
    }
}

impl Mark {
    /// Makes the mark of an event that was processed at the instant `at`. The event's id is the
    /// mark's `born`, so all writes of the mark have the same `born`.
    pub fn new(purpose: &str, event_id: &str, at: Instant) -> Result<Stored<Self>, IdError> {
        let expires_at = at.plus_seconds(LIFETIME_SECONDS);
        let mark = Self { purpose: purpose.to_owned(), event_id: event_id.to_owned(), at, expires_at };
        Ok(Stored::new(mark, Born::new(event_id)?, at))
    }
}

impl Entity for Mark {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.purpose, &self.event_id)
    }

    fn expires(&self) -> Option<Instant> {
        Some(self.expires_at)
    }
}

fn key(purpose: &str, event_id: &str) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("MARK", &[&purpose, &event_id])?, sk: SortKey::new("MARK")? })
}

patterns! {
    KNOWN {
        id: "marks.known",
        purpose: "Find the events that are already processed",
        request: BatchGetItem,
        key: "PK = MARK#<purpose>#<event id>, SK = MARK, for each event",
        returns: "the marks that exist",
        consistency: Consistency::Strong("the stream may deliver a record again immediately"),
        callers: "system",
    }
    KEEP {
        id: "marks.keep",
        purpose: "Mark events as processed",
        request: BatchWriteItem,
        key: "PK = MARK#<purpose>#<event id>, SK = MARK, for each event",
        requires: "no condition",
        callers: "system",
    }
}

/// Reads the marks of events, in the order of `event_ids`.
pub fn known<'a>(
    purpose: &str,
    event_ids: impl IntoIterator<Item = &'a str>,
) -> Result<BatchGet<Stored<Mark>>, KeyError> {
    Ok(BatchGet::new(&KNOWN, event_ids.into_iter().map(|id| key(purpose, id)).collect::<Result<_, _>>()?))
}

/// Writes marks. Writing an existing mark again is harmless and extends its lifetime.
pub fn keep<'a>(marks: impl IntoIterator<Item = &'a Stored<Mark>>) -> Result<BatchWrite, EncodeError> {
    let puts = marks.into_iter().map(|mark| mark.to_item().map(BatchWriteAction::Put)).collect::<Result<_, _>>()?;
    Ok(BatchWrite::new(&KEEP, puts))
}
