//! Tests of the list of the newest reviews of all products.

use std::collections::BTreeSet;

use futures::future::join_all;
use http_api::sample::Call;
use key_schema::id::{Born, CustomerId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::review::recent::{self, MONTHS_OF_A_PAGE, Month, ReviewMonth, SHARDS};
use key_schema::review::{self, Review};
use serde_json::{Value, json};

use crate::reviews::public;
use crate::shop::Shop;

fn list() -> Call {
    Call::new("GET /v1/reviews/recent")
}

fn one(route: &'static str, product: &str, customer: &str) -> Call {
    Call::new(route).path("id", product).path("customer", customer).customer(customer)
}

fn write(product: &str, customer: &str, rating: u64) -> Call {
    let display_name = &customer[..customer.len().min(64)];
    let body = json!({"rating": rating, "display_name": display_name, "title": "T", "text": "Cold.\nVery."});
    one("PUT /v1/products/{id}/reviews/{customer}", product, customer).json(&body)
}

fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

fn review(product: &str, customer: &str, at: Instant) -> Stored<Review> {
    let review = Review {
        product_id: ProductId::new(product).unwrap(),
        customer_id: CustomerId::new(customer).unwrap(),
        rating: 4,
        display_name: Some(customer.to_owned()),
        title: "T".to_owned(),
        text: "T".to_owned(),
    };
    Stored::new(review, Born::generate(at, [1; 10]), at)
}

/// Writes a review with this time of creation.
async fn written(shop: &Shop, product: &str, customer: &str, at: Instant) {
    note(shop, at).await;
    shop.join(customer).await;
    let review = review(product, customer, at);
    for _ in 0..50 {
        if matches!(shop.app.services.table.transact(&review::create(&review).unwrap()).await, Ok(Ok(()))) {
            return;
        }
    }
    panic!("the review was not written");
}

/// Writes the [`ReviewMonth`] of an instant.
async fn note(shop: &Shop, at: Instant) {
    let month = Stored::new(ReviewMonth { month: Month::of(at) }, Born::generate(at, [1; 10]), at);
    let _ = shop.app.services.table.write(&recent::add_month(&month).unwrap()).await;
}

/// Reads the list to its end in pages of `limit`. Checks that no page takes more requests than the
/// upper bound.
async fn pages(shop: &Shop, limit: usize) -> Vec<Vec<Value>> {
    let bound = u32::try_from(MONTHS_OF_A_PAGE).unwrap() * SHARDS.0 * 2 + 1;
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let call = list().query("limit", &limit.to_string());
        let _ = shop.app.services.table.meter().take();
        let answer = shop.send(cursor.iter().fold(call, |call, cursor| call.query("cursor", cursor))).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let requests: u32 = shop.app.services.table.meter().take().iter().map(|cost| cost.requests).sum();
        assert!(requests <= bound, "{requests}");
        found.push(answer.body["items"].as_array().unwrap().clone());
        assert!(found.len() <= 1000, "the list has no end");
        match answer.body["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return found,
        }
    }
}

/// Returns the authors of the reviews in list order.
async fn authors(shop: &Shop, limit: usize) -> Vec<String> {
    pages(shop, limit).await.concat().iter().map(|item| item["display_name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_review_is_listed_with_its_current_fields_until_it_is_removed() {
    let shop = Shop::open().await;
    assert_eq!(pages(&shop, 20).await, [Vec::<Value>::new()]);
    for product in ["p1", "p+2 #ä 蘇黎世$"] {
        shop.stock_up(product, 1).await;
    }
    let (long, odd) = ("#".repeat(128), "p+2 #ä 蘇黎世$");
    shop.join(&long).await;
    shop.join("c2").await;
    let first = shop.send(write("p1", &long, 5).header("if-none-match", "*")).await;
    assert_eq!(first.status, 201, "{}", first.body);
    let second = shop.send(write(odd, "c2", 1).header("if-none-match", "*")).await;
    let expected = [&second, &first].map(|written| public(written).to_string());
    let listed: BTreeSet<String> = pages(&shop, 1).await.concat().iter().map(Value::to_string).collect();
    assert_eq!(listed, expected.into());

    let changed = shop.send(write("p1", &long, 2).header("if-match", "\"1\"")).await;
    assert_eq!(changed.status, 200);
    let all = pages(&shop, 20).await.concat();
    assert!(all.contains(&public(&changed)) && all.len() == 2, "{all:?}");
    // A refused change does not change this list either.
    assert_eq!(shop.send(write("p1", &long, 3).header("if-match", "\"1\"")).await.status, 412);
    assert_eq!(shop.send(write("p1", &long, 3).header("if-none-match", "*")).await.status, 409);
    assert_eq!(pages(&shop, 20).await.concat(), all);

    let remove = one("DELETE /v1/products/{id}/reviews/{customer}", "p1", &long).header("if-match", "\"2\"");
    assert_eq!(shop.send(remove).await.status, 204);
    assert_eq!(pages(&shop, 20).await.concat(), [public(&second)]);
    // The author can write the review again, and the list shows it.
    assert_eq!(shop.send(write("p1", &long, 4).header("if-none-match", "*")).await.status, 201);
    assert_eq!(authors(&shop, 20).await.len(), 2);
}

#[tokio::test]
async fn a_thousand_reviews_of_one_day_are_read_page_by_page() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let day = at("2026-03-31T23:00:00.000Z");
    note(&shop, day).await;
    // Two reviews share each millisecond.
    let written = (0..1000_i64).map(|n| review("p1", &format!("c{n:04}"), day.plus_millis(n / 2)));
    shop.put_all(written.map(|review| recent::RecentReview::of(&review))).await;
    let expected: Vec<String> = (0..1000).rev().map(|n| format!("c{n:04}")).collect();
    for limit in [100, 7] {
        let found = pages(&shop, limit).await;
        assert!(found.iter().rev().skip(1).all(|page| page.len() == limit));
        let authors: Vec<&str> = found.iter().flatten().map(|item| item["display_name"].as_str().unwrap()).collect();
        assert_eq!(authors, expected);
    }
}

#[tokio::test]
async fn a_page_skips_months_without_reviews() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let mut expected = Vec::new();
    // Three single reviews are years apart, three are at the boundaries of a month, and one month
    // has many.
    let lone = ["1999-12-31T23:59:59.999Z", "2004-02-29T00:00:00.000Z", "2016-01-01T00:00:00.000Z"];
    let bounds = ["2019-05-31T23:59:59.999Z", "2019-06-01T00:00:00.000Z", "2019-06-30T23:59:59.999Z"];
    let many: Vec<String> = (0..30).map(|n| format!("2025-12-{:02}T12:00:00.000Z", n + 1)).collect();
    for (n, instant) in lone.into_iter().chain(bounds).chain(many.iter().map(String::as_str)).enumerate() {
        written(&shop, "p1", &format!("c{n:02}"), at(instant)).await;
        expected.push(format!("c{n:02}"));
    }
    expected.reverse();
    for limit in [1, 4, 20, 29, 30, 31, 35, 36, 100] {
        let found = pages(&shop, limit).await;
        assert!(found.iter().rev().skip(1).all(|page| page.len() == limit), "{limit}");
        let authors: Vec<&str> = found.iter().flatten().map(|item| item["display_name"].as_str().unwrap()).collect();
        assert_eq!(authors, expected, "{limit}");
    }
}

#[tokio::test]
async fn a_page_that_spans_too_many_months_is_short_and_the_next_page_continues() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let mut expected = Vec::new();
    for month in 0..40 {
        let text = format!("{}-{:02}-15T12:00:00.000Z", 2000 + month / 12, month % 12 + 1);
        // In some months all reviews were removed, so only the `ReviewMonth` exists.
        if month % 5 == 0 {
            note(&shop, at(&text)).await;
        } else {
            written(&shop, "p1", &format!("c{month:02}"), at(&text)).await;
            expected.push(format!("c{month:02}"));
        }
    }
    expected.reverse();
    for limit in [1, 3, 100] {
        assert_eq!(authors(&shop, limit).await, expected, "{limit}");
    }
    assert!(pages(&shop, 100).await.len() <= 40 / (MONTHS_OF_A_PAGE - 1) + 2);
}

#[tokio::test]
async fn reviews_written_and_removed_between_two_pages_neither_hide_nor_repeat_other_reviews() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    for n in 0..30_i64 {
        // The reviews are some days apart and span several months.
        written(&shop, "p1", &format!("old{n:02}"), at("2025-01-01T00:00:00Z").plus_seconds(n * 700_000)).await;
    }
    let before = authors(&shop, 100).await;
    let (mut found, mut cursor, mut removed) = (Vec::<String>::new(), None::<String>, BTreeSet::new());
    for page in 0.. {
        let call = list().query("limit", "4");
        let answer = shop.send(cursor.iter().fold(call, |call, cursor| call.query("cursor", cursor))).await;
        let items = answer.body["items"].as_array().unwrap();
        found.extend(items.iter().map(|item| item["display_name"].as_str().unwrap().to_owned()));
        shop.join(&format!("new{page}")).await;
        let new = shop.send(write("p1", &format!("new{page}"), 5).header("if-none-match", "*")).await;
        assert_eq!(new.status, 201);
        // The last review of the page is removed, too.
        let last = found.last().unwrap().clone();
        let remove = one("DELETE /v1/products/{id}/reviews/{customer}", "p1", &last).header("if-match", "\"1\"");
        assert_eq!(shop.send(remove).await.status, 204);
        removed.insert(last);
        match answer.body["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(found, before);
    let after: Vec<String> = before.into_iter().filter(|author| !removed.contains(author)).collect();
    let rest: Vec<String> = authors(&shop, 100).await.into_iter().filter(|author| author.starts_with("old")).collect();
    assert_eq!(rest, after);
}

#[tokio::test]
async fn fifty_reviews_written_and_changed_at_once_are_each_listed_once() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let settled = async |call: Call| {
        for _ in 0..100 {
            let answer = shop.send(call.clone()).await;
            if answer.status != 503 {
                return answer;
            }
        }
        panic!("no answer")
    };
    let customers: Vec<String> = (0..50).map(|n| format!("c{n:02}")).collect();
    for id in &customers {
        shop.join(id).await;
    }
    let created = join_all(customers.iter().map(|id| settled(write("p1", id, 3).header("if-none-match", "*")))).await;
    assert!(created.iter().all(|answer| answer.status == 201));
    // Every customer sends two requests at once: two changes, or a change and a removal.
    let calls = customers.iter().enumerate().flat_map(|(n, id)| {
        let remove = || one("DELETE /v1/products/{id}/reviews/{customer}", "p1", id);
        [write("p1", id, 5), if n % 2 == 0 { write("p1", id, 1) } else { remove() }]
    });
    join_all(calls.map(|call| settled(call.header("if-match", "\"1\"")))).await;
    let mut left = Vec::new();
    for id in &customers {
        let read = shop.send(one("GET /v1/products/{id}/reviews/{customer}", "p1", id)).await;
        left.extend((read.status == 200).then(|| public(&read).to_string()));
    }
    let listed: Vec<String> = pages(&shop, 100).await.concat().iter().map(Value::to_string).collect();
    assert_eq!(listed.len(), left.len());
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), left.into_iter().collect());
}
