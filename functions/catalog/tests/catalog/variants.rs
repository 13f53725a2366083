//! Tests of variants: creation, the list on the parent's page, stock, retirement and revival.

use std::collections::BTreeMap;

use http_api::sample::{Answered, Call};
use key_schema::id::ProductId;
use key_schema::item::Stored;
use key_schema::product::{self as schema, Product};
use serde_json::{Value, json};

use crate::shop::{Shop, product, with};

fn variant(id: &str, parent: &str, options: Value, stock: u64) -> Value {
    with(with(product(id, stock), "parent", json!(parent)), "options", options)
}

fn post(body: &Value) -> Call {
    Call::new("POST /v1/products").json(body)
}

fn delete(id: &str, version: u64) -> Call {
    Call::new("DELETE /v1/products/{id}").path("id", id).header("if-match", &format!("\"{version}\""))
}

/// Creates a variant and expects success.
async fn add(shop: &Shop, id: &str, parent: &str, options: Value, stock: u64) -> Answered {
    let answer = shop.staff(post(&variant(id, parent, options, stock))).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    answer
}

/// Creates the product `shirt` with a stock of 0.
async fn shirt(shop: &Shop) {
    shop.stock_up("shirt", 0).await;
}

async fn stored(shop: &Shop, id: &str) -> Stored<Product> {
    let id = ProductId::new(id).unwrap();
    shop.app.services.table.get(&schema::read_for_update(&id).unwrap()).await.unwrap().unwrap()
}

fn sizes(size: &str) -> Value {
    json!({"size": size})
}

fn listed(parent: &Answered) -> Vec<&str> {
    parent.body["variants"].as_array().unwrap().iter().map(|variant| variant["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_first_variant_turns_a_product_into_a_parent_and_one_query_reads_its_page() {
    let shop = Shop::open().await;
    shirt(&shop).await;
    let red = json!({"colour": "red", "size": "M"});
    let created = add(&shop, "shirt-m", "shirt", red.clone(), 3).await;
    assert_eq!((&created.body["parent"], &created.body["options"]), (&json!("shirt"), &red));
    assert_eq!((&created.body["stock"], created.body.get("variants")), (&json!(3), None));
    assert_eq!(shop.product("shirt-m").await.body, created.body);
    add(&shop, "shirt-l", "shirt", json!({"colour": "red", "size": "L"}), 0).await;

    let _ = shop.app.services.table.meter().take();
    let parent = shop.ok(Call::new("GET /v1/products/{id}").path("id", "shirt")).await;
    let cost = shop.app.services.table.meter().take();
    let requests: BTreeMap<_, _> = cost.iter().map(|cost| (cost.pattern.id, cost.requests)).collect();
    assert_eq!(requests, [("products.page", 1), ("stock.show", 1)].into());
    let price = json!({"amount": 129, "currency": "USD"});
    let expected = json!([
        {"id": "shirt-l", "name": "Product shirt-l", "options": {"colour": "red", "size": "L"}, "price": price,
            "compare_at": null, "thumbnail": null, "in_stock": false},
        {"id": "shirt-m", "name": "Product shirt-m", "options": red, "price": price, "compare_at": null,
            "thumbnail": null, "in_stock": true},
    ]);
    assert_eq!(parent.body["variants"], expected);
    assert_eq!((parent.body.get("stock"), parent.body.get("availability")), (None, None));
    assert_eq!(parent.body["in_stock"], json!(true), "one of the variants is in stock");
    assert_eq!(parent.version(), Some(1), "a variant must not break an editor's If-Match");
}

#[tokio::test]
async fn a_product_without_variants_shows_no_field_of_variants() {
    let shop = Shop::open().await;
    let created = shop.stock_up("p1", 7).await;
    for field in ["parent", "options", "variants"] {
        assert_eq!(created.body.get(field), None, "{field}");
    }
    assert_eq!(created.body["availability"], "low");
}

#[tokio::test]
async fn parent_and_options_come_together_and_never_change() {
    let shop = Shop::open().await;
    shirt(&shop).await;
    let refused = |answer: Answered| {
        assert_eq!((answer.status, answer.code()), (422, Some("invalid_body")), "{}", answer.body);
        answer.pointers().join(" ")
    };
    let only_parent = with(product("p1", 1), "parent", json!("shirt"));
    assert_eq!(refused(shop.staff(post(&only_parent)).await), "/options");
    let only_options = with(product("p1", 1), "options", sizes("M"));
    assert_eq!(refused(shop.staff(post(&only_options)).await), "/parent");
    let long = |length| "x".repeat(length);
    for (options, pointer) in [
        (json!({}), "/options"),
        (json!({"a": "1", "b": "1", "c": "1", "d": "1", "e": "1", "f": "1"}), "/options"),
        (json!({"Size": "M", "size": "L"}), "/options"),
        (json!({"": "M"}), "/options"),
        (json!({"a\u{7}": "M"}), "/options"),
        (json!({long(33): "M"}), "/options"),
        (json!({"size": long(65)}), "/options/size"),
        (json!({"size": " "}), "/options/size"),
        (json!(["M"]), "/options"),
    ] {
        let answer = shop.staff(post(&variant("p1", "shirt", options.clone(), 1))).await;
        assert_eq!(refused(answer), pointer, "{options}");
    }
    add(&shop, "p1", "shirt", json!({long(32): long(64)}), 1).await;
    let patch = Call::new("PATCH /v1/products/{id}").path("id", "p1").header("if-match", "\"1\"");
    let pointers = refused(shop.staff(patch.json(&json!({"parent": "x", "options": {}, "variants": 1}))).await);
    assert_eq!(pointers, "/options /parent /variants");
}

#[tokio::test]
async fn a_parent_is_a_product_in_the_catalogue_that_is_no_variant() {
    let shop = Shop::open().await;
    let unknown = shop.staff(post(&variant("p1", "shirt", sizes("M"), 1))).await;
    assert_eq!((unknown.status, unknown.code(), unknown.pointers()), (422, Some("unknown_product"), vec!["/parent"]));
    shirt(&shop).await;
    let own = shop.staff(post(&variant("shirt", "shirt", sizes("M"), 1))).await;
    assert_eq!((own.status, own.code(), own.pointers()), (422, Some("invalid_body"), vec!["/parent"]));
    add(&shop, "p1", "shirt", sizes("M"), 0).await;
    let nested = shop.staff(post(&variant("p2", "p1", sizes("M"), 1))).await;
    assert_eq!((nested.status, nested.code(), nested.pointers()), (422, Some("invalid_body"), vec!["/parent"]));
    assert_eq!(shop.product("p2").await.status, 404);
    assert_eq!(stored(&shop, "p1").await.variants, None);
}

#[tokio::test]
async fn a_product_with_pieces_does_not_become_a_parent() {
    let shop = Shop::open().await;
    shop.stock_up("shirt", 2).await;
    let refused = shop.staff(post(&variant("p1", "shirt", sizes("M"), 1))).await;
    assert_eq!((refused.status, refused.code(), refused.pointers()), (409, Some("parent_has_stock"), vec!["/parent"]));
    assert_eq!((shop.product("p1").await.status, &shop.product("shirt").await.body["stock"]), (404, &json!(2)));
    let empty = Call::new("PUT /v1/products/{id}/stock").path("id", "shirt").json(&json!({"set": 0}));
    assert_eq!(shop.staff(empty).await.status, 200);
    add(&shop, "p1", "shirt", sizes("M"), 1).await;
}

#[tokio::test]
async fn a_parent_has_no_stock_that_staff_could_change() {
    let shop = Shop::open().await;
    shirt(&shop).await;
    add(&shop, "p1", "shirt", sizes("M"), 1).await;
    let set = |id| Call::new("PUT /v1/products/{id}/stock").path("id", id).json(&json!({"set": 5}));
    let adjust = |id, key| {
        let call = Call::new("POST /v1/products/{id}/stock/adjustments").path("id", id).header("idempotency-key", key);
        call.json(&json!({"adjust": 5, "reason": "found"}))
    };
    for answer in [shop.staff(set("shirt")).await, shop.staff(adjust("shirt", "a")).await] {
        assert_eq!((answer.status, answer.code()), (409, Some("has_variants")), "{}", answer.body);
    }
    assert_eq!(shop.staff(set("p1")).await.status, 200);
    assert_eq!(shop.staff(adjust("p1", "b")).await.body["stock"], json!(10));
    for answer in [shop.staff(set("none")).await, shop.staff(adjust("none", "c")).await] {
        assert_eq!((answer.status, answer.code()), (404, Some("not_found")));
    }
}

#[tokio::test]
async fn siblings_have_different_options_in_every_spelling() {
    let shop = Shop::open().await;
    shirt(&shop).await;
    add(&shop, "p1", "shirt", json!({"colour": "red", "size": "M"}), 1).await;
    let same = json!({"SIZE": "m", "Colour": "R\u{200D}ed"});
    let taken = shop.staff(post(&variant("p2", "shirt", same.clone(), 1))).await;
    assert_eq!((taken.status, taken.code(), taken.pointers()), (409, Some("options_taken"), vec!["/options"]));
    assert_eq!(taken.header("location"), Some("/v1/products/p1"));
    assert_eq!(stored(&shop, "shirt").await.variants, Some(1), "a refused variant must not be counted");
    for same in [json!({"size ": "M", "colour": "red"}), json!({"size": " M", "colour": "red\u{a0}"})] {
        let taken = shop.staff(post(&variant("p2", "shirt", same.clone(), 1))).await;
        assert_eq!((taken.status, taken.code()), (409, Some("options_taken")), "{same}");
    }
    let twice = json!({"size": "M", "size ": "L"});
    assert_eq!(shop.staff(post(&variant("p2", "shirt", twice, 1))).await.pointers(), ["/options"]);
    // Another parent may have a variant with these options. A sibling may have these options and
    // one more.
    shop.stock_up("coat", 0).await;
    add(&shop, "p2", "coat", same, 1).await;
    add(&shop, "p3", "shirt", json!({"colour": "red", "size": "M", "fit": "slim"}), 1).await;
    // These options differ, although `name#value` is the same text for both.
    add(&shop, "p4", "shirt", json!({"a": "b#c"}), 1).await;
    add(&shop, "p5", "shirt", json!({"a#b": "c"}), 1).await;
}

#[tokio::test]
async fn of_two_concurrent_variants_with_equal_options_one_is_created() {
    let shop = Shop::open().await;
    shirt(&shop).await;
    let (one, two) = (variant("p1", "shirt", sizes("M"), 1), variant("p2", "shirt", sizes("m"), 1));
    let (one, two) = tokio::join!(shop.staff(post(&one)), shop.staff(post(&two)));
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409], "{} {}", one.body, two.body);
    assert_eq!(listed(&shop.product("shirt").await).len(), 1);
    assert_eq!(stored(&shop, "shirt").await.variants, Some(1));
}

#[tokio::test]
async fn concurrent_first_variants_with_different_options_are_both_created() {
    let shop = Shop::open().await;
    shirt(&shop).await;
    let (one, two) = (variant("p1", "shirt", sizes("M"), 1), variant("p2", "shirt", sizes("L"), 1));
    let (one, two) = tokio::join!(shop.staff(post(&one)), shop.staff(post(&two)));
    assert_eq!((one.status, two.status), (201, 201), "{} {}", one.body, two.body);
    assert_eq!(stored(&shop, "shirt").await.variants, Some(2));
}

#[tokio::test]
async fn a_parent_has_at_most_100_variants() {
    let shop = Shop::open().await;
    shirt(&shop).await;
    add(&shop, "p0", "shirt", sizes("0"), 1).await;
    let mut parent = stored(&shop, "shirt").await;
    parent.data.variants = Some(99);
    shop.put(&parent).await;
    let last = add(&shop, "p1", "shirt", sizes("1"), 1).await;
    assert_eq!(last.status, 201);
    let refused = shop.staff(post(&variant("p2", "shirt", sizes("2"), 1))).await;
    assert_eq!((refused.status, refused.code()), (422, Some("too_many_variants")));
    assert_eq!(shop.product("p2").await.status, 404);
}

#[tokio::test]
async fn a_retired_variant_leaves_the_list_and_frees_its_options() {
    let shop = Shop::open().await;
    shirt(&shop).await;
    add(&shop, "p1", "shirt", sizes("M"), 1).await;
    add(&shop, "p2", "shirt", sizes("L"), 1).await;
    let parent = shop.staff(delete("shirt", 1)).await;
    assert_eq!((parent.status, parent.code()), (409, Some("has_variants")));
    let stale = shop.staff(delete("p1", 2)).await;
    assert_eq!((stale.status, stale.code()), (412, Some("version_mismatch")));
    assert_eq!(shop.staff(delete("p1", 1)).await.status, 204);
    assert_eq!((shop.product("p1").await.status, shop.staff(delete("p1", 2)).await.status), (404, 404));
    assert_eq!(listed(&shop.product("shirt").await), ["p2"]);
    assert_eq!(stored(&shop, "shirt").await.variants, Some(1));
    add(&shop, "p3", "shirt", sizes("M"), 1).await;
    for id in ["p2", "p3"] {
        assert_eq!(shop.staff(delete(id, 1)).await.status, 204);
    }
    // A product that was a parent stays one, and can now be retired.
    let parent = shop.product("shirt").await;
    assert_eq!((parent.body["variants"].clone(), &parent.body["in_stock"]), (json!([]), &json!(false)));
    let set = Call::new("PUT /v1/products/{id}/stock").path("id", "shirt").json(&json!({"set": 5}));
    assert_eq!(shop.staff(set).await.code(), Some("has_variants"));
    assert_eq!(shop.staff(delete("shirt", 1)).await.status, 204);
}

#[tokio::test]
async fn a_revived_product_keeps_nothing_of_its_earlier_parent_or_variants() {
    let shop = Shop::open().await;
    shirt(&shop).await;
    add(&shop, "p1", "shirt", sizes("M"), 1).await;
    assert_eq!(shop.staff(delete("p1", 1)).await.status, 204);
    assert_eq!(shop.staff(delete("shirt", 1)).await.status, 204);

    let plain = shop.staff(post(&product("p1", 4))).await;
    assert_eq!((plain.status, plain.version()), (201, Some(3)), "{}", plain.body);
    assert_eq!((plain.body.get("parent"), plain.body.get("options")), (None, None));
    assert_eq!(shop.product("p1").await.body, plain.body);
    let former_parent = shop.staff(post(&product("shirt", 6))).await;
    assert_eq!((former_parent.status, &former_parent.body["stock"]), (201, &json!(6)));
    assert_eq!(former_parent.body.get("variants"), None);
    assert_eq!(shop.product("shirt").await.body, former_parent.body);
    // Both are ordinary products now, and can be retired like others.
    for id in ["p1", "shirt"] {
        assert_eq!(shop.staff(delete(id, 3)).await.status, 204, "{id}");
    }
}

#[tokio::test]
async fn a_retired_product_is_revived_as_a_variant() {
    let shop = Shop::open().await;
    shirt(&shop).await;
    shop.stock_up("p1", 7).await;
    let exists = shop.staff(post(&variant("p1", "shirt", sizes("M"), 2))).await;
    assert_eq!((exists.status, exists.code()), (409, Some("already_exists")));
    assert_eq!(stored(&shop, "shirt").await.variants, None);
    assert_eq!(shop.staff(delete("p1", 1)).await.status, 204);
    let revived = add(&shop, "p1", "shirt", sizes("M"), 2).await;
    assert_eq!((revived.version(), &revived.body["stock"]), (Some(3), &json!(2)));
    assert_eq!(shop.product("p1").await.body, revived.body);
    assert_eq!(listed(&shop.product("shirt").await), ["p1"]);
    // A retired variant is revived with other options of the same parent.
    assert_eq!(shop.staff(delete("p1", 3)).await.status, 204);
    add(&shop, "p2", "shirt", sizes("M"), 1).await;
    let taken = shop.staff(post(&variant("p1", "shirt", sizes("M"), 2))).await;
    assert_eq!((taken.status, taken.code()), (409, Some("options_taken")));
    add(&shop, "p1", "shirt", sizes("L"), 2).await;
    assert_eq!(listed(&shop.product("shirt").await), ["p1", "p2"]);
    assert_eq!(stored(&shop, "shirt").await.variants, Some(2));
}

#[tokio::test]
async fn an_import_changes_a_variant_but_creates_none() {
    let shop = Shop::open().await;
    shirt(&shop).await;
    add(&shop, "p1", "shirt", sizes("M"), 1).await;
    let import = |products: &[Value]| {
        let lines: String = products.iter().map(|product| format!("{product}\n")).collect();
        Call::new("POST /v1/products/import").header("content-type", "application/x-ndjson").body(lines)
    };
    let statuses = |report: &Answered| -> Vec<String> {
        let results = report.body["results"].as_array().unwrap();
        results.iter().map(|result| result["status"].as_str().unwrap().to_owned()).collect()
    };
    let unchanged = [product("p1", 1), product("shirt", 1)];
    let report = shop.staff(import(&unchanged)).await;
    assert_eq!(statuses(&report), ["unchanged", "unchanged"], "{}", report.body);
    let renamed = with(product("p1", 1), "name", json!("Shirt M"));
    let report = shop.staff(import(&[renamed, variant("p2", "shirt", sizes("L"), 1)])).await;
    assert_eq!(statuses(&report), ["updated", "refused"], "{}", report.body);
    let read = shop.product("p1").await;
    assert_eq!((&read.body["name"], &read.body["parent"]), (&json!("Shirt M"), &json!("shirt")));
    assert_eq!(shop.product("p2").await.status, 404);
}

#[tokio::test]
async fn a_category_lists_the_parent_and_not_its_variants() {
    let shop = Shop::open().await;
    shirt(&shop).await;
    add(&shop, "p1", "shirt", sizes("M"), 1).await;
    let list = shop.send(Call::new("GET /v1/categories/{path}/products").path("path", "GROCERY")).await;
    assert_eq!(crate::shop::each(&list, "id"), ["shirt"]);
}
