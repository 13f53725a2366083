//! What differs between an index and the table, counted.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// What is wrong between an index and the table, or was and is repaired.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// Items without a document.
    pub missing: u64,
    /// Documents older than their item.
    pub stale: u64,
    /// Documents of the item's version with other fields.
    pub different: u64,
    /// Documents that searches find, without an item.
    pub orphaned: u64,
    /// Documents newer than their item, as after a restore of the table from a backup. Versions forbid to repair them: rebuild, as restored.
    pub ahead: u64,
    /// Items that cannot be read.
    pub unreadable: u64,
    /// Documents that the engine refuses.
    pub refused: u64,
    /// Differences that were to be repaired and are still there: the engine takes a repair for old. It remembers the version of a document that was
    /// deleted by hand, for a minute.
    pub unrepaired: u64,
    /// In which fields documents of the item's version differed, and how many.
    pub fields: BTreeMap<String, u64>,
}

impl Drift {
    /// What can be repaired, and is if that was asked for, but for [`Drift::unrepaired`].
    #[must_use]
    pub const fn repairable(&self) -> u64 {
        self.missing + self.stale + self.different + self.orphaned
    }

    /// What cannot, or could not be.
    #[must_use]
    pub const fn beyond_repair(&self) -> u64 {
        self.ahead + self.unreadable + self.refused + self.unrepaired
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.repairable() == 0 && self.beyond_repair() == 0
    }
}

/// What is wrong with one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Difference {
    Missing,
    Stale,
    Different(Vec<String>),
    Ahead,
}

impl Drift {
    /// Counts a difference; whether it can be repaired.
    pub(crate) fn note(&mut self, difference: Difference) -> bool {
        let (counter, fields) = match difference {
            Difference::Missing => (&mut self.missing, Vec::new()),
            // That its fields are old goes without saying.
            Difference::Stale => (&mut self.stale, Vec::new()),
            Difference::Different(fields) => (&mut self.different, fields),
            Difference::Ahead => {
                self.ahead += 1;
                return false;
            }
        };
        *counter += 1;
        for field in fields {
            *self.fields.entry(field).or_default() += 1;
        }
        true
    }

    /// Adds what another part of the work found.
    pub(crate) fn add(&mut self, other: Self) {
        let Self { missing, stale, different, orphaned, ahead, unreadable, refused, unrepaired, fields } = other;
        self.missing += missing;
        self.stale += stale;
        self.different += different;
        self.orphaned += orphaned;
        self.ahead += ahead;
        self.unreadable += unreadable;
        self.refused += refused;
        self.unrepaired += unrepaired;
        for (field, count) in fields {
            *self.fields.entry(field).or_default() += count;
        }
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            ("missing", self.missing),
            ("stale", self.stale),
            ("different", self.different),
            ("without item", self.orphaned),
            ("ahead of the table", self.ahead),
            ("unreadable items", self.unreadable),
            ("refused by the engine", self.refused),
            ("NOT repaired", self.unrepaired),
        ];
        let kinds: Vec<_> =
            kinds.iter().filter(|(_, count)| *count > 0).map(|(kind, n)| format!("{kind} {n}")).collect();
        if kinds.is_empty() { f.write_str("none") } else { f.write_str(&kinds.join(", ")) }
    }
}
