//! Versions of documents: conditions of writes and deletions, and versions of deleted documents.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::problem::Problem;

/// How long the version of a deleted document is kept (`index.gc_deletes`).
const REMEMBERED: Duration = Duration::from_secs(60);

/// How a write or deletion sets the document's version, and which state of the document it
/// requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteVersion {
    /// The next version of the document. Such a write never conflicts.
    Internal,
    /// `external`: the version must be higher than the document's version.
    External(u64),
    /// `external_gte`: the version must not be lower than the document's version.
    ExternalGte(u64),
    /// `if_seq_no` and `if_primary_term`: the last write of the document must have these numbers.
    State { seq_no: u64, primary_term: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Current {
    pub version: u64,
    pub seq_no: u64,
    pub primary_term: u64,
}

impl WriteVersion {
    /// `current` is the document's state, and `deleted` the version of a recent deletion.
    pub(super) fn after(self, id: &str, current: Option<Current>, deleted: Option<u64>) -> Result<u64, Problem> {
        let known = current.map(|current| current.version).or(deleted);
        let conflict = |provided| Err(Problem::version_conflict(id, known.unwrap_or_default(), provided));
        match self {
            Self::Internal => Ok(known.unwrap_or_default().saturating_add(1)),
            Self::External(version) if known.is_some_and(|known| version <= known) => conflict(version),
            Self::ExternalGte(version) if known.is_some_and(|known| version < known) => conflict(version),
            Self::External(version) | Self::ExternalGte(version) => Ok(version),
            Self::State { seq_no, primary_term } => match current {
                Some(current) if (current.seq_no, current.primary_term) == (seq_no, primary_term) => {
                    Ok(current.version.saturating_add(1))
                }
                _ => Err(Problem::state_conflict(id, (seq_no, primary_term))),
            },
        }
    }
}

#[derive(Default)]
pub(super) struct Deleted(HashMap<String, (u64, Instant)>);

impl Deleted {
    pub(super) fn version(&self, id: &str) -> Option<u64> {
        self.0.get(id).filter(|(_, at)| at.elapsed() < REMEMBERED).map(|(version, _)| *version)
    }

    /// Keeps the version of a deletion, and drops expired versions.
    pub(super) fn remember(&mut self, id: &str, version: u64) {
        self.0.retain(|_, (_, at)| at.elapsed() < REMEMBERED);
        self.0.insert(id.to_owned(), (version, Instant::now()));
    }

    pub(super) fn forget(&mut self, id: &str) {
        self.0.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_external_version_must_rise_and_an_external_gte_version_must_not_fall() {
        let at_version = |version| Some(Current { version, seq_no: 3, primary_term: 1 });
        for (version, current, deleted, conflicts) in [
            (WriteVersion::External(5), None, None, false),
            (WriteVersion::External(5), at_version(4), None, false),
            (WriteVersion::External(5), at_version(5), None, true),
            (WriteVersion::ExternalGte(5), at_version(5), None, false),
            (WriteVersion::ExternalGte(5), at_version(6), None, true),
            (WriteVersion::ExternalGte(5), None, Some(6), true),
            (WriteVersion::ExternalGte(6), None, Some(6), false),
            (WriteVersion::Internal, at_version(6), None, false),
            (WriteVersion::State { seq_no: 3, primary_term: 1 }, at_version(6), None, false),
            (WriteVersion::State { seq_no: 3, primary_term: 2 }, at_version(6), None, true),
            (WriteVersion::State { seq_no: 2, primary_term: 1 }, at_version(6), None, true),
            (WriteVersion::State { seq_no: 3, primary_term: 1 }, None, Some(6), true),
        ] {
            let after = version.after("a", current, deleted);
            assert_eq!(after.is_err(), conflicts, "{version:?} after {current:?}, {deleted:?}");
        }
    }

    #[test]
    fn the_version_of_a_deleted_document_is_remembered_for_a_while() {
        let mut deleted = Deleted::default();
        deleted.remember("a", 7);
        assert_eq!(deleted.version("a"), Some(7));
        if let Some(entry) = deleted.0.get_mut("a")
            && let Some(long_ago) = Instant::now().checked_sub(REMEMBERED)
        {
            entry.1 = long_ago;
            assert_eq!(deleted.version("a"), None);
        }
        deleted.forget("a");
        assert_eq!(deleted.version("a"), None);
    }
}
