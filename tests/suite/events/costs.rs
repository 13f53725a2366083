//! Measures the access patterns that each route uses, and the consequences of a request. Compares
//! both with `docs/routes.json`, which `ops cost` and `ops explain` read.
//!
//! The typical request of a route is its sample with a successful response. The measurement covers
//! every access pattern that functions log with the request's id, also in the stream's consumers
//! and in the subscribers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use key_schema::pattern::Operation;
use key_schema::{registry, settings};
use local::System;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tokio::time::Instant;

use super::{Case, allow_orders_without_quote, cases, route_key, seed};
use crate::control::all;
use crate::patterns::{User, users};
use crate::support::client::Call;
use crate::support::shop::segment;
use crate::support::{drain, read, root, template, with_own_system};

/// Longest wait for the log line of a request.
const SOON: Duration = Duration::from_secs(20);

/// A line of `docs/routes.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Route {
    route: String,
    function: String,
    patterns: Vec<String>,
    /// The number of uses of each pattern by the typical request. Absent if no sample exists.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    uses: Option<BTreeMap<String, u64>>,
    /// For each function that the request causes to run, the number of uses of each pattern.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    later: BTreeMap<String, BTreeMap<String, u64>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    events: BTreeMap<String, u64>,
    /// For each function that runs, the largest number of CloudWatch metrics in a log line.
    #[serde(default)]
    metrics: BTreeMap<String, u64>,
    #[serde(default)]
    log_bytes: BTreeMap<String, u64>,
}

impl Route {
    fn new(route: String, function: &str, patterns: Vec<String>) -> Self {
        Self {
            route,
            function: function.to_owned(),
            patterns,
            uses: None,
            later: BTreeMap::new(),
            events: BTreeMap::new(),
            metrics: BTreeMap::new(),
            log_bytes: BTreeMap::new(),
        }
    }

    /// Adds the log lines of a request and of the functions that it caused to run.
    fn add(&mut self, lines: &[(String, Json)]) {
        let (mut own, mut by_function) = (BTreeMap::new(), BTreeMap::<String, BTreeMap<String, u64>>::new());
        for (function, line) in lines {
            // A function of routes may also get events that its own request has caused.
            let is_own = *function == self.function && (line.get("route").is_some() || !self.route.contains(" /"));
            *self.log_bytes.entry(function.clone()).or_default() += line.to_string().len() as u64;
            let Some(costs) = line["patterns"].as_array() else { continue };
            let metrics = self.metrics.entry(function.clone()).or_default();
            *metrics = metrics_in(line).max(*metrics);
            let uses = if is_own { &mut own } else { by_function.entry(function.clone()).or_default() };
            for cost in costs {
                let (pattern, requests) = (cost["pattern"].as_str().unwrap(), cost["requests"].as_u64().unwrap());
                // An environment reads the settings at most once every 30 seconds: before a write,
                // or before a page of a list that can grow.
                if pattern == settings::READ.id && !self.route.starts_with("GET /v1/settings") {
                    continue;
                }
                *uses.entry(pattern.to_owned()).or_default() += requests.div_ceil(requests_of_one_use(pattern));
            }
        }
        let mut uses = own;
        if self.route == "GET /v1/settings" {
            // The environment may still have the settings that another request has read.
            uses.insert(settings::READ.id.to_owned(), 1);
        }
        self.uses = Some(uses);
        self.later = by_function;
    }

    /// Returns the parts that are the same in every run. The other parts come from batches of the
    /// stream, whose size varies, and from log lines that can arrive after the measurement.
    fn fixed(&self) -> Self {
        Self { later: BTreeMap::new(), metrics: BTreeMap::new(), log_bytes: BTreeMap::new(), ..self.clone() }
    }

    /// Returns the functions that the request causes to run, each with the patterns that it uses.
    fn consequences(&self) -> BTreeSet<(&str, &str)> {
        self.later
            .iter()
            .flat_map(|(function, uses)| uses.keys().map(|pattern| (function.as_str(), pattern.as_str())))
            .collect()
    }
}

#[test]
fn the_patterns_and_consequences_of_each_route_are_those_of_docs_routes_json() {
    let measured = with_own_system(async |system| measure(system).await);
    let path = root().join("docs/routes.json");
    let mut pinned: Vec<Route> = serde_json::from_str(&read(&path)).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        // A line that still describes its route is kept, because the variable parts differ in each
        // run.
        let kept = |now: &Route| pinned.iter().find(|then| accepts(then, now)).unwrap_or(now).clone();
        let updated: Vec<Route> = measured.iter().map(kept).collect();
        let lines: Vec<String> = updated.iter().map(|route| serde_json::to_string(route).unwrap()).collect();
        std::fs::write(&path, format!("[\n{}\n]\n", lines.join(",\n"))).unwrap();
        pinned = updated;
    }
    let stale = "docs/routes.json is stale: UPDATE_DOCS=1 cargo test -p bodega-tests --test suite events::costs";
    assert_eq!(measured.len(), pinned.len(), "{stale}");
    for (now, then) in measured.iter().zip(&pinned) {
        assert!(accepts(then, now), "{now:#?} instead of {then:#?}: {stale}");
    }
}

/// Returns whether a line of `docs/routes.json` still describes a route: the fixed parts are
/// equal, and the line has all measured consequences.
fn accepts(pinned: &Route, measured: &Route) -> bool {
    pinned.fixed() == measured.fixed() && measured.consequences().is_subset(&pinned.consequences())
}

async fn measure(system: &System) -> Vec<Route> {
    let samples = typical();
    let users = users();
    allow_orders_without_quote(system).await;
    let mut routes = Vec::new();
    for schedule in template().schedules {
        routes.push(run_once(system, &schedule.function, &users).await);
    }
    for route in template().routes {
        let key = route.to_string();
        let patterns = users.iter().filter(|user| user.name == key).flat_map(|user| &user.patterns);
        let patterns = patterns.map(|pattern| pattern.id.to_owned()).collect();
        let mut measured = Route::new(key, &route.function, patterns);
        if let Some(sample) = samples.get(&measured.route) {
            use_once(system, sample, &mut measured).await;
        }
        routes.push(measured);
    }
    routes.sort_by(|a, b| a.route.cmp(&b.route));
    routes
}

/// Returns the typical request of each route, by the route's key.
fn typical() -> BTreeMap<String, Case> {
    let good = |case: &Case| case.expected.status.is_some_and(|status| status < 300);
    let of_route = |case: Case| Some((route_key(&case.event)?.to_owned(), case));
    cases().into_iter().filter(good).filter_map(of_route).collect()
}

async fn use_once(system: &System, sample: &Case, route: &mut Route) {
    seed(system, &sample.expected).await.unwrap_or_else(|failure| panic!("{}: {failure}", sample.name));
    drain(system).await;
    let id =
        format!("Cost{:012x}=", route.route.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte)));
    let mut event = sample.event.clone();
    event["requestContext"]["requestId"] = json!(id);
    let deadline = Instant::now() + Duration::from_secs(60);
    let answer = system.functions().invoke(&route.function, event.to_string().into(), deadline).await.unwrap();
    let answer: Json = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["statusCode"], json!(sample.expected.status), "{}: {answer}", sample.name);
    drain(system).await;
    let own = |(name, line): &(String, Json)| *name == route.function && line["request_id"] == id.as_str();
    let lines = lines(system, &id, own).await;
    route.add(&lines);
    for event in all(system, "/_local/events").await {
        if event["correlation_id"] == id.as_str() {
            *route.events.entry(event["type"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
}

/// For a sharded list, the result is the measured number in `docs/cost.json`.
fn requests_of_one_use(pattern: &str) -> u64 {
    let sharded = registry::all().find(|known| known.id == pattern).unwrap().operation == Operation::ShardedQuery;
    let costs: Json = serde_json::from_str(&read(&root().join("docs/cost.json"))).unwrap();
    let of = |cost: &&Json| cost["pattern"] == pattern;
    if sharded { costs.as_array().unwrap().iter().find(of).unwrap()["requests"].as_u64().unwrap() } else { 1 }
}

/// Invokes a function that runs on a schedule, while there is nothing to do.
async fn run_once(system: &System, function: &str, users: &[User]) -> Route {
    let crate_name = template().function(function).unwrap().crate_name().to_owned();
    let patterns = users.iter().filter(|user| user.name == crate_name).flat_map(|user| &user.patterns);
    let mut route = Route::new(
        format!("every minute: {function}"),
        function,
        patterns.map(|pattern| pattern.id.to_owned()).collect(),
    );
    let deadline = Instant::now() + Duration::from_secs(60);
    system.functions().invoke(function, "{}".into(), deadline).await.unwrap();
    drain(system).await;
    let found = lines(system, "patterns", |(name, line)| name == function && line["patterns"].is_array()).await;
    let beats = |(name, line): &&(String, Json)| name == function || line.get("Heartbeat").is_some();
    let newest: BTreeMap<String, Json> = found.iter().filter(beats).cloned().collect();
    let is_beating = newest[function]["patterns"].to_string().contains("heartbeat.beat");
    let lines: Vec<(String, Json)> = newest.into_iter().filter(|(name, _)| name == function || is_beating).collect();
    route.add(&lines);
    route
}

/// Returns the number of metrics that CloudWatch takes from a line.
fn metrics_in(line: &Json) -> u64 {
    let directives = line["_aws"]["CloudWatchMetrics"].as_array().into_iter().flatten();
    let count = |list: &Json| list.as_array().map_or(0, Vec::len) as u64;
    directives.map(|directive| count(&directive["Dimensions"]) * count(&directive["Metrics"])).sum()
}

/// Lines arrive after the response, because the local system reads them from a pipe.
async fn lines(system: &System, containing: &str, awaited: impl Fn(&(String, Json)) -> bool) -> Vec<(String, Json)> {
    let path = format!("/_local/logs?containing={}", segment(containing));
    let until = Instant::now() + SOON;
    loop {
        let answer = Call::new("GET", &path).send(system).await.expect(200);
        let lines: Vec<(String, Json)> = answer.body["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| (item["function"].as_str().unwrap().to_owned(), item["line"].clone()))
            .collect();
        if lines.iter().any(&awaited) {
            return lines;
        }
        assert!(Instant::now() < until, "no line with {containing} is the awaited one: {lines:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn ops_explains_the_patterns_that_all_functions_share() {
    let shared = http_api::SHARED_PATTERNS.iter().map(|(_, pattern)| *pattern);
    assert!(shared.eq(ops::explain::SHARED.iter().map(|(_, pattern)| *pattern)));
}

/// A recorded pattern that the typical request does not use is an alternative or a special case.
#[test]
fn the_typical_request_of_a_route_uses_only_recorded_patterns() {
    let routes: Vec<Route> = serde_json::from_str(&read(&root().join("docs/routes.json"))).unwrap();
    let shared: BTreeSet<&str> = http_api::SHARED_PATTERNS.iter().map(|(_, pattern)| pattern.id).collect();
    let declared: BTreeMap<String, BTreeSet<&str>> = users()
        .into_iter()
        .map(|user| (user.name.to_owned(), user.patterns.iter().map(|pattern| pattern.id).collect()))
        .collect();
    for route in &routes {
        let Some(declared) = declared.get(&route.route) else { continue };
        for pattern in route.uses.iter().flat_map(BTreeMap::keys).map(String::as_str) {
            assert!(declared.contains(pattern) || shared.contains(pattern), "{}: {pattern}", route.route);
        }
    }
}
