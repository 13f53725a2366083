//! Tests the bus, asynchronous invocation and queues, in simulated time.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use event_pattern::{Dialect, Pattern};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::*;

mod journal;

type Script = dyn Fn(usize, &Value) -> Result<Value, CallError> + Send + Sync;

/// A function with a script. The script gets the number and the event of a call, and returns the
/// result.
#[derive(Clone)]
struct Function {
    script: Arc<Script>,
    calls: Arc<Mutex<Vec<(Instant, Value)>>>,
}

impl Function {
    fn new(script: impl Fn(usize, &Value) -> Result<Value, CallError> + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), calls: Arc::default() }
    }

    fn events(&self) -> Vec<Value> {
        self.calls.lock().unwrap().iter().map(|(_, event)| event.clone()).collect()
    }

    /// Returns the message bodies of each call. Also checks that each message has the members of
    /// SAM's sample event, with values of the same types.
    fn batches(&self) -> Vec<Vec<String>> {
        let sample = include_str!("../../../events/fulfilment-generated-sqs-receive-message.json");
        let sample: Value = serde_json::from_str(sample).unwrap();
        let mut sample = types(&sample["Records"][0]);
        // The emulated message has no hash.
        sample.remove("/md5OfBody").unwrap();
        let bodies = |event: Value| {
            let records = event["Records"].as_array().unwrap().iter();
            let body = |record: &Value| {
                assert_eq!(types(record), sample);
                record["body"].as_str().unwrap().to_owned()
            };
            records.map(body).collect()
        };
        self.events().into_iter().map(bodies).collect()
    }
}

/// Returns the JSON pointer of each member of an object, including nested members, with the type of
/// its value.
fn types(value: &Value) -> BTreeMap<String, &'static str> {
    let mut types = BTreeMap::new();
    for (name, value) in value.as_object().unwrap() {
        if value.is_object() {
            types.extend(self::types(value).into_iter().map(|(below, kind)| (format!("/{name}{below}"), kind)));
        }
        let kind = if value.is_object() {
            "object"
        } else if value.is_string() {
            "string"
        } else {
            "other"
        };
        types.insert(format!("/{name}"), kind);
    }
    types
}

impl Invoke for Function {
    fn invoke(&self, payload: Bytes) -> BoxFuture<'_, Result<Bytes, CallError>> {
        Box::pin(async move {
            let event: Value = serde_json::from_slice(&payload).unwrap();
            let index = {
                let mut calls = self.calls.lock().unwrap();
                calls.push((Instant::now(), event.clone()));
                calls.len() - 1
            };
            tokio::task::yield_now().await;
            let answer = (self.script)(index, &event);
            if answer == Err(hangs()) {
                std::future::pending::<()>().await;
            }
            answer.map(|answer| answer.to_string().into())
        })
    }
}

/// A role that refuses each call in this list once, and allows all other calls.
#[derive(Clone, Default)]
struct Refusing(Arc<Mutex<Vec<QueueCall>>>);

impl Role for Refusing {
    fn check(&self, call: QueueCall) -> Result<(), String> {
        let mut refusals = self.0.lock().unwrap();
        match refusals.iter().position(|refused| *refused == call) {
            Some(at) => Err(format!("{:?} is not allowed", refusals.remove(at))),
            None => Ok(()),
        }
    }
}

fn failed() -> CallError {
    CallError::Failed("scripted".to_owned())
}

/// Returns the result that tells the test function never to return.
fn hangs() -> CallError {
    CallError::NotCalled("hangs".to_owned())
}

fn queue(redrive: Option<(Arc<Queue>, u32)>) -> Arc<Queue> {
    let arn = "arn:aws:sqs:r:a:q".to_owned();
    Queue::new(QueueSettings { arn, visibility_timeout: Duration::from_secs(180), redrive, journal: None })
}

fn asynchronous(function: &Function, dead: &Arc<Queue>) -> Arc<AsyncFunction> {
    let settings = AsyncSettings {
        arn: "arn:aws:lambda:r:a:function:F".to_owned(),
        maximum_retries: 2,
        maximum_age: Duration::from_secs(600),
        on_failure: Some(Arc::clone(dead)),
    };
    AsyncFunction::start(settings, Arc::new(function.clone()), Pace::default())
}

fn mapping(function: &Function, queue: &Arc<Queue>) -> QueueMapping {
    mapping_as(Refusing::default(), function, queue)
}

fn mapping_as(refuses: Refusing, function: &Function, queue: &Arc<Queue>) -> QueueMapping {
    let settings = QueueMappingSettings {
        batch_size: 10,
        batching_window: Duration::ZERO,
        report_batch_item_failures: true,
        maximum_concurrency: 1,
    };
    QueueMapping::start(settings, Arc::clone(queue), Arc::new(function.clone()), Arc::new(refuses), Pace::default())
}

/// Waits until no work is in progress, in simulated time.
async fn settle(pending: &Pending) {
    timeout(Duration::from_secs(7200), pending.settled()).await.unwrap();
}

fn bodies(queue: &Queue) -> Vec<String> {
    queue.contents().into_iter().map(|message| message.body).collect()
}

#[tokio::test(start_paused = true)]
async fn an_event_reaches_only_the_targets_of_matching_rules() {
    let pending = Pending::default();
    let (function, dead) = (Function::new(|_, _| Ok(Value::Null)), queue(None));
    let later = asynchronous(&function, &dead);
    let jobs = queue(None);
    let target = |kind| Target {
        kind,
        maximum_retries: 1,
        maximum_age: Duration::from_secs(60),
        dead_letter: Some(Arc::clone(&dead)),
    };
    let rule = |name: &str, pattern: Value, targets| Rule {
        name: name.to_owned(),
        bus: "shop".to_owned(),
        pattern: Pattern::new(&pattern, Dialect::EventBridge).unwrap(),
        targets,
    };
    let rules = vec![
        rule(
            "both",
            json!({"detail-type": ["A"]}),
            vec![target(TargetKind::Function(Arc::clone(&later))), target(TargetKind::Queue(Arc::clone(&jobs)))],
        ),
        rule("one", json!({"detail-type": ["A", "B"]}), vec![target(TargetKind::Function(later))]),
    ];
    let bus = EventBus::start(rules, Pace::default());
    let mapping = mapping(&Function::new(|_, _| Ok(Value::Null)), &jobs);
    for kind in ["A", "B", "C"] {
        bus.publish("shop", &json!({"detail-type": kind}), &pending.begin()).await;
        bus.publish("other", &json!({"detail-type": kind}), &pending.begin()).await;
    }
    settle(&pending).await;
    let mut kinds: Vec<String> = function.events().iter().map(|event| event["detail-type"].to_string()).collect();
    kinds.sort();
    assert_eq!(kinds, ["\"A\"", "\"A\"", "\"B\""]);
    assert!(dead.contents().is_empty() && jobs.contents().is_empty());
    drop(mapping);
    bus.publish("shop", &json!({"detail-type": "A", "n": 1}), &pending.begin()).await;
    timeout(Duration::from_secs(9), pending.settled()).await.unwrap_err();
    assert_eq!(bodies(&jobs), [json!({"detail-type": "A", "n": 1}).to_string()]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_event_is_retried_twice_and_then_sent_to_the_destination() {
    let pending = Pending::default();
    let dead = queue(None);
    let function = Function::new(|_, event| if event["bad"] == true { Err(failed()) } else { Ok(Value::Null) });
    let later = asynchronous(&function, &dead);
    later.take(json!({"bad": true}), pending.begin()).await.unwrap();
    later.take(json!({"bad": false}), pending.begin()).await.unwrap();
    settle(&pending).await;
    let tried = function.events().into_iter().filter(|event| event["bad"] == true).count();
    assert_eq!((tried, function.events().len()), (3, 4));
    let record: Value = serde_json::from_str(&bodies(&dead)[0]).unwrap();
    assert_eq!(record["requestContext"]["condition"], "RetriesExhausted");
    assert_eq!(record["requestContext"]["approximateInvokeCount"], 3);
    assert_eq!(record["requestPayload"], json!({"bad": true}));
    assert_eq!(dead.contents().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_throttled_function_is_retried_until_the_event_is_too_old() {
    for (throttles, given_up) in [(20, 0), (10_000, 1)] {
        let pending = Pending::default();
        let dead = queue(None);
        let function = Function::new(move |call, _| match call < throttles {
            true => Err(CallError::NotCalled("throttled".to_owned())),
            false => Ok(Value::Null),
        });
        let later = asynchronous(&function, &dead);
        later.take(json!({}), pending.begin()).await.unwrap();
        settle(&pending).await;
        assert_eq!(dead.contents().len(), given_up, "{throttles}");
        if given_up > 0 {
            let record: Value = serde_json::from_str(&bodies(&dead)[0]).unwrap();
            assert_eq!(record["requestContext"]["condition"], "EventAgeExceeded");
            assert_eq!(record["requestContext"]["approximateInvokeCount"], 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_receive_permission_a_message_waits_and_without_delete_permission_it_comes_again() {
    let (pending, jobs) = (Pending::default(), queue(None));
    let function = Function::new(|_, _| Ok(json!({"batchItemFailures": []})));
    jobs.send("a".to_owned(), pending.begin()).unwrap();
    let refusing = Refusing::default();
    refusing.0.lock().unwrap().extend([QueueCall::ReceiveMessage; 1000]);
    let _mapping = mapping_as(refusing.clone(), &function, &jobs);
    timeout(Duration::from_secs(600), pending.settled()).await.unwrap_err();
    assert!(function.events().is_empty());
    assert!(refusing.0.lock().unwrap().len() < 1000);

    *refusing.0.lock().unwrap() = vec![QueueCall::DeleteMessage];
    let began = Instant::now();
    settle(&pending).await;
    assert_eq!(function.batches(), [["a"], ["a"]]);
    assert!(began.elapsed() >= Duration::from_secs(180), "the message came again before the visibility timeout");
}

#[tokio::test(start_paused = true)]
async fn messages_have_the_form_of_lambda_and_only_reported_failures_are_delivered_again() {
    let pending = Pending::default();
    let jobs = queue(None);
    let function = Function::new(|call, event| match call {
        0 => Ok(json!({"batchItemFailures": [{"itemIdentifier": event["Records"][1]["messageId"]}]})),
        _ => Ok(json!({"batchItemFailures": []})),
    });
    for body in ["a", "b", "c"] {
        jobs.send(body.to_owned(), pending.begin()).unwrap();
    }
    let _mapping = mapping(&function, &jobs);
    settle(&pending).await;
    assert_eq!(function.batches(), [vec!["a", "b", "c"], vec!["b"]]);
    let record = &function.events()[1]["Records"][0];
    assert_eq!(record["eventSource"], "aws:sqs");
    assert_eq!(record["eventSourceARN"], jobs.arn());
    assert_eq!(record["attributes"]["ApproximateReceiveCount"], "2");
    assert_ne!(record["receiptHandle"], function.events()[0]["Records"][1]["receiptHandle"]);
}

#[tokio::test(start_paused = true)]
async fn no_batch_exceeds_the_batch_size_and_an_invalid_response_fails_the_whole_batch() {
    let pending = Pending::default();
    let jobs = queue(None);
    let function = Function::new(|call, _| match call {
        0 => Ok(json!({"batchItemFailures": [{"itemIdentifier": ""}]})),
        _ => Ok(Value::Null),
    });
    for number in 0..12 {
        jobs.send(number.to_string(), pending.begin()).unwrap();
    }
    let _mapping = mapping(&function, &jobs);
    settle(&pending).await;
    let sizes: Vec<usize> = function.batches().iter().map(Vec::len).collect();
    assert_eq!(sizes, [10, 2, 10]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_fails_at_its_last_reception_moves_to_the_dead_letter_queue() {
    let pending = Pending::default();
    let dead = queue(None);
    let jobs = queue(Some((Arc::clone(&dead), 3)));
    let function = Function::new(|_, _| Err(failed()));
    jobs.send("job".to_owned(), pending.begin()).unwrap();
    let _mapping = mapping(&function, &jobs);
    settle(&pending).await;
    assert_eq!(function.batches().len(), 3);
    let given_up = dead.contents().remove(0);
    assert_eq!((given_up.body.as_str(), given_up.receive_count), ("job", 3));
    assert!(jobs.contents().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_message_is_hidden_until_its_timeout_and_an_old_receipt_deletes_nothing() {
    let pending = Pending::default();
    let jobs = queue(None);
    jobs.send("job".to_owned(), pending.begin()).unwrap();
    let first = jobs.receive(10).remove(0);
    assert!(jobs.receive(10).is_empty());
    let before = Instant::now();
    timeout(Duration::from_secs(600), jobs.ready()).await.unwrap();
    assert_eq!(before.elapsed().as_secs(), 180);
    let second = jobs.receive(10).remove(0);
    assert_eq!((second.receive_count, &second.id), (2, &first.id));
    jobs.delete(&first.receipt);
    assert_eq!(jobs.contents().len(), 1);
    jobs.delete(&second.receipt);
    assert_eq!((jobs.contents().len(), pending.count()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn abandoned_calls_and_dead_letters_are_not_pending() {
    let pending = Pending::default();
    let dead = queue(None);
    let function = Function::new(|_, _| Err(failed()));
    asynchronous(&function, &dead).take(json!({}), pending.begin()).await.unwrap();
    // The statement above drops the `AsyncFunction` at its end. This abandons the call.
    settle(&pending).await;
    dead.give_up(Message::new("x".to_owned()), "arn", Value::Null).unwrap();
    assert_eq!((pending.count(), dead.contents().len()), (0, 1));
}

#[test]
fn each_wait_is_twice_the_previous_one_up_to_the_maximum() {
    let pace = Pace { first: Duration::from_millis(20), most: Duration::from_millis(70) };
    let waits: Vec<u128> = [1, 2, 3, 4, 40].map(|failures| pace.after(failures).as_millis()).into();
    assert_eq!(waits, [20, 40, 70, 70, 70]);
}
