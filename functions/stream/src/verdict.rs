use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The reason why a sink did not take a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// A short stable name that is safe to log.
    pub kind: &'static str,
    /// The details. If a sink refuses a record, they may quote the item. So the details of a
    /// refusal are stored in the quarantine and never logged.
    pub detail: String,
}

impl Reason {
    pub fn new(kind: &'static str, detail: impl fmt::Display) -> Self {
        Self { kind, detail: detail.to_string() }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.detail)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The record's effect is durable, or the record has no effect in this sink.
    Done,
    /// No retry can succeed. The record is unfinished until it is in the quarantine.
    Refused(Reason),
    Quarantined,
    /// The sink could not take the record now, so Lambda must deliver it again.
    Failed(Reason),
}

impl Verdict {
    /// Returns whether the record needs no further delivery.
    #[must_use]
    pub const fn is_durable(&self) -> bool {
        matches!(self, Self::Done | Self::Quarantined)
    }
}

/// The verdicts on the records of one batch, by position. A position without a verdict is
/// unfinished. A sink settles a record as done only after the record's effect is durable.
#[derive(Debug)]
pub struct Verdicts(Mutex<Vec<Option<Verdict>>>);

impl Verdicts {
    #[must_use]
    pub fn new(records: usize) -> Self {
        Self(Mutex::new(vec![None; records]))
    }

    /// Settles the record at a position. A later verdict replaces an earlier one.
    pub fn settle(&self, position: usize, verdict: Verdict) {
        if let Some(entry) = self.entries().get_mut(position) {
            *entry = Some(verdict);
        }
    }

    #[must_use]
    pub fn refused(&self) -> Vec<(usize, Reason)> {
        let entries = self.entries();
        let refused = |(position, entry): (usize, &Option<Verdict>)| match entry {
            Some(Verdict::Refused(reason)) => Some((position, reason.clone())),
            _ => None,
        };
        entries.iter().enumerate().filter_map(refused).collect()
    }

    /// Returns the verdicts so far, with `None` for an unfinished record.
    #[must_use]
    pub fn to_vec(&self) -> Vec<Option<Verdict>> {
        self.entries().clone()
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Option<Verdict>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
