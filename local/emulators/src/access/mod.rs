//! Enforces each function's IAM statements at every endpoint.
//!
//! The session token of a function's credentials (`x-amz-security-token`) is the function's name.
//! So every signed call names the calling function. An endpoint with an [`Access`] checks the
//! permission first, as AWS does, and then injects faults. It does not check calls of unknown
//! functions. Each grant counts the calls that needed it, so that a test can find unused grants.
//!
//! Only a function's own policies are evaluated. A call needs an allowing statement, and a denying
//! statement takes precedence. There are no resource policies, boundaries or conditions.

mod policy;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hyper::HeaderMap;
use serde::Serialize;

use policy::{Decision, evaluate};
pub use policy::{Need, Rule};

/// The header with the name of the calling function.
pub(crate) const TOKEN: &str = "x-amz-security-token";
const KEPT: usize = 100;

/// The endpoints share this value in an [`Arc`].
#[derive(Debug)]
pub struct Access {
    region: String,
    account: String,
    callers: BTreeMap<String, Caller>,
}

#[derive(Debug)]
struct Caller {
    rules: Vec<Rule>,
    used: Vec<AtomicU64>,
    denied: Mutex<BTreeMap<Need, u64>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub function: String,
    pub grants: Vec<Grant>,
    pub denied: Vec<Refused>,
}

/// One action that a statement allows on one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grant {
    pub sid: Option<String>,
    pub action: String,
    /// The resource: an ARN, which may contain wildcards.
    pub resource: String,
    /// Number of calls that needed this grant. A call uses the first grant that allows it.
    pub used: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    #[serde(flatten)]
    pub need: Need,
    /// Number of calls that were denied because this permission was missing.
    pub count: u64,
}

/// The reason why a call is denied. The message has AWS's wording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "User: arn:aws:sts::{account}:assumed-role/{caller}/{caller} is not authorized to perform: {} on resource: {} \
    {reason}",
    need.action, need.resource
)]
pub struct Denied {
    account: String,
    caller: String,
    need: Need,
    reason: &'static str,
}

impl Access {
    /// Creates the permissions of these functions. The table, the bus and the other resources are
    /// in this account and region.
    #[must_use]
    pub fn new(region: &str, account: &str, functions: impl IntoIterator<Item = (String, Vec<Rule>)>) -> Self {
        let caller = |rules: Vec<Rule>| {
            let used = rules.iter().map(|_| AtomicU64::new(0)).collect();
            Caller { rules, used, denied: Mutex::default() }
        };
        let callers = functions.into_iter().map(|(name, rules)| (name, caller(rules))).collect();
        Self { region: region.to_owned(), account: account.to_owned(), callers }
    }

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

    /// Checks whether a function may make this call. The call is not counted.
    pub fn may(&self, function: &str, action: &'static str, resource: &str) -> Result<(), Denied> {
        let Some(caller) = self.callers.get(function) else { return Ok(()) };
        let need = Need::new(action, resource.to_owned());
        match evaluate(&caller.rules, &need).reason() {
            None => Ok(()),
            Some(reason) => Err(self.denied(function, &need, reason)),
        }
    }

    /// Checks and counts a call that this process makes on a function's behalf without an endpoint.
    pub fn check_call(&self, function: &str, action: &'static str, resource: &str) -> Result<(), Denied> {
        self.check(function, &[Need::new(action, resource.to_owned())])
    }

    pub(crate) fn arn(&self, service: &str, resource: &str) -> String {
        format!("arn:aws:{service}:{}:{}:{resource}", self.region, self.account)
    }

    /// The error names the first permission that the function lacks.
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
    /// Returns the reason of a denial in AWS's words, or `None` if the call is allowed.
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

/// An endpoint's permission check. Without an [`Access`] it allows all calls. Clones share the
/// check.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guard(Arc<OnceLock<Arc<Access>>>);

impl Guard {
    /// Enables the check. Only the first call has an effect.
    pub(crate) fn set(&self, access: Arc<Access>) {
        let _ = self.0.set(access);
    }

    /// Refuses a call if the function lacks a permission. Calls of unknown callers are not checked.
    pub(crate) fn check(&self, caller: Option<&str>, needs: impl FnOnce(&Access) -> Vec<Need>) -> Result<(), Denied> {
        match (self.0.get(), caller) {
            (Some(access), Some(name)) if access.callers.contains_key(name) => access.check(name, &needs(access)),
            _ => Ok(()),
        }
    }
}

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
    fn each_grant_has_a_count_of_its_uses_and_each_denied_action_a_count_of_its_denials() {
        let (guard, access) = guard(vec![rule(true, "s:Get", "*"), rule(true, "s:*", "x"), rule(false, "s:Put", "x")]);
        let ask = |actions: &[&'static str]| {
            let needs = actions.iter().map(|action| Need::new(*action, "x".to_owned())).collect();
            guard.check(Some("F"), |_| needs)
        };
        assert!(ask(&["s:Get"]).is_ok());
        assert!(ask(&["s:Get", "s:Delete"]).is_ok());
        // A denied call does not count as a use of a grant.
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
    fn calls_for_a_function_are_counted_but_checks_without_a_call_are_not() {
        let (_, access) = guard(vec![rule(true, "s:Get", "x")]);
        assert!(access.may("F", "s:Get", "x").is_ok() && access.check_call("F", "s:Get", "x").is_ok());
        let refused = access.may("F", "s:Put", "x").unwrap_err();
        let report = access.report().remove(0);
        assert_eq!((report.grants[0].used, report.denied.len()), (1, 0));
        assert_eq!(access.check_call("F", "s:Put", "x").unwrap_err(), refused);
        assert_eq!(access.report().remove(0).denied.len(), 1);
        assert!(access.may("G", "s:Put", "x").is_ok() && access.check_call("G", "s:Put", "x").is_ok());
    }

    #[test]
    fn a_guard_checks_only_its_functions_and_an_empty_guard_checks_no_function() {
        let (told, access) = guard(Vec::new());
        let needs = |_: &Access| vec![Need::new("s:Get", "x".to_owned())];
        assert!(told.check(None, needs).is_ok() && told.check(Some("G"), needs).is_ok());
        assert!(Guard::default().check(Some("F"), needs).is_ok());
        assert!(told.check(Some("F"), needs).is_err());
        assert_eq!(access.report().len(), 1);
    }

    #[test]
    fn at_most_a_hundred_different_denials_are_kept() {
        let (guard, access) = guard(Vec::new());
        for n in 0..=KEPT {
            assert!(guard.check(Some("F"), |_| vec![Need::new("s:Get", format!("{n}"))]).is_err());
        }
        assert_eq!(access.report().remove(0).denied.len(), KEPT);
    }
}
