use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// An item that no reader can decode, or whose key does not match its attributes.
    Unreadable,
    /// An index key or a time to live that does not match the attributes.
    Index,
    /// An item near its size limit, or a value beyond its bounds.
    Bounds,
    /// A copy that differs from its source, although one transaction writes both.
    Copy,
    /// A copy or a derived item that stayed behind its source.
    Behind,
    /// A unique name without its claim, or a claim that leads to another owner.
    Claim,
    /// One side of a relation without the other side.
    Link,
    /// An item without the item to which it belongs.
    Orphan,
    /// A count or a sum that does not equal the sum of its parts.
    Total,
}

impl Kind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Index => "index",
            Self::Bounds => "bounds",
            Self::Copy => "copy",
            Self::Behind => "behind",
            Self::Claim => "claim",
            Self::Link => "link",
            Self::Orphan => "orphan",
            Self::Total => "total",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    pub kind: Kind,
    /// The key of the item, as [`key_schema::key::shown`] returns it.
    pub key: String,
    /// The difference, without values that a customer wrote.
    pub what: String,
    pub repaired: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub repaired: u64,
    pub left: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// The number of items that the last pass read. Each item counts once.
    pub items: u64,
    pub found: BTreeMap<Kind, Counts>,
    /// Whether the totals of the whole table were not checked, because an unreadable item may be a
    /// part of a total.
    pub totals_unchecked: bool,
    /// The number of totals that kept changing until the last read, so that no two reads agreed on a
    /// difference. These totals are not checked.
    pub unsettled: u64,
    /// The number of items in the form of an earlier release, which `ops migrate` writes. They are no
    /// differences.
    pub to_migrate: u64,
    pub findings: Vec<Finding>,
}

impl Verified {
    /// Returns whether no difference is left and every total was checked.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.left() == 0 && self.unsettled == 0
    }

    #[must_use]
    pub fn repaired(&self) -> u64 {
        self.found.values().map(|counts| counts.repaired).sum()
    }

    #[must_use]
    pub fn left(&self) -> u64 {
        self.found.values().map(|counts| counts.left).sum()
    }

    pub(super) fn add(&mut self, finding: Finding, limit: usize) {
        let counts = self.found.entry(finding.kind).or_default();
        *if finding.repaired { &mut counts.repaired } else { &mut counts.left } += 1;
        if self.findings.len() < limit {
            self.findings.push(finding);
        }
    }

    /// Adds the result of the next pass, which has found the unrepaired differences again.
    pub(super) fn follow(&mut self, next: Self, limit: usize) {
        let before = std::mem::replace(self, next);
        for (kind, counts) in before.found.into_iter().filter(|(_, counts)| counts.repaired > 0) {
            self.found.entry(kind).or_default().repaired += counts.repaired;
        }
        let repaired = before.findings.into_iter().filter(|finding| finding.repaired);
        self.findings = repaired.chain(std::mem::take(&mut self.findings)).take(limit).collect();
    }
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (repaired, left) = (self.repaired(), self.left());
        writeln!(f, "{} items read, {} differences, {repaired} repaired, {left} left", self.items, repaired + left)?;
        for (kind, Counts { repaired, left }) in &self.found {
            writeln!(f, "  {:<10}  {repaired} repaired, {left} left", kind.as_str())?;
        }
        if self.to_migrate > 0 {
            writeln!(f, "  {} items have an earlier form: see `ops migrate status`", self.to_migrate)?;
        }
        if self.unsettled > 0 {
            writeln!(f, "  {} totals kept changing and were NOT CHECKED: run the command again", self.unsettled)?;
        }
        if self.totals_unchecked {
            writeln!(f, "  totals of the whole table were NOT CHECKED, because items are unreadable")?;
        }
        for Finding { kind, key, what, repaired } in &self.findings {
            let repaired = if *repaired { " (repaired)" } else { "" };
            writeln!(f, "{:<10}  {key}: {what}{repaired}", kind.as_str())?;
        }
        let shown = u64::try_from(self.findings.len()).unwrap_or(u64::MAX);
        let more = (repaired + left).saturating_sub(shown);
        if more > 0 {
            writeln!(f, "and {more} more: give a higher --limit")?;
        }
        Ok(())
    }
}
