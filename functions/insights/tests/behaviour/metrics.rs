//! Tests of reading points in order over days and shards, page by page, and only before their
//! expiry.

use std::collections::BTreeSet;

use key_schema::id::{MetricName, PointId};
use key_schema::instant::Instant;
use key_schema::metric::{self, MAX_DAYS, MetricPoint};
use serde_json::Value;

use crate::desk::{Desk, NAMES, in_seconds, list, read_point};

const DAY: i64 = 86_400;
/// The maximum number of requests of a page, if it reads each shard of each day once.
const MOST_REQUESTS: u32 = 4 * MAX_DAYS as u32;

/// Writes points directly into the table, without the function's checks.
async fn put(desk: &Desk, points: &[(Instant, String)]) {
    let points = points.iter().map(|(at, id)| {
        let (name, id) = (MetricName::new("m").unwrap(), PointId::new(id.as_str()).unwrap());
        MetricPoint { name, at: *at, id, value: "1".parse().unwrap() }.stored()
    });
    let points: Vec<_> = points.collect();
    assert!(desk.own().batch_write(&metric::store(&points).unwrap()).await.unwrap().is_empty());
}

/// Returns the sort key of a point.
fn key(point: &Value) -> (String, String) {
    (point["at"].as_str().unwrap().to_owned(), point["id"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_thousand_points_of_30_days_are_read_page_by_page_in_their_order() {
    let desk = Desk::open().await;
    let now = in_seconds(0);
    let mut random = fastrand::Rng::with_seed(7);
    // Two thirds of the points are in the last ten days. Ten days are empty. Some points share an
    // instant.
    let points: Vec<(Instant, String)> = (0..1000)
        .map(|n| {
            let days = if n % 3 == 0 { random.i64(20..30) } else { random.i64(0..10) };
            let millis = days * DAY * 1000 - 3_600_000 + (n / 4 % 100) * 1000;
            (now.plus_millis(-millis.abs() - 60_000), format!("{:04}#", random.u32(..) % 7919 * 1000 + n as u32))
        })
        .collect();
    put(&desk, &points).await;
    let expected: BTreeSet<(String, String)> = points.iter().map(|(at, id)| (at.to_string(), id.clone())).collect();
    assert_eq!(expected.len(), 1000);
    let expected: Vec<_> = expected.into_iter().collect();
    let call = list("m").query("from", &now.plus_seconds(-30 * DAY).to_string());
    for limit in [100, 17] {
        let (found, requests) = desk.all(&call, limit).await;
        let most = requests.into_iter().max().unwrap();
        assert!(found.iter().map(key).eq(expected.iter().cloned()), "in pages of {limit}");
        assert!(most <= MOST_REQUESTS, "{most} requests for a page of {limit}");
    }
    // Both bounds are instants of existing points.
    let (first, last) = (&expected[300].0, &expected[700].0);
    let (found, _) = desk.all(&list("m").query("from", first).query("to", last), 100).await;
    let within = expected.iter().filter(|(at, _)| (first..=last).contains(&at));
    assert!(found.iter().map(key).eq(within.cloned()));
}

#[tokio::test]
async fn a_list_neither_repeats_nor_skips_a_point_while_points_are_added() {
    let desk = Desk::open().await;
    let begin = in_seconds(-20 * 3600);
    let points: Vec<_> = (0..90).map(|n| (begin.plus_millis(n * 100), format!("p{n}"))).collect();
    put(&desk, &points).await;
    let (mut found, mut cursor, mut page) = (Vec::new(), None::<String>, 0);
    loop {
        let call = cursor.iter().fold(list("m").query("limit", "20"), |call, cursor| call.query("cursor", cursor));
        let answer = desk.done(call).await;
        found.extend(answer.body["items"].as_array().unwrap().iter().map(key));
        // One new point belongs after this page, and one belongs before it.
        page += 1;
        let later = begin.plus_millis(page * 2000 + 50);
        put(&desk, &[(later, format!("later{page}")), (begin.plus_millis(50), format!("earlier{page}"))]).await;
        match answer.body["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert!(found.is_sorted_by(|one, other| one < other));
    let ids: BTreeSet<&str> = found.iter().map(|(_, id)| id.as_str()).collect();
    assert!(points.iter().all(|(_, id)| ids.contains(id.as_str())));
    assert!(ids.contains("later1") && !ids.contains("earlier1"));
}

#[tokio::test]
async fn a_list_covers_the_last_day_or_the_period_between_from_and_to_inclusive() {
    let desk = Desk::open().await;
    let now = in_seconds(0);
    let at = |hours: i64| now.plus_seconds(-hours * 3600);
    let points = [(at(50), "50"), (at(30), "30"), (at(20), "20"), (at(1), "1"), (now.plus_seconds(120), "ahead")];
    put(&desk, &points.map(|(at, id)| (at, id.to_owned()))).await;
    let (from, to) = (|hours: i64| ("from", at(hours).to_string()), |hours: i64| ("to", at(hours).to_string()));
    for (range, expected) in [
        (vec![], vec!["20", "1", "ahead"]),
        (vec![from(30)], vec!["30", "20", "1", "ahead"]),
        (vec![to(20)], vec!["30", "20"]),
        (vec![from(50), to(20)], vec!["50", "30", "20"]),
        (vec![from(30), to(30)], vec!["30"]),
        (vec![from(24 * 400), to(-24 * 400)], vec!["50", "30", "20", "1", "ahead"]),
    ] {
        let call = range.iter().fold(list("m"), |call, (name, value)| call.query(name, value));
        assert_eq!(desk.ids(&call).await, expected, "{range:?}");
    }
}

/// The table of a test never removes expired items.
#[tokio::test]
async fn an_expired_point_is_not_listed_even_before_dynamodb_removes_it() {
    let desk = Desk::open().await;
    let now = in_seconds(0);
    let points = [(now.plus_seconds(-30 * DAY - 1), "over"), (now.plus_seconds(-30 * DAY + 120), "alive")];
    put(&desk, &points.map(|(at, id)| (at, id.to_owned()))).await;
    for from in ["2000-01-01T00:00:00Z", &now.plus_seconds(-31 * DAY).to_string()] {
        assert_eq!(desk.ids(&list("m").query("from", from)).await, ["alive"]);
    }
    let over =
        list("m").query("from", "2000-01-01T00:00:00Z").query("to", &now.plus_seconds(-30 * DAY - 1).to_string());
    assert!(desk.ids(&over).await.is_empty());
}

#[tokio::test]
async fn a_list_without_points_takes_at_most_one_request_per_shard_of_each_day() {
    let desk = Desk::open().await;
    let (found, requests) = desk.all(&list("m").query("from", "2000-01-01T00:00:00Z"), 100).await;
    let most = requests.into_iter().max().unwrap();
    assert!(found.is_empty() && most <= MOST_REQUESTS && most > 4 * 30, "{most}");
    // The default range begins one day ago and ends in five minutes, so it touches at most three
    // days.
    let most = desk.all(&list("m"), 100).await.1.into_iter().max().unwrap();
    assert!(most <= 3 * 4, "{most}");
}

#[tokio::test]
async fn one_point_is_read_with_one_request_from_the_shard_of_its_id() {
    let desk = Desk::open().await;
    let at = in_seconds(-60);
    let ids: Vec<String> = NAMES.iter().map(ToString::to_string).chain((0..40).map(|n| format!("p{n}"))).collect();
    put(&desk, &ids.iter().map(|id| (at, id.clone())).collect::<Vec<_>>()).await;
    let shards: BTreeSet<u32> = ids.iter().map(|id| metric::SHARDS.of(id)).collect();
    assert_eq!(shards.len(), 4);
    for id in &ids {
        desk.requests();
        let answer = desk.ok(read_point("m", id, at)).await;
        assert_eq!(desk.requests().into_iter().collect::<Vec<_>>(), [("metrics.get", 1)]);
        assert_eq!(answer.body, serde_json::json!({ "name": "m", "value": 1, "at": at, "id": id }));
    }
    for (name, id, at) in [("m", "p40", at), ("other", "p1", at), ("m", "p1", at.plus_millis(1))] {
        assert_eq!(desk.refusal(read_point(name, id, at)).await, (404, "not_found".to_owned()), "{name} {id}");
    }
    let expired = in_seconds(-30 * DAY);
    put(&desk, &[(expired, "old".to_owned())]).await;
    assert_eq!(desk.refusal(read_point("m", "old", expired)).await.0, 404);
}
