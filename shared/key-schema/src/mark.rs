//! Marks: proof that something was done for an event, so that it is not done again when the event comes again.
//!
//! A mark is kept after the deed, never before: what was done without a mark is done twice, what had a mark without the deed would never be
//! done. A deed that must not happen twice needs more than a mark.

use crate::change::entity;
use crate::id::{Born, IdError};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::{Consistency, patterns};
use crate::request::{BatchGet, BatchWrite, BatchWriteAction};

/// How long a mark is needed: for as long as its event can come again. A stream keeps its records for 24 hours, after which Lambda's
/// on-failure destination or the quarantine may hold a record for 30 days more; the rest is margin.
pub const LIFETIME_SECONDS: i64 = 35 * 24 * 60 * 60;

entity! {
    /// Something was done for an event.
    Mark = "Mark" {
        keyed {
            /// What was done: the name of who did it.
            purpose: String,
            /// For which event.
            event_id: String,
            /// When it was last done.
            at: Instant,
            /// Also the time to live.
            expires_at: Instant,
        }
        free {}
    }
}

impl Mark {
    /// The mark of what is done `at` this instant. Its incarnation is the event's id: it is one mark, however often it is written.
    ///
    /// # Errors
    /// [`IdError`] for an event id that is none.
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
    KNOWN = "marks.known": BatchGetItem, "PK = MARK#<purpose>#<event id>, SK = MARK, for each event" => "the marks that there are", Consistency::Strong("a record may come again at once"), "system", "Find for which events something was done", ["stream"];
    KEEP = "marks.keep": BatchWriteItem, "PK = MARK#<purpose>#<event id>, SK = MARK, for each event" => "written whoever writes them", Consistency::Write, "system", "Mark that something was done for events", ["stream"];
}

/// Reads the marks of events, in their order.
///
/// # Errors
/// [`KeyError`].
pub fn known<'a>(
    purpose: &str,
    event_ids: impl IntoIterator<Item = &'a str>,
) -> Result<BatchGet<Stored<Mark>>, KeyError> {
    Ok(BatchGet::new(&KNOWN, event_ids.into_iter().map(|id| key(purpose, id)).collect::<Result<_, _>>()?))
}

/// Writes marks. A mark that is there already is written again, which says the same and makes it last longer.
///
/// # Errors
/// [`EncodeError`].
pub fn keep<'a>(marks: impl IntoIterator<Item = &'a Stored<Mark>>) -> Result<BatchWrite, EncodeError> {
    let puts = marks.into_iter().map(|mark| mark.to_item().map(BatchWriteAction::Put)).collect::<Result<_, _>>()?;
    Ok(BatchWrite::new(&KEEP, puts))
}
