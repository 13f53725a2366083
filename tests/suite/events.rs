//! Sends the sample events of `events/` to their functions through the Lambda Runtime API.
//!
//! Each `X.json` has an `X.expected.json` with these members:
//!
//! - `function`: the function's logical id.
//! - `seed`: API calls and table items to set up first.
//! - `request`: the request from which the event is generated. Without a `body` it has the one that
//!   `openapi.yaml` has as an example.
//! - `status`, `headers`, `body`: members that the response must have, with equal values. `"<any>"`
//!   matches any value.
//! - `batch_item_failures`: the failures in the response to a batch.
//! - `mail`: the mail that the function sent.
//! - `answer`: the result of a function that no client calls.
//! - `error`: a part of the message of a function that fails.
//! - `then`: API calls that check the event's effects.
//!
//! An `X-generated-Y.json` is output of `sam local generate-event`. It contains no data of Bodega.
//! The function must refuse or ignore it without harm.
//!
//! If `BODEGA_RIE` names the Runtime Interface Emulator, the events pass through this emulator.

mod costs;
mod coverage;
mod generated;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use futures::StreamExt as _;
use key_schema::entity::AnyEntity;
use key_schema::item::{FromItem as _, Item};
use local::System;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tokio::time::Instant;

use crate::control::all;
use crate::support::client::{Answer, Call};
use crate::support::emulator::Emulators;
use crate::support::openapi::api;
use crate::support::{drain, put_item, read_json, root, schema, subset, template, with_own_system};

/// Matches any message. It is for payloads that the runtime cannot read, because the message then
/// comes from the runtime.
const ANY: &str = "<any>";
const CONCURRENCY: usize = 4;

struct Case {
    name: String,
    event: Json,
    expected: Expected,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    function: String,
    #[serde(default)]
    seed: Vec<Seed>,
    /// The request of an event that API Gateway sends.
    request: Option<Request>,
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: Json,
    batch_item_failures: Option<Vec<String>>,
    /// The result of a function that no client calls.
    answer: Option<Json>,
    /// A part of the error message of a function that fails. The samples contain no error type,
    /// because the runtime chooses it.
    error: Option<String>,
    /// The mail that the function sent. A function that sends mail returns null.
    mail: Option<Mail>,
    #[serde(default)]
    then: Vec<Check>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mail {
    to: String,
    /// All messages to this address, in order.
    messages: Json,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Seed {
    /// An API call, which must succeed.
    Call(Request),
    /// An item to put into the table unchanged.
    Item(Json),
}

#[derive(Deserialize)]
struct Request {
    method: String,
    path: String,
    /// `anonymous`, `staff` or `customer:<id>`.
    #[serde(rename = "as")]
    caller: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<Json>,
}

#[derive(Deserialize)]
struct Check {
    #[serde(flatten)]
    request: Request,
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: Json,
}

/// `grants.rs` sends the same events. `.ci/run events` sends them through Amazon's emulator.
#[test]
#[ignore = "needs the Runtime Interface Emulator"]
fn every_sample_event_gives_its_expected_response_through_the_emulator() {
    let failures = with_own_system(async |system| failures(system, |_| true).await);
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// Sends every sample event of the selected functions and returns the differences from the
/// expectations.
pub async fn failures(system: &System, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let emulators = &Emulators::from_environment();
    allow_orders_without_quote(system).await;
    let runs = cases().into_iter().filter(|case| is_wanted(&case.expected.function)).map(|case| async move {
        let differences = run(system, emulators.as_ref(), &case).await;
        differences.into_iter().map(|difference| format!("{}: {difference}", case.name)).collect::<Vec<_>>()
    });
    futures::stream::iter(runs).buffer_unordered(CONCURRENCY).concat().await
}

/// Lets customers order without a quote, although some samples create shipping zones and tax rules.
async fn allow_orders_without_quote(system: &System) {
    let settings = Call::new("PUT", "/v1/settings").staff().header("if-none-match", "*");
    settings.json(&json!({ "values": { "orders": { "quote_optional": true } } })).send(system).await.expect(201);
}

async fn run(system: &System, emulators: Option<&Emulators>, case: &Case) -> Vec<String> {
    let expected = &case.expected;
    if let Err(failure) = seed(system, expected).await {
        return vec![failure];
    }
    // Before a search, the seeds must be in the index. Before a consumer gets the sample's records,
    // it must process the seeds' own records.
    let reads_derived = !["Customers", "Catalog", "Orders"].contains(&expected.function.as_str());
    if reads_derived && !expected.seed.is_empty() {
        drain(system).await;
    }
    let (functions, payload) = (system.functions(), case.event.to_string());
    let deadline = Instant::now() + Duration::from_secs(60);
    let invoked = match emulators {
        Some(emulators) => emulators.invoke(functions, &expected.function, payload, deadline).await,
        None => functions.invoke(&expected.function, payload.into(), deadline).await,
    };
    let mut differences = match (invoked, &expected.error) {
        (Err(runtime_api::InvokeError::Function(error)), Some(part)) => {
            match error.message.contains(part) || part == ANY {
                true => Vec::new(),
                false => vec![format!("{:?} has no {part:?} in it", error.message)],
            }
        }
        (Err(error), _) => vec![format!("the invocation fails: {error}")],
        (Ok(answer), Some(_)) => vec![format!("the invocation does not fail: {}", String::from_utf8_lossy(&answer))],
        (Ok(answer), None) => judge(case, &serde_json::from_slice(&answer).unwrap()),
    };
    if let Some(Mail { to, messages }) = &expected.mail {
        let mut sent = all(system, "/_local/mail").await;
        sent.retain(|mail| mail["to"] == json!([to]));
        differences.extend(subset::differences(messages, &Json::Array(sent)));
    }
    if !expected.then.is_empty() {
        drain(system).await;
    }
    for Check { request, status, headers, body } in &expected.then {
        let answer = send(system, request).await;
        let found = json!({"status": answer.status, "headers": answer.headers, "body": answer.body});
        let wanted = wanted(Some(*status), headers, body);
        let then = subset::differences(&wanted, &found);
        differences.extend(
            then.into_iter().map(|difference| format!("then {} {}: {difference}", request.method, request.path)),
        );
    }
    differences
}

async fn seed(system: &System, expected: &Expected) -> Result<(), String> {
    for seed in &expected.seed {
        match seed {
            Seed::Call(request) => {
                let answer = send(system, request).await;
                if answer.status >= 300 {
                    return Err(format!("seed {} {}: {}", request.method, request.path, answer.body));
                }
            }
            Seed::Item(item) => put_item(system, item).await,
        }
    }
    Ok(())
}

async fn send(system: &System, request: &Request) -> Answer {
    let mut call = Call::new(&request.method, &request.path);
    call = match request.caller.split_once(':') {
        Some(("customer", id)) => call.customer(id),
        None if request.caller == "staff" => call.staff(),
        None if request.caller == "anonymous" => call,
        _ => panic!("unknown caller {}: use anonymous, staff or customer:<id>", request.caller),
    };
    for (name, value) in &request.headers {
        call = call.header(name, value);
    }
    if let Some(body) = &request.body {
        call = call.json(body);
    }
    call.send(system).await
}

/// Returns the differences between a response and its expectation, and between the response and
/// `openapi.yaml`.
fn judge(case: &Case, answer: &Json) -> Vec<String> {
    let expected = &case.expected;
    if let Some(failures) = &expected.batch_item_failures {
        let failures: Vec<Json> = failures.iter().map(|sequence| json!({ "itemIdentifier": sequence })).collect();
        let wanted = json!({ "batchItemFailures": failures });
        return if *answer == wanted { Vec::new() } else { vec![format!("{answer} is not {wanted}")] };
    }
    if expected.mail.is_some() {
        return subset::differences(&Json::Null, answer);
    }
    if let Some(wanted) = &expected.answer {
        return subset::differences(wanted, answer);
    }
    let body: Json =
        answer["body"].as_str().map(|body| serde_json::from_str(body).unwrap_or_default()).unwrap_or_default();
    let wanted = wanted(expected.status, &expected.headers, &expected.body);
    let found = json!({ "status": answer["statusCode"], "headers": answer["headers"], "body": body });
    let mut differences = subset::differences(&wanted, &found);
    if !differences.is_empty() {
        differences.push(format!("the answer is {found}"));
    }
    differences.extend(undocumented(case, answer, &body));
    differences
}

fn wanted(status: Option<u16>, headers: &BTreeMap<String, String>, body: &Json) -> Json {
    let mut wanted = json!({ "status": status, "headers": headers });
    if !body.is_null() {
        wanted["body"] = body.clone();
    }
    wanted
}

fn undocumented(case: &Case, answer: &Json, body: &Json) -> Vec<String> {
    let Some(operation) = case.event["routeKey"].as_str().and_then(|key| api().operation(key)) else {
        return Vec::new();
    };
    let status = u16::try_from(answer["statusCode"].as_u64().unwrap()).unwrap();
    if !operation.responses().any(|(known, _)| known == status.to_string()) {
        return vec![format!("{status} is not documented")];
    }
    let media_type = answer["headers"]["content-type"].as_str().unwrap_or_default();
    let mut breaches = match operation.response_schema(status, media_type) {
        Some(schema) => schema::breaches(api(), schema, body, true),
        None if body.is_null() => Vec::new(),
        None => vec![format!("{status} with {media_type} is not documented")],
    };
    // A promotion also has a field `code`, so the check covers only error responses.
    let codes = operation.codes(operation.response(status));
    let unknown = body["code"].as_str().filter(|code| status >= 400 && !codes.contains(code));
    breaches.extend(unknown.map(|code| format!("the code {code} is not documented for {status}")));
    let documented = api().follow(operation.response(status))["headers"].as_object();
    for name in ["etag", "location", "link"] {
        let known =
            documented.is_some_and(|documented| documented.keys().any(|known| known.eq_ignore_ascii_case(name)));
        if answer["headers"].get(name).is_some() && !known {
            breaches.push(format!("the header {name} is not documented for {status}"));
        }
    }
    breaches
}

fn folder() -> PathBuf {
    root().join("events")
}

fn names() -> BTreeSet<String> {
    let files = std::fs::read_dir(folder()).unwrap();
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

fn cases() -> Vec<Case> {
    let names = names();
    let case = |name: &str| {
        let expected = read_json(&folder().join(format!("{name}.expected.json")));
        let expected = serde_json::from_value(expected).unwrap_or_else(|error| panic!("{name}.expected.json: {error}"));
        let file = format!("{name}.json");
        // The event of a new expectation is generated.
        let event = if names.contains(&file) { read_json(&folder().join(file)) } else { Json::Null };
        Case { name: name.to_owned(), event, expected }
    };
    names.iter().filter_map(|name| name.strip_suffix(".expected.json")).map(case).collect()
}

#[test]
fn every_event_has_its_expectation_and_every_expectation_its_event() {
    let names = names();
    for name in &names {
        let stem = name.strip_suffix(".json").unwrap_or_else(|| panic!("{name} is no JSON file"));
        let partner = match stem.strip_suffix(".expected") {
            Some(event) => format!("{event}.json"),
            None => format!("{stem}.expected.json"),
        };
        assert!(names.contains(&partner), "{name} lacks {partner}");
    }
    let functions: BTreeSet<String> = template().functions.into_iter().map(|function| function.logical_id).collect();
    for case in cases() {
        let function = &case.expected.function;
        assert!(functions.contains(function), "{}: there is no function {function}", case.name);
        assert!(
            case.name.starts_with(&format!("{}-", kebab(function))),
            "{} must begin with {function} in kebab case",
            case.name
        );
    }
}

/// Converts `StreamSearch` to `stream-search`.
fn kebab(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.extend(c.to_lowercase());
    }
    out
}

#[test]
fn the_gateway_could_send_every_request() {
    for case in cases() {
        let event = &case.event;
        let Some(key) = route_key(event) else { continue };
        let name = &case.name;
        let template = template();
        let route =
            template.routes.iter().find(|route| route.key() == key).unwrap_or_else(|| panic!("{name}: no route {key}"));
        assert_eq!(route.function, case.expected.function, "{name}");

        let context = &event["requestContext"];
        assert_eq!((&event["version"], &event["rawPath"]), (&json!("2.0"), &context["http"]["path"]), "{name}");
        assert_eq!((&context["routeKey"], &context["http"]["method"]), (&json!(key), &json!(route.method)), "{name}");
        // An HTTP API passes the decoded path to the function (`gateway/path.rs` of the local
        // system).
        let raw: Vec<&str> = event["rawPath"].as_str().unwrap().split('/').collect();
        let filled = route.path.split('/').map(|segment| {
            match segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
                Some(parameter) => event["pathParameters"][parameter].as_str().unwrap(),
                None => segment,
            }
        });
        assert_eq!(raw, filled.collect::<Vec<_>>(), "{name}");

        let signed_in = context["authorizer"]["jwt"]["claims"]["sub"].is_string();
        assert_eq!(signed_in, route.authorizer.is_some(), "{name}");
        assert!(event.get("body").is_none_or(Json::is_string) && event["isBase64Encoded"].is_boolean(), "{name}");
    }
}

/// Returns the route of a request. Events that SAM generates contain no route of Bodega.
fn route_key(event: &Json) -> Option<&str> {
    event["routeKey"].as_str().filter(|key| *key != "$default")
}

/// A sample with an outdated attribute would test an item that no function writes.
#[test]
fn every_item_in_a_sample_has_the_stored_form_of_the_schema() {
    for case in cases() {
        let records = case.event["Records"].as_array().into_iter().flatten();
        let images =
            records.flat_map(|record| ["NewImage", "OldImage"].map(|image| record["dynamodb"].get(image))).flatten();
        let seeds = case.expected.seed.iter().filter_map(|seed| match seed {
            Seed::Item(item) => Some(item),
            Seed::Call(_) => None,
        });
        let broken = ["malformed", "generated"].iter().any(|kind| case.name.contains(kind));
        for image in images.chain(seeds) {
            let item: Item = serde_json::from_value(image.clone()).unwrap();
            match AnyEntity::from_item(item.clone()) {
                Ok(entity) => assert_eq!(entity.to_item().unwrap(), item, "{}", case.name),
                Err(error) => assert!(broken, "{}: {error}", case.name),
            }
        }
    }
}
