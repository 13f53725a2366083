//! Tests of a table for each month of metrics: each point is in one table, and a list reads the
//! tables in order.
//!
//! The tests use the real clock. On the 31st all visible points are in one month, so a test of two
//! months returns without a check. The crate `table` tests two months at fixed instants.

use fixture::TestTable;
use key_schema::instant::Instant;
use key_schema::metric::check_time;
use key_schema::month::Month;
use serde_json::Value;

use crate::desk::{Desk, in_seconds, list, point, read_point, store};

/// Returns the start of the present month, if points of the previous month are visible.
fn turn_of_the_month() -> Option<Instant> {
    let now = in_seconds(0);
    let begin = Month::of(now).begins();
    check_time(begin.plus_seconds(-60), now.plus_seconds(60)).is_ok().then_some(begin)
}

/// Returns the names of the tables of the previous month and of the present month.
fn names(test: &TestTable) -> [String; 2] {
    let month = Month::of(in_seconds(0));
    [month.plus(-1), month].map(|month| month.table(test.name()))
}

/// Returns three points of the previous month and three of the present month, with their instants.
fn points(turn: Instant) -> Vec<(Instant, Value)> {
    let at = (-3..3).map(|millis| turn.plus_millis(millis));
    at.enumerate().map(|(id, at)| (at, point("m", 1, at, &id.to_string()))).collect()
}

async fn put(desk: &Desk, points: &[(Instant, Value)]) {
    let points: Vec<Value> = points.iter().map(|(_, point)| point.clone()).collect();
    let stored = desk.done(store(&points)).await.body;
    assert!(stored["results"].as_array().unwrap().iter().all(|result| result["status"] == "stored"), "{stored}");
}

/// Asserts that a list in pages and the reads of single points return the points in order.
async fn assert_shown(desk: &Desk, points: &[(Instant, Value)]) {
    let from = points[0].0.to_string();
    for limit in [1, 2, 4, 100] {
        let (found, _) = desk.all(&list("m").query("from", &from), limit).await;
        assert_eq!(found, points.iter().map(|(_, point)| point.clone()).collect::<Vec<_>>(), "pages of {limit}");
    }
    for (at, point) in points {
        assert_eq!(desk.done(read_point("m", point["id"].as_str().unwrap(), *at)).await.body, *point);
    }
}

#[tokio::test]
async fn points_are_in_the_tables_of_their_months_and_a_list_reads_both_in_order() {
    let Some(turn) = turn_of_the_month() else { return };
    let desk = Desk::open().await.monthly();
    let [previous, present] = names(&desk);
    for name in [&previous, &present] {
        desk.add_table(name).await;
    }
    let points = points(turn);
    put(&desk, &points).await;
    let ids = async |table: &str| {
        let keys = desk.sort_keys(table).await;
        keys.iter().map(|key| key.chars().last().unwrap()).collect::<String>()
    };
    assert_eq!((ids(&previous).await, ids(&present).await), ("012".to_owned(), "345".to_owned()));
    assert!(desk.sort_keys(desk.name()).await.is_empty());
    assert_shown(&desk, &points).await;
    // The meter counts the requests to every table.
    desk.requests();
    put(&desk, &points).await;
    assert_eq!(desk.requests().into_iter().collect::<Vec<_>>(), [("metrics.store", 2)]);
}

#[tokio::test]
async fn points_from_before_the_switch_stay_visible_and_a_cursor_continues_over_it() {
    let Some(turn) = turn_of_the_month() else { return };
    let before = Desk::open().await;
    let points = points(turn);
    put(&before, &points[..3]).await;
    let from = list("m").query("from", &turn.plus_seconds(-1).to_string()).query("limit", "2");
    let page = before.done(from.clone()).await.body;
    // The switch: from now on the present month has its own table.
    before.add_table(&names(&before)[1]).await;
    let desk = before.monthly();
    put(&desk, &points[3..]).await;
    assert_eq!((desk.sort_keys(desk.name()).await.len(), desk.sort_keys(&names(&desk)[1]).await.len()), (3, 3));
    assert_shown(&desk, &points).await;
    let next = desk.done(from.query("cursor", page["next_cursor"].as_str().unwrap())).await.body;
    assert_eq!(next["items"], Value::from(vec![points[2].1.clone(), points[3].1.clone()]));
}

#[tokio::test]
async fn a_month_without_a_table_has_its_points_in_the_one_table() {
    let desk = Desk::open().await.monthly();
    let now = in_seconds(-1);
    let at = (0..3).map(|millis| now.plus_millis(millis));
    let points: Vec<_> = at.enumerate().map(|(id, at)| (at, point("m", 1, at, &id.to_string()))).collect();
    put(&desk, &points).await;
    assert_eq!(desk.sort_keys(desk.name()).await.len(), 3);
    assert_shown(&desk, &points).await;
}

#[tokio::test]
async fn without_the_parameter_the_table_of_a_month_is_ignored() {
    let desk = Desk::open().await;
    let name = &names(&desk)[1];
    desk.add_table(name).await;
    let at = in_seconds(0);
    let points = [(at, point("m", 1, at, "a"))];
    put(&desk, &points).await;
    assert_shown(&desk, &points).await;
    assert!(desk.sort_keys(name).await.is_empty());
}
