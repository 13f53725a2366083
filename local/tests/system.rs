#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use local::{Log, Options, StartError, System};
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};

async fn start() -> System {
    System::start(options()).await.unwrap()
}

fn options() -> Options {
    Options {
        log: Log::Off,
        table_endpoint: None,
        search_endpoint: None,
        ..Options::from_environment(env!("CARGO_BIN_EXE_bodega").into())
    }
}

async fn with_parameter(name: &str, value: &str) -> Result<System, StartError> {
    System::start(Options { parameters: vec![(name.to_owned(), value.to_owned())], ..options() }).await
}

async fn call(system: &System, method: Method, path: &str) -> Response {
    let request = Client::new().request(method, format!("{}{path}", system.url()));
    request.send().await.unwrap()
}

async fn json_of(response: Response) -> (StatusCode, Value) {
    (response.status(), response.json().await.unwrap())
}

#[tokio::test]
async fn a_fresh_system_is_healthy_drained_and_empty() {
    let system = start().await;
    let health = call(&system, Method::GET, "/health").await;
    assert_eq!(json_of(health).await, (StatusCode::OK, json!({"status": "ok"})));

    let drained = call(&system, Method::POST, "/_local/drain").await;
    let expected = json!({"records": 0, "quarantined": 0, "lag": 0, "index": {"products": 0, "orders": 0}});
    assert_eq!(json_of(drained).await, (StatusCode::OK, expected));

    let empty = json!({"items": [], "next_cursor": null});
    for list in ["/_local/index/products", "/_local/index/orders", "/_local/quarantine", "/_local/failures"] {
        let listed = call(&system, Method::GET, list).await;
        assert_eq!(json_of(listed).await, (StatusCode::OK, empty.clone()), "{list}");
    }
    let swept = call(&system, Method::POST, "/_local/ttl-sweep").await;
    assert_eq!(json_of(swept).await, (StatusCode::OK, json!({"removed": 0})));
    system.shutdown().await;
}

#[tokio::test]
async fn the_gateways_own_error_responses_equal_the_responses_of_aws() {
    let system = start().await;
    let nowhere = call(&system, Method::GET, "/v1/nowhere").await;
    assert!(nowhere.headers().contains_key("apigw-requestid"));
    assert_eq!(json_of(nowhere).await, (StatusCode::NOT_FOUND, json!({"message": "Not Found"})));

    let bad_id = call(&system, Method::GET, "/v1/products/%FF").await;
    assert_eq!(json_of(bad_id).await, (StatusCode::BAD_REQUEST, json!({"message": "Bad Request"})));

    let unauthorized = (StatusCode::UNAUTHORIZED, json!({"message": "Unauthorized"}));
    let anonymous = call(&system, Method::GET, "/v1/customers/c").await;
    assert_eq!(json_of(anonymous).await, unauthorized);
    let forged = Client::new()
        .get(format!("{}/v1/customers/c", system.url()))
        .bearer_auth(format!("{}x", system.token("c", &[])));
    assert_eq!(json_of(forged.send().await.unwrap()).await, unauthorized);

    let too_large = Client::new()
        .post(format!("{}/v1/products", system.url()))
        .bearer_auth(system.token("s", &["staff".to_owned()]))
        .body(vec![b' '; 10 * 1024 * 1024 + 1]);
    let expected = json!({"message": "Request Entity Too Large"});
    assert_eq!(json_of(too_large.send().await.unwrap()).await, (StatusCode::PAYLOAD_TOO_LARGE, expected));
    system.shutdown().await;
}

#[tokio::test]
async fn a_page_of_a_permitted_origin_gets_a_token() {
    const PAGE: &str = "http://localhost:5173";
    let system = with_parameter("CorsOrigins", PAGE).await.unwrap();
    let url = format!("{}/_local/tokens", system.url());
    for (origin, status, allowed) in
        [(PAGE, 204, Some(PAGE)), ("http://localhost:5174", 204, None), ("https://elsewhere.example", 403, None)]
    {
        let question = Client::new().request(Method::OPTIONS, &url).header("origin", origin);
        let question = question.header("access-control-request-method", "POST");
        let answer = question.header("access-control-request-headers", "content-type").send().await.unwrap();
        let told = answer.headers().get("access-control-allow-origin").map(|value| value.to_str().unwrap());
        assert_eq!((answer.status().as_u16(), told), (status, allowed), "{origin}");
    }
    let token = Client::new().post(&url).header("origin", PAGE).json(&json!({"sub": "ann"})).send().await.unwrap();
    assert_eq!(
        (token.status().as_u16(), token.headers()["access-control-allow-origin"].as_bytes()),
        (200, PAGE.as_bytes())
    );
    system.shutdown().await;
}

/// API Gateway accepts at most 10,240 bytes for the request line and the headers. A long token, a
/// long cursor and a long search together can exceed them.
#[tokio::test]
async fn the_gateway_refuses_more_than_ten_kilobytes_of_request_line_and_headers() {
    let system = start().await;
    let with = |path: String, header: usize| {
        let request = Client::new().get(format!("{}{path}", system.url()));
        async move { json_of(request.header("x-long", "a".repeat(header)).send().await.unwrap()).await }
    };
    let refused = (StatusCode::from_u16(431).unwrap(), json!({"message": "Request Header Fields Too Large"}));
    let search = |length: usize| format!("/v1/search/products?q={}", "a".repeat(length));
    assert_eq!(with(search(1), 9_500).await.0, StatusCode::OK);
    assert_eq!(with(search(1), 10_240).await, refused);
    assert_eq!(with(search(10_240), 1).await, refused);
    assert_eq!(with(search(5_200), 5_200).await, refused);
    system.shutdown().await;
}

/// Sends a request or a preflight request of a web page. Returns the status and the CORS headers.
async fn from_page(
    system: &System,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> (u16, Vec<(String, String)>) {
    let request = Client::new().request(method, format!("{}{path}", system.url()));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let answer = request.send().await.unwrap();
    let text = |value: &reqwest::header::HeaderValue| value.to_str().unwrap().to_owned();
    let headers = answer.headers().iter().filter(|(name, _)| name.as_str().starts_with("access-control-"));
    let mut headers: Vec<_> =
        headers.map(|(name, value)| (name.as_str()["access-control-".len()..].to_owned(), text(value))).collect();
    headers.sort();
    assert!(answer.headers().contains_key("apigw-requestid"));
    (answer.status().as_u16(), headers)
}

#[tokio::test]
async fn only_pages_of_the_configured_origins_may_call_the_api() {
    const PAGE: &str = "http://localhost:5173";
    let system = with_parameter("CorsOrigins", PAGE).await.unwrap();
    let question = |origin, method| {
        [
            ("origin", origin),
            ("access-control-request-method", method),
            ("access-control-request-headers", "authorization,content-type,if-none-match"),
        ]
    };
    // The gateway answers preflight requests without a token, even if there is no route.
    for path in ["/v1/orders/1", "/v1/nowhere"] {
        let (status, told) = from_page(&system, Method::OPTIONS, path, &question(PAGE, "PUT")).await;
        let told: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((status, told), (204, vec!["allow-headers", "allow-methods", "allow-origin", "max-age"]), "{path}");
    }
    for refused in [question("http://localhost:5174", "PUT"), question(PAGE, "TRACE")] {
        let answer = from_page(&system, Method::OPTIONS, "/v1/orders/1", &refused).await;
        assert_eq!(answer, (204, Vec::new()), "{refused:?}");
    }
    // The first response comes from a function. The other responses come from the gateway itself.
    for (method, path, status) in [
        (Method::GET, "/v1/products/none", 404),
        (Method::GET, "/v1/customers/c", 401),
        (Method::GET, "/v1/nowhere", 404),
        (Method::OPTIONS, "/v1/products/none", 404),
    ] {
        let (answered, told) = from_page(&system, method.clone(), path, &[("origin", PAGE)]).await;
        assert_eq!(answered, status, "{method} {path}");
        let [(allow, origin), (expose, exposed)] = &told[..] else { panic!("{method} {path}: {told:?}") };
        assert_eq!((allow.as_str(), origin.as_str(), expose.as_str()), ("allow-origin", PAGE, "expose-headers"));
        assert!(exposed.split(',').any(|name| name == "etag"), "{exposed}");
        let other = from_page(&system, method, path, &[("origin", "https://localhost")]).await;
        assert_eq!(other, (status, Vec::new()));
    }
    system.shutdown().await;
}

#[tokio::test]
async fn a_parameter_that_cannot_be_used_is_refused_with_the_reason() {
    for (name, value, expected) in [
        ("CorsOrigins", "localhost", "localhost is no origin such as https://shop.example.com"),
        ("FoldStreamConsumers", "yes", "must be true or false, not yes"),
        ("Speling", "x", "there is no parameter Speling"),
        ("SearchEndpoint", "http://127.0.0.1:1", "the local system sets the parameter SearchEndpoint itself"),
    ] {
        let error = with_parameter(name, value).await.err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_mapping_is_refused_if_its_function_lacks_a_permission_that_lambda_needs() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../template.yaml")).unwrap();
    for (function, permission, mapping, action) in [
        ("StreamSearch", "- dynamodb:DescribeStream", "StreamSearchTable", "dynamodb:DescribeStream"),
        ("StreamSearch", "- dynamodb:GetShardIterator", "StreamSearchTable", "dynamodb:GetShardIterator"),
        ("StreamSearch", "dynamodb:ListStreams", "StreamSearchTable", "dynamodb:ListStreams"),
        ("StreamEvents", "- dynamodb:GetRecords", "StreamEventsTable", "dynamodb:GetRecords"),
        ("StreamEvents", "/aws/lambda/*", "StreamEventsTable", "s3:PutObject"),
        ("StreamEvents", "s3:ListBucket", "StreamEventsTable", "s3:ListBucket"),
        ("Fulfilment", "- sqs:ReceiveMessage", "FulfilmentJobs", "sqs:ReceiveMessage"),
        ("Fulfilment", "- sqs:DeleteMessage", "FulfilmentJobs", "sqs:DeleteMessage"),
        ("Fulfilment", "- sqs:GetQueueAttributes", "FulfilmentJobs", "sqs:GetQueueAttributes"),
        ("Cashier", "- sqs:ReceiveMessage", "CashierNotices", "sqs:ReceiveMessage"),
    ] {
        let start = text.find(&format!("\n  {function}:\n")).unwrap();
        let at = start + text[start..].find(permission).unwrap();
        // Misspells the action or the resource in the template, so that the function lacks the
        // permission.
        let mut lacking = text.clone();
        lacking.insert(at + permission.len() - 1, 'x');
        let path = std::env::temp_dir().join(format!("bodega-lacking-{}.yaml", std::process::id()));
        std::fs::write(&path, lacking).unwrap();
        let error =
            System::start(Options { template: Some(path.clone()), ..options() }).await.err().unwrap().to_string();
        std::fs::remove_file(&path).unwrap();
        let expected = format!(
            "the mapping {mapping} cannot be created: User: arn:aws:sts::000000000000:assumed-role/{function}/"
        );
        assert!(error.starts_with(&expected) && error.contains(&format!("perform: {action} on resource: ")), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[tokio::test]
async fn faults_are_added_counted_and_cleared() {
    let system = start().await;
    let url = format!("{}/_local/faults", system.url());
    let post = async |body: Value| Client::new().post(&url).json(&body).send().await.unwrap().status();
    let fault = json!({"target": "table", "kind": "throttle", "rate": 0.5, "count": 3, "seed": 7});
    assert_eq!(post(fault).await, StatusCode::NO_CONTENT);
    assert_eq!(post(json!({"target": "search", "kind": "slow"})).await, StatusCode::NO_CONTENT);
    for bad in [
        json!({"target": "moon", "kind": "slow"}),
        json!({"target": "table", "kind": "eclipse"}),
        json!({"target": "table", "kind": "slow", "rate": 2}),
        json!({"target": "table", "kind": "slow", "often": true}),
        json!([]),
    ] {
        assert!(post(bad.clone()).await.is_client_error(), "{bad}");
    }
    let (_, listed) = json_of(call(&system, Method::GET, "/_local/faults").await).await;
    assert_eq!(listed["table"][0]["fault"]["kind"], "throttle");
    assert_eq!(listed["search"][0]["fired"], 0);
    let cleared = call(&system, Method::DELETE, "/_local/faults").await;
    assert_eq!(cleared.status(), StatusCode::NO_CONTENT);
    let listed = json_of(call(&system, Method::GET, "/_local/faults").await).await;
    let none = json!({
        "table": [], "search": [], "bus": [], "store": [], "mail": [], "payments": [], "cloudwatch": [], "secrets": [],
    });
    assert_eq!(listed, (StatusCode::OK, none));
    system.shutdown().await;
}

#[tokio::test]
async fn a_function_can_be_invoked_by_hand() {
    let system = start().await;
    let invoke = async |function: &str, body: &'static str| {
        let request = Client::new().post(format!("{}/_local/invoke/{function}", system.url())).body(body);
        json_of(request.send().await.unwrap()).await
    };
    let nothing = json!({
        "found": 0, "undone": 0, "finished": 0, "deleted": 0, "removed": 0, "erased": 0, "failed": 0, "lapsed": 0,
        "left": 0,
    });
    assert_eq!(invoke("Janitor", r#"{"grace_seconds":0}"#).await, (StatusCode::OK, nothing.clone()));
    assert_eq!(invoke("Janitor", "").await, (StatusCode::OK, nothing));
    for (function, body, status, message) in [
        ("Nobody", "{}", StatusCode::NOT_FOUND, "there is no function Nobody; the functions are Agents"),
        ("Janitor", "{", StatusCode::BAD_REQUEST, "the event must be JSON"),
        ("Janitor", r#"{"grace_seconds":"soon"}"#, StatusCode::BAD_GATEWAY, "soon"),
    ] {
        let (answered, problem) = invoke(function, body).await;
        assert_eq!(answered, status, "{problem}");
        assert!(problem["message"].as_str().unwrap().contains(message), "{problem}");
    }
    system.shutdown().await;
}

#[tokio::test]
async fn an_invalid_request_to_the_local_routes_is_refused_with_a_message() {
    let system = start().await;
    for (method, path, status) in [
        (Method::GET, "/_local/index/moons", StatusCode::NOT_FOUND),
        (Method::GET, "/_local/index/products?cursor=x", StatusCode::BAD_REQUEST),
        (Method::GET, "/_local/quarantine?cursor=x", StatusCode::BAD_REQUEST),
        (Method::POST, "/_local/drain?timeout_s=0", StatusCode::BAD_REQUEST),
        (Method::POST, "/_local/drain?timeout_s=x", StatusCode::BAD_REQUEST),
        (Method::GET, "/_local/drain", StatusCode::METHOD_NOT_ALLOWED),
    ] {
        let answer = call(&system, method, path).await;
        assert_eq!(answer.status(), status, "{path}");
    }
    system.shutdown().await;
}
