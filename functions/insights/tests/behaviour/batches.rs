//! Tests of storing points. Each point is stored independently and once, and the response reports
//! each point that was not stored.

use std::collections::BTreeSet;

use emulators::table::FaultKind;
use futures::future::join_all;
use http_api::sample::Call;
use serde_json::{Value, json};

use crate::desk::{Desk, NAMES, in_seconds, list, point, store};

/// Returns status and code of each point.
fn results(body: &Value) -> Vec<(&str, Option<&str>)> {
    let results = body["results"].as_array().unwrap().iter();
    results.map(|result| (result["status"].as_str().unwrap(), result["code"].as_str())).collect()
}

const STORED: (&str, Option<&str>) = ("stored", None);

#[tokio::test]
async fn every_digit_of_a_value_is_kept() {
    let desk = Desk::open().await;
    let values = ["1.50", "12345678901234567890123456789012345678", "-0.00", "1E-7", "0.1", "-18446744073709551616"];
    let at = in_seconds(-60);
    let points: Vec<String> = (0..)
        .zip(values)
        .map(|(n, value)| format!(r#"{{"name":"m","value":{value},"at":"{}","id":"{n}"}}"#, at.plus_millis(n)))
        .collect();
    let body = format!(r#"{{"points":[{}]}}"#, points.join(","));
    let call = Call::new("POST /v1/metrics").header("content-type", "application/json").body(body).staff("s1");
    let answer = desk.done(call).await;
    assert_eq!(results(&answer.body), [STORED; 6]);
    let text = desk.text(&list("m")).await;
    for (point, value) in text.split("\"value\":").skip(1).zip(values) {
        assert!(point.starts_with(&format!("{value},")), "{value}: {point}");
    }
}

#[tokio::test]
async fn each_point_is_stored_or_refused_independently() {
    let desk = Desk::open().await;
    let now = in_seconds(0);
    let good = |id: &str| point("m", 1, now, id);
    let with = |name: &str, value: Value| {
        let mut point = good("bad");
        point[name] = value;
        point
    };
    let mut nameless = good("bad");
    nameless.as_object_mut().unwrap().remove("name");
    let refused = [
        (with("name", json!("")), "/name"),
        (with("name", json!("a\nb")), "/name"),
        (with("name", json!("x".repeat(129))), "/name"),
        (nameless, "/name"),
        (with("value", json!("1")), "/value"),
        (with("value", json!(null)), "/value"),
        (with("value", json!([1])), "/value"),
        (with("at", json!(in_seconds(-30 * 86_400 - 5))), "/at"),
        (with("at", json!(in_seconds(5 * 60 + 30))), "/at"),
        (with("at", json!("yesterday")), "/at"),
        (with("id", json!(7)), "/id"),
        (with("id", json!("")), "/id"),
        (with("unit", json!("s")), "/unit"),
        (json!("a text"), ""),
    ];
    let mut points = vec![good("first")];
    points.extend(refused.iter().map(|(point, _)| point.clone()));
    points.push(point("m", 1, in_seconds(-30 * 86_400 + 60), "old"));
    points.push(point("m", 1, in_seconds(4 * 60), "ahead"));
    let answer = desk.done(store(&points)).await;
    let results = answer.body["results"].as_array().unwrap();
    assert_eq!(results.len(), points.len());
    for (index, result) in results.iter().enumerate() {
        assert_eq!(result["index"], index);
        match index.checked_sub(1).and_then(|index| refused.get(index)) {
            Some((point, pointer)) => {
                assert_eq!(
                    (&result["status"], &result["code"]),
                    (&json!("refused"), &json!("invalid_body")),
                    "{point}"
                );
                assert_eq!(result["errors"][0]["pointer"], *pointer, "{point}");
            }
            None => assert_eq!((&result["status"], &result["id"]), (&json!("stored"), &points[index]["id"])),
        }
    }
    assert_eq!(desk.ids(&list("m").query("from", "2000-01-01T00:00:00Z")).await, ["old", "first", "ahead"]);
}

#[tokio::test]
async fn too_many_points_and_an_infinite_value_are_refused_as_a_whole() {
    let desk = Desk::open().await;
    let good = point("m", 1, in_seconds(0), "1");
    let call = |body: &str| Call::new("POST /v1/metrics").header("content-type", "application/json").body(body);
    let many = json!({ "points": vec![good.clone(); 501] }).to_string();
    let huge = good.to_string().replace("\"value\":1", "\"value\":1e400");
    for body in [many, format!(r#"{{"points":[{good},{huge}]}}"#)] {
        assert_eq!(desk.refusal(call(&body).staff("s1")).await, (422, "invalid_body".to_owned()), "{body:.60}");
    }
    assert!(desk.ids(&list("m")).await.is_empty());
}

#[tokio::test]
async fn a_repeated_point_is_stored_once_with_the_last_value() {
    let desk = Desk::open().await;
    let at = in_seconds(-5);
    // Point `a` is sent twice in one batch, and again in a second batch. Then the same ten other
    // points are sent in fifty batches at once.
    let answer = desk.done(store(&[point("m", 1, at, "a"), point("m", 2, at, "a"), point("m", 3, at, "b")])).await;
    assert_eq!(results(&answer.body), [STORED; 3]);
    let item = || async { desk.all(&list("m"), 100).await.0 };
    let first = item().await;
    assert_eq!(first.iter().map(|point| &point["value"]).collect::<Vec<_>>(), [&json!(2), &json!(3)]);
    desk.done(store(&[point("m", 2, at, "a")])).await;
    assert_eq!(item().await, first);
    let crowd: Vec<Value> = (0..10).map(|n| point("m", n, at, &format!("c{n}"))).collect();
    for answer in join_all((0..50).map(|_| desk.send(store(&crowd)))).await {
        assert_eq!((answer.status, results(&answer.body)), (200, vec![STORED; 10]));
    }
    assert_eq!(item().await.len(), 12);
}

#[tokio::test]
async fn a_point_without_an_id_gets_a_new_id_each_time() {
    let desk = Desk::open().await;
    let mut point = point("m", 1, in_seconds(-1), "");
    point["id"] = Value::Null;
    let answer = desk.done(store(&[point.clone(), point])).await;
    let ids = answer.body["results"].as_array().unwrap().iter().map(|result| result["id"].as_str().unwrap().to_owned());
    let (ids, listed): (BTreeSet<String>, _) = (ids.collect(), desk.ids(&list("m")).await);
    assert_eq!(ids.len(), 2);
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), ids);
}

#[tokio::test]
async fn each_name_in_any_script_and_with_any_punctuation_is_a_separate_metric() {
    let desk = Desk::open().await;
    let longest = "#".repeat(128);
    let names: Vec<&str> = NAMES.into_iter().chain([longest.as_str()]).collect();
    let points: Vec<Value> = names.iter().map(|name| point(name, 1, in_seconds(-1), name)).collect();
    desk.done(store(&points)).await;
    for name in names {
        assert_eq!(desk.ids(&list(name)).await, [name]);
    }
}

/// Some of the twenty requests to the table fail. The response reports the points of these
/// requests, and the client can send the points again.
#[tokio::test]
async fn the_response_reports_each_point_that_the_table_refused() {
    let desk = Desk::open().await;
    let at = in_seconds(-60);
    let points: Vec<Value> = (0..500).map(|n| point("m", n, at, &format!("{n:03}"))).collect();
    desk.break_with(FaultKind::Throttle, 0.8, None, 3);
    let answer = desk.done(store(&points)).await;
    assert!(desk.clear_faults() > 0);
    let outcomes = results(&answer.body);
    let refused: Vec<Value> = outcomes
        .iter()
        .zip(&points)
        .filter(|(outcome, _)| **outcome != STORED)
        .map(|(_, point)| point.clone())
        .collect();
    assert!(outcomes.iter().all(|outcome| [STORED, ("refused", Some("throttled"))].contains(outcome)));
    assert!(!refused.is_empty() && refused.len() < points.len(), "{}", refused.len());
    assert_eq!(desk.ids(&list("m")).await.len(), points.len() - refused.len());
    desk.done(store(&refused)).await;
    assert_eq!(desk.ids(&list("m")).await.len(), points.len());
}

#[tokio::test]
async fn unprocessed_points_of_a_batch_are_sent_again_until_all_are_stored() {
    let desk = Desk::open().await;
    let at = in_seconds(-60);
    let points: Vec<Value> = (0..60).map(|n| point("m", n, at, &format!("{n:03}"))).collect();
    desk.break_with(FaultKind::Partial, 0.5, None, 4);
    let answer = desk.done(store(&points)).await;
    assert!(desk.clear_faults() > 0);
    assert_eq!(results(&answer.body), vec![STORED; 60]);
    assert_eq!(desk.ids(&list("m")).await.len(), 60);
}

#[tokio::test]
async fn a_table_that_stores_no_point_causes_a_503() {
    let at = in_seconds(-60);
    let runs = [(FaultKind::Throttle, "throttled"), (FaultKind::Error, "unavailable")].map(async |(kind, code)| {
        let desk = Desk::open().await;
        desk.break_with(kind, 1.0, None, 0);
        let answer = desk.send(store(&[point("n", 1, at, "1"), json!(7)])).await;
        desk.clear_faults();
        assert_eq!((answer.status, answer.code()), (503, Some(code)));
        assert!((1..=30).contains(&answer.header("retry-after").unwrap().parse().unwrap()));
        assert!(desk.ids(&list("n")).await.is_empty());
    });
    join_all(runs).await;
}
