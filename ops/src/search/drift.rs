use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// The maximum number of differences that are named. Further differences are only counted.
const NAMED: usize = 100;

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
    /// Some of the differences, ordered by kind and key.
    pub named: Vec<NamedDifference>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NamedDifference {
    /// The name of the counter in [`Drift`] that counts the difference.
    pub kind: &'static str,
    /// The item's key, or the id of a document whose item is unknown.
    pub key: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub what: String,
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
    /// Counts a difference of an item and returns whether it can be repaired.
    pub(crate) fn note(&mut self, key: String, difference: Difference) -> bool {
        let (kind, counter, fields) = match difference {
            Difference::Missing => ("missing", &mut self.missing, Vec::new()),
            // The fields of a stale document are expected to differ, so they are not counted.
            Difference::Stale => ("stale", &mut self.stale, Vec::new()),
            Difference::Different(fields) => ("different", &mut self.different, fields),
            Difference::Ahead => ("ahead", &mut self.ahead, Vec::new()),
        };
        *counter += 1;
        self.name(kind, key, fields.join(", "));
        for field in fields {
            *self.fields.entry(field).or_default() += 1;
        }
        kind != "ahead"
    }

    pub(crate) fn orphaned(&mut self, key: String) {
        self.orphaned += 1;
        self.name("orphaned", key, String::new());
    }

    pub(crate) fn unreadable(&mut self, key: String, reason: String) {
        self.unreadable += 1;
        self.name("unreadable", key, reason);
    }

    pub(crate) fn refused(&mut self, key: String, status: u16) {
        self.refused += 1;
        self.name("refused", key, format!("status {status}"));
    }

    pub(crate) fn unrepaired(&mut self, key: String) {
        self.unrepaired += 1;
        self.name("unrepaired", key, String::new());
    }

    fn name(&mut self, kind: &'static str, key: String, what: String) {
        self.merge(vec![NamedDifference { kind, key, what }]);
    }

    fn merge(&mut self, mut named: Vec<NamedDifference>) {
        self.named.append(&mut named);
        self.named.sort();
        self.named.dedup();
        self.named.truncate(NAMED);
    }

    /// Writes the named differences, each in a line.
    pub(crate) fn lines(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for NamedDifference { kind, key, what } in &self.named {
            let colon = if what.is_empty() { "" } else { ": " };
            writeln!(f, "    {kind}  {key}{colon}{what}")?;
        }
        let named = u64::try_from(self.named.len()).unwrap_or(u64::MAX);
        let more = (self.repairable() + self.beyond_repair()).saturating_sub(named);
        if self.named.len() == NAMED && more > 0 { writeln!(f, "    and {more} more") } else { Ok(()) }
    }

    pub(crate) fn add(&mut self, other: Self) {
        let Self { missing, stale, different, orphaned, ahead, unreadable, refused, unrepaired, fields, named } = other;
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
        self.merge(named);
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
