use std::time::Duration;

use crate::common::{
    Bin, Function, MemoryStream, age, drain, failed, failures, insert, mapping, mapping_to, only, run, settings, start,
};
use serde_json::{Value, json};
use stream_poller::{Condition, FunctionError, MappingSettings, SourceError, StartingPosition};

fn ends(position: Option<&stream_poller::SequenceNumber>) -> Option<&str> {
    position.map(stream_poller::SequenceNumber::as_str)
}

#[tokio::test(start_paused = true)]
async fn no_batch_is_larger_than_the_batch_size_and_the_order_is_kept() {
    let stream = MemoryStream::new();
    stream.insert(1..=20);
    let function = Function::willing();
    let settings = MappingSettings { batch_size: 3, ..settings() };
    let progress = run(&stream, mapping(settings, &function)).await;
    let calls = function.calls();
    assert!(calls.iter().all(|batch| batch.len() <= 3));
    assert_eq!(calls.concat(), (1..=20).collect::<Vec<u64>>());
    assert_eq!((progress.delivered, progress.pending), (20, 0));
    assert_eq!(ends(progress.shards[0].position.as_ref()), Some("20"));
}

#[tokio::test(start_paused = true)]
async fn a_record_that_a_filter_excludes_is_skipped_and_counted() {
    let stream = MemoryStream::new();
    stream.insert(1..=10);
    let function = Function::willing();
    let filters = vec![
        json!({"dynamodb": {"Keys": {"PK": {"S": ["3"]}}}}).to_string(),
        json!({"dynamodb": {"Keys": {"PK": {"S": ["5"]}}}}).to_string(),
    ];
    let progress = run(&stream, mapping(MappingSettings { filters, ..settings() }, &function)).await;
    assert_eq!(function.calls().concat(), [3, 5]);
    assert_eq!((progress.delivered, progress.filtered), (2, 8));
    assert_eq!(ends(progress.shards[0].position.as_ref()), Some("10"));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changed_nothing_is_not_delivered() {
    let stream = MemoryStream::new();
    let mut record = insert(1, "a", age(0));
    record["eventName"] = "MODIFY".into();
    record["dynamodb"]["OldImage"] = record["dynamodb"]["NewImage"].clone();
    stream.push("s1", record);
    stream.insert([2]);
    let function = Function::willing();
    run(&stream, mapping(settings(), &function)).await;
    assert_eq!(function.calls(), [[2]]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_waits_for_its_window_and_is_sent_at_once_when_full() {
    let stream = MemoryStream::new();
    let function = Function::willing();
    let settings = MappingSettings { batch_size: 3, batching_window: Duration::from_secs(30), ..settings() };
    let _poller = start(&stream, vec![mapping(settings, &function)]).await;
    stream.insert([1]);
    tokio::time::sleep(Duration::from_secs(10)).await;
    stream.insert([2]);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(function.calls().is_empty());
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(function.calls(), [[1, 2]]);
    stream.insert([3, 4, 5]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(function.calls(), [vec![1, 2], vec![3, 4, 5]]);
}

#[tokio::test(start_paused = true)]
async fn draining_the_poller_does_not_wait_for_a_batching_window() {
    let stream = MemoryStream::new();
    let function = Function::willing();
    let settings = MappingSettings { batching_window: Duration::from_secs(300), ..settings() };
    let poller = start(&stream, vec![mapping(settings, &function)]).await;
    stream.insert([1]);
    tokio::time::timeout(Duration::from_secs(1), poller.drained()).await.unwrap();
    assert_eq!(function.calls(), [[1]]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_batch_is_retried_whole_and_then_sent_to_the_destination() {
    let stream = MemoryStream::new();
    stream.insert(1..=4);
    let (function, bin) = (Function::failing_on(2), Bin::default());
    let settings = MappingSettings { batch_size: 2, maximum_retry_attempts: Some(2), ..settings() };
    let progress = run(&stream, mapping_to(settings, &function, &bin)).await;
    assert_eq!(function.calls(), [[1, 2], [1, 2], [1, 2], [3, 4]]);
    assert_eq!(bin.contents(), [[1, 2]]);
    let batch = bin.batches.lock().unwrap()[0].clone();
    assert_eq!(batch.condition, Condition::RetryAttemptsExhausted);
    assert_eq!((batch.invocations, batch.size), (3, 2));
    assert_eq!((batch.shard_id.as_str(), batch.stream_arn.as_str()), ("s1", "arn:memory"));
    assert_eq!((progress.discarded, progress.delivered, progress.lost), (2, 2, 0));
    assert_eq!((progress.invocations, progress.failed_invocations), (4, 3));
}

#[tokio::test(start_paused = true)]
async fn a_function_that_cannot_be_called_uses_up_no_attempt() {
    let stream = MemoryStream::new();
    stream.insert([1]);
    let function = Function::new(|call, _| match call {
        0..=4 => Err(FunctionError::NotCalled("throttled".to_owned())),
        _ => Ok(Value::Null),
    });
    let settings = MappingSettings { maximum_retry_attempts: Some(0), ..settings() };
    let progress = run(&stream, mapping(settings, &function)).await;
    assert_eq!((progress.delivered, progress.discarded), (1, 0));
    assert_eq!(function.calls().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_a_batch_is_tried_until_it_succeeds() {
    let stream = MemoryStream::new();
    stream.insert([1]);
    let function = Function::new(|call, _| if call < 30 { Err(failed()) } else { Ok(Value::Null) });
    let progress = run(&stream, mapping(settings(), &function)).await;
    assert_eq!((progress.delivered, progress.invocations), (1, 31));
}

#[tokio::test(start_paused = true)]
async fn bisection_isolates_the_bad_record_and_costs_no_attempt() {
    let stream = MemoryStream::new();
    stream.insert(1..=7);
    let (function, bin) = (Function::failing_on(6), Bin::default());
    let settings = MappingSettings { bisect_on_function_error: true, maximum_retry_attempts: Some(1), ..settings() };
    let progress = run(&stream, mapping_to(settings, &function, &bin)).await;
    assert_eq!(bin.contents(), [[6]]);
    assert_eq!((progress.delivered, progress.discarded), (6, 1));
    let calls = function.calls();
    assert_eq!(calls.first().unwrap(), &[1, 2, 3, 4, 5, 6, 7]);
    let alone = calls.iter().filter(|batch| **batch == [6]).count();
    assert_eq!(alone, 2, "one attempt and one retry: {calls:?}");
    let taken: Vec<u64> = calls.into_iter().filter(|b| !b.contains(&6)).flatten().collect();
    assert_eq!(taken, [1, 2, 3, 4, 5, 7]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_retried_from_its_lowest_reported_failure() {
    let stream = MemoryStream::new();
    stream.insert(1..=5);
    let function = Function::new(|call, _| match call {
        0 => Ok(failures(&[4, 3])),
        1 => Ok(failures(&[5])),
        _ => Ok(failures::<u64>(&[])),
    });
    let settings = MappingSettings {
        report_batch_item_failures: true,
        // One retry is enough, because the two failures concern different records.
        maximum_retry_attempts: Some(1),
        ..settings()
    };
    let progress = run(&stream, mapping(settings, &function)).await;
    assert_eq!(function.calls(), [vec![1, 2, 3, 4, 5], vec![3, 4, 5], vec![5]]);
    assert_eq!((progress.delivered, progress.discarded), (5, 0));
}

#[tokio::test(start_paused = true)]
async fn a_repeatedly_reported_record_goes_to_the_destination_with_its_successors() {
    let stream = MemoryStream::new();
    stream.insert(1..=4);
    let bin = Bin::default();
    let function = Function::new(|_, batch| match batch.contains(&3) {
        true => Ok(failures(&[3])),
        false => Ok(Value::Null),
    });
    let settings = MappingSettings { report_batch_item_failures: true, maximum_retry_attempts: Some(1), ..settings() };
    run(&stream, mapping_to(settings, &function, &bin)).await;
    assert_eq!(function.calls(), [vec![1, 2, 3, 4], vec![3, 4]]);
    assert_eq!(bin.contents(), [[3, 4]]);
    assert_eq!(bin.batches.lock().unwrap()[0].invocations, 2);
}

#[tokio::test(start_paused = true)]
async fn an_empty_or_unknown_identifier_fails_the_whole_batch() {
    for identifier in ["", "999"] {
        let stream = MemoryStream::new();
        stream.insert(1..=3);
        let function = Function::new(move |call, _| match call {
            0 => Ok(failures(&["2", identifier])),
            _ => Ok(json!({})),
        });
        let settings = MappingSettings { report_batch_item_failures: true, ..settings() };
        run(&stream, mapping(settings, &function)).await;
        assert_eq!(function.calls(), [[1, 2, 3], [1, 2, 3]], "{identifier:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn reports_are_ignored_unless_the_mapping_enables_them() {
    let stream = MemoryStream::new();
    stream.insert(1..=3);
    let function = Function::new(|_, _| Ok(failures(&[1])));
    run(&stream, mapping(settings(), &function)).await;
    assert_eq!(function.calls(), [[1, 2, 3]]);
}

#[tokio::test(start_paused = true)]
async fn records_beyond_the_maximum_age_are_discarded_without_a_call() {
    let stream = MemoryStream::new();
    stream.push("s1", insert(1, "a", age(120)));
    stream.push("s1", insert(2, "b", age(0)));
    let (function, bin) = (Function::willing(), Bin::default());
    let settings = MappingSettings { maximum_record_age: Some(Duration::from_secs(60)), ..settings() };
    run(&stream, mapping_to(settings, &function, &bin)).await;
    assert_eq!(function.calls(), [[2]]);
    assert_eq!(bin.contents(), [[1]]);
    assert_eq!(bin.batches.lock().unwrap()[0].condition, Condition::RecordAgeExceeded);
}

#[tokio::test(start_paused = true)]
async fn without_a_maximum_age_a_record_is_tried_until_the_stream_would_drop_it() {
    let stream = MemoryStream::new();
    stream.push("s1", insert(1, "a", age(25 * 3600)));
    let (function, bin) = (Function::failing_on(1), Bin::default());
    run(&stream, mapping_to(settings(), &function, &bin)).await;
    assert_eq!(function.calls(), [[1]]);
    assert_eq!(bin.contents(), [[1]]);
}

#[tokio::test(start_paused = true)]
async fn a_destination_is_retried_and_batches_that_it_never_accepts_count_as_lost() {
    for (refusals, kept, lost) in [(2, 1, 0), (100, 0, 1)] {
        let stream = MemoryStream::new();
        stream.insert([1]);
        let (function, bin) = (Function::failing_on(1), Bin::refusing(refusals));
        let settings = MappingSettings { maximum_retry_attempts: Some(0), ..settings() };
        let progress = run(&stream, mapping_to(settings, &function, &bin)).await;
        assert_eq!((progress.discarded, progress.lost), (kept, lost));
    }
}

#[tokio::test(start_paused = true)]
async fn parents_are_settled_before_their_children_are_read() {
    let stream = MemoryStream::new();
    stream.open("s2", Some("s1"));
    stream.open("s3", Some("gone"));
    stream.push("s2", insert(10, "a", age(0)));
    stream.push("s3", insert(20, "c", age(0)));
    stream.insert([1, 2]);
    stream.close("s1");
    let function = Function::new(|call, _| if call < 3 { Err(failed()) } else { Ok(Value::Null) });
    let poller = start(&stream, vec![mapping(settings(), &function)]).await;
    drain(&poller).await;
    let settled = function.calls();
    let at = |batch: &[u64]| settled.iter().rposition(|call| call == batch).unwrap();
    assert!(at(&[1, 2]) < at(&[10]), "{settled:?}");
    // When the next wait begins, shard `s2` has closed. The wait must include its child `s4`.
    stream.close("s2");
    stream.open("s4", Some("s2"));
    stream.push("s4", insert(30, "a", age(0)));
    drain(&poller).await;
    assert_eq!(only(&poller).delivered, 5);
}

#[tokio::test(start_paused = true)]
async fn a_failing_mapping_delays_no_other_mapping_and_prevents_trimming_of_the_stream() {
    let stream = MemoryStream::new();
    stream.insert(1..=30);
    let (stuck, free) = (Function::failing_on(12), Function::willing());
    let settings = MappingSettings { batch_size: 10, ..settings() };
    let poller = start(&stream, vec![mapping(settings.clone(), &stuck), mapping(settings, &free)]).await;
    let waited = tokio::time::timeout(Duration::from_secs(60), poller.drained()).await;
    assert!(waited.is_err(), "the wait must time out while one mapping fails");
    let progress = poller.progress().mappings;
    assert_eq!(progress[1].delivered, 30);
    assert_eq!(ends(progress[0].shards[0].position.as_ref()), Some("10"));
    assert_eq!(ends(poller.consumed().borrow().as_ref()), Some("10"));
}

#[tokio::test(start_paused = true)]
async fn mappings_at_the_same_position_read_each_page_once() {
    let stream = MemoryStream::new();
    stream.insert(1..=70);
    let (one, two) = (Function::willing(), Function::willing());
    let poller = start(&stream, vec![mapping(settings(), &one), mapping(settings(), &two)]).await;
    drain(&poller).await;
    assert_eq!(one.calls().concat(), two.calls().concat());
    // There are ten pages. Each of the two mappings also makes one or two empty reads at the end.
    assert!(stream.reads() <= 14, "{} reads", stream.reads());
}

#[tokio::test(start_paused = true)]
async fn the_latest_position_skips_existing_records() {
    let stream = MemoryStream::new();
    stream.insert([1, 2]);
    let function = Function::willing();
    let settings = MappingSettings { starting_position: StartingPosition::Latest, ..settings() };
    let poller = start(&stream, vec![mapping(settings, &function)]).await;
    stream.insert([3]);
    drain(&poller).await;
    assert_eq!(function.calls(), [[3]]);
}

#[tokio::test(start_paused = true)]
async fn faults_of_the_stream_neither_lose_nor_repeat_a_record() {
    let stream = MemoryStream::new();
    let function = Function::willing();
    let poller = start(&stream, vec![mapping(settings(), &function)]).await;
    for (number, trouble) in [
        (1, SourceError::Unavailable("away".to_owned())),
        (2, SourceError::Expired),
        (3, SourceError::Malformed("nonsense")),
    ] {
        stream.trouble(trouble);
        stream.insert([number]);
        drain(&poller).await;
    }
    assert_eq!(function.calls().concat(), [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_stream_is_not_drained_and_shows_its_error_until_it_can_be_read() {
    let stream = MemoryStream::new();
    let function = Function::willing();
    let away = SourceError::Unavailable("away".to_owned());
    (0..5).for_each(|_| stream.trouble(away.clone()));
    stream.insert([1]);
    let poller = start(&stream, vec![mapping(settings(), &function)]).await;
    tokio::time::timeout(Duration::from_secs(1), poller.drained()).await.unwrap_err();
    let progress = only(&poller);
    assert_eq!((progress.pending, progress.shards[0].trouble.clone()), (0, Some(away)));
    drain(&poller).await;
    assert_eq!((only(&poller).delivered, only(&poller).shards[0].trouble.clone()), (1, None));
}

#[tokio::test(start_paused = true)]
async fn draining_ends_although_the_stream_never_pauses() {
    let stream = MemoryStream::new();
    let function = Function::willing();
    let poller = start(&stream, vec![mapping(settings(), &function)]).await;
    stream.insert([1]);
    // The timestamps of these records are later than the call of `drain`. The records simulate a
    // stream that never pauses.
    for number in 2..200 {
        stream.push("s1", insert(number, "later", age(0) + 5));
    }
    drain(&poller).await;
    assert!(function.calls().concat().contains(&1));
}

#[tokio::test(start_paused = true)]
async fn a_response_that_names_no_record_is_a_success() {
    for answer in [json!(null), json!({}), json!({"batchItemFailures": null}), json!({"batchItemFailures": []})] {
        let stream = MemoryStream::new();
        stream.insert(1..=3);
        let reply = answer.clone();
        let function = Function::new(move |_, _| Ok(reply.clone()));
        let settings = MappingSettings { report_batch_item_failures: true, ..settings() };
        let progress = run(&stream, mapping(settings, &function)).await;
        assert_eq!((function.calls(), progress.delivered), (vec![vec![1, 2, 3]], 3), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_understood_fails_the_whole_batch() {
    for answer in [
        json!("ok"),
        json!([]),
        json!({"batchItemFailures": "2"}),
        json!({"batchItemFailures": [null]}),
        json!({"batchItemFailures": [{"itemIdentifier": null}]}),
        json!({"batchItemFailures": [{"itemIdentifier": 2}]}),
        json!({"batchItemFailures": [{"itemIdentifer": "2"}]}),
    ] {
        let stream = MemoryStream::new();
        stream.insert(1..=3);
        let reply = answer.clone();
        let function = Function::new(move |call, _| Ok(if call == 0 { reply.clone() } else { json!({}) }));
        let settings = MappingSettings { report_batch_item_failures: true, ..settings() };
        run(&stream, mapping(settings, &function)).await;
        assert_eq!(function.calls(), [[1, 2, 3], [1, 2, 3]], "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn reported_sequence_numbers_are_compared_as_numbers() {
    let stream = MemoryStream::new();
    stream.insert(9..=11);
    let function = Function::new(|call, _| Ok(if call == 0 { failures(&[11, 10]) } else { Value::Null }));
    let settings = MappingSettings { report_batch_item_failures: true, ..settings() };
    run(&stream, mapping(settings, &function)).await;
    assert_eq!(function.calls(), [vec![9, 10, 11], vec![10, 11]]);
}

#[tokio::test(start_paused = true)]
async fn a_reported_failure_shortens_the_batch_and_a_failed_call_halves_it() {
    let stream = MemoryStream::new();
    stream.insert(1..=8);
    // The response to the first call names a failed record. The second call fails, and the later
    // calls succeed.
    let function = Function::new(|call, _| match call {
        0 => Ok(failures(&[5])),
        1 => Err(failed()),
        _ => Ok(Value::Null),
    });
    let settings = MappingSettings { report_batch_item_failures: true, bisect_on_function_error: true, ..settings() };
    let progress = run(&stream, mapping(settings, &function)).await;
    assert_eq!(function.calls(), [vec![1, 2, 3, 4, 5, 6, 7, 8], vec![5, 6, 7, 8], vec![5, 6], vec![7, 8]]);
    assert_eq!(progress.delivered, 8);
}
