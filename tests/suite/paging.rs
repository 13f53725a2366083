//! Reads long lists page by page while other clients add entries. Every entry must appear once and
//! in order.

use std::collections::BTreeSet;

use local::System;
use serde_json::{Value as Json, json};

use crate::support::client::Call;
use crate::support::shop::{
    Pages, all, customer, customer_call, import, listed, order_body, order_call, path, product_body, products,
};
use crate::support::{drain, with_own_system, with_system};

/// The number of entries of a list before the test reads it.
const COUNT: usize = 300;
/// The number of pages that are read between two insertions.
const DISTURBED: usize = 3;

fn staff(path: &str) -> Call {
    Call::new("GET", path).staff()
}

/// Reads a list to its end and checks that it has all original entries, in order and without
/// duplicates.
///
/// `key` returns the text that sorts and identifies an entry. `disturb` receives a page number and
/// returns a call that adds an entry.
async fn is_read_whole(
    system: &System,
    path: &str,
    limit: usize,
    wanted: &BTreeSet<String>,
    newest_first: bool,
    key: impl Fn(&Json) -> String,
    disturb: Option<&dyn Fn(usize) -> Call>,
) {
    let mut pages = Pages::new(path, limit);
    let (mut keys, mut count) = (Vec::<String>::new(), 0);
    while let Some(page) = pages.next(system, staff).await {
        count += 1;
        keys.extend(page.iter().map(&key));
        if let (Some(disturb), 0) = (disturb, count % DISTURBED) {
            let answer = disturb(count).send(system).await;
            assert!([200, 201].contains(&answer.status), "{}", answer.body);
        }
    }
    if newest_first {
        keys.reverse();
    }
    assert!(keys.is_sorted_by(|one, other| one < other), "{path}: an entry is duplicate or out of order");
    let found: BTreeSet<String> = keys.into_iter().collect();
    let lost: Vec<&String> = wanted.difference(&found).take(5).collect();
    assert!(lost.is_empty(), "{path}: missing entries: {lost:?}");
    let added = found.len() - wanted.len();
    assert!(if disturb.is_some() { added > 0 } else { added == 0 }, "{path}: {added} additional entries");
    assert!(count >= wanted.len().div_ceil(limit), "{path}: {count} pages");
}

fn text(entry: &Json, member: &str) -> String {
    entry[member].as_str().unwrap().to_owned()
}

#[test]
fn the_products_of_a_category_are_read_page_by_page() {
    with_system(async |system| {
        // The category `pages~b` has two categories below it. One has a third of the products, and
        // the other has the rest.
        let category = |n: usize| if n.is_multiple_of(3) { ["pages", "b", "c"] } else { ["pages", "b", "Ä/~#"] };
        let bodies: Vec<Json> =
            (0..COUNT).map(|n| product_body(&format!("pages-{:04}", n * 10), &category(n), 0)).collect();
        import(system, &bodies).await;
        let key = |product: &Json| product["category_path"].to_string() + &text(product, "id");
        let keys: BTreeSet<String> = bodies.iter().map(key).collect();
        for limit in [100, 7] {
            is_read_whole(system, "/v1/categories/pages/products", limit, &keys, false, key, None).await;
        }
        let create = |n: usize| {
            let body = product_body(&format!("pages-{:04}x", n * 7919 % (COUNT * 10)), &category(n), 0);
            Call::new("POST", "/v1/products").staff().json(&body)
        };
        is_read_whole(system, "/v1/categories/pages~b/products", 17, &keys, false, key, Some(&create)).await;
    });
}

/// Places two orders at each time.
async fn orders(system: &System, buyer: &str, product: &str) -> Vec<Json> {
    customer(system, buyer).await;
    products(system, &[product], 1_000_000).await;
    let calls = (0..COUNT).map(|n| placed(buyer, product, n / 2 * 2));
    let calls = calls.enumerate().map(|(n, body)| order_call(&body, &format!("{buyer}-{n}")).staff());
    all(system, calls).await.into_iter().map(|answer| answer.expect(201).body).collect()
}

fn placed(buyer: &str, product: &str, second: usize) -> Json {
    let mut body = order_body(buyer, &[(product, 1)]);
    body["placed_at"] =
        json!(format!("1999-07-01T{:02}:{:02}:{:02}.000Z", second / 3600, second / 60 % 60, second % 60));
    body
}

#[test]
fn the_lists_of_orders_and_the_sales_of_a_product_are_read_page_by_page() {
    with_system(async |system| {
        let (buyer, product) = ("pages-buyer", "pages-sold");
        let placed_orders = orders(system, buyer, product).await;
        drain(system).await;
        // An order's id begins with its time.
        let id = |order: &Json| text(order, "id");
        let ids: BTreeSet<String> = placed_orders.iter().map(id).collect();
        assert_eq!(ids.len(), COUNT);
        let of_customer = path(&["customers", buyer, "orders"]);
        let by_status = "/v1/orders?status=pending&from=1999-07-01T00:00:00Z&to=1999-07-01T23:59:59Z";
        let sales = path(&["products", product, "sales"]) + "?from=1999-07-01T00:00:00Z&to=1999-07-01T23:59:59Z";
        for limit in [100, 7] {
            is_read_whole(system, &of_customer, limit, &ids, true, id, None).await;
            is_read_whole(system, by_status, limit, &ids, true, id, None).await;
            is_read_whole(system, &sales, limit, &ids, true, |sale| text(sale, "order_id"), None).await;
        }
        let place = |list: &'static str| {
            move |n: usize| {
                let body = placed(buyer, product, n * 37 % COUNT / 2 * 2 + 1);
                order_call(&body, &format!("{buyer}-{list}-{n}")).staff()
            }
        };
        is_read_whole(system, &of_customer, 17, &ids, true, id, Some(&place("of-customer"))).await;
        is_read_whole(system, by_status, 17, &ids, true, id, Some(&place("by-status"))).await;
    });
}

#[test]
fn the_log_of_a_day_is_read_page_by_page() {
    with_own_system(async |system| {
        let (buyer, product) = ("log-buyer", "logged");
        customer(system, buyer).await;
        products(system, &[product], 1_000_000).await;
        let orders = (0..20).map(|n| order_call(&order_body(buyer, &[(product, 1)]), &format!("logged-{n}")).staff());
        let orders: Vec<Json> = all(system, orders).await.into_iter().map(|answer| answer.expect(201).body).collect();
        let note = |n: usize| {
            let path = path(&["orders", orders[n % orders.len()]["id"].as_str().unwrap(), "log"]);
            Call::new("POST", &path).staff().json(&json!({ "text": format!("note {n}") }))
        };
        let written: Vec<Json> =
            all(system, (0..COUNT).map(note)).await.into_iter().map(|answer| answer.expect(201).body).collect();
        // The test may run past midnight, so the lines may be from two days.
        let day = |line: &Json| text(line, "at")[..10].to_owned();
        let key = |line: &Json| text(line, "at") + &text(line, "id");
        let days: BTreeSet<String> = written.iter().map(day).collect();
        for at in &days {
            let keys: BTreeSet<String> = written.iter().filter(|line| day(line) == *at).map(key).collect();
            for limit in [100, 7] {
                is_read_whole(system, &format!("/v1/log?day={at}"), limit, &keys, false, key, None).await;
            }
        }
        let last = days.last().unwrap();
        let keys = written.iter().filter(|line| day(line) == *last).map(key).collect();
        is_read_whole(system, &format!("/v1/log?day={last}"), 17, &keys, false, key, Some(&note)).await;
    });
}

#[test]
fn all_customers_are_read_page_by_page() {
    with_own_system(async |system| {
        let ids: Vec<String> = (0..COUNT).map(|n| format!("everybody-{n:04}")).collect();
        let signed_up = all(system, ids.iter().map(|id| customer_call(id))).await;
        let key = |customer: &Json| text(customer, "created_at") + &text(customer, "id");
        let keys: BTreeSet<String> = signed_up.into_iter().map(|answer| key(&answer.expect(201).body)).collect();
        // Some customers get the tier gold or silver. The index has a separate list for each tier.
        let promote = |(id, tier): (&String, &str)| {
            let call = Call::new("PATCH", &path(&["customers", id])).staff().header("if-match", "\"1\"");
            call.json(&json!({ "tier": tier }))
        };
        let promoted = ids.iter().step_by(5).zip(["gold", "silver"].into_iter().cycle()).map(promote);
        for answer in all(system, promoted).await {
            answer.expect(200);
        }
        for limit in [100, 7] {
            is_read_whole(system, "/v1/customers", limit, &keys, false, key, None).await;
        }
        let join = |n: usize| customer_call(&format!("everybody-late-{n}"));
        is_read_whole(system, "/v1/customers", 17, &keys, false, key, Some(&join)).await;
    });
}

#[test]
fn the_sales_of_several_years_are_one_list() {
    with_system(async |system| {
        let (buyer, product) = ("years-buyer", "years-sold");
        customer(system, buyer).await;
        products(system, &[product], 100).await;
        // One year has no sale, another has a sale at each end, and two sales have the same time.
        let instants = [
            "1990-12-31T23:59:59.999Z",
            "1991-01-01T00:00:00.000Z",
            "1991-12-31T23:59:59.999Z",
            "1993-06-01T12:00:00.000Z",
            "1993-06-01T12:00:00.000Z",
            "1994-01-01T00:00:00.000Z",
        ];
        let calls = instants.iter().enumerate().map(|(n, at)| {
            let mut body = order_body(buyer, &[(product, 1)]);
            body["placed_at"] = json!(at);
            order_call(&body, &format!("{buyer}-{n}")).staff()
        });
        for answer in all(system, calls).await {
            answer.expect(201);
        }
        drain(system).await;
        for (from, to) in [(0, 5), (1, 4), (2, 2), (0, 1)] {
            let list = format!("/v1/products/{product}/sales?from={}&to={}", instants[from], instants[to]);
            let wanted: Vec<&str> = instants[from..=to].iter().rev().copied().collect();
            for limit in [1, 2, 3, 100] {
                let found = listed(system, &list, limit, staff).await;
                let orders: BTreeSet<String> = found.iter().map(|sale| text(sale, "order_id")).collect();
                assert_eq!(orders.len(), wanted.len(), "{list}");
                let found: Vec<String> = found.iter().map(|sale| text(sale, "placed_at")).collect();
                assert_eq!(found, wanted, "{list} by {limit}");
            }
        }
    });
}

#[test]
fn reviews_sorted_by_time_or_by_rating_are_read_page_by_page() {
    with_system(async |system| {
        products(system, &["pages-reviewed"], 0).await;
        let reviewers: Vec<String> = (0..60).map(|n| format!("pages-reviewer-{n:02}")).collect();
        for answer in all(system, reviewers.iter().map(|id| customer_call(id))).await {
            answer.expect(201);
        }
        let review = |(n, reviewer): (usize, &String)| {
            let path = path(&["products", "pages-reviewed", "reviews", reviewer]);
            let call = Call::new("PUT", &path).customer(reviewer).header("if-none-match", "*");
            call.json(&json!({ "rating": n % 5 + 1, "display_name": reviewer, "title": "T", "text": "T" }))
        };
        for answer in all(system, reviewers.iter().enumerate().map(review)).await {
            answer.expect(201);
        }
        let list = "/v1/products/pages-reviewed/reviews";
        for (path, rated) in [(list.to_owned(), false), (format!("{list}?sort=best"), true)] {
            let mut pages = Pages::new(&path, 7);
            let mut found: Vec<Json> = Vec::new();
            while let Some(page) = pages.next(system, |path| Call::new("GET", path)).await {
                found.extend(page);
            }
            let order = |review: &Json| (rated.then(|| review["rating"].as_u64()), text(review, "created_at"));
            assert!(found.is_sorted_by(|one, other| order(one) >= order(other)), "{path}");
            let mut by: Vec<String> = found.iter().map(|review| text(review, "display_name")).collect();
            by.sort();
            assert_eq!(by, reviewers, "{path}");
        }
    });
}
