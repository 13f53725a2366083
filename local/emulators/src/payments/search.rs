//! The search of payments (<https://docs.stripe.com/search>), with the fields `metadata` and
//! `status`, the operator `:`, and `AND`.

use super::intents::Intent;
use super::wire::Refusal;

#[derive(Debug)]
pub(super) struct Query(Vec<Clause>);

#[derive(Debug)]
struct Clause {
    /// The key of the metadata. `None` is the status.
    key: Option<String>,
    value: String,
}

impl Query {
    /// The comparison ignores the case, as Stripe's does.
    pub(super) fn matches(&self, intent: &Intent) -> bool {
        self.0.iter().all(|Clause { key, value }| {
            let found = match key {
                Some(key) => intent.new.metadata.get(key).map(String::as_str),
                None => Some(intent.status.name()),
            };
            found.is_some_and(|found| found.eq_ignore_ascii_case(value))
        })
    }
}

pub(super) fn parse(text: &str) -> Result<Query, Refusal> {
    let clauses: Option<Vec<Clause>> = text.split(" AND ").map(clause).collect();
    let unreadable = || {
        let message = format!("We were unable to parse your search query: {text}");
        Refusal::invalid(message).param("query")
    };
    clauses.map(Query).ok_or_else(unreadable)
}

fn clause(text: &str) -> Option<Clause> {
    let (rest, value) = match text.trim().strip_prefix("metadata[") {
        Some(rest) => rest.split_once("]:").map(|(key, value)| (Some(key), value))?,
        None => (None, text.trim().strip_prefix("status:")?),
    };
    let key = match rest {
        Some(key) => Some(unquoted(key)?),
        None => None,
    };
    Some(Clause { key, value: unquoted(value)? })
}

fn unquoted(text: &str) -> Option<String> {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote).filter(|inner| !inner.contains(quote));
    inside('\'').or_else(|| inside('"')).map(str::to_owned)
}
