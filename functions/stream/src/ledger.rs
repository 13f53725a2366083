//! What became of each record in one sink.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Why a record was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// A short stable name, safe to log.
    pub kind: &'static str,
    /// The rest. The detail of a refusal may quote the item, so it goes into the quarantine only, never into the log.
    pub detail: String,
}

impl Reason {
    /// A reason.
    pub fn new(kind: &'static str, detail: impl fmt::Display) -> Self {
        Self { kind, detail: detail.to_string() }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.detail)
    }
}

/// What became of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Its effect is durable, or it has none here.
    Done,
    /// It will never be taken as it is: it belongs into the quarantine, and is unfinished until it lies there.
    Refused(Reason),
    /// It lies in the quarantine.
    Quarantined,
    /// It could not be taken now. It must come again.
    Failed(Reason),
}

impl Verdict {
    /// Whether the record need not come again.
    #[must_use]
    pub const fn is_durable(&self) -> bool {
        matches!(self, Self::Done | Self::Quarantined)
    }
}

/// The verdicts on the records of one batch, by their positions. A position without one is unfinished, so a sink that is stopped at any point has
/// said exactly what it made durable.
#[derive(Debug)]
pub struct Ledger(Mutex<Vec<Option<Verdict>>>);

impl Ledger {
    /// Nothing is settled yet.
    #[must_use]
    pub fn new(records: usize) -> Self {
        Self(Mutex::new(vec![None; records]))
    }

    /// Settles the record at a position; a later verdict replaces an earlier one.
    pub fn settle(&self, position: usize, verdict: Verdict) {
        if let Some(entry) = self.entries().get_mut(position) {
            *entry = Some(verdict);
        }
    }

    /// The refused records by position.
    #[must_use]
    pub fn refused(&self) -> Vec<(usize, Reason)> {
        let entries = self.entries();
        let refused = |(position, entry): (usize, &Option<Verdict>)| match entry {
            Some(Verdict::Refused(reason)) => Some((position, reason.clone())),
            _ => None,
        };
        entries.iter().enumerate().filter_map(refused).collect()
    }

    /// The verdicts so far, `None` for what is unfinished.
    #[must_use]
    pub fn verdicts(&self) -> Vec<Option<Verdict>> {
        self.entries().clone()
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Option<Verdict>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
