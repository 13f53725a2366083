//! Tests of the leaderboards and of the count of views.

use std::time::Duration;

use emulators::table::{Fault, FaultKind};
use fixture::seed;
use http_api::SettingsCache;
use http_api::sample::{Answered, Call};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::leaderboard::{self, Board, DAYS_KEPT, Period, Rank, Tally, VIEW_SAMPLE, WEEK_KEPT};
use key_schema::settings::Known;
use serde_json::{Value, json};

use crate::shop::{Shop, each};

const DAY: i64 = 24 * 60 * 60;
/// The id of a request that the sample of views contains.
const SAMPLED: &str = "view-34";

fn board(by: &str) -> Call {
    Call::new("GET /v1/leaderboards/{by}").path("by", by)
}

fn view(product: &str) -> Call {
    Call::new("POST /v1/products/{id}/views").path("id", product)
}

impl Shop {
    /// Writes a rank as the stream's consumer does.
    pub async fn rank(&self, product: &str, board: Board, period: Period, count: i64) {
        let rank = Rank { board, product_id: product.parse().unwrap(), period, count };
        self.put(&seed::stored(rank)).await;
    }

    /// Returns the tallies of a product's views.
    async fn views(&self, product: &str) -> Vec<Stored<Tally>> {
        let today = leaderboard::days(Board::Views, &product.parse().unwrap(), Instant::now()).unwrap();
        self.own().query(&today).await.unwrap().items
    }
}

/// Returns the entries of a board: rank, product and count.
fn entries(answer: &Answered) -> Vec<(u64, &str, Option<u64>)> {
    let items = answer.body["items"].as_array().unwrap();
    let entry = |item: &'_ Value| (item["rank"].as_u64().unwrap(), item["count"].as_u64());
    items.iter().zip(each(answer, "product_id")).map(|(item, id)| (entry(item).0, id, entry(item).1)).collect()
}

#[tokio::test]
async fn a_board_lists_the_largest_counts_first_with_the_products() {
    let (shop, now) = (Shop::open().await, seed::today().await);
    for (number, count) in [3, 500, 40, 7, 100].into_iter().enumerate() {
        let id = format!("p{number}");
        shop.stock_up(&id, 1).await;
        for period in [Period::day(now), Period::week(now), Period::All] {
            shop.rank(&id, Board::Likes, period, count).await;
        }
    }
    // A count of 0 removes `p0` from the board of the day. This rank of `p3` is on the board of
    // views.
    shop.rank("p0", Board::Likes, Period::day(now), 0).await;
    shop.rank("p3", Board::Views, Period::day(now), 9_000).await;
    let (first, last) = Period::week(now).days().unwrap();
    for (period, places, from, until) in [
        ("day", 4, json!(now.day()), json!(now.day())),
        ("week", 5, json!(first.day()), json!(last.day())),
        ("all", 5, Value::Null, Value::Null),
    ] {
        let found = shop.ok(board("likes").query("period", period)).await;
        let all = [(1, "p1", Some(500)), (2, "p4", Some(100)), (3, "p2", Some(40)), (4, "p3", Some(7))];
        let with_last: Vec<_> = all.into_iter().chain([(5, "p0", Some(3))]).take(places).collect();
        assert_eq!(entries(&found), with_last, "{period}");
        assert_eq!(found.header("cache-control"), Some("public, max-age=5, stale-while-revalidate=30"));
        let item = &found.body["items"][0];
        assert_eq!((&item["name"], &item["price"]["amount"]), (&json!("Product p1"), &json!(129)));
        let body = &found.body;
        assert_eq!((&body["by"], &body["period"]), (&json!("likes"), &json!(period)));
        assert_eq!((&body["from"], &body["until"], &body["bound"]), (&from, &until, &Value::Null));
        let first = shop.ok(board("likes").query("period", period).query("limit", "2")).await;
        assert_eq!(entries(&first), all[..2]);
    }
    let by_default = shop.ok(board("likes")).await;
    assert_eq!(by_default.body["period"], "day");
}

#[tokio::test]
async fn only_views_have_a_bound_and_sales_have_no_counts() {
    let (shop, now) = (Shop::open().await, seed::today().await);
    shop.stock_up("p1", 1).await;
    for board in Board::ALL {
        shop.rank("p1", board, Period::day(now), 6_300).await;
    }
    for (by, count, bound) in
        [("views", Some(6_300), json!(630)), ("likes", Some(6_300), Value::Null), ("sales", None, Value::Null)]
    {
        let found = shop.ok(board(by)).await;
        assert_eq!((entries(&found), &found.body["bound"]), (vec![(1, "p1", count)], &bound), "{by}");
        assert!(by != "sales" || !found.body.to_string().contains("6300"), "{}", found.body);
    }
}

#[tokio::test]
async fn a_board_of_a_given_date_covers_that_day_or_its_week() {
    let (shop, now) = (Shop::open().await, seed::today().await);
    shop.stock_up("p1", 1).await;
    let ago = |days: i64| now.plus_seconds(-days * DAY);
    for (period, kind, date, places) in [
        (Period::day(ago(30)), "day", ago(30), 1),
        (Period::week(ago(300)), "week", ago(300), 1),
        (Period::day(ago(DAYS_KEPT + 7)), "day", ago(DAYS_KEPT + 7), 0),
        (Period::week(ago(WEEK_KEPT + 7)), "week", ago(WEEK_KEPT + 7), 0),
    ] {
        shop.rank("p1", Board::Sales, period, 3).await;
        let found = shop.ok(board("sales").query("period", kind).query("date", &date.day())).await;
        assert_eq!(entries(&found).len(), places, "{kind} {}", date.day());
    }
    let tomorrow = board("sales").query("date", &ago(-1).day());
    assert_eq!(entries(&shop.ok(tomorrow).await), []);
}

#[tokio::test]
async fn a_retired_product_has_no_place_and_a_revived_one_has_its_place_again() {
    let (shop, now) = (Shop::open().await, seed::today().await);
    for number in 1..=4 {
        let id = format!("p{number}");
        shop.stock_up(&id, 1).await;
        shop.rank(&id, Board::Likes, Period::day(now), 10 * number).await;
    }
    shop.rank("never", Board::Likes, Period::day(now), 100).await;
    for id in ["p4", "p2"] {
        let retire = Call::new("DELETE /v1/products/{id}").path("id", id).header("if-match", "\"1\"");
        assert_eq!(shop.staff(retire).await.status, 204);
    }
    let first = [(1, "p3", Some(30)), (2, "p1", Some(10))];
    assert_eq!(entries(&shop.ok(board("likes")).await), first);
    assert_eq!(entries(&shop.ok(board("likes").query("limit", "1")).await), first[..1]);
    shop.stock_up("p4", 5).await;
    assert_eq!(entries(&shop.ok(board("likes")).await)[0], (1, "p4", Some(40)));
}

/// The rank of a product may change between the reads of two pages. The test simulates this with a
/// second index entry.
#[tokio::test]
async fn a_product_that_moves_while_a_board_is_read_is_listed_once() {
    let (shop, now) = (Shop::open().await, seed::today().await);
    for (product, count) in [("p1", 30), ("p2", 20)] {
        shop.stock_up(product, 1).await;
        shop.rank(product, Board::Likes, Period::day(now), count).await;
    }
    let moved = |period| {
        let rank = Rank { board: Board::Likes, product_id: "p1".parse().unwrap(), period, count: 10 };
        seed::stored(rank).to_item().unwrap()
    };
    let (mut second, other) = (moved(Period::day(now)), moved(Period::All));
    second.inner_mut().insert("SK".to_owned(), other["SK"].clone());
    shop.put_item(second).await;
    assert_eq!(entries(&shop.ok(board("likes")).await), [(1, "p1", Some(30)), (2, "p2", Some(20))]);
}

#[tokio::test]
async fn a_board_must_exist_and_the_board_of_all_time_has_no_date() {
    let shop = Shop::open().await;
    assert_eq!(shop.refusal(board("price")).await, (422, "invalid_id".to_owned()));
    let dated = board("likes").query("period", "all").query("date", "2026-02-01");
    assert_eq!(shop.refusal(dated).await, (400, "invalid_parameter".to_owned()));
}

#[tokio::test]
async fn a_view_in_the_sample_counts_as_64_views_of_the_day_and_of_all_time() {
    let (shop, now) = (Shop::open().await, seed::today().await);
    shop.stock_up("p1", 1).await;
    shop.expect(204, view("p1")).await;
    assert_eq!(shop.views("p1").await, [], "a view outside the sample");
    for times in 1..=2 {
        shop.expect(204, view("p1").id(SAMPLED)).await;
        let views = shop.views("p1").await;
        let of_day: Vec<_> = views.iter().map(|tally| (tally.period, tally.count)).collect();
        assert_eq!(of_day, [(Period::day(now), times * i64::from(VIEW_SAMPLE.0))]);
    }
    // Reads, refused requests and absent products cause no view.
    shop.ok(Call::new("GET /v1/products/{id}").path("id", "p1").id(SAMPLED)).await;
    shop.expect(400, view("p1").id(SAMPLED).query("x", "1")).await;
    shop.expect(422, view("p1").id(SAMPLED).json(&json!({"n": 2}))).await;
    shop.expect(204, view("p2").id(SAMPLED)).await;
    assert_eq!(shop.views("p1").await[0].count, 2 * i64::from(VIEW_SAMPLE.0));
    assert_eq!(shop.views("p2").await, []);
}

#[tokio::test]
async fn a_view_that_the_table_refuses_is_not_counted() {
    let mut shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let _throttles = shop.count_throttles();
    shop.harness.app.view_time = Duration::from_millis(500);
    for kind in [FaultKind::Throttle, FaultKind::Error] {
        shop.faults().add_to_keys(Fault { kind, rate: 1.0, count: None, seed: 0 }, "TALLY#").unwrap();
        shop.expect(204, view("p1").id(SAMPLED)).await;
        assert!(shop.clear_faults() > 0, "{kind:?}");
    }
    assert_eq!(shop.views("p1").await, []);
}

#[tokio::test]
async fn in_maintenance_no_view_is_counted() {
    let mut shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let known = Known { values: json!({ "maintenance": { "on": true } }).to_string(), ..Known::default() };
    shop.harness.app.services.settings = SettingsCache::unchanging(known);
    shop.expect(503, view("p1").id(SAMPLED)).await;
    assert_eq!(shop.views("p1").await, []);
}
