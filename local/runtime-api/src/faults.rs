use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Lambda rejects the invocation because there are too many concurrent invocations. The
    /// function does not run.
    Throttle,
    /// The invocation fails with a function error. The function does not run.
    Error,
    /// The invocation times out at once. The function does not run.
    Timeout,
    /// The function is invoked 300 ms late.
    Slow,
    /// The process is killed once it has received the invocation.
    Crash,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub kind: FaultKind,
    /// Share of the invocations that are hit, from 0 to 1.
    pub rate: f64,
    /// Maximum number of hits. `None` means no limit.
    pub count: Option<u32>,
    /// Seed of the random choice. The same seed selects the same invocations.
    pub seed: u64,
}

/// The rate of a fault is not between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the rate of a fault must be between 0 and 1")]
pub struct RateError;

/// The active fault rules of one function. Clones share the same rules.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<Vec<Rule>>>);

#[derive(Debug)]
struct Rule {
    fault: Fault,
    fired: u64,
    random: fastrand::Rng,
}

impl Faults {
    /// If two rules hit the same invocation, the earlier rule applies.
    pub fn add(&self, fault: Fault) -> Result<(), RateError> {
        if !(0.0..=1.0).contains(&fault.rate) {
            return Err(RateError);
        }
        let random = fastrand::Rng::with_seed(fault.seed);
        self.rules().push(Rule { fault, fired: 0, random });
        Ok(())
    }

    pub fn clear(&self) {
        self.rules().clear();
    }

    /// Returns the active rules, each with its number of hits.
    #[must_use]
    pub fn counts(&self) -> Vec<(Fault, u64)> {
        self.rules().iter().map(|rule| (rule.fault.clone(), rule.fired)).collect()
    }

    /// Each rule has its own sequence of random numbers, which does not depend on other rules.
    pub(crate) fn draw(&self) -> Option<FaultKind> {
        let mut strike = None;
        for rule in self.rules().iter_mut() {
            if rule.fault.count.is_some_and(|count| rule.fired >= u64::from(count)) {
                continue;
            }
            let hit = rule.random.f64() < rule.fault.rate;
            if hit && strike.is_none() {
                rule.fired += 1;
                strike = Some(rule.fault.kind);
            }
        }
        strike
    }

    fn rules(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_hits_of_a_rule_depend_on_its_rate_its_seed_and_its_count() {
        let run = |rate, count, seed| {
            let faults = Faults::default();
            faults.add(Fault { kind: FaultKind::Slow, rate, count, seed }).unwrap();
            (0..100).map(|_| faults.draw().is_some()).collect::<Vec<_>>()
        };
        assert_eq!(run(0.4, None, 7), run(0.4, None, 7));
        assert_ne!(run(0.4, None, 7), run(0.4, None, 8));
        assert_eq!(run(1.0, Some(3), 0).iter().filter(|hit| **hit).count(), 3);
        assert!(!run(0.0, None, 0).contains(&true));
        let wrong = Fault { kind: FaultKind::Slow, rate: 1.1, count: None, seed: 0 };
        assert_eq!(Faults::default().add(wrong), Err(RateError));
    }
}
