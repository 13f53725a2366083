//! A whole system in this process, and what it answers itself: the gateway's own refusals and `/_local`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use local::{Log, Options, System};
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};

async fn start() -> System {
    let options = Options {
        log: Log::Off,
        table_endpoint: None,
        search_endpoint: None,
        ..Options::from_environment(env!("CARGO_BIN_EXE_bodega").into())
    };
    System::start(options).await.unwrap()
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
async fn the_gateway_refuses_by_itself_as_aws_does() {
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
async fn faults_are_put_in_force_counted_and_cleared() {
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
    assert_eq!(listed, (StatusCode::OK, json!({"table": [], "search": [], "bus": [], "store": [], "mail": []})));
    system.shutdown().await;
}

#[tokio::test]
async fn a_function_can_be_invoked_by_hand() {
    let system = start().await;
    let invoke = async |function: &str, body: &'static str| {
        let request = Client::new().post(format!("{}/_local/invoke/{function}", system.url())).body(body);
        json_of(request.send().await.unwrap()).await
    };
    let nothing = json!({"found": 0, "undone": 0, "finished": 0, "failed": 0, "left": 0});
    assert_eq!(invoke("Janitor", r#"{"grace_seconds":0}"#).await, (StatusCode::OK, nothing.clone()));
    assert_eq!(invoke("Janitor", "").await, (StatusCode::OK, nothing));
    for (function, body, status, message) in [
        ("Nobody", "{}", StatusCode::NOT_FOUND, "there is no function Nobody: Catalog"),
        ("Janitor", "{", StatusCode::BAD_REQUEST, "an event is JSON"),
        ("Janitor", r#"{"grace_seconds":"soon"}"#, StatusCode::BAD_GATEWAY, "soon"),
    ] {
        let (answered, problem) = invoke(function, body).await;
        assert_eq!(answered, status, "{problem}");
        assert!(problem["message"].as_str().unwrap().contains(message), "{problem}");
    }
    system.shutdown().await;
}

#[tokio::test]
async fn what_is_asked_wrongly_of_the_control_is_said_so() {
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
