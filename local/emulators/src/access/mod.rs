//! Who may do what: the IAM statements of each function, enforced by every endpoint.
//!
//! A function's calls carry its name as the session token of their credentials (`x-amz-security-token`), as real ones carry a role's session.
//! An endpoint that was told of an [`Access`] asks it before anything else, also before a fault, as AWS does; calls that name no function that
//! it knows are not checked. Each grant counts how often it was needed, so that one which never was can be found.
//!
//! Evaluated is what a function's own policies say: nothing is allowed that no statement allows, and a denying statement wins.
//! There are no policies of resources, boundaries or conditions here.

mod policy;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hyper::HeaderMap;
use serde::Serialize;

use policy::{Decision, evaluate};
pub use policy::{Need, Rule};

/// The header by which a function's calls tell whose they are.
pub(crate) const TOKEN: &str = "x-amz-security-token";
/// How many different denials of one function are kept.
const KEPT: usize = 100;

/// The statements of every function, and what they were needed for. For use by the endpoints it is shared ([`Arc`]).
#[derive(Debug)]
pub struct Access {
    region: String,
    account: String,
    callers: BTreeMap<String, Caller>,
}

#[derive(Debug)]
struct Caller {
    rules: Vec<Rule>,
    /// How often each of the rules allowed a call.
    used: Vec<AtomicU64>,
    denied: Mutex<BTreeMap<Need, u64>>,
}

/// What one function may do, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The function.
    pub function: String,
    /// Its grants, in the order of the template.
    pub grants: Vec<Grant>,
    /// What it was refused.
    pub denied: Vec<Refused>,
}

/// One action that a statement allows on one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grant {
    /// The statement's name.
    pub sid: Option<String>,
    /// The action.
    pub action: String,
    /// The resource: an ARN, perhaps with wildcards.
    pub resource: String,
    /// How many calls needed it. What an earlier grant allows already does not need a later one.
    pub used: u64,
}

/// A call that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// What was to be done, and to what.
    #[serde(flatten)]
    pub need: Need,
    /// How often.
    pub count: u64,
}

/// Why a call is refused. Reads as AWS says it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "User: arn:aws:sts::{account}:assumed-role/{caller}/{caller} is not authorized to perform: {} on resource: {} {reason}",
    need.action, need.resource
)]
pub struct Denied {
    account: String,
    caller: String,
    need: Need,
    reason: &'static str,
}

impl Access {
    /// Knows the functions with these names by their rules, in the account and region where the table, the bus and the rest are.
    #[must_use]
    pub fn new(region: &str, account: &str, functions: impl IntoIterator<Item = (String, Vec<Rule>)>) -> Self {
        let caller = |rules: Vec<Rule>| {
            let used = rules.iter().map(|_| AtomicU64::new(0)).collect();
            Caller { rules, used, denied: Mutex::default() }
        };
        let callers = functions.into_iter().map(|(name, rules)| (name, caller(rules))).collect();
        Self { region: region.to_owned(), account: account.to_owned(), callers }
    }

    /// What every function may do and did, by its name.
    #[must_use]
    pub fn report(&self) -> Vec<Report> {
        let reports = self.callers.iter().map(|(function, caller)| {
            let rules = caller.rules.iter().zip(&caller.used).filter(|(rule, _)| rule.allow);
            let grants = rules.map(|(rule, used)| Grant {
                sid: rule.sid.clone(),
                action: rule.action.clone(),
                resource: rule.resource.clone(),
                used: used.load(Ordering::Relaxed),
            });
            let denied = caller.denied();
            let denied = denied.iter().map(|(need, count)| Refused { need: need.clone(), count: *count });
            Report { function: function.clone(), grants: grants.collect(), denied: denied.collect() }
        });
        reports.collect()
    }

    /// Whether a function may do this, without counting it.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn may(&self, function: &str, action: &'static str, resource: &str) -> Result<(), Denied> {
        let Some(caller) = self.callers.get(function) else { return Ok(()) };
        let need = Need::new(action, resource.to_owned());
        match evaluate(&caller.rules, &need).reason() {
            None => Ok(()),
            Some(reason) => Err(self.denied(function, &need, reason)),
        }
    }

    /// As an endpoint asks it: for what is done in a function's name on this machine, and comes by no endpoint.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn ask(&self, function: &str, action: &'static str, resource: &str) -> Result<(), Denied> {
        self.check(function, &[Need::new(action, resource.to_owned())])
    }

    /// The ARN of what a service has under a name here.
    pub(crate) fn arn(&self, service: &str, resource: &str) -> String {
        format!("arn:aws:{service}:{}:{}:{resource}", self.region, self.account)
    }

    /// Whether the caller may do all of it. The first thing that it may not do is the one that is refused.
    fn check(&self, name: &str, needs: &[Need]) -> Result<(), Denied> {
        let Some(caller) = self.callers.get(name) else { return Ok(()) };
        let mut needed = Vec::with_capacity(needs.len());
        for need in needs {
            let decision = evaluate(&caller.rules, need);
            if let Some(reason) = decision.reason() {
                let action = &*need.action;
                tracing::error!(function = name, action, resource = need.resource, "not allowed {reason}");
                caller.refuse(need);
                return Err(self.denied(name, need, reason));
            }
            if let Decision::Allowed(rule) = decision {
                needed.push(rule);
            }
        }
        for used in needed.into_iter().filter_map(|rule| caller.used.get(rule)) {
            used.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn denied(&self, name: &str, need: &Need, reason: &'static str) -> Denied {
        Denied { account: self.account.clone(), caller: name.to_owned(), need: need.clone(), reason }
    }
}

impl Decision {
    /// Why not, as AWS says it; `None` where it is allowed.
    const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Allowed(_) => None,
            Self::Denied => Some("with an explicit deny in an identity-based policy"),
            Self::NotAllowed => Some("because no identity-based policy allows it"),
        }
    }
}

impl Caller {
    fn refuse(&self, need: &Need) {
        let mut denied = self.denied();
        if denied.len() < KEPT || denied.contains_key(need) {
            *denied.entry(need.clone()).or_default() += 1;
        }
    }

    fn denied(&self) -> MutexGuard<'_, BTreeMap<Need, u64>> {
        self.denied.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an endpoint asks, once it was told whom: clones are told together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guard(Arc<OnceLock<Arc<Access>>>);

impl Guard {
    /// From now on the access is asked. The first that is set stays.
    pub(crate) fn set(&self, access: Arc<Access>) {
        // Whoever sets it twice has it as it was.
        let _ = self.0.set(access);
    }

    /// Refuses what the caller may not do. Of a caller that is not known nothing is asked.
    pub(crate) fn check(&self, caller: Option<&str>, needs: impl FnOnce(&Access) -> Vec<Need>) -> Result<(), Denied> {
        match (self.0.get(), caller) {
            (Some(access), Some(name)) if access.callers.contains_key(name) => access.check(name, &needs(access)),
            _ => Ok(()),
        }
    }
}

/// The caller that the headers of a signed call name.
pub(crate) fn caller(headers: &HeaderMap) -> Option<&str> {
    headers.get(TOKEN)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn rule(allow: bool, action: &str, resource: &str) -> Rule {
        Rule { sid: Some("S".to_owned()), allow, action: action.to_owned(), resource: resource.to_owned() }
    }

    fn guard(rules: Vec<Rule>) -> (Guard, Arc<Access>) {
        let access = Arc::new(Access::new("r", "a", [("F".to_owned(), rules)]));
        let guard = Guard::default();
        guard.set(Arc::clone(&access));
        (guard, access)
    }

    #[test]
    fn uses_are_counted_for_the_grant_that_was_needed_and_denials_by_what_was_asked() {
        let (guard, access) = guard(vec![rule(true, "s:Get", "*"), rule(true, "s:*", "x"), rule(false, "s:Put", "x")]);
        let ask = |actions: &[&'static str]| {
            let needs = actions.iter().map(|action| Need::new(*action, "x".to_owned())).collect();
            guard.check(Some("F"), |_| needs)
        };
        assert!(ask(&["s:Get"]).is_ok());
        assert!(ask(&["s:Get", "s:Delete"]).is_ok());
        // A call that is refused needed nothing.
        let denied = ask(&["s:Delete", "s:Put"]).unwrap_err().to_string();
        assert_eq!(
            denied,
            "User: arn:aws:sts::a:assumed-role/F/F is not authorized to perform: s:Put on resource: x with an explicit \
             deny in an identity-based policy"
        );
        let report = access.report().remove(0);
        let used: Vec<u64> = report.grants.iter().map(|grant| grant.used).collect();
        assert_eq!(used, [2, 1]);
        assert_eq!(report.denied, [Refused { need: Need::new("s:Put", "x".to_owned()), count: 1 }]);
    }

    #[test]
    fn what_is_done_in_a_functions_name_counts_and_looking_whether_it_may_does_not() {
        let (_, access) = guard(vec![rule(true, "s:Get", "x")]);
        assert!(access.may("F", "s:Get", "x").is_ok() && access.ask("F", "s:Get", "x").is_ok());
        let refused = access.may("F", "s:Put", "x").unwrap_err();
        let report = access.report().remove(0);
        assert_eq!((report.grants[0].used, report.denied.len()), (1, 0));
        assert_eq!(access.ask("F", "s:Put", "x").unwrap_err(), refused);
        assert_eq!(access.report().remove(0).denied.len(), 1);
        assert!(access.may("G", "s:Put", "x").is_ok() && access.ask("G", "s:Put", "x").is_ok());
    }

    #[test]
    fn whoever_is_nobody_is_not_asked_and_an_untold_guard_asks_nobody() {
        let (told, access) = guard(Vec::new());
        let needs = |_: &Access| vec![Need::new("s:Get", "x".to_owned())];
        assert!(told.check(None, needs).is_ok() && told.check(Some("G"), needs).is_ok());
        assert!(Guard::default().check(Some("F"), needs).is_ok());
        assert!(told.check(Some("F"), needs).is_err());
        assert_eq!(access.report().len(), 1);
    }

    #[test]
    fn a_hundred_different_denials_are_kept() {
        let (guard, access) = guard(Vec::new());
        for n in 0..=KEPT {
            assert!(guard.check(Some("F"), |_| vec![Need::new("s:Get", format!("{n}"))]).is_err());
        }
        assert_eq!(access.report().remove(0).denied.len(), KEPT);
    }
}
