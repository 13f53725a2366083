//! Tests of importing many products.

use std::collections::BTreeMap;

use http_api::sample::{Answered, Call};
use key_schema::id::ProductId;
use key_schema::product as schema;
use serde_json::{Value, json};

use crate::shop::{Shop, product, with};

pub fn import(body: impl Into<String>) -> Call {
    Call::new("POST /v1/products/import").header("content-type", "application/x-ndjson").body(body)
}

pub fn lines(products: &[Value]) -> String {
    products.iter().map(|product| format!("{product}\n")).collect()
}

/// Returns a thousand different products in some categories.
pub fn thousand() -> Vec<Value> {
    let of =
        |n: usize| with(product(&format!("p{n:04}"), 1), "category_path", json!(["A", format!("B{}", n % 30), "C"]));
    (0..1000).map(of).collect()
}

/// Returns the status and code of each line, in order.
pub fn results(answer: &Answered) -> Vec<(&str, Option<&str>)> {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let results = answer.body["results"].as_array().unwrap();
    results.iter().map(|line| (line["status"].as_str().unwrap(), line["code"].as_str())).collect()
}

/// Counts the lines by status, and refused lines by code.
pub fn tally(answer: &Answered) -> BTreeMap<&str, usize> {
    results(answer).into_iter().fold(BTreeMap::new(), |mut tally, (status, code)| {
        *tally.entry(code.unwrap_or(status)).or_default() += 1;
        tally
    })
}

#[tokio::test]
async fn an_import_of_a_thousand_products_creates_all_and_its_repetition_writes_only_changed_lines() {
    let shop = Shop::open().await;
    let mut products = thousand();
    assert_eq!(tally(&shop.staff(import(lines(&products))).await), BTreeMap::from([("created", 1000)]));
    let before = shop.product("p0007").await;
    assert_eq!((before.version(), &before.body["stock"]), (Some(1), &json!(1)));
    let node = shop.send(Call::new("GET /v1/categories/{path}").path("path", "A~B29~C")).await;
    assert_eq!(node.status, 200);

    let _ = shop.app.services.table.meter().take();
    assert_eq!(tally(&shop.staff(import(lines(&products))).await), BTreeMap::from([("unchanged", 1000)]));
    let cost = shop.app.services.table.meter().take();
    let cost: Vec<_> = cost.iter().map(|cost| (cost.pattern.id, cost.requests)).collect();
    assert_eq!(cost, [("products.many", 10)], "an equal product is read and not written");
    assert_eq!(shop.product("p0007").await.body, before.body);

    products[7]["name"] = json!("New");
    products[7]["category_path"] = json!(["Z"]);
    products[7]["stock"] = json!(999);
    products[8]["stock"] = json!(999);
    let answer = shop.staff(import(lines(&products))).await;
    assert_eq!(tally(&answer), BTreeMap::from([("updated", 1), ("unchanged", 999)]));
    assert_eq!(answer.body["results"][7], json!({"line": 8, "id": "p0007", "status": "updated"}));
    let after = shop.product("p0007").await;
    assert_eq!((after.version(), &after.body["name"]), (Some(2), &json!("New")));
    assert_eq!(after.body["stock"], json!(1), "the import does not change the stock of an existing product");
    let listed = shop.send(Call::new("GET /v1/categories/{path}/products").path("path", "Z")).await;
    assert_eq!(listed.body["items"][0]["id"], "p0007");
}

#[tokio::test]
async fn an_import_reports_each_refused_line_and_accepts_the_other_lines() {
    let shop = Shop::open().await;
    shop.stock_up("old", 5).await;
    let body = [
        product("a", 1).to_string(),
        "{\"id\":".to_owned(),
        String::new(),
        with(with(product("b", 1), "price", json!(1)), "colour", json!("red")).to_string(),
        "[]".to_owned(),
        product("a", 9).to_string(),
        with(product("a", 1), "name", json!("Other")).to_string(),
        with(product("c", 1), "id", Value::Null).to_string(),
        product("old", 1).to_string(),
        product("製#+~", 1).to_string(),
    ];
    let answer = shop.staff(import(body.join("\r\n"))).await;
    let expected = [
        ("created", None),
        ("refused", Some("malformed_json")),
        ("refused", Some("invalid_body")),
        ("refused", Some("invalid_body")),
        ("unchanged", None),
        ("refused", Some("conflict")),
        ("refused", Some("invalid_body")),
        ("unchanged", None),
        ("created", None),
    ];
    assert_eq!(results(&answer), expected);
    let numbers: Vec<_> =
        answer.body["results"].as_array().unwrap().iter().map(|line| line["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 4, 5, 6, 7, 8, 9, 10], "a blank line is counted and skipped");
    let pointers: Vec<_> =
        answer.body["results"][2]["errors"].as_array().unwrap().iter().map(|error| &error["pointer"]).collect();
    assert_eq!(pointers, ["/price", "/colour"]);
    assert_eq!(answer.body["results"][6]["errors"][0]["pointer"], "/id", "a line without an id is refused");
    assert_eq!(shop.product("a").await.body["name"], "Product a");
    assert_eq!(shop.product("b").await.status, 404);
    assert_eq!(shop.product("old").await.body["stock"], 5);
}

#[tokio::test]
async fn an_import_revives_a_retired_product() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 5).await;
    shop.staff(Call::new("DELETE /v1/products/{id}").path("id", "p1").header("if-match", "\"1\"")).await;
    let answer = shop.staff(import(lines(&[product("p1", 8)]))).await;
    assert_eq!(results(&answer), [("created", None)]);
    let read = shop.product("p1").await;
    assert_eq!((read.version(), &read.body["stock"]), (Some(3), &json!(8)));
    let id = ProductId::new("p1").unwrap();
    let stored = shop.app.services.table.get(&schema::read_for_update(&id).unwrap()).await.unwrap().unwrap();
    assert_eq!(stored.meta.rev, 3);
}

#[tokio::test]
async fn price_if_new_keeps_the_price_of_an_existing_product() {
    let shop = Shop::open().await;
    let unpriced = |id: &str| {
        let mut line = product(id, 1);
        let price = line.as_object_mut().unwrap().remove("price").unwrap();
        with(line, "price_if_new", with(price, "amount", json!(100)))
    };
    shop.stock_up("old", 5).await;
    let answer = shop.staff(import(lines(&[unpriced("old"), unpriced("new"), unpriced("new")]))).await;
    assert_eq!(results(&answer), [("unchanged", None), ("created", None), ("unchanged", None)]);
    let old = shop.product("old").await;
    assert_eq!((old.version(), &old.body["price"]["amount"]), (Some(1), &json!(129)));
    assert_eq!(shop.product("new").await.body["price"]["amount"], 100);

    let answer = shop.staff(import(lines(&[with(unpriced("old"), "name", json!("Older"))]))).await;
    assert_eq!(results(&answer), [("updated", None)]);
    let old = shop.product("old").await;
    assert_eq!((&old.body["name"], &old.body["price"]["amount"]), (&json!("Older"), &json!(129)));
    let both = with(product("old", 1), "price_if_new", json!({"amount": 100, "currency": "USD"}));
    assert_eq!(results(&shop.staff(import(lines(&[both]))).await), [("refused", Some("invalid_body"))]);
}

#[tokio::test]
async fn an_import_may_be_empty_and_has_every_spelling_of_its_media_type() {
    let shop = Shop::open().await;
    assert_eq!(shop.staff(import("")).await.body, json!({"results": []}));
    let line = product("p1", 1).to_string() + "\n";
    for (kind, expected) in [("application/ndjson", "created"), ("application/jsonl", "unchanged")] {
        let answer = shop.staff(import(line.clone()).header("content-type", kind)).await;
        assert_eq!(results(&answer), [(expected, None)], "{kind}");
    }
}

#[tokio::test]
async fn two_imports_of_the_same_lines_at_once_create_each_product_once() {
    let shop = Shop::open().await;
    let products: Vec<Value> = (0..120).map(|n| product(&format!("p{n:03}"), 1)).collect();
    let reversed: Vec<Value> = products.iter().rev().cloned().collect();
    let (one, two) =
        futures::future::join(shop.staff(import(lines(&products))), shop.staff(import(lines(&reversed)))).await;
    let mut both = results(&one);
    both.extend(results(&two));
    assert_eq!(both.iter().filter(|line| line.0 == "created").count(), 120);
    assert_eq!(both.iter().filter(|line| line.0 == "unchanged").count(), 120);
    assert_eq!(shop.product("p060").await.version(), Some(1));
}

#[tokio::test]
async fn texts_that_look_alike_are_one_product_one_brand_and_one_category() {
    let shop = Shop::open().await;
    let spelled = |id: &str, brand: &str, category: &str| {
        let product = with(product(id, 1), "brand", json!(brand));
        with(product, "category_path", json!([category, "Ice"]))
    };
    let products =
        [spelled("a", "Été", "FRUIT"), spelled("b", " E\u{301}te\u{301} ", "FRUIT "), spelled("a ", "Été", "FRUIT")];
    let answer = shop.staff(import(lines(&products))).await;
    assert_eq!(results(&answer), [("created", None), ("created", None), ("refused", Some("invalid_body"))]);
    for id in ["a", "b"] {
        let product = shop.product(id).await.body;
        assert_eq!((&product["brand"], &product["category_path"]), (&json!("Été"), &json!(["FRUIT", "Ice"])), "{id}");
    }
    let categories = shop.send(Call::new("GET /v1/categories")).await;
    assert_eq!(categories.body["items"].as_array().map(Vec::len), Some(1), "{}", categories.body);
}
