//! Faults as data: which may happen, how often, and how often they did.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

/// What goes wrong. Which of them can happen to a request, and how a throttled or failed one is answered, is each endpoint's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Refused because there were too many; nothing is done.
    Throttle,
    /// A failure on the other side; nothing is done.
    Error,
    /// Done, but the answer never comes: the connection is closed after ten seconds.
    Timeout,
    /// Done, and answered 300 ms late.
    Slow,
    /// The connection is closed without an answer; nothing is done.
    Reset,
    /// Done, but the connection is closed in the middle of the answer.
    Truncate,
    /// A part of a batch is done, the rest is returned as undone.
    Partial,
    /// Refused because somebody else is writing the same; nothing is done.
    Conflict,
}

/// The rate of a fault is not between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the rate of a fault lies between 0 and 1")]
pub struct RateError;

/// One rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// The share of the requests it can happen to, from 0 to 1.
    pub rate: f64,
    /// How often at most; without it there is no limit.
    #[serde(default)]
    pub count: Option<u32>,
    /// Decides which requests are hit: the same seed picks the same ones of a sequence.
    #[serde(default)]
    pub seed: u64,
}

/// A rule and how often it has struck.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FaultCount {
    /// The rule.
    pub fault: Fault,
    /// Where the partition keys begin that it can happen to; without it, to every request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How many requests it has hit.
    pub fired: u64,
}

/// The rules in force, shared with the endpoint that applies them: clones see the same rules.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<Vec<Rule>>>);

#[derive(Debug)]
struct Rule {
    fault: Fault,
    key: Option<String>,
    fired: u64,
    random: fastrand::Rng,
}

/// What strikes one request: the kind, a number for what the kind leaves to chance, and where the keys begin that it is aimed at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Strike {
    pub(crate) kind: FaultKind,
    pub(crate) chance: u64,
    pub(crate) key: Option<String>,
}

impl Faults {
    /// Puts a rule in force, after the ones that are. Where two strike the same request, the
    /// earlier one does.
    ///
    /// # Errors
    /// [`RateError`] when the rate is not between 0 and 1.
    pub fn add(&self, fault: Fault) -> Result<(), RateError> {
        self.put(fault, None)
    }

    /// The same for requests alone that name an item whose partition key begins so. Only a table knows of such.
    ///
    /// # Errors
    /// [`RateError`] when the rate is not between 0 and 1.
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

    /// Puts every rule out of force.
    pub fn clear(&self) {
        self.rules().clear();
    }

    /// The rules in force, with their counts.
    #[must_use]
    pub fn counts(&self) -> Vec<FaultCount> {
        let count = |rule: &Rule| FaultCount { fault: rule.fault.clone(), key: rule.key.clone(), fired: rule.fired };
        self.rules().iter().map(count).collect()
    }

    /// Whether a rule of this kind may still strike.
    pub(crate) fn has(&self, kind: FaultKind) -> bool {
        self.rules().iter().any(|rule| rule.fault.kind == kind && !rule.is_spent())
    }

    /// Whether a rule is aimed at keys.
    pub(crate) fn are_aimed(&self) -> bool {
        self.rules().iter().any(|rule| rule.key.is_some() && !rule.is_spent())
    }

    /// Draws for one request, which the kinds in `possible` can happen to and which names no keys.
    pub(crate) fn draw(&self, possible: impl Fn(FaultKind) -> bool) -> Option<Strike> {
        self.draw_at(&[], possible)
    }

    /// Draws for one request, which the kinds in `possible` can happen to, on items of these partitions. Each rule draws from its
    /// own sequence, whatever the others do, so that adding a rule does not move another's hits.
    pub(crate) fn draw_at(&self, keys: &[String], possible: impl Fn(FaultKind) -> bool) -> Option<Strike> {
        let mut strike = None;
        for rule in self.rules().iter_mut() {
            if !possible(rule.fault.kind) || rule.is_spent() || !rule.is_aimed_at(keys) {
                continue;
            }
            let hit = rule.random.f64() < rule.fault.rate;
            let chance = rule.random.u64(..);
            if hit && strike.is_none() {
                rule.fired += 1;
                strike = Some(Strike { kind: rule.fault.kind, chance, key: rule.key.clone() });
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
    fn the_same_seed_hits_the_same_requests_and_another_seed_others() {
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
    fn a_rule_stops_at_its_count_and_reports_it() {
        let faults = Faults::default();
        faults.add(fault(FaultKind::Throttle, 1.0, Some(3), 0)).unwrap();
        assert_eq!(hits(&faults, 5), [true, true, true, false, false]);
        assert!(!faults.has(FaultKind::Throttle));
        assert_eq!(faults.counts().first().unwrap().fired, 3);
        faults.clear();
        assert!(faults.counts().is_empty());
    }

    #[test]
    fn the_earlier_rule_strikes_and_an_impossible_kind_is_passed_over() {
        let faults = Faults::default();
        faults.add(fault(FaultKind::Partial, 1.0, None, 0)).unwrap();
        faults.add(fault(FaultKind::Slow, 1.0, None, 0)).unwrap();
        let kind = |possible: fn(FaultKind) -> bool| faults.draw(possible).map(|strike| strike.kind);
        assert_eq!(kind(|_| true), Some(FaultKind::Partial));
        assert_eq!(kind(|kind| kind != FaultKind::Partial), Some(FaultKind::Slow));
        assert_eq!(kind(|_| false), None);
    }

    #[test]
    fn a_rule_that_is_aimed_at_keys_passes_all_others_over_and_draws_for_its_own() {
        let run = |others: bool| {
            let faults = Faults::default();
            faults.add_to_keys(fault(FaultKind::Throttle, 0.5, None, 7), "A#").unwrap();
            assert!(faults.are_aimed());
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
    fn a_rule_reads_as_its_json_with_count_and_seed_left_out() {
        let read: Fault = serde_json::from_str(r#"{"kind":"conflict","rate":0.5}"#).unwrap();
        assert_eq!(read, fault(FaultKind::Conflict, 0.5, None, 0));
    }
}
