//! Tests functions in separate processes. The test binary starts itself again as the function, with
//! the real `lambda_runtime`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use runtime_api::{Fault, FaultKind, FunctionSpec, Functions, InvokeError, Log, MAX_PAYLOAD};
use serde_json::{Value, json};
use tokio::time::Instant;

/// Runs the function. This code is a test, so that the test binary can run the function alone.
#[tokio::test(flavor = "current_thread")]
#[ignore = "the function that the other tests start"]
async fn function() {
    if std::env::var("BEHAVIOUR").as_deref() == Ok("never-ready") {
        std::process::exit(3);
    }
    lambda_runtime::run(service_fn(handle)).await.unwrap();
}

async fn handle(event: LambdaEvent<Value>) -> Result<Value, Error> {
    match event.payload["do"].as_str() {
        Some("describe") => Ok(json!({
            "pid": std::process::id(),
            "request_id": event.context.request_id,
            "deadline": event.context.deadline,
            "arn": event.context.invoked_function_arn,
            "name": event.context.env_config.function_name,
            "memory": event.context.env_config.memory,
            "home": std::env::var("HOME").ok(),
            "own": std::env::var("OWN").ok(),
        })),
        Some("fail") => Err("it did not work".into()),
        Some("exit") => std::process::exit(7),
        Some("hang") => std::future::pending().await,
        Some("grow") => Ok(json!("x".repeat(MAX_PAYLOAD))),
        // The call returns only if two invocations run at the same time, each in its own process.
        Some("meet") => {
            let folder = event.payload["folder"].as_str().unwrap().to_owned();
            let mine = format!("{folder}/{}", std::process::id());
            std::fs::write(mine, "").unwrap();
            loop {
                if std::fs::read_dir(&folder).unwrap().count() >= 2 {
                    return Ok(json!(std::process::id()));
                }
                tokio::task::yield_now().await;
            }
        }
        _ => Ok(event.payload),
    }
}

fn spec(name: &str) -> FunctionSpec {
    FunctionSpec {
        name: name.to_owned(),
        program: std::env::current_exe().unwrap(),
        args: ["function", "--exact", "--ignored", "--nocapture"].map(Into::into).to_vec(),
        environment: BTreeMap::from([("OWN".to_owned(), "value".to_owned())]),
        handler: "bootstrap".to_owned(),
        timeout: Duration::from_secs(60),
        memory_mb: 256,
        max_environments: 1,
        region: "us-east-1".to_owned(),
        account: "000000000000".to_owned(),
    }
}

async fn start(spec: FunctionSpec) -> Functions {
    Functions::start(vec![spec], Log::Off).await
}

async fn invoke(functions: &Functions, payload: Value) -> Result<Value, InvokeError> {
    let payload = Bytes::from(payload.to_string());
    let deadline = Instant::now() + Duration::from_secs(120);
    let answer = functions.invoke("f", payload, deadline).await?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

fn error_type(result: Result<Value, InvokeError>) -> (String, String) {
    match result {
        Err(InvokeError::Function(error)) => (error.error_type, error.message),
        other => panic!("{other:?} is not a function's error"),
    }
}

#[tokio::test]
async fn a_function_gets_its_payload_and_the_headers_of_lambda() {
    let functions = start(spec("f")).await;
    assert_eq!(invoke(&functions, json!({"a": 1})).await, Ok(json!({"a": 1})));

    let first = invoke(&functions, json!({"do": "describe"})).await.unwrap();
    assert_eq!(first["name"], "f");
    assert_eq!(first["memory"], 256);
    assert_eq!(first["own"], "value");
    assert_eq!(first["home"], Value::Null, "a function does not inherit the environment");
    assert_eq!(first["arn"], "arn:aws:lambda:us-east-1:000000000000:function:f");
    assert!(first["deadline"].as_u64().unwrap() > 1_700_000_000_000);

    let second = invoke(&functions, json!({"do": "describe"})).await.unwrap();
    assert_eq!(first["pid"], second["pid"], "a warm environment is reused");
    assert_ne!(first["request_id"], second["request_id"]);
    functions.shutdown().await;
}

#[tokio::test]
async fn a_function_error_is_returned_and_the_process_keeps_running() {
    let functions = start(spec("f")).await;
    let before = invoke(&functions, json!({"do": "describe"})).await.unwrap();
    let (_, message) = error_type(invoke(&functions, json!({"do": "fail"})).await);
    assert!(message.contains("it did not work"), "{message}");
    let after = invoke(&functions, json!({"do": "describe"})).await.unwrap();
    assert_eq!(before["pid"], after["pid"]);
    functions.shutdown().await;
}

#[tokio::test]
async fn a_crash_is_an_exit_error_and_the_next_invocation_has_a_new_process() {
    let functions = start(spec("f")).await;
    let before = invoke(&functions, json!({"do": "describe"})).await.unwrap();
    let (kind, message) = error_type(invoke(&functions, json!({"do": "exit"})).await);
    assert_eq!(kind, "Runtime.ExitError");
    assert!(message.ends_with("exit status 7"), "{message}");
    let after = invoke(&functions, json!({"do": "describe"})).await.unwrap();
    assert_ne!(before["pid"], after["pid"]);
    functions.shutdown().await;
}

#[tokio::test]
async fn the_timeout_ends_the_process() {
    let functions = start(FunctionSpec { timeout: Duration::from_secs(1), ..spec("f") }).await;
    let before = invoke(&functions, json!({"do": "describe"})).await.unwrap();
    let (kind, message) = error_type(invoke(&functions, json!({"do": "hang"})).await);
    assert_eq!(kind, "Sandbox.Timedout");
    assert!(message.ends_with("Task timed out after 1 seconds"), "{message}");
    let after = invoke(&functions, json!({"do": "describe"})).await.unwrap();
    assert_ne!(before["pid"], after["pid"]);
    functions.shutdown().await;
}

#[tokio::test]
async fn the_start_succeeds_but_every_invocation_fails_if_the_function_cannot_initialize() {
    let functions = start(FunctionSpec {
        environment: BTreeMap::from([("BEHAVIOUR".to_owned(), "never-ready".to_owned())]),
        ..spec("f")
    })
    .await;
    for _ in 0..2 {
        let (kind, message) = error_type(invoke(&functions, json!({})).await);
        assert_eq!(kind, "Runtime.ExitError");
        assert!(message.ends_with("exit status 3"), "{message}");
    }
    functions.shutdown().await;
}

#[tokio::test]
async fn a_missing_program_is_reported() {
    let functions = start(FunctionSpec { program: "no/such/program".into(), ..spec("f") }).await;
    let (kind, _) = error_type(invoke(&functions, json!({})).await);
    assert_eq!(kind, "Runtime.InvalidEntrypoint");
    functions.shutdown().await;
}

#[tokio::test]
async fn concurrent_invocations_have_separate_processes_up_to_the_limit() {
    let folder = std::env::temp_dir().join(format!("runtime-api-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let functions = start(FunctionSpec { max_environments: 2, ..spec("f") }).await;
    let meet = json!({"do": "meet", "folder": folder});
    let (first, second) = tokio::join!(invoke(&functions, meet.clone()), invoke(&functions, meet.clone()));
    assert_ne!(first.unwrap(), second.unwrap());

    let many = (0..20).map(|_| invoke(&functions, json!({"do": "describe"})));
    let mut pids = std::collections::BTreeSet::new();
    for answer in futures::future::join_all(many).await {
        pids.insert(answer.unwrap()["pid"].as_u64().unwrap());
    }
    assert!(pids.len() <= 2, "{pids:?}");
    functions.shutdown().await;
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn an_answer_over_the_limit_is_an_error() {
    let functions = start(spec("f")).await;
    let (kind, _) = error_type(invoke(&functions, json!({"do": "grow"})).await);
    assert_eq!(kind, "Function.ResponseSizeTooLarge");
    assert_eq!(invoke(&functions, json!(1)).await, Ok(json!(1)));
    functions.shutdown().await;
}

#[tokio::test]
async fn an_unknown_function_and_a_large_payload_are_refused() {
    let functions = start(spec("f")).await;
    let deadline = Instant::now() + Duration::from_secs(60);
    assert_eq!(functions.invoke("g", Bytes::new(), deadline).await, Err(InvokeError::UnknownFunction("g".to_owned())));
    let large = Bytes::from(vec![b' '; MAX_PAYLOAD + 1]);
    assert_eq!(functions.invoke("f", large, deadline).await, Err(InvokeError::PayloadTooLarge(MAX_PAYLOAD + 1)));
    functions.shutdown().await;
}

#[tokio::test]
async fn an_invocation_fails_at_its_callers_deadline() {
    let functions = start(spec("f")).await;
    let payload = Bytes::from(json!({"do": "hang"}).to_string());
    assert_eq!(functions.invoke("f", payload, Instant::now()).await, Err(InvokeError::Deadline));
    functions.shutdown().await;
}

#[tokio::test]
async fn shutting_down_ends_an_invocation_and_its_process() {
    let functions = start(spec("f")).await;
    let hang = invoke(&functions, json!({"do": "hang"}));
    let (answer, ()) = tokio::join!(hang, async {
        tokio::task::yield_now().await;
        functions.shutdown().await;
    });
    assert_eq!(answer, Err(InvokeError::Stopped));
    assert_eq!(invoke(&functions, json!({})).await, Err(InvokeError::Stopped));
}

#[tokio::test]
async fn each_kind_of_fault_has_its_documented_effect_and_only_a_crash_replaces_the_process() {
    let functions = start(spec("f")).await;
    let pid = async || invoke(&functions, json!({"do": "describe"})).await.unwrap()["pid"].clone();
    let first = pid().await;
    let faults = functions.faults("f").unwrap();
    let fault = |kind| Fault { kind, rate: 1.0, count: Some(1), seed: 0 };
    faults.add(fault(FaultKind::Throttle)).unwrap();
    assert_eq!(invoke(&functions, json!({})).await, Err(InvokeError::Throttled));
    faults.add(fault(FaultKind::Error)).unwrap();
    assert_eq!(error_type(invoke(&functions, json!({})).await).0, "Injected.Error");
    faults.add(fault(FaultKind::Timeout)).unwrap();
    assert_eq!(error_type(invoke(&functions, json!({})).await).0, "Sandbox.Timedout");
    faults.add(fault(FaultKind::Slow)).unwrap();
    assert_eq!(pid().await, first);
    let fired: Vec<u64> = faults.counts().into_iter().map(|(_, fired)| fired).collect();
    assert_eq!((fired, functions.names(), functions.faults("g").is_none()), (vec![1; 4], vec!["f"], true));

    faults.clear();
    faults.add(fault(FaultKind::Crash)).unwrap();
    // The function never returns, so the invocation ends only when the process is killed.
    let (kind, message) = error_type(invoke(&functions, json!({"do": "hang"})).await);
    assert_eq!(kind, "Runtime.ExitError");
    assert!(message.contains("signal"), "{message}");
    assert_ne!(pid().await, first);
    functions.shutdown().await;
}
