//! The measured costs of access patterns and routes: `docs/cost.json` and `docs/routes.json`, which
//! the tests of the table and of the whole system generate.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use key_schema::pattern::Pattern;
use key_schema::{leaderboard, mail, registry};
use serde::{Deserialize, Serialize};

use crate::error::OpsError;

const COSTS: &str = include_str!("../../../docs/cost.json");
const ROUTES: &str = include_str!("../../../docs/routes.json");

pub(crate) const TABLE: &str = "table";

#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct PatternCost {
    pub pattern: String,
    /// The example that was measured.
    pub on: String,
    pub requests: u32,
    pub half_read_units: u64,
    /// Write units of the table and of each index.
    pub write_units: BTreeMap<String, u64>,
    pub items: u32,
    pub bytes: u64,
    /// A write counts the items that it changes, and a read counts the items at its keys or in its
    /// range.
    pub entities: BTreeMap<String, u32>,
}

/// A route, or a function that runs every minute, with its access patterns.
#[derive(Debug, Clone, Deserialize)]
pub struct Route {
    /// The key, such as `GET /v1/orders/{id}`, or `every minute: Janitor`.
    pub route: String,
    /// The function's logical id in the template.
    pub function: String,
    pub patterns: Vec<String>,
    /// The uses of each pattern by the typical request. If the tests send no sample request to the
    /// route, each declared pattern counts once.
    pub uses: Option<BTreeMap<String, u64>>,
    /// The uses of each pattern by the functions that a request causes to run.
    #[serde(default)]
    pub later: BTreeMap<String, BTreeMap<String, u64>>,
    #[serde(default)]
    pub events: BTreeMap<String, u64>,
    /// The number of CloudWatch metrics in each function's log line.
    #[serde(default)]
    pub metrics: BTreeMap<String, u64>,
    #[serde(default)]
    pub log_bytes: BTreeMap<String, u64>,
}

impl Route {
    #[must_use]
    pub fn is_scheduled(&self) -> bool {
        self.route.starts_with("every minute: ")
    }

    #[must_use]
    pub fn uses(&self) -> Vec<(&str, u64)> {
        match &self.uses {
            Some(uses) => uses.iter().map(|(pattern, uses)| (pattern.as_str(), *uses)).collect(),
            None => self.patterns.iter().map(|pattern| (pattern.as_str(), 1)).collect(),
        }
    }

    /// Returns the uses of each pattern by one request and by the functions that it causes to run.
    /// The customers of the sample requests have not verified their addresses, so they get no mail.
    /// A bill assumes verified addresses, so the result includes the writes for a sent mail.
    #[must_use]
    pub fn all_uses(&self) -> Vec<(&str, u64)> {
        let mut uses = self.uses();
        for (function, later) in &self.later {
            uses.extend(later.iter().map(|(pattern, uses)| (pattern.as_str(), *uses)));
            if function == "Notifier" && !later.contains_key(mail::CLAIM.id) {
                uses.extend([(mail::CLAIM.id, 1), (mail::SETTLE.id, 1)]);
            }
        }
        uses
    }

    /// Returns the uses of each pattern that only a sampled request adds: a view, and the ranks
    /// that the stream's consumer derives from it. One in [`leaderboard::VIEW_SAMPLE`] requests is
    /// sampled. The measured request of a route is not sampled.
    pub(crate) fn sampled_uses(&self) -> &'static [(&'static str, u64)] {
        const VIEW: &[(&str, u64)] =
            &[(leaderboard::VIEW.id, 1), (leaderboard::DAYS.id, 1), (leaderboard::STORE_RANK.id, 3)];
        if self.patterns.iter().any(|pattern| pattern == leaderboard::VIEW.id) { VIEW } else { &[] }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Units {
    pub half_reads: u64,
    pub writes: u64,
}

#[derive(Debug)]
pub struct Measured {
    costs: Vec<PatternCost>,
    routes: Vec<Route>,
}

impl Measured {
    /// Returns the measurements that are compiled into the program.
    pub fn get() -> Result<&'static Self, OpsError> {
        static READ: OnceLock<Result<Measured, String>> = OnceLock::new();
        let read = || -> Result<Measured, serde_json::Error> {
            Ok(Measured { costs: serde_json::from_str(COSTS)?, routes: serde_json::from_str(ROUTES)? })
        };
        READ.get_or_init(|| read().map_err(|error| error.to_string())).as_ref().map_err(OpsError::failed)
    }

    #[must_use]
    /// Returns a suggestion of routes for an unknown route, or nothing.
    pub fn near(&self, route: &str) -> String {
        let known = self.routes().iter().filter(|known| !known.is_scheduled());
        template::near::hint(route, known.map(|known| known.route.as_str()))
    }

    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    #[must_use]
    pub fn route(&self, key: &str) -> Option<&Route> {
        self.routes.iter().find(|route| route.route == key)
    }

    /// Returns the measurements of a pattern. The first measurement is that of the usual example.
    pub fn costs<'a>(&'a self, pattern: &'a str) -> impl Iterator<Item = &'a PatternCost> {
        self.costs.iter().filter(move |cost| cost.pattern == pattern)
    }

    /// Adds the units that `uses` uses of a pattern consume in the table and in each index.
    pub(crate) fn add(&self, units: &mut BTreeMap<&'static str, Units>, pattern: &str, uses: u64) {
        let (Some(cost), Some(known)) = (self.costs(pattern).next(), pattern_of(pattern)) else { return };
        let place = known.index.map_or(TABLE, |index| index.name());
        if cost.half_read_units > 0 {
            units.entry(place).or_default().half_reads += uses * cost.half_read_units;
        }
        for (place, written) in &cost.write_units {
            units.entry(place_of(place)).or_default().writes += uses * written;
        }
    }
}

pub(crate) fn pattern_of(id: &str) -> Option<&'static Pattern> {
    registry::all().find(|pattern| pattern.id == id)
}

/// Returns the name of an index from the schema, or [`TABLE`] for any other name.
fn place_of(name: &str) -> &'static str {
    key_schema::index::INDEXES.into_iter().map(|index| index.name()).find(|known| *known == name).unwrap_or(TABLE)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_pattern_has_a_cost_and_every_route_has_only_known_patterns() {
        let measured = Measured::get().unwrap();
        for pattern in registry::all() {
            assert!(measured.costs(pattern.id).next().is_some(), "{}", pattern.id);
        }
        assert!(measured.routes().len() > 100);
        for route in measured.routes() {
            let used = route.uses().into_iter().map(|(pattern, _)| pattern);
            let later = route.later.values().flat_map(BTreeMap::keys).map(String::as_str);
            for pattern in route.patterns.iter().map(String::as_str).chain(used).chain(later) {
                assert!(pattern_of(pattern).is_some(), "{}: {pattern}", route.route);
            }
        }
    }

    #[test]
    fn write_units_belong_only_to_the_table_and_known_indexes() {
        for cost in &Measured::get().unwrap().costs {
            for place in cost.write_units.keys() {
                assert!(place == TABLE || place_of(place) == place, "{}: {place}", cost.pattern);
            }
        }
    }
}
