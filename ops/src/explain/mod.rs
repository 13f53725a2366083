//! `ops explain`: the access patterns of a route, with their keys and their measured cost.
//!
//! The routes with their patterns come from `docs/routes.json`, which a test of the whole system
//! compares with the functions. So the tool does not depend on the crates of the functions.

mod keys;

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use clap::Args;
use key_schema::pattern::{Consistency, Operation, Pattern};
use key_schema::{reach, revocation, settings};
use serde::Serialize;

use crate::cost::measured::{Measured, PatternCost, Route, TABLE, pattern_of};
use crate::error::OpsError;
use crate::outcome::Outcome;
use keys::{Gap, KeyCondition, Values};

/// The access patterns that every route uses outside its handler, each with the occasion of its
/// use.
pub const SHARED: [(&str, &Pattern); 3] = [
    ("at the start of an environment", &reach::NOTHING),
    ("at the first request of a sign-in", &revocation::GET),
    ("once in 30 seconds, at a write or at a page of a list that can grow", &settings::READ),
];

const EXAMPLES: &str = "Examples:
  ops explain \"GET /v1/customers/{id}/orders\"
  ops explain \"GET /v1/customers/{id}/orders\" id=c1 from=2026-11-01T00:00:00Z
  ops explain \"GET /v1/customers/c1/orders\"
  ops explain --all --json";

/// Show the access patterns of a route: keys, index, consistency, projection and measured cost.
///
/// The command inserts the given values into the keys. The name of a value is a parameter of the
/// path, or a kind of thing: customer, product, order, caller, email, status, month, … The command
/// sends no request.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct ExplainArgs {
    /// Method and path, as in template.yaml or with values in the path.
    #[arg(value_name = "ROUTE", required_unless_present = "all")]
    route: Option<String>,
    /// Values of the path and of other parts of keys.
    #[arg(value_name = "NAME=VALUE")]
    values: Vec<String>,
    /// Explain every route.
    #[arg(long, conflicts_with = "route")]
    all: bool,
}

#[derive(Debug, Serialize)]
struct Explained {
    route: String,
    function: String,
    patterns: Vec<ExplainedPattern>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    events: BTreeMap<String, u64>,
    /// The uses of each pattern by functions that run because of a request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    later: BTreeMap<String, BTreeMap<String, u64>>,
}

#[derive(Debug, Serialize)]
struct ExplainedPattern {
    id: &'static str,
    purpose: &'static str,
    operation: String,
    index: &'static str,
    /// The key condition with placeholders.
    key: &'static str,
    /// The key condition with the given values.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<KeyCondition>,
    detail: &'static str,
    consistency: String,
    callers: &'static str,
    /// The attributes that the index carries. Absent for the table, which has all attributes.
    #[serde(skip_serializing_if = "Option::is_none")]
    projection: Option<&'static [&'static str]>,
    /// The number of partitions of a sharded list.
    shards: u32,
    /// The uses by the typical request. Zero if the pattern is an alternative or serves a special
    /// case.
    uses: u64,
    cost: Vec<PatternCost>,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Explanation(Vec<Explained>);

pub fn run(args: &ExplainArgs) -> Result<Outcome, OpsError> {
    let measured = Measured::get()?;
    let Some(wanted) = &args.route else {
        let all = measured.routes().iter().filter(|route| !route.is_scheduled());
        let all = all.map(|route| explain(route, &Values::default(), measured)).collect::<Result<_, _>>()?;
        return Ok(Outcome::new(&Explanation(all), true));
    };
    let unknown = || OpsError::Usage(format!("there is no route {wanted:?}{}", measured.near(wanted)));
    let (route, mut given) = find(wanted, measured).ok_or_else(unknown)?;
    for value in &args.values {
        let (name, value) = value
            .split_once('=')
            .ok_or_else(|| OpsError::Usage(format!("{value:?} has no name: write NAME=VALUE, such as id=c1")))?;
        given.push((name.to_owned(), value.to_owned()));
    }
    let kinds = kinds(&route.route);
    let kind = |name: &str| kinds.get(name).map_or_else(|| name.to_owned(), Clone::clone);
    let values = Values(given.into_iter().map(|(name, value)| (kind(&name), value)).collect());
    Ok(Outcome::new(&Explanation(vec![explain(route, &values, measured)?]), true))
}

/// Finds a route by its key, or by a path with values. Returns these values by parameter.
fn find<'a>(wanted: &str, measured: &'a Measured) -> Option<(&'a Route, Vec<(String, String)>)> {
    let routes = || measured.routes().iter().filter(|route| !route.is_scheduled());
    if let Some(route) = routes().find(|route| route.route == wanted) {
        return Some((route, Vec::new()));
    }
    let bound = |route: &'a Route| {
        let (known, given): (Vec<&str>, Vec<&str>) = (route.route.split('/').collect(), wanted.split('/').collect());
        let mut values = Vec::new();
        for (known, given) in known.iter().zip(&given) {
            match parameter(known) {
                Some(name) if !given.is_empty() => values.push((name.to_owned(), (*given).to_owned())),
                _ if known == given => {}
                _ => return None,
            }
        }
        (known.len() == given.len()).then_some((route, values))
    };
    // As in the gateway, the route with fewer parameters is more specific.
    routes().filter_map(bound).min_by_key(|(_, values)| values.len())
}

fn parameter(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

/// Returns the kind of thing that each parameter of a path names: `customer` for the `id` of
/// `/v1/customers/{id}`.
fn kinds(route: &str) -> BTreeMap<String, String> {
    let segments: Vec<&str> = route.split('/').collect();
    let mut kinds = BTreeMap::new();
    for (before, segment) in segments.iter().zip(segments.iter().skip(1)) {
        let Some(name) = parameter(segment) else { continue };
        let kind = match (*before, name) {
            ("categories", _) => "category",
            ("graph", _) => "customer",
            (_, "id" | "name" | "path") => before.strip_suffix('s').unwrap_or(before),
            _ => name,
        };
        kinds.insert(name.to_owned(), kind.to_owned());
    }
    kinds
}

fn explain(route: &Route, values: &Values, measured: &Measured) -> Result<Explained, OpsError> {
    let uses: BTreeMap<&str, u64> = route.uses().into_iter().collect();
    let known = route.patterns.iter().filter_map(|id| pattern_of(id));
    let patterns = known.map(|pattern| {
        let condition = match keys::condition(pattern, values) {
            Ok(condition) => Some(condition),
            Err(Gap::Missing) => None,
            Err(Gap::Invalid(name, why)) => return Err(OpsError::Usage(format!("{name}: {why}"))),
        };
        let cost: Vec<PatternCost> = measured.costs(pattern.id).cloned().collect();
        let sharded = pattern.operation == Operation::ShardedQuery;
        Ok(ExplainedPattern {
            id: pattern.id,
            purpose: pattern.purpose,
            operation: format!("{:?}", pattern.operation),
            index: pattern.index.map_or(TABLE, |index| index.name()),
            key: pattern.key,
            detail: pattern.detail,
            consistency: match pattern.consistency {
                Consistency::Eventual => "eventual".to_owned(),
                Consistency::Strong(reason) => format!("strong: {reason}"),
                Consistency::Write => "write".to_owned(),
            },
            callers: pattern.callers,
            projection: pattern.index.map(|index| index.projected()),
            shards: if sharded { cost.first().map_or(1, |cost| cost.requests) } else { 1 },
            uses: uses.get(pattern.id).copied().unwrap_or_default(),
            condition,
            cost,
        })
    });
    Ok(Explained {
        route: route.route.clone(),
        function: route.function.clone(),
        patterns: patterns.collect::<Result<_, OpsError>>()?,
        events: route.events.clone(),
        later: route.later.clone(),
    })
}

impl Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, route) in self.0.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{route}")?;
        }
        for (occasion, pattern) in SHARED {
            writeln!(f, "\n{occasion}: {} ({})", pattern.id, pattern.purpose)?;
        }
        Ok(())
    }
}

impl Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({})", self.route, self.function)?;
        if self.patterns.is_empty() {
            writeln!(f, "  no access pattern: the route reads only the search engine")?;
        }
        for pattern in &self.patterns {
            write!(f, "{pattern}")?;
        }
        for (function, uses) in &self.later {
            let uses: Vec<String> = uses.iter().map(|(pattern, uses)| format!("{pattern} ({uses})")).collect();
            let uses = if uses.is_empty() { "no access pattern".to_owned() } else { uses.join(", ") };
            writeln!(f, "  afterwards {function}: {uses}")?;
        }
        let events: Vec<&str> = self.events.keys().map(String::as_str).collect();
        if !events.is_empty() {
            writeln!(f, "  publishes {}", events.join(", "))?;
        }
        Ok(())
    }
}

impl Display for ExplainedPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uses = match self.uses {
            0 => " (not by the typical request)".to_owned(),
            1 => String::new(),
            many => format!(" ({many} times)"),
        };
        writeln!(f, "\n  {}: {}{uses}", self.id, self.purpose)?;
        writeln!(f, "    {} on {}, {}, callers: {}", self.operation, self.index, self.consistency, self.callers)?;
        writeln!(f, "    key: {}", self.key)?;
        if let Some(condition) = &self.condition {
            write_condition(f, condition)?;
        }
        writeln!(f, "    {}", self.detail)?;
        if let Some(projection) = self.projection {
            writeln!(f, "    projection: {}", projection.join(", "))?;
        }
        if self.shards > 1 {
            writeln!(f, "    shards: {}", self.shards)?;
        }
        for cost in &self.cost {
            let reads = cost.half_read_units;
            let half = if reads % 2 == 1 { ".5" } else { "" };
            let writes: u64 = cost.write_units.values().sum();
            let entities: Vec<String> = cost.entities.keys().cloned().collect();
            let entities = if entities.is_empty() { "no item".to_owned() } else { entities.join(", ") };
            writeln!(f, "    cost: {}{half} read and {writes} write units ({}); {entities}", reads / 2, cost.on)?;
        }
        Ok(())
    }
}

fn write_condition(f: &mut fmt::Formatter<'_>, condition: &KeyCondition) -> fmt::Result {
    let direction = if condition.is_descending { ", backward" } else { "" };
    if !condition.is_range {
        return condition
            .partitions
            .iter()
            .zip(&condition.sort)
            .try_for_each(|(partition, sort)| writeln!(f, "      {partition} / {sort}"));
    }
    let range = match condition.sort.as_slice() {
        [low, high] => format!("from {low} to {high}"),
        _ => "the whole collection".to_owned(),
    };
    condition.partitions.iter().try_for_each(|partition| writeln!(f, "      {partition} / {range}{direction}"))
}
