//! Tests of moving a category.

use std::collections::BTreeSet;

use emulators::table::FaultKind;
use futures::future::join_all;
use http_api::sample::{Answered, Call};
use key_schema::product::CategoryPath;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};
use workflows::relocation::Mover;

use crate::shop::{Shop, each, product, with};

fn segment(names: &[&str]) -> String {
    CategoryPath::new(names.iter().map(ToString::to_string).collect()).unwrap().to_segment()
}

fn relocate(from: &[&str], to: &[&str]) -> Call {
    Call::new("POST /v1/categories/{path}/move").path("path", &segment(from)).json(&json!({"to": to}))
}

async fn get(shop: &Shop, route: &'static str, names: &[&str]) -> Answered {
    shop.send(Call::new(route).path("path", &segment(names)).query("limit", "100")).await
}

async fn read(shop: &Shop, names: &[&str]) -> Answered {
    shop.send(Call::new("GET /v1/categories/{path}").path("path", &segment(names))).await
}

async fn describe(shop: &Shop, names: &[&str], version: &str, title: &str) -> Answered {
    let call = Call::new("PUT /v1/categories/{path}").path("path", &segment(names)).json(&json!({"title": title}));
    shop.staff(call.header("if-match", version)).await
}

async fn stand(shop: &Shop, id: &str, names: &[&str]) {
    let answer =
        shop.staff(Call::new("POST /v1/products").json(&with(product(id, 1), "category_path", json!(names)))).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
}

async fn put_into(shop: &Shop, id: &str, names: &[&str]) -> Answered {
    let call = Call::new("PUT /v1/products/{id}/categories/{path}");
    shop.staff(call.path("id", id).path("path", &segment(names))).await
}

async fn listed(shop: &Shop, names: &[&str]) -> BTreeSet<String> {
    let (mut found, mut cursor) = (BTreeSet::new(), None::<String>);
    loop {
        let mut call =
            Call::new("GET /v1/categories/{path}/products").path("path", &segment(names)).query("limit", "100");
        if let Some(cursor) = &cursor {
            call = call.query("cursor", cursor);
        }
        let page = shop.send(call).await;
        if page.status == 404 {
            return found;
        }
        for id in each(&page, "id") {
            assert!(found.insert(id.to_owned()), "{id} twice");
        }
        cursor = page.body["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            return found;
        }
    }
}

/// Completes the move as the janitor does, without the wait for requests that use the old
/// categories.
async fn settle(shop: &Shop) {
    let until = Instant::now() + Duration::from_secs(600);
    Mover::new(&shop.app.services.table).settling(0).go_on(until).await.unwrap();
}

fn done(answer: &Answered) -> (u16, &Value, [u64; 3]) {
    let count = |name: &str| answer.body[name].as_u64().unwrap_or(u64::MAX);
    (answer.status, &answer.body["status"], [count("categories"), count("products"), count("memberships")])
}

#[tokio::test]
async fn a_category_moves_with_its_subtree_and_the_lists_follow() {
    let shop = Shop::open().await;
    let (from, to) = (["A", "B #1"], ["Neu / 新", "100 %"]);
    let deep = ["A", "B #1", "ä~/%", "製 品"];
    stand(&shop, "p1", &from).await;
    stand(&shop, "p2", &deep).await;
    stand(&shop, "p3", &["A", "B"]).await;
    assert_eq!(put_into(&shop, "p2", &from).await.status, 201);
    assert_eq!(put_into(&shop, "p3", &deep).await.status, 201);
    assert_eq!(put_into(&shop, "p1", &["A", "B"]).await.status, 201);
    assert_eq!(describe(&shop, &deep, "\"1\"", "Goods").await.version(), Some(2));
    assert_eq!(describe(&shop, &deep, "\"2\"", "Good goods").await.version(), Some(3));

    let begun = shop.staff(relocate(&from, &to)).await;
    assert_eq!(done(&begun), (202, &json!("settling"), [3, 2, 2]), "{}", begun.body);
    assert_eq!((&begun.body["from"]["path"], &begun.body["to"]["path"]), (&json!(from), &json!(to)));
    assert_eq!(listed(&shop, &to).await, ["p1", "p2", "p3"].map(str::to_owned).into());
    assert_eq!(listed(&shop, &from).await, BTreeSet::new());
    assert_eq!(listed(&shop, &["A", "B"]).await, ["p1", "p3"].map(str::to_owned).into(), "a sibling's list stays");
    assert_eq!(read(&shop, &from).await.status, 404);
    let new = read(&shop, &["Neu / 新", "100 %", "ä~/%", "製 品"]).await;
    assert_eq!((new.status, new.version(), &new.body["title"]), (200, Some(3), &json!("Good goods")));
    let children = get(&shop, "GET /v1/categories/{path}/children", &["Neu / 新", "100 %", "ä~/%"]).await;
    assert_eq!(each(&children, "name"), ["製 品"]);
    let above = get(&shop, "GET /v1/categories/{path}/children", &["A"]).await;
    assert_eq!(each(&above, "name"), ["B"], "the former category does not exist");
    let line = shop
        .send(Call::new("GET /v1/categories/{path}/ancestors").path("path", &segment(&["Neu / 新", "100 %", "ä~/%"])))
        .await;
    assert_eq!(each(&line, "name"), ["Neu / 新", "100 %"]);
    let moved = shop.product("p2").await;
    assert_eq!(moved.version(), Some(2));
    assert_eq!(moved.body["category_path"], json!(["Neu / 新", "100 %", "ä~/%", "製 品"]));
    assert!(moved.body["categories"].as_array().unwrap().contains(&json!(to)), "{}", moved.body);
    let stale =
        Call::new("PATCH /v1/products/{id}").path("id", "p2").header("if-match", "\"1\"").json(&json!({"name": "x"}));
    assert_eq!(shop.staff(stale).await.status, 412, "the product's version changes");

    let again = shop.staff(relocate(&from, &to)).await;
    assert_eq!((again.status, &again.body), (202, &begun.body), "a repetition shows the progress");
    settle(&shop).await;
    let over = shop.staff(relocate(&from, &to)).await;
    assert_eq!(done(&over), (200, &json!("done"), [3, 2, 2]));
    assert_eq!(shop.staff(relocate(&from, &to)).await.body, over.body);
}

#[tokio::test]
async fn a_thousand_products_move_and_each_is_listed_once_at_the_new_path() {
    let shop = Shop::open().await;
    let of =
        |n: usize| with(product(&format!("p{n:04}"), 1), "category_path", json!(["A", "B", format!("C{}", n % 7)]));
    let lines: String = (0..1000).map(|n| format!("{}\n", of(n))).collect();
    let import = Call::new("POST /v1/products/import").header("content-type", "application/x-ndjson").body(lines);
    assert_eq!(shop.staff(import).await.status, 200);
    let _ = shop.app.services.table.meter().take();
    let mut answer = shop.staff(relocate(&["A", "B"], &["Z"])).await;
    let costs = shop.app.services.table.meter().take();
    let requests = |id: &str| costs.iter().find(|cost| cost.pattern.id == id).map_or(0, |cost| cost.requests);
    if answer.body["status"] == "settling" {
        assert_eq!(requests("category-moves.place"), 10 * 4, "a step moves 25 products");
    }
    while answer.body["status"] == "moving" {
        settle(&shop).await;
        answer = shop.staff(relocate(&["A", "B"], &["Z"])).await;
    }
    assert_eq!(done(&answer).2, [8, 1000, 0]);
    assert_eq!(listed(&shop, &["Z"]).await.len(), 1000);
    assert_eq!(listed(&shop, &["A"]).await.len(), 0);
    assert_eq!(listed(&shop, &["Z", "C3"]).await.len(), 143);
}

#[tokio::test]
async fn a_category_that_cannot_be_moved_stays_and_no_move_begins() {
    let shop = Shop::open().await;
    stand(&shop, "p1", &["A", "B", "C"]).await;
    stand(&shop, "p2", &["A", "Taken"]).await;
    let deep = ["A", "D", "3", "4", "5", "6", "7"];
    stand(&shop, "p3", &deep).await;
    let long = "x".repeat(100);
    stand(&shop, "p4", &["A", "L", &long, &long, &long, &long]).await;
    let before: Vec<Value> = join_all(["p1", "p2", "p3", "p4"].map(|id| shop.product(id)))
        .await
        .into_iter()
        .map(|answer| answer.body)
        .collect();
    let refused = async |from: &[&str], to: Value| {
        let call = Call::new("POST /v1/categories/{path}/move").path("path", &segment(from));
        let answer = shop.staff(call.json(&json!({"to": to}))).await;
        (
            answer.status,
            answer.code().unwrap().to_owned(),
            answer.pointers().into_iter().map(str::to_owned).collect::<Vec<_>>(),
        )
    };
    let plain = |status: u16, code: &str| (status, code.to_owned(), Vec::<String>::new());
    let at_to = (422, "invalid_body".to_owned(), vec!["/to".to_owned()]);
    assert_eq!(refused(&["A", "X"], json!(["Y"])).await, plain(404, "not_found"));
    assert_eq!(refused(&["A", "B"], json!(["A", "Taken"])).await, plain(409, "already_exists"));
    assert_eq!(refused(&["A", "B"], json!(["A"])).await, plain(409, "already_exists"), "an ancestor");
    assert_eq!(refused(&["A", "B"], json!(["A", "B"])).await, at_to, "itself");
    assert_eq!(refused(&["A", "B"], json!(["A", "B", "C", "D"])).await, at_to, "below itself");
    assert_eq!(refused(&["A", "D"], json!(["A", "E", "3", "4"])).await, at_to, "a descendant would be too deep");
    assert_eq!(refused(&["A", "L"], json!([long, long])).await, at_to, "a descendant's path would be too long");
    for bad in [json!(null), json!("A"), json!([]), json!(["A", ""]), json!(vec!["A"; 9])] {
        let (status, code, pointers) = refused(&["A", "B"], bad).await;
        assert_eq!((status, code.as_str()), (422, "invalid_body"));
        assert!(pointers[0].starts_with("/to"), "{pointers:?}");
    }
    let after: Vec<Value> = join_all(["p1", "p2", "p3", "p4"].map(|id| shop.product(id)))
        .await
        .into_iter()
        .map(|answer| answer.body)
        .collect();
    assert_eq!(after, before);
    for path in [vec!["Y"], vec!["A", "E"], vec![&*long]] {
        assert_eq!(read(&shop, &path).await.status, 404, "a refused request creates no category");
    }
    assert!(Mover::new(&shop.app.services.table).current().await.unwrap().is_none());
    assert_eq!(
        shop.staff(relocate(&["A", "D"], &["A", "E", "3"])).await.status,
        202,
        "a descendant may have the greatest allowed depth"
    );
}

#[tokio::test]
async fn only_one_category_moves_at_a_time() {
    let shop = Shop::open().await;
    stand(&shop, "p1", &["A", "B"]).await;
    stand(&shop, "p2", &["A", "C"]).await;
    let calls: Vec<Call> = (0..50)
        .map(|n| if n % 2 == 0 { relocate(&["A", "B"], &["Z", "B"]) } else { relocate(&["A", "C"], &["Z", "C"]) })
        .collect();
    let answers = join_all(calls.into_iter().map(|call| shop.staff(call))).await;
    let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!(
        (count(202), count(409)),
        (25, 25),
        "{:?}",
        answers.iter().map(|answer| (answer.status, &answer.body)).collect::<Vec<_>>()
    );
    for answer in answers.iter().filter(|answer| answer.status == 409) {
        assert_eq!(answer.code(), Some("category_moving"));
    }
    settle(&shop).await;
    let first = listed(&shop, &["Z"]).await;
    assert_eq!(first.len(), 1);
    let other = if first.contains("p1") { ("C", "p2") } else { ("B", "p1") };
    let answer = shop.staff(relocate(&["A", other.0], &["Z", other.0])).await;
    assert_eq!((answer.status, answer.body["products"].as_u64()), (202, Some(1)), "the counts start at 0 again");
    settle(&shop).await;
    assert_eq!(listed(&shop, &["Z"]).await.len(), 2);
    assert_eq!(
        shop.staff(relocate(&["A", "B"], &["Z", "B"])).await.status,
        if other.0 == "B" { 200 } else { 404 },
        "the last move can be read"
    );
}

#[tokio::test]
async fn no_write_is_lost_while_a_category_moves() {
    let shop = Shop::open().await;
    for n in 0..50 {
        stand(&shop, &format!("old{n:02}"), &["A", "B", ["x", "y #"][n % 2]]).await;
    }
    let write = async |n: usize| {
        let old = format!("old{n:02}");
        match n % 5 {
            0 => stand(&shop, &format!("new{n:02}"), &["A", "B", "late", &format!("{n}")]).await,
            1 => {
                let rename = async |version: &str| {
                    let call = Call::new("PATCH /v1/products/{id}").path("id", &old).header("if-match", version);
                    shop.staff(call.json(&json!({"name": "Renamed"}))).await.status
                };
                let first = rename("\"1\"").await;
                assert!(first == 200 || first == 412 && rename("\"2\"").await == 200, "{first}");
            }
            2 => assert_eq!(put_into(&shop, &old, &["A", "B", "x"]).await.status, 201),
            3 => assert_eq!(put_into(&shop, &old, &["Out"]).await.status, 201),
            _ => {
                let version = shop.product(&old).await.version().unwrap().to_string();
                let call = Call::new("DELETE /v1/products/{id}")
                    .path("id", &old)
                    .header("if-match", &format!("\"{version}\""));
                assert!([204, 412].contains(&shop.staff(call).await.status));
            }
        }
    };
    let (begun, ()) = tokio::join!(shop.staff(relocate(&["A", "B"], &["Z"])), async {
        join_all((0..50).map(write)).await;
    });
    assert_eq!(begun.status, 202, "{}", begun.body);
    settle(&shop).await;
    let retired =
        join_all((4..50).step_by(5).map(async |n| shop.product(&format!("old{n:02}")).await.status == 404)).await;
    let retired = retired.into_iter().filter(|retired| *retired).count();
    assert_eq!(listed(&shop, &["Z"]).await.len(), 50 + 10 - retired);
    assert_eq!(listed(&shop, &["A"]).await, BTreeSet::new());
    for n in (1..50).step_by(5) {
        assert_eq!(shop.product(&format!("old{n:02}")).await.body["name"], "Renamed");
    }
    for n in (2..50).step_by(5) {
        let categories = shop.product(&format!("old{n:02}")).await.body["categories"].clone();
        assert!(categories.as_array().unwrap().contains(&json!(["Z", "x"])), "{categories}");
    }
    for n in (0..50).step_by(5) {
        assert_eq!(read(&shop, &["Z", "late", &format!("{n}")]).await.status, 200);
    }
    assert_eq!(listed(&shop, &["Out"]).await.len(), 10);
}

#[tokio::test]
async fn a_move_interrupted_by_a_throttled_table_ends_later() {
    let shop = Shop::open().await;
    for n in 0..30 {
        stand(&shop, &format!("p{n}"), &["A", "B", &format!("{n}")]).await;
    }
    shop.break_with(FaultKind::Throttle, 0.2, None, 3);
    let mut answer = shop.staff(relocate(&["A", "B"], &["Z"])).await;
    while answer.status == 503 {
        answer = shop.staff(relocate(&["A", "B"], &["Z"])).await;
    }
    assert_eq!(answer.status, 202, "{}", answer.body);
    assert!(shop.clear_faults() > 0);
    settle(&shop).await;
    let over = shop.staff(relocate(&["A", "B"], &["Z"])).await;
    assert_eq!(done(&over), (200, &json!("done"), [31, 30, 0]));
    assert_eq!(listed(&shop, &["Z"]).await.len(), 30);
}

#[tokio::test]
async fn a_product_created_after_a_move_creates_the_old_category_again() {
    let shop = Shop::open().await;
    stand(&shop, "p1", &["A", "B"]).await;
    let before = describe(&shop, &["A", "B"], "\"1\"", "Bee").await;
    let seen = read(&shop, &["A", "B"]).await;
    assert_eq!(shop.staff(relocate(&["A", "B"], &["Z"])).await.status, 202);
    settle(&shop).await;
    stand(&shop, "p2", &["A", "B"]).await;
    let after = describe(&shop, &["A", "B"], "\"1\"", "Sea").await;
    assert_eq!((before.status, before.version()), (after.status, after.version()));
    assert_ne!(seen.header("etag"), read(&shop, &["A", "B"]).await.header("etag"), "another category has another tag");
    assert_eq!((read(&shop, &["A", "B"]).await.status, listed(&shop, &["A", "B"]).await.len()), (200, 1));
    let taken = shop.staff(relocate(&["A", "B"], &["Z"])).await;
    assert_eq!(
        (taken.status, taken.code(), taken.header("location")),
        (409, Some("already_exists"), Some("/v1/categories/Z"))
    );
}
