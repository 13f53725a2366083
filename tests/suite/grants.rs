//! Tests that each function's permissions match its code exactly.
//!
//! The local system denies a function every action that the template does not allow. These tests
//! check the denial, and check that every permission is used. When Lambda reads the stream or a
//! queue for a function, the function's permission counts as used.

use std::collections::BTreeSet;
use std::path::PathBuf;

use key_schema::archive::belongings;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::session::Session;
use local::System;
use serde_json::{Value as Json, json};

use crate::support::client::{Call, http};
use crate::support::table::scan;
use crate::support::{drain, put_item, read_json, root, shop, template_path, with_own_system, with_template};
use crate::{agents, events, hot_keys, pictures};

/// Prefix of permissions for an OpenSearch Serverless collection. The local system simulates a
/// domain, so they are not used.
const OF_COLLECTIONS: &str = "aoss:";
/// The statement that allows an event source mapping to store batches that it gives up. A separate
/// test uses it.
const GIVEN_UP: &str = "GivenUp";
/// The statement that allows the cashier to take the stock of a late payment from any shard. The tests
/// of `workflows` make such payments.
const LATE_STOCK: &str = "LateStock";

async fn functions(system: &System) -> Vec<Json> {
    let report = Call::new("GET", "/_local/grants").send(system).await.expect(200).body;
    report["functions"].as_array().unwrap().clone()
}

/// Returns the actions that functions were denied, as `Function: action on resource`.
async fn denied(system: &System) -> BTreeSet<String> {
    listed(&functions(system).await, "denied", |_| true)
}

fn listed(functions: &[Json], list: &str, is_wanted: impl Fn(&Json) -> bool) -> BTreeSet<String> {
    let of = |function: &Json| {
        let entries = function[list].as_array().unwrap().iter().filter(|entry| is_wanted(entry));
        let text = |entry: &Json| {
            let part = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            format!(
                "{}: {} on {} {}",
                function["function"].as_str().unwrap(),
                part("action"),
                part("resource"),
                part("sid")
            )
        };
        entries.map(text).map(|text| text.trim_end().to_owned()).collect::<Vec<_>>()
    };
    functions.iter().flat_map(of).collect()
}

#[test]
fn every_sample_event_gives_its_expected_response_and_every_permission_is_used() {
    with_own_system(async |system| {
        let failures = events::failures(system, |_| true).await;
        assert!(failures.is_empty(), "\n{}", failures.join("\n"));
        what_no_sample_does(system).await;
        nothing_is_unused(system, |_| true).await;
    });
}

/// Checks that the selected functions use all their permissions.
pub async fn nothing_is_unused(system: &System, is_wanted: impl Fn(&str) -> bool) {
    drain(system).await;
    let mut functions = functions(system).await;
    functions.retain(|function| is_wanted(function["function"].as_str().unwrap()));
    assert!(!functions.is_empty());
    let unused = listed(&functions, "grants", |grant| {
        let is_elsewhere = grant["sid"] == GIVEN_UP || grant["sid"] == LATE_STOCK;
        grant["used"] == 0 && !is_elsewhere && !grant["action"].as_str().unwrap().starts_with(OF_COLLECTIONS)
    });
    let unused: Vec<String> = unused.into_iter().collect();
    assert!(unused.is_empty(), "granted and never used:\n{}", unused.join("\n"));
}

/// The template's mapping retries for half a day, longer than a test can wait. In this test the
/// mapping has no retries, so it gives a batch up at once.
#[test]
fn a_mapping_stores_a_discarded_batch_with_the_role_of_its_function() {
    let retries = ("MaximumRetryAttempts: 10000", "MaximumRetryAttempts: 0");
    let changes = ["StreamSearchTable", "StreamEventsTable"].map(|mapping| (mapping, retries.0, retries.1));
    let template = template_with("given-up", &changes);
    with_template(&template, async |system| {
        std::fs::remove_file(&template).unwrap();
        for function in ["StreamSearch", "StreamEvents"] {
            let fault = json!({"target": format!("function:{function}"), "kind": "error"});
            Call::new("POST", "/_local/faults").json(&fault).send(system).await.expect(204);
        }
        shop::products(system, &["given-up-tea"], 1).await;
        drain(system).await;
        let kept = listed(&functions(system).await, "grants", |grant| grant["sid"] == GIVEN_UP && grant["used"] != 0);
        let bucket = "arn:aws:s3:::bodega-failed-records/aws/lambda/*";
        let expected =
            ["StreamEvents", "StreamSearch"].map(|name| format!("{name}: s3:PutObject on {bucket} {GIVEN_UP}"));
        assert_eq!(kept, expected.into());
        assert_eq!(denied(system).await, BTreeSet::new());
    });
}

/// Makes a session of a customer who was erased.
fn late_session() -> Stored<Session> {
    let now = Instant::now();
    let data = Session {
        sign_in: None,
        id: "grants-late".parse().unwrap(),
        customer_id: "grants-ann".parse().unwrap(),
        expires_at: now.plus_seconds(3600),
        device: "Phone".to_owned(),
    };
    Stored::new(data, "born-late".parse().unwrap(), now)
}

/// Pays an order with two cards. The cashier records the second payment on the condition that the
/// first one is unchanged.
async fn pay_by_two_cards(system: &System) {
    shop::products(system, &["grants-milk"], 1).await;
    let order = shop::order(system, "grants-bob", &[("grants-milk", 1)], "grants-milk").await;
    let path = shop::path(&["orders", order["id"].as_str().unwrap()]);
    for amount in [60, 69] {
        let body = json!({ "method": "card", "amount": { "amount": amount, "currency": "USD" } });
        let begun = Call::new("POST", &format!("{path}/payments")).staff().json(&body).send(system).await.expect(201);
        let intent = begun.body["client_secret"].as_str().unwrap().split("_secret_").next().unwrap().to_owned();
        for action in ["confirm", "webhook"] {
            Call::new("POST", &format!("/_local/payments/{intent}/{action}")).send(system).await.expect(200);
        }
        drain(system).await;
    }
    assert_eq!(Call::new("GET", &path).staff().send(system).await.expect(200).body["status"], "paid");
}

pub async fn what_no_sample_does(system: &System) {
    Call::new("GET", "/v1/customers?tier=bronze").staff().send(system).await.expect(200);
    shop::products(system, &["grants-tea"], 1).await;
    let newest = shop::path(&["products", "grants-tea", "reviews"]) + "?sort=newest";
    Call::new("GET", &newest).send(system).await.expect(200);
    shop::customer(system, "grants-ann").await;
    let sessions = Call::new("POST", &shop::path(&["customers", "grants-ann", "sessions"])).customer("grants-ann");
    sessions.clone().json(&json!({ "device": "Phone" })).send(system).await.expect(201);
    let follows = Call::new("PUT", &shop::path(&["customers", "grants-ann", "following", "grants-bob"]));
    shop::customer(system, "grants-bob").await;
    follows.staff().send(system).await.expect(201);
    let erase = Call::new("DELETE", &shop::path(&["customers", "grants-ann"])).staff().header("if-match", "\"1\"");
    erase.send(system).await.expect(204);
    // Add archive objects of the erased customer, and a session that the erasure did not find in
    // the index.
    let expired = belongings(&"grants-ann".parse().unwrap()).unwrap().map(|under| format!("{under}a.json"));
    for name in &expired {
        archived(system, "PUT", name).await;
    }
    sessions.json(&json!({ "device": "Phone" })).send(system).await.expect(404);
    put_item(system, &serde_json::to_value(late_session().to_item().unwrap()).unwrap()).await;
    let janitor = Call::new("POST", "/_local/invoke/Janitor").json(&json!({ "grace_seconds": 0 }));
    assert_eq!(janitor.send(system).await.expect(200).body["erased"], 1);
    for name in &expired {
        assert_eq!(archived(system, "GET", name).await, 404);
    }
    // A client uploads and reads by signed URLs, and the janitor deletes the object afterwards.
    pictures::add_and_remove(system, "grants-tea").await;
    pay_by_two_cards(system).await;
    // No agent of the samples has a profile.
    agents::sell(system, "grants-agent").await;
    // Metric points need a current time. The points of the samples have expired.
    let point = json!({ "name": "grants", "value": 1, "at": Instant::now() });
    let stored = Call::new("POST", "/v1/metrics").staff().json(&json!({ "points": [point] })).send(system).await;
    assert_eq!(stored.expect(200).body["results"][0]["status"], "stored");
    // One category move is complete except for its wait, and one was interrupted.
    category_moves(system).await;
    // A function reads the keys of cursors only for a cursor.
    for list in [
        "/v1/customers/grants-bob/following?cursor=x",
        "/v1/customers/grants-bob/wallet/entries?cursor=x",
        "/v1/documents/grants/versions?cursor=x",
        "/v1/metrics/grants?cursor=x",
        "/v1/organizations/grants/members?cursor=x",
        "/v1/search/products?q=tea&cursor=x",
        "/v1/promotions?cursor=x",
        "/v1/questions?status=open&cursor=x",
        "/v1/orders?status=paid&cursor=x",
    ] {
        let refused = Call::new("GET", list).staff().send(system).await.expect(400);
        assert_eq!(refused.body["code"], "cursor_invalid", "{list}");
    }
    // The splitter needs a throttled key.
    hot_keys::heat(system, "grants").await;
    hot_keys::round(system).await;
    hot_keys::spread(system, "grants-hot").await;
    // After the loss of an alias, the next product change restores the alias.
    drain(system).await;
    let (index, alias) = (format!("{}-products-v1", system.table()), format!("{}-products-write-v1", system.table()));
    let remove = json!({"actions": [{"remove": {"index": index, "alias": alias}}]});
    let removed = http().post(format!("{}/_aliases", system.search_url())).json(&remove).send().await.unwrap();
    assert!(removed.status().is_success(), "{}", removed.text().await.unwrap());
    shop::products(system, &["grants-coffee"], 1).await;
}

/// Puts or gets the archive object `name`. The caller is no function of the template. Returns the
/// status.
async fn archived(system: &System, method: &str, name: &str) -> u16 {
    let environment = Call::new("GET", "/_local/environment").send(system).await.expect(200).body;
    let part = |name: &str| environment[name].as_str().unwrap();
    let url = format!("{}/{}/{name}", part("AWS_ENDPOINT_URL_S3"), part("ARCHIVE_BUCKET"));
    as_function("Nobody", method, &url, "", &json!({})).await.0
}

/// Runs the janitor for category moves. It finishes a move after its wait, and continues an
/// interrupted move.
async fn category_moves(system: &System) {
    let janitor = Call::new("POST", "/_local/invoke/Janitor").json(&json!({ "grace_seconds": 0 }));
    let of_a_move = |item: &Json| item["entity"]["S"] == "CategoryMove";
    if let Some(mut settling) = scan(system).await.into_values().find(of_a_move) {
        settling["since"] = json!({ "S": "2017-01-01T00:00:00.000Z" });
        put_item(system, &settling).await;
        let round = janitor.clone().send(system).await.expect(200).body;
        assert_eq!(round["category"], "done", "{round}");
    }
    let body = |id: &str, category: &[&str]| shop::product_body(id, category, 1);
    let products = [body("grants-ice", &["Grants", "Ice"]), body("grants-guest", &["Guests"])];
    shop::import(system, &products).await;
    let guest = shop::path(&["products", "grants-guest", "categories", "Grants~Ice"]);
    Call::new("PUT", &guest).staff().send(system).await.expect(201);
    let about = Call::new("PUT", "/v1/categories/Grants~Told").staff().header("if-none-match", "*");
    about.json(&json!({ "title": "Told" })).send(system).await.expect(201);
    let crash = json!({"target": "function:Catalog", "kind": "crash", "point": "catalog.move.begun", "count": 1});
    Call::new("POST", "/_local/faults").json(&crash).send(system).await.expect(204);
    let start = Call::new("POST", "/v1/categories/Grants/move").staff().json(&json!({ "to": ["Moved"] }));
    assert!(start.send(system).await.status >= 500, "the request fails");
    let round = janitor.send(system).await.expect(200).body;
    assert_eq!(round["category"], "continued", "{round}");
    Call::new("GET", "/v1/categories/Moved~Told").send(system).await.expect(200);
}

/// Calls a service with a function's signature. Returns the status and the message.
async fn as_function(function: &str, method: &str, url: &str, target: &str, body: &Json) -> (u16, String) {
    let call = http().request(method.parse().unwrap(), url).header("x-amz-security-token", function);
    let call = call.header("x-amz-target", target).header("content-type", "application/x-amz-json-1.0");
    let credential = "Credential=local/20260101/us-east-1/x/aws4_request, SignedHeaders=host, Signature=0";
    let call =
        call.header("x-amz-date", "20260101T000000Z").header("authorization", format!("AWS4-HMAC-SHA256 {credential}"));
    let answer = call.body(body.to_string()).send().await.unwrap();
    let kind = answer.headers().get("x-amzn-errortype").map(|kind| kind.to_str().unwrap().to_owned());
    (answer.status().as_u16(), format!("{} {}", kind.unwrap_or_default(), answer.text().await.unwrap()))
}

#[test]
fn a_denied_call_gets_the_error_that_the_real_service_returns() {
    with_template(&template_path(), async |system| {
        let environment = Call::new("GET", "/_local/environment").send(system).await.expect(200).body;
        let url = |service: &str| environment[format!("AWS_ENDPOINT_URL_{service}")].as_str().unwrap().to_owned();
        let scan = json!({ "TableName": system.table() });
        let bus = &environment["BUS_NAME"];
        let entry = json!({"EventBusName": bus, "Source": "bodega", "DetailType": "X", "Detail": "{}"});
        let event = json!({"Entries": [entry]});
        let mail = json!({"FromEmailAddress": "Shop <shop@example.com>"});
        let report = json!({"RuleName": "x", "StartTime": 0, "EndTime": 60, "Period": 60});
        let object = format!("{}/{}/expired/x.json", url("S3"), environment["ARCHIVE_BUCKET"].as_str().unwrap());
        let mails = format!("{}/v2/email/outbound-emails", url("SESV2"));
        for (method, url, target, body, status, says) in [
            ("POST", &url("DYNAMODB"), "DynamoDB_20120810.Scan", &scan, 400, "#AccessDeniedException"),
            // Only the roles of the stream's consumers allow this action, because Lambda reads the
            // stream for them.
            (
                "POST",
                &url("DYNAMODB"),
                "DynamoDBStreams_20120810.DescribeStream",
                &json!({}),
                400,
                "#AccessDeniedException",
            ),
            ("POST", &url("EVENTBRIDGE"), "AWSEvents.PutEvents", &event, 400, r#""AccessDeniedException""#),
            ("PUT", &object, "", &json!({}), 403, "<Code>AccessDenied</Code>"),
            ("POST", &mails, "", &mail, 403, "AccessDeniedException {"),
            (
                "POST",
                &url("CLOUDWATCH"),
                "GraniteServiceVersion20100801.GetInsightRuleReport",
                &report,
                403,
                "#AccessDeniedException",
            ),
            (
                "POST",
                &url("SECRETS_MANAGER"),
                "secretsmanager.GetSecretValue",
                &json!({"SecretId": "arn:aws:secretsmanager:us-east-1:000000000000:secret:x"}),
                400,
                "AccessDeniedException",
            ),
        ] {
            let (answered, said) = as_function("Customers", method, url, target, body).await;
            assert!(answered == status && said.contains(says), "{url}: {answered} {said}");
        }
        let table = format!("arn:aws:dynamodb:us-east-1:000000000000:table/{}", system.table());
        let expected = [
            format!("Customers: dynamodb:Scan on {table}"),
            "Customers: dynamodb:DescribeStream on *".to_owned(),
            "Customers: events:PutEvents on arn:aws:events:us-east-1:000000000000:event-bus/bodega-bus".to_owned(),
            "Customers: s3:PutObject on arn:aws:s3:::bodega-archive/expired/x.json".to_owned(),
            "Customers: ses:SendEmail on arn:aws:ses:us-east-1:000000000000:identity/example.com".to_owned(),
            "Customers: cloudwatch:GetInsightRuleReport on arn:aws:cloudwatch:us-east-1:000000000000:insight-rule/x"
                .to_owned(),
            "Customers: secretsmanager:GetSecretValue on arn:aws:secretsmanager:us-east-1:000000000000:secret:x"
                .to_owned(),
        ];
        assert_eq!(denied(system).await, expected.into());
        // The local system checks only the functions of the template.
        let (status, said) = as_function("Nobody", "PUT", &object, "", &json!({})).await;
        assert_eq!(status, 200, "{said}");
    });
}

/// Writes a copy of the template with changes. A change consists of a name in the template, a text,
/// and a replacement for the first such text after the name.
fn template_with(name: &str, changes: &[(&str, &str, &str)]) -> PathBuf {
    let mut text = std::fs::read_to_string(root().join("template.yaml")).unwrap();
    for (function, from, to) in changes {
        let start = text.find(&format!("\n  {function}:\n")).unwrap();
        let at = start + text[start..].find(from).unwrap_or_else(|| panic!("{function} has no {from:?}"));
        text.replace_range(at..at + from.len(), to);
    }
    let path = std::env::temp_dir().join(format!("bodega-{name}-{}.yaml", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

/// Stores the seed items of a sample event, and then sends the event.
async fn invoke(system: &System, function: &str, event: &str) {
    let sample = |name: String| read_json(&root().join("events").join(name));
    for seed in sample(format!("{event}.expected.json"))["seed"].as_array().unwrap() {
        put_item(system, &seed["item"]).await;
    }
    let call = Call::new("POST", &format!("/_local/invoke/{function}")).json(&sample(format!("{event}.json")));
    // The invocation may fail. Only the denied action counts.
    call.send(system).await;
}

#[test]
fn every_service_denies_calls_that_the_template_does_not_allow() {
    let changes = [
        ("Customers", "dynamodb:GetItem", "dynamodb:Scan"),
        ("Customers", "/index/GSI1", "/index/GSI0"),
        ("Search", "es:ESHttpPost", "es:ESHttpPut"),
        ("StreamSearch", "/quarantine/*", "/elsewhere/*"),
        ("StreamEvents", "events:PutEvents", "events:PutRule"),
        ("Notifier", "ses:SendEmail", "ses:SendBounce"),
    ];
    let template = template_with("grants", &changes);
    with_template(&template, async |system| {
        std::fs::remove_file(&template).unwrap();
        for path in ["/v1/customers/ann", "/v1/customers/ann/sessions", "/v1/search/orders"] {
            let answer = Call::new("GET", path).staff().send(system).await;
            assert!(answer.status >= 500, "{path}: {} {}", answer.status, answer.body);
        }
        invoke(system, "StreamSearch", "stream-search-malformed-among-good").await;
        invoke(system, "StreamEvents", "stream-events-order-placed").await;
        invoke(system, "Notifier", "notifier-order-placed").await;

        let table = format!("arn:aws:dynamodb:us-east-1:000000000000:table/{}", system.table());
        let mut denied: Vec<String> = denied(system).await.into_iter().collect();
        let expected = [
            format!("Customers: dynamodb:GetItem on {table}"),
            format!("Customers: dynamodb:Query on {table}/index/GSI1"),
            "Notifier: ses:SendEmail on arn:aws:ses:us-east-1:000000000000:identity/example.com".to_owned(),
            "Search: es:ESHttpPost on arn:aws:es:us-east-1:000000000000:domain/local/".to_owned(),
            "StreamEvents: events:PutEvents on arn:aws:events:us-east-1:000000000000:event-bus/bodega-bus".to_owned(),
            "StreamSearch: s3:PutObject on arn:aws:s3:::bodega-failed-records/quarantine/".to_owned(),
        ];
        denied.dedup_by(|b, a| a.starts_with("StreamSearch") && b.starts_with("StreamSearch"));
        assert_eq!(denied.len(), expected.len(), "{denied:#?}");
        for (denied, expected) in denied.iter().zip(&expected) {
            assert!(denied.starts_with(expected), "{denied} is not {expected}");
        }
    });
}
