//! The versions of the protocol that the shop speaks, and how they differ.
//!
//! The shop's profile is that of the latest version, and names those of the others. An agent speaks one
//! version, which its own profile tells.

use serde_json::{Value, json};

use crate::profiles::Profile;

/// A version, by the month of 2026 in which it was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    April,
    August,
}

impl Version {
    pub const ALL: [Self; 2] = [Self::April, Self::August];
    pub const LATEST: Self = Self::August;

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::April => "2026-04-08",
            Self::August => "2026-08-25",
        }
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }

    /// Returns the version that an agent speaks. An agent whose profile the shop cannot read gets the
    /// latest one.
    #[must_use]
    pub fn of(profile: Option<&Profile>) -> Self {
        profile.and_then(|profile| Self::named(&profile.version)).unwrap_or(Self::LATEST)
    }

    /// Returns the members of the shop's profile that have the public keys. An agent of April may know only
    /// the latest profile, because messages name it.
    pub(super) const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::April => &["signing_keys"],
            Self::August => &["keys", "signing_keys"],
        }
    }

    /// Returns the page of a capability in the specification.
    pub(super) fn page(self, path: &str, is_extension: bool) -> String {
        let folder = if self >= Self::August && !is_extension { "shopping/" } else { "" };
        format!("specification/{folder}{path}")
    }

    /// Returns the description of a way to send the goods.
    pub(super) fn description(self, text: String) -> Value {
        match self {
            Self::April => text.into(),
            Self::August => json!({ "plain": text }),
        }
    }

    /// Returns whether a purchase has exactly one instrument, so that none needs to be `selected`.
    pub(super) fn has_one_instrument(self) -> bool {
        self >= Self::August
    }
}
