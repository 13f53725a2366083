//! Bad input on every route that `openapi.yaml` describes: each request is a good one but for a single fault, is answered with a problem of the right status and code,
//! and writes nothing. At the end every good request is taken, so it was the fault that was refused.

mod cursors;
mod faults;
mod ids;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use futures::StreamExt as _;
use local::System;
use serde_json::Value as Json;

use crate::support::client::{Answer, Call};
use crate::support::openapi::{Operation, api};
use crate::support::world::World;
use crate::support::{drain, schema, table, with_own_system};

/// Requests that are under way at once.
const CONCURRENCY: usize = 8;

/// A request with one fault, and how it must be refused.
#[derive(Debug)]
struct Trial {
    call: Call,
    status: u16,
    /// The problem's code; none where API Gateway answers itself.
    code: Option<&'static str>,
    /// Where the errors of a refused body lie.
    pointer: Option<String>,
    fault: String,
}

impl Trial {
    fn new(call: Call, fault: impl Into<String>, status: u16, code: &'static str) -> Self {
        Self { call, status, code: Some(code), pointer: None, fault: fault.into() }
    }

    /// One that does not come through to the function.
    fn gateway(call: Call, fault: impl Into<String>, status: u16) -> Self {
        Self { call, status, code: None, pointer: None, fault: fault.into() }
    }

    fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// What is wrong with the answer.
    async fn run(self, system: &System, operation: Operation<'_>) -> Option<String> {
        let answer = self.call.clone().send(system).await;
        let complaint = self.complaint(operation, &answer)?;
        let shown: String = String::from_utf8_lossy(&answer.raw).chars().take(600).collect();
        Some(format!("{}, {}: {complaint}: {} {shown}", operation.key(), self.fault, answer.status))
    }

    fn complaint(&self, operation: Operation<'_>, answer: &Answer) -> Option<String> {
        if answer.status != self.status {
            return Some(format!("the status is not {}", self.status));
        }
        let media_type = answer.headers.get("content-type").map_or("", String::as_str);
        let Some(code) = self.code else {
            let message = answer.body.as_object().is_some_and(|body| body.keys().eq(["message"]));
            return (!message || media_type != "application/json")
                .then(|| "this is no message of the gateway".to_owned());
        };
        if media_type != "application/problem+json" {
            return Some(format!("this is {media_type}, not a problem"));
        }
        let breaches = schema::breaches(api(), api().schema("Problem"), &answer.body, true);
        if !breaches.is_empty() {
            return Some(format!("{breaches:?}"));
        }
        if answer.code() != code || answer.body["status"] != self.status {
            return Some(format!("the code is not {code}"));
        }
        if answer.body["request_id"].as_str().is_none_or(str::is_empty) {
            return Some("it names no request".to_owned());
        }
        if !operation.responses().any(|(status, _)| status == self.status.to_string()) {
            return Some("the description of the route has no such status".to_owned());
        }
        let pointers = answer.pointers();
        match &self.pointer {
            Some(place)
                if pointers.is_empty() || !pointers.iter().all(|pointer| pointer.starts_with(place.as_str())) =>
            {
                Some(format!("the errors are not at {place:?}"))
            }
            _ => None,
        }
    }
}

/// Runs trials and fails with all their complaints.
async fn run_all(system: &System, trials: Vec<(Operation<'_>, Trial)>) {
    let runs = trials.into_iter().map(|(operation, trial)| trial.run(system, operation));
    let complaints = futures::stream::iter(runs).buffer_unordered(CONCURRENCY).filter_map(std::future::ready);
    let complaints: Vec<String> = complaints.collect().await;
    assert!(
        complaints.is_empty(),
        "{} complaints:\n{}",
        complaints.len(),
        complaints[..complaints.len().min(40)].join("\n")
    );
}

#[test]
fn every_route_refuses_every_fault_and_writes_nothing() {
    with_own_system(async |system| {
        let world = World::create(system).await;
        drain(system).await;
        let before = table::scan(system).await;
        let mut trials = Vec::new();
        let mut faults: BTreeMap<String, usize> = BTreeMap::new();
        for operation in api().operations() {
            let good = world.good(system, operation).await;
            for trial in faults::of(operation, &good) {
                *faults.entry(operation.key()).or_default() += 1;
                trials.push((operation, trial));
            }
        }
        // A matrix that tries nothing must not pass.
        assert!(trials.len() > 1500, "{}", trials.len());
        // A search may say nothing, and reading the settings takes nothing that could be wrong.
        let is_free =
            |operation: Operation<'_>| operation.path == "/v1/search/products" || operation.key() == "GET /v1/settings";
        let tried = |operation: Operation<'_>| faults.get(&operation.key()).is_some_and(|&count| count > 2);
        assert!(api().operations().all(|operation| is_free(operation) || tried(operation)), "{faults:?}");
        run_all(system, trials).await;

        let import = world.good(system, api().operation("POST /v1/products/import").unwrap()).await;
        let (call, lines) = faults::bad_lines(&import);
        let report = call.send(system).await.expect(200);
        let results = report.body["results"].as_array().unwrap();
        assert_eq!(results.len(), lines);
        assert!(results.iter().all(|result| result["status"] == "refused"), "{}", report.body);
        drain(system).await;
        let mut after = table::scan(system).await;
        // An upload is copied before the content is replaced, and a stale If-Match is found by that: what was copied for nothing is the janitor's.
        after.retain(|_, item| item["entity"]["S"] != "UnsettledObject");
        let changed: Vec<_> =
            after.iter().filter(|(key, item)| before.get(key) != Some(item)).map(|(key, _)| key).collect();
        assert!(changed.is_empty() && before.len() == after.len(), "written: {changed:?}");

        // The same requests without the fault. What reads comes first; the customer, whose things the others are, goes last.
        let mut operations: Vec<Operation<'_>> = api().operations().collect();
        let rank = |method: &str| ["GET", "POST", "PUT", "PATCH", "DELETE"].iter().position(|known| *known == method);
        operations.sort_by_key(|operation| {
            let is_customer = operation.path == "/v1/customers/{id}";
            (rank(operation.method), is_customer, Reverse(operation.path.len()))
        });
        for operation in operations {
            let answer = world.good(system, operation).await.call().send(system).await;
            assert!((200..300).contains(&answer.status), "{}: {} {}", operation.key(), answer.status, answer.body);
            if let Some(schema) = operation.response_schema(answer.status, "application/json") {
                let breaches = schema::breaches(api(), schema, &answer.body, true);
                assert!(breaches.is_empty(), "{}: {breaches:?}", operation.key());
            }
        }
    });
}

/// A value inside another, at a JSON pointer.
fn place<'v>(value: &'v mut Json, pointer: &str) -> &'v mut Json {
    value.pointer_mut(pointer).unwrap_or_else(|| panic!("there is no {pointer}"))
}
