//! Generates the sample events of requests from the member `request` of their expectations.

use std::collections::BTreeMap;

use bytes::Bytes;
use local::gateway::sample_event;
use serde_json::Value as Json;

use super::{Case, Request, cases, folder};
use crate::support::openapi::api;
use crate::support::template;

#[test]
fn each_sample_event_of_a_request_is_the_one_that_the_gateway_would_send() {
    for Case { name, event, expected } in cases() {
        let Some(request) = &expected.request else { continue };
        let generated = event_of(&name, request);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            let text = serde_json::to_string_pretty(&generated).unwrap();
            std::fs::write(folder().join(format!("{name}.json")), text + "\n").unwrap();
        } else {
            let command = "UPDATE_DOCS=1 cargo test -p bodega-tests --test suite events::generated";
            assert!(event == generated, "events/{name}.json is stale: {command}");
        }
    }
}

/// Returns the event of a request. A request without a body gets the body that `openapi.yaml` has as
/// an example, if the route needs a body.
fn event_of(name: &str, request: &Request) -> Json {
    let routes = &template().routes;
    let build = |body: &str| {
        let mut builder = http::Request::builder().method(request.method.as_str()).uri(&request.path);
        let mut headers = BTreeMap::from([("accept", "application/json"), ("user-agent", "sample/1.0")]);
        if !body.is_empty() {
            headers.insert("content-type", "application/json");
        }
        headers.extend(request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        for (name, value) in headers {
            builder = builder.header(name, value);
        }
        let sent = builder.body(Bytes::from(body.to_owned())).unwrap();
        let claims = claims(&request.caller);
        sample_event(routes, sent, claims.as_ref(), &format!("sample-{name}"))
            .unwrap_or_else(|| panic!("{name}: no route {} {}", request.method, request.path))
    };
    let event = match &request.body {
        Some(Json::String(text)) => build(text),
        Some(body) => build(&body.to_string()),
        None => build(""),
    };
    let key = event["routeKey"].as_str().unwrap();
    let example = || {
        let operation = api().operation(key)?;
        let is_needed = operation.own["requestBody"]["required"] == true;
        let schema = api().follow(operation.body().filter(|_| is_needed)?);
        Some(schema["examples"].as_array()?.last()?.to_string())
    };
    match example().filter(|_| request.body.is_none()) {
        Some(body) => build(&body),
        None => event,
    }
}

fn claims(caller: &str) -> Option<BTreeMap<String, String>> {
    let (subject, is_staff) = match caller.split_once(':') {
        Some((_, customer)) => (customer, false),
        None if caller == "staff" => ("sample-staff", true),
        None => return None,
    };
    let mut claims = BTreeMap::from([
        ("aud", "2k8sampleclient"),
        ("auth_time", "1795175940"),
        ("exp", "1795179600"),
        ("iat", "1795175940"),
        ("iss", "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Sample"),
        ("sub", subject),
        ("token_use", "id"),
    ]);
    if is_staff {
        claims.insert("cognito:groups", "[staff]");
    }
    Some(claims.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}
