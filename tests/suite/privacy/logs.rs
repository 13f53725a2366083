//! Tests that no log line reveals a caller or the caller's texts, for any request and any fault.

use local::System;
use serde_json::{Value as Json, json};

use super::arm;
use super::person::{self, GOES, STAYS, SUBJECT};
use crate::support::client::{Call, http};
use crate::support::openapi::{Operation, api};
use crate::support::shop::{self, order_body, path, segment};
use crate::support::{drain, put_item, with_own_system};

/// The header of an unsigned token: `{"alg":"none"}`.
const UNSIGNED: &str = "eyJhbGciOiJub25lIn0";

/// Faults that make every request to the table fail.
const FAULTS: [&str; 3] = ["error", "throttle", "conflict"];

/// At least `least` lines must exist.
pub async fn tell_nothing(system: &System, least: usize) {
    let environment = Call::new("GET", "/_local/environment").send(system).await.expect(200).body;
    let text = |name: &str| environment[name].as_str().unwrap().to_owned();
    let read = http().post(text("AWS_ENDPOINT_URL_SECRETS_MANAGER"));
    let read = read.header("x-amz-target", "secretsmanager.GetSecretValue");
    let read = read.body(json!({"SecretId": text("CURSOR_KEYS_SECRET")}).to_string()).send().await.unwrap();
    let keys: Json = serde_json::from_slice(&read.bytes().await.unwrap()).unwrap();
    let keys = keys["SecretString"].as_str().unwrap().to_owned();
    // The keys are secret. Their names are not, and are shorter than a key.
    let secrets = keys.split([',', ':']).map(str::to_owned).filter(|part| part.len() > 8);
    // All tokens start with the same header, which names the signature's algorithm.
    let token = system.token(SUBJECT, &[]);
    let token = token.split('.').next().unwrap();
    let words = [GOES, STAYS, SUBJECT, token, UNSIGNED, "bearer ", "x-amz-signature"];
    let private: Vec<String> =
        words.map(str::to_lowercase).into_iter().chain(secrets.map(|key| key.to_lowercase())).collect();
    assert!(private.len() > words.len(), "no part is long enough for a secret key: {keys}");
    let lines = system.functions().lines(None, "", usize::MAX);
    assert!(lines.len() >= least, "{} lines", lines.len());
    for line in lines {
        let text = without_record_names(&line.text).to_lowercase();
        for word in &private {
            assert!(!text.contains(word), "{} logs {word}: {}", line.function, line.text);
        }
    }
}

/// Removes the fields `target` and `created` from the log line of a staff write, because the audit
/// trail must name the record.
fn without_record_names(line: &str) -> String {
    match serde_json::from_str(line) {
        Ok(Json::Object(mut members)) if members.contains_key("actor") => {
            members.remove("target");
            members.remove("created");
            Json::Object(members).to_string()
        }
        _ => line.to_owned(),
    }
}

/// Returns the operation's path with this text as every parameter.
fn addressed(operation: Operation<'_>, to: &str) -> String {
    let parts = operation.path.split('/').map(|part| if part.starts_with('{') { segment(to) } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("/")
}

/// Returns bad requests for an operation, with a marker text in every value that a client controls.
fn bad(operation: Operation<'_>) -> Vec<Call> {
    let mark = |name: &str| person::goes(name);
    let with = |to: &str| Call::new(operation.method, &addressed(operation, to)).customer(SUBJECT);
    let tagged = |call: Call| {
        call.header("if-match", &format!("\"{}\"", mark("tag")))
            .header("idempotency-key", &mark("key"))
            .header("x-odd", &mark("header"))
    };
    let path = addressed(operation, &mark("id"));
    let asking = |query: String| Call::new(operation.method, &format!("{path}?{query}")).customer(SUBJECT);
    vec![
        tagged(with(&mark("id"))).json(&json!({ mark("member"): mark("value") })),
        tagged(with(SUBJECT)).json(&json!({ "email": { "is": mark("value") }, "name": [mark("value")], "text": 7 })),
        with(SUBJECT).header("content-type", "application/json").body(format!("{{\"email\": \"{}", mark("cut"))),
        with(SUBJECT).header("content-type", "text/plain").body(mark("plain")),
        // These ids are invalid: one is too long, and one has a control character.
        with(&mark("long").repeat(12)).json(&json!({})),
        with(&format!("{}\u{1}", mark("control"))).json(&json!({})),
        asking(format!("{}={}", mark("parameter"), mark("value"))),
        asking(format!("cursor={}&limit={}", mark("cursor"), mark("limit"))),
        Call::new(operation.method, &path).header("authorization", &format!("Bearer {UNSIGNED}.{}.", mark("token"))),
    ]
}

/// Sets a fault. Returns `false` for an external search engine, which has no faults to set.
async fn fault(system: &System, target: &str, kind: &str) -> bool {
    let fault = json!({ "target": target, "kind": kind, "rate": 1.0 });
    let answer = Call::new("POST", "/_local/faults").json(&fault).send(system).await;
    if answer.status == 409 && target == "search" {
        return false;
    }
    answer.expect(204);
    true
}

async fn faultless(system: &System) {
    Call::new("DELETE", "/_local/faults").send(system).await;
}

/// A function has few environments, and a call with a fault blocks an environment for seconds.
fn apart(calls: Vec<Call>) -> Vec<Call> {
    let distance = calls.len().div_ceil(16);
    let mut rows: Vec<Vec<Call>> = (0..distance).map(|_| Vec::new()).collect();
    for (place, call) in calls.into_iter().enumerate() {
        rows[place % distance].push(call);
    }
    rows.into_iter().flatten().collect()
}

#[test]
fn no_log_line_of_any_function_identifies_a_customer_under_any_failure() {
    with_own_system(async |system| {
        person::live(system).await;
        drain(system).await;
        let mut sent = 0;
        let mut failed = [0; 2];
        let mut count = |statuses: Vec<u16>| {
            sent += statuses.len();
            for status in statuses {
                failed[usize::from(status >= 500)] += usize::from(status >= 400);
            }
        };
        let calls: Vec<Call> = api().operations().flat_map(bad).collect();
        count(shop::all(system, calls).await.iter().map(|answer| answer.status).collect());
        // Each operation fails with one of the faults, because a call with a fault takes seconds.
        for (place, kind) in FAULTS.into_iter().enumerate() {
            fault(system, "table", kind).await;
            // The test sends every operation with the customer's token, including the erasure.
            let body = json!({
                "email": person::goes("email"), "device": person::goes("device"), "text": person::goes("text"),
            });
            let calls = api().operations().skip(place).step_by(FAULTS.len()).map(|operation| {
                let call = Call::new(operation.method, &addressed(operation, SUBJECT))
                    .customer(SUBJECT)
                    .header("if-match", "\"1\"");
                call.header("idempotency-key", &person::goes(kind)).json(&body)
            });
            count(shop::all(system, apart(calls.collect())).await.iter().map(|answer| answer.status).collect());
            faultless(system).await;
        }
        assert!(failed[0] > 500 && failed[1] > 40, "{failed:?} of {sent}");
        for kind in ["error", "throttle"] {
            let fails = fault(system, "search", kind).await;
            let search = format!("/v1/search/products?q={}", person::goes("query"));
            assert_eq!(Call::new("GET", &search).send(system).await.status >= 500, fails);
            faultless(system).await;
        }
        behind_the_api(system).await;
        tell_nothing(system, 500).await;
    });
}

/// Causes errors in the stream's consumer and in the subscribers of its events.
async fn behind_the_api(system: &System) {
    // The consumer quarantines an unreadable profile.
    let at = "2026-01-01T00:00:00.000Z";
    let address = json!({ person::goes("home"): { "M": { "city": { "N": "1" } } } });
    let faults = [("odd", "tier", json!({ "S": person::goes("tier") })), ("far", "addresses", json!({ "M": address }))];
    for (id, attribute, value) in faults {
        let id = person::goes(id);
        let odd = json!({
            "PK": { "S": format!("CUSTOMER#{id}") }, "SK": { "S": "PROFILE" },
            "entity": { "S": "Customer" }, "version": { "N": "1" },
            "rev": { "N": "1" }, "born": { "S": "b1" }, "created_at": { "S": at }, "updated_at": { "S": at },
            "id": { "S": id }, "email": { "S": format!("{id}@example.com") }, attribute: value,
        });
        put_item(system, &odd).await;
        // The customer's own request reads the unreadable profile and fails.
        let read = Call::new("GET", &path(&["customers", &id])).customer(&id);
        assert!(read.send(system).await.status >= 500);
    }
    drain(system).await;
    let lines = system.functions().lines(Some("Customers"), "malformed Customer", usize::MAX);
    assert!(lines.iter().any(|line| line.text.contains("addresses.*.city is a number: ")), "{lines:?}");
    let aside = crate::control::all(system, "/_local/quarantine").await;
    assert!(aside.iter().any(|record| record.to_string().contains(GOES)), "{aside:?}");
    // Mail, bus and archive fail, and functions crash.
    let order = |key: &str| {
        let body: Json = order_body(SUBJECT, &[("privacy-tea", 1)]);
        shop::order_call(&body, key).customer(SUBJECT)
    };
    for (target, kind) in [("mail", "error"), ("bus", "error"), ("store", "error")] {
        let fault = json!({ "target": target, "kind": kind, "rate": 1.0, "count": 2 });
        Call::new("POST", "/_local/faults").json(&fault).send(system).await.expect(204);
        order(&format!("{}-{target}", person::goes("key"))).send(system).await.expect(201);
        person::lapse(system, &format!("privacy-{target}"), false).await;
        drain(system).await;
    }
    arm(system, ("Orders", "orders.placed")).await;
    assert!(order(&person::goes("dies")).send(system).await.status >= 500);
    arm(system, ("Customers", "customers.profile.erased")).await;
    assert!(person::erase(system, &person::tag(system).await).await >= 500);
    drain(system).await;
    faultless(system).await;
}
