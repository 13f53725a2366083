use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

/// A kind of fault. Each endpoint decides which faults can hit a request, and how it responds to a
/// throttled or failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The service rejects the request because there are too many requests. Nothing is done.
    Throttle,
    /// The service fails. Nothing is done.
    Error,
    /// The request is processed, but gets no response. The connection closes after ten seconds.
    Timeout,
    /// The request is processed, and the response is 300 ms late.
    Slow,
    /// The connection closes without a response. Nothing is done.
    Reset,
    /// The request is processed, but the connection closes in the middle of the response.
    Truncate,
    /// A part of a batch is processed, and the rest is returned as unprocessed.
    Partial,
    /// The service rejects the request because of a concurrent write. Nothing is done.
    Conflict,
    /// The request gets no response, and nothing is done. The connection closes after ten seconds.
    /// Only payments support this kind and the following kinds.
    TimeoutBefore,
    /// The request is processed, but the service answers that it failed.
    ErrorAfter,
    /// A webhook is delivered with a signature that no secret of its endpoint made.
    WrongSignature,
}

/// The rate of a fault is not between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the rate of a fault must be between 0 and 1")]
pub struct RateError;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    pub kind: FaultKind,
    /// Share of requests to hit, from 0 to 1. Requests that this fault cannot hit do not count.
    pub rate: f64,
    /// Maximum number of hits. `None` means no limit.
    #[serde(default)]
    pub count: Option<u32>,
    /// Seed of the random choice. The same seed selects the same requests.
    #[serde(default)]
    pub seed: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FaultCount {
    pub fault: Fault,
    /// Prefix of the partition keys that the rule applies to. Without it, the rule applies to all
    /// requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub fired: u64,
}

/// The active rules. Clones share them with the endpoint.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<Vec<Rule>>>);

#[derive(Debug)]
struct Rule {
    fault: Fault,
    key: Option<String>,
    fired: u64,
    random: fastrand::Rng,
}

/// The fault for one request: its kind, a random number for further choices, and the rule's key
/// prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) kind: FaultKind,
    pub(crate) chance: u64,
    pub(crate) key: Option<String>,
}

impl Faults {
    /// If two rules hit the same request, the earlier rule applies.
    pub fn add(&self, fault: Fault) -> Result<(), RateError> {
        self.put(fault, None)
    }

    /// Adds a rule for requests that name an item whose partition key has this prefix. Only tables
    /// support such rules.
    pub fn add_to_keys(&self, fault: Fault, beginning: &str) -> Result<(), RateError> {
        self.put(fault, Some(beginning.to_owned()))
    }

    fn put(&self, fault: Fault, key: Option<String>) -> Result<(), RateError> {
        if !(0.0..=1.0).contains(&fault.rate) {
            return Err(RateError);
        }
        let random = fastrand::Rng::with_seed(fault.seed);
        self.rules().push(Rule { fault, key, fired: 0, random });
        Ok(())
    }

    pub fn clear(&self) {
        self.rules().clear();
    }

    #[must_use]
    pub fn counts(&self) -> Vec<FaultCount> {
        let count = |rule: &Rule| FaultCount { fault: rule.fault.clone(), key: rule.key.clone(), fired: rule.fired };
        self.rules().iter().map(count).collect()
    }

    /// Returns whether a rule of this kind has not reached its maximum number of hits.
    pub(crate) fn has(&self, kind: FaultKind) -> bool {
        self.rules().iter().any(|rule| rule.fault.kind == kind && !rule.is_spent())
    }

    /// Returns whether a rule with a key prefix has not reached its maximum number of hits.
    pub(crate) fn has_key_rules(&self) -> bool {
        self.rules().iter().any(|rule| rule.key.is_some() && !rule.is_spent())
    }

    /// Decides which fault hits a request that names no keys. `possible` filters the kinds.
    pub(crate) fn draw(&self, possible: impl Fn(FaultKind) -> bool) -> Option<Hit> {
        self.draw_at(&[], possible)
    }

    /// Decides which fault hits a request for these partition keys. `possible` filters the kinds.
    /// Each rule has its own sequence of random numbers, which does not depend on other rules.
    pub(crate) fn draw_at(&self, keys: &[String], possible: impl Fn(FaultKind) -> bool) -> Option<Hit> {
        let mut strike = None;
        for rule in self.rules().iter_mut() {
            if !possible(rule.fault.kind) || rule.is_spent() || !rule.is_aimed_at(keys) {
                continue;
            }
            let hit = rule.random.f64() < rule.fault.rate;
            let chance = rule.random.u64(..);
            if hit && strike.is_none() {
                rule.fired += 1;
                strike = Some(Hit { kind: rule.fault.kind, chance, key: rule.key.clone() });
            }
        }
        strike
    }

    fn rules(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rule {
    fn is_aimed_at(&self, keys: &[String]) -> bool {
        self.key.as_ref().is_none_or(|beginning| keys.iter().any(|key| key.starts_with(beginning)))
    }

    fn is_spent(&self) -> bool {
        self.fault.count.is_some_and(|count| self.fired >= u64::from(count))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn fault(kind: FaultKind, rate: f64, count: Option<u32>, seed: u64) -> Fault {
        Fault { kind, rate, count, seed }
    }

    fn hits(faults: &Faults, requests: usize) -> Vec<bool> {
        (0..requests).map(|_| faults.draw(|_| true).is_some()).collect()
    }

    #[test]
    fn the_same_seed_hits_the_same_requests_and_another_seed_hits_other_requests() {
        let run = |seed| {
            let faults = Faults::default();
            faults.add(fault(FaultKind::Error, 0.3, None, seed)).unwrap();
            hits(&faults, 200)
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
        let struck = run(7).iter().filter(|hit| **hit).count();
        assert!((30..=90).contains(&struck), "{struck} of 200 at a rate of 0.3");
    }

    #[test]
    fn a_rule_stops_at_its_count_and_reports_the_number_of_hits() {
        let faults = Faults::default();
        faults.add(fault(FaultKind::Throttle, 1.0, Some(3), 0)).unwrap();
        assert_eq!(hits(&faults, 5), [true, true, true, false, false]);
        assert!(!faults.has(FaultKind::Throttle));
        assert_eq!(faults.counts().first().unwrap().fired, 3);
        faults.clear();
        assert!(faults.counts().is_empty());
    }

    #[test]
    fn the_earlier_rule_applies_and_an_impossible_kind_is_skipped() {
        let faults = Faults::default();
        faults.add(fault(FaultKind::Partial, 1.0, None, 0)).unwrap();
        faults.add(fault(FaultKind::Slow, 1.0, None, 0)).unwrap();
        let kind = |possible: fn(FaultKind) -> bool| faults.draw(possible).map(|strike| strike.kind);
        assert_eq!(kind(|_| true), Some(FaultKind::Partial));
        assert_eq!(kind(|kind| kind != FaultKind::Partial), Some(FaultKind::Slow));
        assert_eq!(kind(|_| false), None);
    }

    #[test]
    fn a_rule_for_a_key_prefix_ignores_requests_for_other_keys() {
        let run = |others: bool| {
            let faults = Faults::default();
            faults.add_to_keys(fault(FaultKind::Throttle, 0.5, None, 7), "A#").unwrap();
            assert!(faults.has_key_rules());
            let own = |_| {
                if others {
                    assert_eq!(faults.draw_at(&["B#1".to_owned(), "AA#".to_owned()], |_| true), None);
                    assert_eq!(faults.draw(|_| true), None);
                }
                faults.draw_at(&["B#1".to_owned(), "A#1".to_owned()], |_| true).map(|strike| strike.key)
            };
            (0..50).map(own).collect::<Vec<_>>()
        };
        assert_eq!(run(false), run(true));
        assert!(run(true).contains(&Some(Some("A#".to_owned()))));
        assert!(run(true).contains(&None));
    }

    #[test]
    fn a_rate_outside_zero_to_one_is_refused() {
        for rate in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            let added = Faults::default().add(fault(FaultKind::Slow, rate, None, 0));
            assert_eq!(added, Err(RateError), "{rate}");
        }
    }

    #[test]
    fn a_rule_is_read_from_json_without_count_and_seed() {
        let read: Fault = serde_json::from_str(r#"{"kind":"conflict","rate":0.5}"#).unwrap();
        assert_eq!(read, fault(FaultKind::Conflict, 0.5, None, 0));
    }
}
