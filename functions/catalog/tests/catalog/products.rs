//! Tests of products: create, read, change, retire, create again.

use std::collections::BTreeMap;

use http_api::sample::Call;
use key_schema::id::ProductId;
use key_schema::item::Stored;
use key_schema::product::{self as schema, Product};
use serde_json::{Value, json};

use crate::shop::{Shop, each, product, with};

fn patch(id: &str, version: u64, change: &Value) -> Call {
    Call::new("PATCH /v1/products/{id}").path("id", id).header("if-match", &format!("\"{version}\"")).json(change)
}

fn delete(id: &str, version: u64) -> Call {
    Call::new("DELETE /v1/products/{id}").path("id", id).header("if-match", &format!("\"{version}\""))
}

async fn stored(shop: &Shop, id: &str) -> Stored<Product> {
    let id = ProductId::new(id).unwrap();
    shop.app.services.table.get(&schema::read_for_update(&id).unwrap()).await.unwrap().unwrap()
}

async fn listed(shop: &Shop, category: &str) -> Vec<String> {
    let answer = shop.send(Call::new("GET /v1/categories/{path}/products").path("path", category)).await;
    if answer.status == 404 {
        return Vec::new();
    }
    each(&answer, "id").into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_product_is_created_with_its_stock_and_anybody_reads_it_with_a_query_and_its_stock() {
    let shop = Shop::open().await;
    let created = shop.stock_up("p#1", 7).await;
    assert_eq!(created.header("location"), Some("/v1/products/p%231"));
    assert_eq!(created.version(), Some(1));
    let _ = shop.app.services.table.meter().take();
    let page = shop.ok(Call::new("GET /v1/products/{id}").path("id", "p#1")).await;
    let cost = shop.app.services.table.meter().take();
    let read = shop.product("p#1").await;
    assert_eq!((page.version(), &read.body), (Some(1), &created.body));
    let requests: BTreeMap<_, _> = cost.iter().map(|cost| (cost.pattern.id, cost.requests)).collect();
    assert_eq!(requests, [("products.page", 1), ("stock.show", 1)].into());
    let expected = with(product("p#1", 7), "average_rating", Value::Null);
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&read.body[name], value, "{name}");
    }
    assert_eq!((&read.body["review_count"], &read.body["version"]), (&json!(0), &json!(1)));
}

#[tokio::test]
async fn products_are_read_by_their_ids_once_each_in_the_order_of_the_request() {
    let shop = Shop::open().await;
    for (id, stock) in [("p1", 7), ("p#2", 0), ("gone", 1), ("parent", 0)] {
        shop.stock_up(id, stock).await;
    }
    let variant = with(with(product("v", 1), "parent", json!("parent")), "options", json!({"size": "M"}));
    assert_eq!(shop.staff(Call::new("POST /v1/products").json(&variant)).await.status, 201);
    assert_eq!(shop.staff(delete("gone", 1)).await.status, 204);
    let read = |ids: &str| Call::new("GET /v1/products").query("ids", ids);

    shop.requests();
    let found = shop.send(read("v,p#2,unknown,p1,gone,p#2,parent")).await;
    assert_eq!(found.status, 200, "{}", found.body);
    assert_eq!(each(&found, "id"), ["v", "p#2", "p1", "parent"]);
    assert_eq!(found.body["next_cursor"], Value::Null);
    assert_eq!(shop.requests(), [("products.by-ids", 1)].into());
    for item in found.body["items"].as_array().unwrap() {
        let page = shop.send(Call::new("GET /v1/products/{id}").path("id", item["id"].as_str().unwrap())).await.body;
        for (name, value) in item.as_object().unwrap() {
            assert_eq!(*value, page[name], "{name} of {}", item["id"]);
        }
        // A parent has no stock of its own.
        assert_eq!(item.get("in_stock").is_none(), item["id"] == "parent");
    }

    let ids = |count: usize| vec!["p1"; count].join(",");
    assert_eq!(each(&shop.send(read(&ids(50))).await, "id"), ["p1"]);
    assert_eq!(each(&shop.send(read("unknown")).await, "id"), Vec::<&str>::new());
    let refused = [
        (Call::new("GET /v1/products"), "The query parameter `ids` is missing."),
        (read(&ids(51)), "The query parameter `ids` is invalid: must have at most 50 ids, separated by commas."),
        (read("p1,,p#2"), "The query parameter `ids` is invalid: id 2 must not be empty."),
        (read("p1").query("limit", "1"), "This route has no query parameter `limit`."),
    ];
    for (call, detail) in refused {
        let answer = shop.send(call).await;
        assert_eq!((answer.status, answer.code()), (400, Some("invalid_parameter")));
        assert_eq!(answer.body["detail"], detail);
    }
}

#[tokio::test]
async fn a_product_includes_what_its_page_shows_as_the_own_routes_of_the_parts_return_it() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let page = |include: &str| Call::new("GET /v1/products/{id}").path("id", "p1").query("include", include);
    let bare = shop.ok(page("content,pictures,reviews")).await.body;
    assert_eq!((&bare["content"]["text"], &bare["pictures"], &bare["reviews"]), (&json!(null), &json!([]), &json!([])));

    shop.pictured("p1").await;
    let write = Call::new("PUT /v1/products/{id}/content").path("id", "p1").header("if-none-match", "*");
    assert_eq!(shop.staff(write.json(&json!({ "text": "# Ice" }))).await.status, 201);
    for customer in ["c1", "c2", "c3", "c4", "c5", "c6"] {
        shop.join(customer).await;
        let review = json!({ "rating": 4, "title": customer, "text": "Cold.", "display_name": customer });
        let put = Call::new("PUT /v1/products/{id}/reviews/{customer}").path("id", "p1").path("customer", "me");
        let put = put.header("if-none-match", "*").json(&review).customer(customer);
        assert_eq!(shop.send(put).await.status, 201);
    }
    let own = async |route: &'static str| shop.ok(Call::new(route).path("id", "p1")).await.body;
    let (content, pictures, reviews) = (
        own("GET /v1/products/{id}/content").await,
        own("GET /v1/products/{id}/pictures").await,
        own("GET /v1/products/{id}/reviews").await,
    );
    shop.requests();
    let whole = shop.ok(page("reviews,content,pictures")).await;
    assert_eq!(
        shop.requests(),
        [("content.get", 1), ("pictures.list", 1), ("products.page", 1), ("reviews.newest", 1), ("stock.show", 1)]
            .into()
    );
    assert_eq!((&whole.body["content"], &whole.body["pictures"]), (&content, &pictures["items"]));
    assert_eq!(whole.body["reviews"].as_array().unwrap()[..], reviews["items"].as_array().unwrap()[..5]);
    assert_eq!(whole.body["reviews"][0]["title"], "c6");
    assert_eq!(whole.header("cache-control"), Some("public, max-age=5, stale-while-revalidate=30"));

    let repeated = shop.ok(page("reviews").query("include", "pictures").query("include", "content")).await;
    assert_eq!(repeated.body, whole.body);

    let plain = shop.ok(Call::new("GET /v1/products/{id}").path("id", "p1")).await;
    for (name, value) in plain.body.as_object().unwrap() {
        assert_eq!(whole.body[name], *value, "{name}");
    }
    assert_eq!(plain.body.get("content"), None);
    assert_ne!(plain.header("etag"), whole.header("etag"));
    for wrong in ["", "likes", "content;reviews"] {
        let refused = shop.send(page(wrong)).await;
        assert_eq!((refused.status, refused.code()), (400, Some("invalid_parameter")), "{wrong}");
    }
    assert_eq!(shop.send(page("reviews").path("id", "none")).await.status, 404);
}

#[tokio::test]
async fn a_former_price_is_shown_only_while_it_is_above_the_price() {
    let shop = Shop::open().await;
    let usd = |amount: u64| json!({ "amount": amount, "currency": "USD" });
    let ice = with(with(product("p1", 1), "price", usd(100)), "compare_at", usd(150));
    let created = shop.staff(Call::new("POST /v1/products").json(&ice)).await;
    assert_eq!((created.status, &created.body["compare_at"]), (201, &usd(150)), "{}", created.body);
    let shown = async || {
        let listed = shop.send(Call::new("GET /v1/products").query("ids", "p1")).await.body["items"][0].clone();
        let read = shop.product("p1").await.body;
        assert_eq!(listed["compare_at"], read["compare_at"]);
        read["compare_at"].clone()
    };
    for (version, change, expected) in [
        (1, json!({ "price": usd(150) }), json!(null)),
        (2, json!({ "price": usd(149) }), usd(150)),
        (3, json!({ "compare_at": { "amount": 200, "currency": "EUR" } }), json!(null)),
        (4, json!({ "compare_at": usd(200) }), usd(200)),
        (5, json!({ "compare_at": null }), json!(null)),
    ] {
        let changed = shop.staff(patch("p1", version, &change)).await;
        assert_eq!((changed.status, &changed.body["compare_at"]), (200, &expected), "{}", changed.body);
        assert_eq!(shown().await, expected);
    }
    let refused = shop.staff(patch("p1", 6, &json!({ "compare_at": usd(0) }))).await;
    assert_eq!((refused.status, refused.pointers()), (422, vec!["/compare_at/amount"]));
}

#[tokio::test]
async fn an_id_is_generated_and_absent_fields_are_null() {
    let shop = Shop::open().await;
    let body =
        json!({"name": "Ice", "brand": "N", "category_path": ["ICE"], "price": {"amount": 0, "currency": "EUR"}});
    let one = shop.staff(Call::new("POST /v1/products").json(&body)).await;
    let two = shop.staff(Call::new("POST /v1/products").json(&body)).await;
    assert_eq!((one.status, two.status), (201, 201));
    assert_ne!(one.body["id"], two.body["id"]);
    assert_eq!(
        (&one.body["summary"], &one.body["package_size"], &one.body["stock"]),
        (&Value::Null, &Value::Null, &json!(0))
    );
}

#[tokio::test]
async fn creating_an_existing_product_returns_409_and_the_location_of_the_product() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 7).await;
    let other = with(product("p1", 99), "name", json!("Other"));
    let again = shop.staff(Call::new("POST /v1/products").json(&other)).await;
    assert_eq!((again.status, again.code()), (409, Some("already_exists")));
    assert_eq!(again.header("location"), Some("/v1/products/p1"));
    let read = shop.product("p1").await.body;
    assert_eq!((&read["name"], &read["stock"]), (&json!("Product p1"), &json!(7)));
}

#[tokio::test]
async fn a_change_sets_only_its_own_fields_and_raises_the_version() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 7).await;
    let changed =
        shop.staff(patch("p1", 1, &json!({"price": {"amount": 5, "currency": "USD"}, "summary": null}))).await;
    assert_eq!((changed.status, changed.version()), (200, Some(2)));
    assert_eq!((&changed.body["price"]["amount"], &changed.body["summary"]), (&json!(5), &Value::Null));
    assert_eq!((&changed.body["name"], &changed.body["stock"]), (&json!("Product p1"), &json!(7)));
    assert_eq!(shop.product("p1").await.body, changed.body);
}

#[tokio::test]
async fn a_missing_product_can_be_neither_changed_nor_retired() {
    let shop = Shop::open().await;
    assert_eq!(shop.staff(patch("p2", 1, &json!({"name": "New"}))).await.status, 404);
    assert_eq!(shop.staff(delete("p2", 1)).await.status, 404);
}

/// A leaderboard exists even if it is empty, so its route does not return 404.
#[tokio::test]
async fn a_missing_item_of_the_catalogue_is_not_found() {
    let shop = Shop::open().await;
    let routes = catalog::routes();
    let reads = routes.keys().filter(|route| route.starts_with("GET") && route.contains('{'));
    let reads: Vec<_> = reads.filter(|route| !route.contains("/v1/customers") && !route.contains("{by}")).collect();
    assert!(reads.len() >= 8, "{reads:?}");
    for route in reads {
        let call = Call::new(route).path("id", "p1").path("customer", "c1").path("path", "A").path("picture", "x");
        let missing = shop.send(call.staff("s1")).await;
        assert_eq!((missing.status, missing.code()), (404, Some("not_found")), "{route}");
    }
}

#[tokio::test]
async fn a_change_of_category_moves_the_product_in_the_lists_and_adds_the_categories() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 7).await;
    let moved = shop.staff(patch("p1", 1, &json!({"category_path": ["DRUG GM", "CANDY"]}))).await;
    assert_eq!(moved.status, 200, "{}", moved.body);
    assert_eq!(listed(&shop, "GROCERY").await, Vec::<String>::new());
    assert_eq!(listed(&shop, "DRUG_20GM").await, ["p1"]);
    assert_eq!(listed(&shop, "DRUG_20GM~CANDY").await, ["p1"]);
    let category = shop.send(Call::new("GET /v1/categories/{path}").path("path", "DRUG_20GM~CANDY")).await;
    assert_eq!(category.status, 200);
}

#[tokio::test]
async fn a_retired_product_is_gone_until_its_id_is_used_again_and_its_counters_never_restart() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 7).await;
    let mut last = stored(&shop, "p1").await.meta;
    for life in 0..3_u64 {
        let retired = shop.staff(delete("p1", last.version)).await;
        assert_eq!((retired.status, &retired.body), (204, &Value::Null));
        assert_eq!(shop.product("p1").await.status, 404);
        assert_eq!(listed(&shop, "GROCERY").await, Vec::<String>::new());
        for call in [patch("p1", last.version + 1, &json!({"name": "X"})), delete("p1", last.version + 1)] {
            assert_eq!(shop.staff(call).await.status, 404);
        }
        let set = Call::new("PUT /v1/products/{id}/stock").path("id", "p1").json(&json!({"set": 1}));
        assert_eq!(shop.staff(set).await.status, 404);
        let gone = stored(&shop, "p1").await.meta;
        assert!(gone.rev > last.rev && gone.version > last.version);
        let body = with(product("p1", 20 + life), "package_size", Value::Null);
        let revived = shop.staff(Call::new("POST /v1/products").json(&body)).await;
        assert_eq!(revived.status, 201, "{}", revived.body);
        let back = stored(&shop, "p1").await;
        assert!(back.meta.rev > gone.rev && back.meta.version > gone.version);
        assert_ne!(back.meta.born, last.born, "the product was created again");
        assert_eq!((revived.version(), &revived.body), (Some(back.meta.version), &shop.product("p1").await.body));
        assert_eq!((&revived.body["stock"], &revived.body["package_size"]), (&json!(20 + life), &Value::Null));
        assert_eq!(listed(&shop, "GROCERY").await, ["p1"]);
        last = back.meta;
    }
}

#[tokio::test]
async fn exactly_one_of_many_concurrent_callers_creates_or_revives_a_product() {
    let shop = Shop::open().await;
    for _ in 0..2 {
        let calls = (0..10).map(|stock| shop.staff(Call::new("POST /v1/products").json(&product("p1", stock))));
        let mut statuses: Vec<u16> =
            futures::future::join_all(calls).await.iter().map(|answer| answer.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409, 409, 409]);
        let version = shop.product("p1").await.version().unwrap();
        assert_eq!(shop.staff(delete("p1", version)).await.status, 204);
    }
}
