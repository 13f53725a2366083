use std::collections::BTreeMap;

use local::System;
use reqwest::Url;
use serde_json::{Value as Json, json};

use crate::support::client::{Answer, Call, http};
use crate::support::{drain, shop, with_own_system, with_system};

async fn get(system: &System, path: &str) -> Json {
    Call::new("GET", path).send(system).await.expect(200).body
}

async fn fault(system: &System, fault: Json) -> Answer {
    Call::new("POST", "/_local/faults").json(&fault).send(system).await
}

/// Puts an entry on the bus with EventBridge's own API.
async fn put_event(environment: &Json, detail_type: &str, detail: &Json) {
    let entry = json!({
        "Source": "bodega", "DetailType": detail_type, "Detail": detail.to_string(),
        "EventBusName": environment["BUS_NAME"],
    });
    let put = http()
        .post(environment["AWS_ENDPOINT_URL_EVENTBRIDGE"].as_str().unwrap())
        .header("x-amz-target", "AWSEvents.PutEvents")
        .header("content-type", "application/x-amz-json-1.1")
        .body(json!({"Entries": [entry]}).to_string());
    let answer: Json = put.send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["FailedEntryCount"], 0, "{answer}");
}

pub async fn all(system: &System, path: &str) -> Vec<Json> {
    let mut items = Vec::new();
    let mut page = get(system, path).await;
    loop {
        items.extend(page["items"].as_array().unwrap().iter().cloned());
        let Some(cursor) = page["next_cursor"].as_str() else { return items };
        page = get(system, &format!("{path}?cursor={cursor}")).await;
    }
}

#[test]
fn every_list_has_pages_and_refuses_an_invalid_cursor() {
    with_system(async |system| {
        for path in ["events", "mail", "payments", "failures", "archive", "quarantine"] {
            let page = get(system, &format!("/_local/{path}")).await;
            assert!(page["items"].is_array() && page.get("next_cursor").is_some(), "{path}: {page}");
            Call::new("GET", &format!("/_local/{path}?cursor=!")).send(system).await.expect(400);
        }
    });
}

#[test]
fn only_a_request_with_a_loopback_host_gets_a_response() {
    with_system(async |system| {
        let send = async |path: &str, host: &str| {
            let request = http().get(format!("{}{path}", system.url())).header("host", host);
            request.send().await.unwrap().status().as_u16()
        };
        let port = system.url().rsplit(':').next().unwrap().to_owned();
        for path in ["/_local/environment", "/_local/events", "/_local/issuer/.well-known/jwks.json"] {
            for host in ["localhost", "127.0.0.1", "[::1]", &format!("localhost:{port}")] {
                assert_eq!(send(path, host).await, 200, "{path} {host}");
            }
            for host in ["evil.example", &format!("evil.example:{port}"), "127.0.0.1.evil.example", "192.168.0.7"] {
                assert_eq!(send(path, host).await, 403, "{path} {host}");
            }
        }
        assert_eq!(send("/health", "shop.example").await, 200, "only the routes for operators check the host");
    });
}

#[test]
fn the_system_issues_a_token_for_the_caller_that_the_request_names() {
    with_system(async |system| {
        let issue = async |body: Json| Call::new("POST", "/_local/tokens").json(&body).send(system).await;
        let status = async |token: &Json, path: &str| {
            let request = http().get(format!("{}{path}", system.url())).bearer_auth(token.as_str().unwrap());
            request.send().await.unwrap().status().as_u16()
        };
        shop::customer(system, "token-ann").await;
        let ann = issue(json!({"sub": "token-ann"})).await.expect(200).body;
        assert_eq!(status(&ann["token"], "/v1/customers/token-ann").await, 200);
        assert_eq!(status(&ann["token"], "/v1/orders?status=paid").await, 403);
        let staff = json!({"sub": "sam", "groups": ["staff"], "sid": "phone", "email": "sam@example.com"});
        let staff = issue(staff).await.expect(200).body;
        assert_eq!(status(&staff["token"], "/v1/orders?status=paid").await, 200);
        for wrong in [
            json!({}),
            json!({"sub": ""}),
            json!({"sub": "a", "groups": ["one two"]}),
            json!({"sub": "a", "sid": ""}),
            json!({"sub": "a", "email": "ann"}),
            json!({"sub": "a", "group": "staff"}),
        ] {
            assert_eq!(issue(wrong.clone()).await.status, 400, "{wrong}");
        }
        // The route refuses requests from the pages of other web sites.
        let foreign = Call::new("POST", "/_local/tokens").json(&json!({"sub": "a"}));
        foreign.header("origin", "https://evil.example").send(system).await.expect(403);
    });
}

/// The values are of RFC 7636, appendix B.
#[test]
fn a_page_signs_a_customer_in_by_code_and_pkce() {
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    with_system(async |system| {
        let issuer = format!("{}/_local/issuer", system.url());
        let discovery = get(system, "/_local/issuer/.well-known/openid-configuration").await;
        assert_eq!(discovery["authorization_endpoint"], format!("{issuer}/oauth2/authorize"));
        assert_eq!(discovery["token_endpoint"], format!("{issuer}/oauth2/token"));
        let page = "http://localhost:5173/signed-in".to_owned();
        let location = |answer: &reqwest::Response| {
            assert_eq!(answer.status().as_u16(), 303);
            Url::parse(answer.headers()["location"].to_str().unwrap()).unwrap()
        };
        let authorize = async |more: &[(&str, &str)]| {
            let mut query = BTreeMap::from([
                ("response_type", "code"),
                ("client_id", "shop"),
                ("redirect_uri", page.as_str()),
                ("state", "s&1"),
                ("code_challenge", CHALLENGE),
                ("code_challenge_method", "S256"),
            ]);
            query.extend(more.iter().copied());
            let url = Url::parse_with_params(&format!("{issuer}/oauth2/authorize"), query).unwrap();
            http().get(url).send().await.unwrap()
        };
        let begin = async || {
            let asked = [("sub", "pkce-ann"), ("email", "ann@example.com"), ("group", "staff")];
            let url = location(&authorize(&asked).await);
            let query: BTreeMap<_, _> = url.query_pairs().into_owned().collect();
            assert_eq!((url.path(), query["state"].as_str()), ("/signed-in", "s&1"));
            query["code"].clone()
        };
        let send = async |path: &str, fields: &[(&str, &str)]| {
            let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let answer = http().post(format!("{issuer}{path}")).body(fields.join("&")).send().await.unwrap();
            let status = answer.status().as_u16();
            (status, serde_json::from_slice::<Json>(&answer.bytes().await.unwrap()).unwrap_or_default())
        };
        let exchange = async |code: &str, verifier: &str, client: &str, page: &str| {
            let fields = [("code", code), ("code_verifier", verifier), ("client_id", client), ("redirect_uri", page)];
            send("/oauth2/token", &[&fields[..], &[("grant_type", "authorization_code")]].concat()).await
        };
        let refresh = async |token: &str| {
            let fields = [("grant_type", "refresh_token"), ("client_id", "shop"), ("refresh_token", token)];
            send("/oauth2/token", &fields).await
        };

        let form = authorize(&[]).await.text().await.unwrap();
        assert!(form.contains("name=\"sub\"") && form.contains("value=\"s&amp;1\""), "{form}");
        let code = begin().await;
        let (status, tokens) = exchange(&code, VERIFIER, "shop", &page).await;
        assert_eq!((status, &tokens["expires_in"]), (200, &json!(43_200)), "{tokens}");
        let orders = http().get(format!("{}/v1/orders?status=paid", system.url()));
        let orders = orders.bearer_auth(tokens["id_token"].as_str().unwrap()).send().await.unwrap();
        assert_eq!(orders.status().as_u16(), 200, "the token has the group");
        // A code is valid once, and only with its verifier, its client and its page.
        assert_eq!(exchange(&code, VERIFIER, "shop", &page).await.1, json!({"error": "invalid_grant"}));
        for (verifier, client, page) in
            [("other", "shop", page.as_str()), (VERIFIER, "other", &page), (VERIFIER, "shop", "http://localhost/")]
        {
            assert_eq!(exchange(&begin().await, verifier, client, page).await.0, 400);
        }
        let known = tokens["refresh_token"].as_str().unwrap();
        let (status, again) = refresh(known).await;
        assert!(status == 200 && again["id_token"].is_string() && again["refresh_token"].is_null(), "{again}");
        assert_eq!(send("/oauth2/revoke", &[("token", known)]).await.0, 200);
        assert_eq!(refresh(known).await.0, 400);
        // A page of another machine never gets a code.
        for address in ["https://evil.example/", "javascript:alert(1)", "http://localhost@evil.example/"] {
            assert_eq!(authorize(&[("redirect_uri", address), ("sub", "a")]).await.status().as_u16(), 400, "{address}");
        }
        let left = format!("{issuer}/logout?client_id=shop&logout_uri={page}");
        assert_eq!(location(&http().get(left).send().await.unwrap()).as_str(), page);
    });
}

#[test]
fn the_environment_says_how_another_program_reaches_the_system() {
    with_system(async |system| {
        let environment = get(system, "/_local/environment").await;
        assert_eq!(environment["TABLE_NAME"], system.table());
        assert_eq!(environment["AWS_ENDPOINT_URL_DYNAMODB"], system.table_url());
        assert_eq!(environment["SEARCH_ENDPOINT"], system.search_url());
        for name in ["DYNAMODB", "S3", "EVENTBRIDGE", "SESV2", "CLOUDWATCH"] {
            let url = environment[format!("AWS_ENDPOINT_URL_{name}")].as_str().unwrap();
            assert!(http().get(url).send().await.is_ok(), "nothing listens at {url}");
        }
        for name in ["AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "BUS_NAME", "ARCHIVE_BUCKET"] {
            assert!(environment[name].is_string(), "{name}");
        }
    });
}

#[test]
fn a_payment_at_the_local_provider_is_steered_and_shown() {
    with_own_system(async |system| {
        let provider = get(system, "/_local/environment").await["PAYMENT_PROVIDER_URL"].as_str().unwrap().to_owned();
        let create = http().post(format!("{provider}/v1/payment_intents")).bearer_auth("sk_test_1");
        let create = create.header("content-type", "application/x-www-form-urlencoded");
        let created = create.body("amount=1000&currency=eur&capture_method=manual").send().await.unwrap();
        let id = created.json::<Json>().await.unwrap()["id"].as_str().unwrap().to_owned();
        let steer = |action: &str| Call::new("POST", &format!("/_local/payments/{id}/{action}"));
        let declined = json!({"payment_method": "pm_card_visa_chargeDeclined"});
        let answer = steer("confirm").json(&declined).send(system).await.expect(200);
        assert_eq!(answer.body["status"], "requires_payment_method");
        steer("confirm").json(&json!({"card": "4242"})).send(system).await.expect(400);
        let paid =
            steer("confirm").json(&json!({"payment_method": "pm_card_visa"})).send(system).await.expect(200).body;
        let expected = json!({
            "id": id, "status": "requires_capture", "currency": "eur", "metadata": {},
            "amount": 1000, "capturable": 1000, "captured": 0, "refunded": 0,
        });
        assert_eq!((&paid, &get(system, "/_local/payments").await["items"]), (&expected, &json!([expected])));
        steer("webhook").send(system).await.expect(200);
        assert_eq!(steer("expire").send(system).await.expect(200).body["status"], "canceled");
        steer("decline").send(system).await.expect(409);
        steer("pay").send(system).await.expect(404);
        Call::new("POST", "/_local/payments/pi_none/confirm").send(system).await.expect(404);
    });
}

#[test]
fn an_event_published_twice_is_listed_twice() {
    with_system(async |system| {
        let environment = get(system, "/_local/environment").await;
        let detail = json!({"id": "control-twice", "type": "Nobody", "version": 1, "data": {"n": 1}});
        put_event(&environment, "Nobody", &detail).await;
        put_event(&environment, "Nobody", &detail).await;
        drain(system).await;
        let mine: Vec<Json> =
            all(system, "/_local/events").await.into_iter().filter(|event| event["id"] == "control-twice").collect();
        assert_eq!(mine.len(), 2);
        assert_eq!(mine[0]["data"], json!({"n": 1}));
        let envelope = |index: usize| &mine[index]["envelope"];
        assert_eq!((&envelope(0)["source"], &envelope(0)["detail_type"]), (&json!("bodega"), &json!("Nobody")));
        assert_eq!(envelope(0)["bus"], environment["BUS_NAME"]);
        assert_ne!(envelope(0)["id"], envelope(1)["id"]);
    });
}

#[test]
fn an_order_reaches_the_bus_and_its_subscribers_before_a_drain_ends() {
    with_system(async |system| {
        shop::customer(system, "control-ann").await;
        shop::products(system, &["control-tea"], 10).await;
        let order = shop::order(system, "control-ann", &[("control-tea", 1)], "control-order").await;
        let order = shop::moved(system, order, &["paid"]).await;
        drain(system).await;
        let events = all(system, "/_local/events").await;
        let of_order = |kind: &str| -> Vec<Json> {
            let is_mine = |event: &&Json| event["type"] == kind && event["data"]["order_id"] == order["id"];
            events.iter().filter(is_mine).map(|event| event["data"].clone()).collect()
        };
        assert!(!of_order("OrderPlaced").is_empty(), "the order was placed");
        let paid = |data: &&Json| data["from"] == "pending" && data["to"] == "paid";
        assert!(of_order("OrderStatusChanged").iter().any(|data| paid(&data)), "the order was paid");
        let mails = all(system, "/_local/mail").await;
        let to_customer = |mail: &&Json| mail["to"].to_string().contains("control-ann");
        assert!(mails.iter().any(|mail| to_customer(&mail)), "the customer got a mail");
    });
}

#[test]
fn the_objects_in_the_buckets_are_shown_completely_and_counted() {
    with_own_system(async |system| {
        let environment = get(system, "/_local/environment").await;
        let put = async |bucket: &str, name: &str, body: Json| {
            let endpoint = environment["AWS_ENDPOINT_URL_S3"].as_str().unwrap();
            let url = format!("{endpoint}/{}/{name}", environment[bucket].as_str().unwrap());
            let put =
                http().put(url).header("content-type", "application/json").header("authorization", "AWS4-HMAC-SHA256");
            let put = put.body(body.to_string());
            assert_eq!(put.send().await.unwrap().status().as_u16(), 200);
        };
        for number in 0..101 {
            put("FAILED_RECORDS_BUCKET", &format!("quarantine/2026-01-01/{number:03}"), json!({"reason": "r"})).await;
        }
        put("FAILED_RECORDS_BUCKET", "aws/lambda/m/s/x", json!({"version": "1.0"})).await;
        put("ARCHIVE_BUCKET", "expired/a/b.json", json!({"entity": "Session"})).await;

        let quarantine = all(system, "/_local/quarantine").await;
        assert_eq!(quarantine.len(), 102);
        assert_eq!(quarantine[0], json!({"by": "mapping", "name": "aws/lambda/m/s/x", "batch": {"version": "1.0"}}));
        let first = json!({"by": "consumer", "name": "quarantine/2026-01-01/000", "reason": "r"});
        assert_eq!(quarantine[1], first);
        let drained = Call::new("POST", "/_local/drain").send(system).await.expect(200).body;
        assert_eq!(drained["quarantined"], 102);
        let archive = all(system, "/_local/archive").await;
        assert_eq!(archive.len(), 1);
        assert_eq!(archive[0]["name"], "expired/a/b.json");
        assert_eq!(archive[0]["content"], json!({"entity": "Session"}));
        assert!(archive[0]["size"].is_u64() && archive[0]["class"].is_string() && archive[0]["modified"].is_string());
    });
}

#[test]
fn injected_faults_make_a_function_fail_exactly_as_often_as_configured() {
    with_own_system(async |system| {
        let read = async || Call::new("GET", "/v1/products/nothing").send(system).await.status;
        for (kind, status) in [("throttle", 503), ("error", 500), ("timeout", 500), ("crash", 500), ("slow", 404)] {
            let fault = fault(system, json!({"target": "function:Catalog", "kind": kind, "count": 1})).await;
            fault.expect(204);
            assert_eq!(read().await, status, "{kind}");
            assert_eq!(read().await, 404, "after {kind}");
        }
        let faults = get(system, "/_local/faults").await;
        let fired: Vec<&Json> =
            faults["function:Catalog"].as_array().unwrap().iter().map(|rule| &rule["fired"]).collect();
        assert_eq!(fired, [1; 5]);
        fault(system, json!({"target": "function:Catalog", "kind": "error"})).await.expect(204);
        assert_eq!((read().await, read().await), (500, 500));
        Call::new("DELETE", "/_local/faults").send(system).await.expect(204);
        assert_eq!(read().await, 404);
        assert_eq!(get(system, "/_local/faults").await.get("function:Catalog"), None);
    });
}

#[test]
fn every_backend_can_be_made_to_fail_and_the_number_of_its_faults_is_shown() {
    with_own_system(async |system| {
        for target in ["table", "bus", "store", "mail", "payments"] {
            fault(system, json!({"target": target, "kind": "error", "rate": 0, "seed": 7})).await.expect(204);
        }
        let faults = get(system, "/_local/faults").await;
        for target in ["table", "bus", "store", "mail", "payments"] {
            assert_eq!(faults[target][0]["fault"]["kind"], "error", "{faults}");
            assert_eq!(faults[target][0]["fired"], 0);
        }
        fault(system, json!({"target": "bus", "kind": "reset", "count": 1})).await.expect(204);
        let environment = get(system, "/_local/environment").await;
        let bus = http().post(environment["AWS_ENDPOINT_URL_EVENTBRIDGE"].as_str().unwrap());
        assert!(bus.send().await.is_err(), "the connection is closed");
        Call::new("DELETE", "/_local/faults").send(system).await.expect(204);
        assert_eq!(get(system, "/_local/faults").await["bus"], json!([]));
    });
}

#[test]
fn an_unknown_fault_is_refused_with_a_list_of_the_known_faults() {
    with_system(async |system| {
        let cases = [
            (
                json!({"target": "moon", "kind": "error"}),
                "table, search, bus, store, mail, payments, cloudwatch, secrets and function:<name>",
            ),
            (json!({"target": "function:Nobody", "kind": "error"}), "Catalog"),
            (json!({"target": "function:Catalog", "kind": "partial"}), "throttle"),
            (
                json!({"target": "function:Catalog", "kind": "error", "point": "orders.placed"}),
                "only valid with the kind crash",
            ),
            (json!({"target": "function:Catalog", "kind": "crash", "point": "nowhere"}), "stream.bus.published"),
            (json!({"target": "function:Catalog", "kind": "crash", "rate": 2}), "0 and 1"),
            (json!({"target": "function:Catalog", "kind": "clock"}), "seconds must be given with the kind clock"),
            (json!({"target": "function:Catalog", "kind": "error", "seconds": 1}), "only valid with the kind clock"),
            (json!({"target": "bus", "kind": "error", "seconds": 1}), "only valid with a function as target"),
            (json!({"target": "bus", "kind": "crash"}), "kind"),
            (json!({"target": "bus", "kind": "error_after"}), "only valid with the target payments"),
            (
                json!({"target": "bus", "kind": "error", "point": "orders.placed"}),
                "only valid with a function as target",
            ),
            (json!({"target": "bus", "kind": "error", "rate": -1}), "0 and 1"),
            (json!({"target": "bus", "kind": "error", "speed": 1}), "speed"),
        ];
        for (request, expected) in cases {
            let refused = fault(system, request.clone()).await.expect(400);
            let message = refused.body["message"].as_str().unwrap();
            assert!(message.contains(expected), "{request}: {message}");
        }
    });
}

#[test]
fn a_crash_at_a_point_happens_once_and_the_message_is_processed_again() {
    with_own_system(async |system| {
        let crash =
            json!({"target": "function:Fulfilment", "kind": "crash", "point": "fulfilment.waiting", "count": 1});
        fault(system, crash).await.expect(204);
        shop::customer(system, "crash-ann").await;
        shop::products(system, &["crash-tea"], 10).await;
        let order = shop::order(system, "crash-ann", &[("crash-tea", 1)], "crash-order").await;
        shop::moved(system, order, &["paid"]).await;
        drain(system).await;
        let faults = get(system, "/_local/faults").await;
        let rule = &faults["function:Fulfilment"][0];
        assert_eq!(rule["fired"], 1, "{faults}");
        assert!(rule["passes"].as_u64().unwrap() >= 2, "the message was received twice: {faults}");
    });
}

#[test]
fn draining_waits_for_a_delayed_subscriber_and_not_for_abandoned_deliveries() {
    with_own_system(async |system| {
        let environment = get(system, "/_local/environment").await;
        fault(system, json!({"target": "function:Notifier", "kind": "throttle"})).await.expect(204);
        // The notifier cannot read this event, so all attempts fail.
        put_event(&environment, "OrderPlaced", &json!({"id": "no such form"})).await;
        let late = Call::new("POST", "/_local/drain?timeout_s=1").send(system).await.expect(504);
        assert!(late.body["message"].as_str().unwrap().contains("1 deliveries are unfinished"), "{}", late.body);
        Call::new("DELETE", "/_local/faults").send(system).await.expect(204);
        drain(system).await;
        assert!(all(system, "/_local/mail").await.is_empty());
    });
}
