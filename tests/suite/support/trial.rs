use futures::StreamExt as _;
use local::System;

use super::client::{Answer, Call};
use super::openapi::{Operation, api};
use super::schema;

pub const CONCURRENCY: usize = 8;

/// A request with one fault, and its expected refusal.
#[derive(Debug)]
pub struct Trial {
    call: Call,
    status: u16,
    /// The `code` of the problem in the response. `None` if API Gateway itself responds.
    code: Option<&'static str>,
    /// The start of every JSON pointer in the member `errors` of the response.
    pointer: Option<String>,
    fault: String,
}

impl Trial {
    pub fn new(call: Call, fault: impl Into<String>, status: u16, code: &'static str) -> Self {
        Self { call, status, code: Some(code), pointer: None, fault: fault.into() }
    }

    /// Makes a trial whose request API Gateway refuses before it reaches the function.
    pub fn gateway(call: Call, fault: impl Into<String>, status: u16) -> Self {
        Self { call, status, code: None, pointer: None, fault: fault.into() }
    }

    pub fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// Sends the request. If the response is not the expected refusal, returns the difference.
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
                .then(|| "the body is not a message of the gateway".to_owned());
        };
        if media_type != "application/problem+json" {
            return Some(format!("the content type is {media_type}, not that of a problem"));
        }
        let breaches = schema::breaches(api(), api().schema("Problem"), &answer.body, true);
        if !breaches.is_empty() {
            return Some(format!("{breaches:?}"));
        }
        if answer.code() != code || answer.body["status"] != self.status {
            return Some(format!("the code is not {code}, or the status in the body is not {}", self.status));
        }
        if answer.body["request_id"].as_str().is_none_or(str::is_empty) {
            return Some("the problem has no request id".to_owned());
        }
        if !operation.responses().any(|(status, _)| status == self.status.to_string()) {
            return Some(format!("the description of the route has no status {}", self.status));
        }
        if !operation.codes(operation.response(self.status)).contains(&code) {
            return Some(format!("the description of the route has no code {code} for {}", self.status));
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

/// Runs trials. If some responses are not the expected refusals, fails with a list of them.
pub async fn run_all(system: &System, trials: Vec<(Operation<'_>, Trial)>) {
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

/// Returns the reason why a response is not a documented success, or `None` for a documented
/// success.
pub fn unless_done(operation: Operation<'_>, answer: &Answer) -> Option<String> {
    if !(200..400).contains(&answer.status) {
        return Some(format!("not executed: {} {}", answer.status, answer.body));
    }
    if !operation.responses().any(|(status, _)| status == answer.status.to_string()) {
        return Some(format!("the description of the route has no status {}", answer.status));
    }
    let schema = operation.response_schema(answer.status, "application/json")?;
    let breaches = schema::breaches(api(), schema, &answer.body, true);
    (!breaches.is_empty()).then(|| format!("{breaches:?}"))
}
