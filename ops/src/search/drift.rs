use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// The differences between an index and the table. Repaired differences are counted too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// Items without a document.
    pub missing: u64,
    /// Documents with a lower version than their item.
    pub stale: u64,
    /// Documents with the item's version but other field values.
    pub different: u64,
    /// Documents that searches find although their item does not exist.
    pub orphaned: u64,
    /// Documents with a higher version than their item, for example after the table was restored
    /// from a backup. The engine refuses lower versions, so only a rebuild with `--restored` helps.
    pub ahead: u64,
    pub unreadable: u64,
    pub refused: u64,
    /// Differences that remain after a repair, because the engine rejected the repair as stale. For
    /// a minute the engine remembers the version of a document that was deleted by hand.
    pub unrepaired: u64,
    /// The number of differences by field, in documents that have the item's version.
    pub fields: BTreeMap<String, u64>,
}

impl Drift {
    /// Returns the number of differences that a repair can remove. It includes the differences for
    /// which the engine rejected the repair ([`Drift::unrepaired`]).
    #[must_use]
    pub const fn repairable(&self) -> u64 {
        self.missing + self.stale + self.different + self.orphaned
    }

    /// Returns the number of differences that cannot be repaired, or whose repair failed.
    #[must_use]
    pub const fn beyond_repair(&self) -> u64 {
        self.ahead + self.unreadable + self.refused + self.unrepaired
    }

    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.repairable() == 0 && self.beyond_repair() == 0
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Difference {
    Missing,
    Stale,
    Different(Vec<String>),
    Ahead,
}

impl Drift {
    /// Counts a difference and returns whether it can be repaired.
    pub(crate) fn note(&mut self, difference: Difference) -> bool {
        let (counter, fields) = match difference {
            Difference::Missing => (&mut self.missing, Vec::new()),
            // The fields of a stale document are expected to differ, so they are not counted.
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
