//! Tests of products in further categories.

use futures::future::join_all;
use http_api::sample::{Answered, Call};
use key_schema::id::ProductId;
use key_schema::membership::{self, MAX_MEMBERSHIPS};
use key_schema::product as schema;
use serde_json::json;

use crate::shop::{Shop, each, product, with};

fn relation(route: &'static str, id: &str, path: &str) -> Call {
    Call::new(route).path("id", id).path("path", path)
}

fn put(id: &str, path: &str) -> Call {
    relation("PUT /v1/products/{id}/categories/{path}", id, path)
}

fn delete(id: &str, path: &str) -> Call {
    relation("DELETE /v1/products/{id}/categories/{path}", id, path)
}

async fn list(shop: &Shop, path: &str) -> Answered {
    shop.send(Call::new("GET /v1/categories/{path}/products").path("path", path)).await
}

async fn listed(shop: &Shop, path: &str) -> Vec<String> {
    each(&list(shop, path).await, "id").into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_product_is_listed_in_its_own_and_each_further_category() {
    let shop = Shop::open().await;
    shop.stock_up("p#1", 1).await;
    let joined = shop.staff(put("p#1", "SUMMER~Party_20_231")).await;
    assert_eq!(joined.status, 201, "{}", joined.body);
    assert_eq!(joined.header("location"), Some("/v1/products/p%231/categories/SUMMER~Party_20_231"));
    assert_eq!(joined.body, json!({"product_id": "p#1", "category_path": ["SUMMER", "Party #1"]}));
    let again = shop.staff(put("p#1", "SUMMER~Party_20_231")).await;
    assert_eq!((again.status, &again.body), (200, &joined.body));
    for path in ["GROCERY", "SUMMER", "SUMMER~Party_20_231"] {
        let page = list(&shop, path).await.body;
        assert_eq!(page["items"].as_array().unwrap().len(), 1, "{path}");
        assert_eq!(page["items"][0]["id"], "p#1");
        assert_eq!(page["items"][0]["category_path"], product("p#1", 1)["category_path"], "the product's own category");
        assert_eq!(page["items"][0]["version"], 1);
    }
    let read = shop.product("p#1").await;
    assert_eq!(read.body["categories"], json!([product("p#1", 1)["category_path"], ["SUMMER", "Party #1"]]));
    assert_eq!(read.version(), Some(1), "the product's version is unchanged");
    let children = shop.send(Call::new("GET /v1/categories/{path}/children").path("path", "SUMMER")).await;
    assert_eq!(each(&children, "name"), ["Party #1"], "the category exists");
}

/// A product that is also a member of its own category has two entries there, with one sort key.
#[tokio::test]
async fn products_that_are_members_of_their_own_category_are_listed_once_on_pages_of_every_size() {
    let shop = Shop::open().await;
    let ids: Vec<String> = (0..20).map(|number| format!("p{number:02}")).collect();
    for id in &ids {
        shop.stock_up(id, 1).await;
        let own = "GROCERY~FRZN_20ICE~ICE_20-_20CRUSHED_2FCUBED";
        assert_eq!(shop.staff(put(id, own)).await.status, 201);
    }
    for limit in ["1", "2", "3", "7"] {
        let (mut found, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let call = Call::new("GET /v1/categories/{path}/products").path("path", "GROCERY").query("limit", limit);
            let page = shop.send(cursor.iter().fold(call, |call, cursor| call.query("cursor", cursor))).await;
            found.extend(each(&page, "id").into_iter().map(str::to_owned));
            let Some(next) = page.body["next_cursor"].as_str() else { break };
            cursor = Some(next.to_owned());
        }
        assert_eq!(found, ids, "{limit}");
    }
}

#[tokio::test]
async fn a_membership_can_be_removed_repeatedly() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    shop.staff(put("p1", "SUMMER")).await;
    for _ in 0..2 {
        assert_eq!(shop.staff(delete("p1", "SUMMER")).await.status, 204);
        assert_eq!(listed(&shop, "SUMMER").await, [""; 0]);
    }
    assert_eq!(shop.staff(delete("p1", "GROCERY")).await.status, 204, "the product stays in its own category");
    assert_eq!(listed(&shop, "GROCERY").await, ["p1"]);
    assert_eq!(shop.staff(put("p1", "SUMMER")).await.status, 201);
    assert_eq!(listed(&shop, "SUMMER").await, ["p1"]);
}

#[tokio::test]
async fn a_category_lists_each_product_of_its_subtree_once() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    shop.stock_up("p2", 1).await;
    let own = "GROCERY~FRZN_20ICE~ICE_20-_20CRUSHED_2FCUBED";
    let further =
        [own, "GROCERY", "GROCERY~PARTY", "SUMMER~PARTY~A", "SUMMER~PARTY~B", "SUMMER~DRINKS", "SUMMER~PARTY"];
    for path in further {
        assert_eq!(shop.staff(put("p1", path)).await.status, 201, "{path}");
    }
    for path in [own, "GROCERY", "GROCERY~FRZN_20ICE"] {
        assert_eq!(listed(&shop, path).await, ["p1", "p2"], "{path}");
    }
    for path in ["SUMMER", "SUMMER~PARTY", "SUMMER~PARTY~A", "SUMMER~PARTY~B", "SUMMER~DRINKS", "GROCERY~PARTY"] {
        assert_eq!(listed(&shop, path).await, ["p1"], "{path}");
    }
    let categories = shop.product("p1").await.body["categories"].as_array().unwrap().len();
    assert_eq!(categories, further.len(), "the product's own category is not repeated");
    // The same holds when the list is read in pages of one item.
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut call = Call::new("GET /v1/categories/{path}/products").path("path", "SUMMER").query("limit", "1");
        if let Some(cursor) = &cursor {
            call = call.query("cursor", cursor);
        }
        let page = shop.send(call).await;
        found.extend(each(&page, "id").into_iter().map(str::to_owned));
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(found, ["p1"]);
}

#[tokio::test]
async fn a_list_with_products_of_other_categories_costs_one_more_request() {
    let shop = Shop::open().await;
    for id in ["p1", "p2", "p3"] {
        shop.stock_up(id, 1).await;
    }
    let requests = async || {
        let cost = shop.app.services.table.meter().take();
        cost.iter().map(|cost| (cost.pattern.id, cost.requests)).collect::<Vec<_>>()
    };
    let _ = requests().await;
    list(&shop, "GROCERY").await;
    assert_eq!(requests().await, [("categories.products", 4), ("products.by-ids", 1)]);
    for id in ["p1", "p2", "p3"] {
        shop.staff(put(id, "SUMMER")).await;
    }
    let _ = requests().await;
    assert_eq!(listed(&shop, "SUMMER").await, ["p1", "p2", "p3"]);
    assert_eq!(requests().await, [("categories.products", 4), ("memberships.lists", 1), ("products.by-ids", 1)]);
}

#[tokio::test]
async fn a_product_has_a_limited_number_of_further_categories() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    // The requests run concurrently, so that each counts memberships while others write.
    let paths: Vec<String> = (0..MAX_MEMBERSHIPS + 4).map(|number| format!("MORE~C{number:02}")).collect();
    let mut statuses: Vec<(u16, Option<String>)> = join_all(paths.iter().map(|path| async {
        let answer = shop.staff(put("p1", path)).await;
        (answer.status, answer.code().map(str::to_owned))
    }))
    .await;
    statuses.sort();
    let refused = (422, Some("too_many_categories".to_owned()));
    assert_eq!(statuses.iter().filter(|(status, _)| *status == 201).count(), MAX_MEMBERSHIPS, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|answer| **answer == refused).count(), 4, "{statuses:?}");
    let items =
        shop.app.services.table.query(&membership::of_product(&"p1".parse().unwrap()).unwrap()).await.unwrap().items;
    assert_eq!(items.len(), MAX_MEMBERSHIPS);
    assert_eq!(listed(&shop, "MORE").await, ["p1"]);
}

#[tokio::test]
async fn a_membership_created_during_a_change_of_its_product_shows_the_current_product() {
    let shop = Shop::open().await;
    for round in 0..5 {
        let id = format!("p{round}");
        shop.stock_up(&id, 1).await;
        let rename = Call::new("PATCH /v1/products/{id}").path("id", &id).header("if-match", "\"1\"");
        let rename = rename.json(&json!({"name": "New"}));
        let (joined, renamed) = futures::join!(shop.staff(put(&id, "SUMMER")), shop.staff(rename));
        assert_eq!((joined.status, renamed.status), (201, 200));
        let key: ProductId = id.parse().unwrap();
        let stored = shop.app.services.table.get(&schema::read_for_update(&key).unwrap()).await.unwrap().unwrap();
        let member =
            shop.app.services.table.query(&membership::of_product(&key).unwrap()).await.unwrap().items.remove(0);
        // The copy has the newest name, or a later stream record will bring that name.
        assert!(member.name == "New" || member.source_rev < stored.meta.rev);
    }
}

#[tokio::test]
async fn only_products_of_the_catalogue_are_in_further_categories() {
    let shop = Shop::open().await;
    for call in [put("p1", "NOWHERE"), delete("p1", "NOWHERE")] {
        let missing = shop.staff(call).await;
        assert_eq!((missing.status, missing.code()), (404, Some("not_found")));
    }
    shop.stock_up("p1", 1).await;
    let retire = Call::new("DELETE /v1/products/{id}").path("id", "p1").header("if-match", "\"1\"");
    assert_eq!(shop.staff(retire).await.status, 204);
    assert_eq!(shop.staff(put("p1", "NOWHERE")).await.status, 404);
    assert_eq!(list(&shop, "NOWHERE").await.status, 404, "a refused request creates no category");
}

#[tokio::test]
async fn a_revival_succeeds_although_the_stream_changed_the_product_after_the_read() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    shop.staff(put("p1", "SUMMER")).await;
    let retire = Call::new("DELETE /v1/products/{id}").path("id", "p1").header("if-match", "\"1\"");
    assert_eq!(shop.staff(retire).await.status, 204);
    // The stream's consumer copies the stock onto the product after a revival has read the product
    // and before the revival is written.
    let id: ProductId = "p1".parse().unwrap();
    let retired = shop.app.services.table.get(&schema::read_for_update(&id).unwrap()).await.unwrap().unwrap();
    let stock = shop.app.services.table.get(&schema::stock(&id).unwrap()).await.unwrap().unwrap();
    shop.app.services.table.write(&schema::copy_stock(&stock).unwrap()).await.unwrap().unwrap();
    let revival = schema::revive(&retired, &retired, 3, &[]).unwrap();
    shop.app.services.table.transact(&revival).await.unwrap().unwrap();
    let read = shop.product("p1").await;
    assert_eq!((read.status, read.version()), (200, Some(3)));
    let product = shop.app.services.table.get(&schema::read_for_update(&id).unwrap()).await.unwrap().unwrap();
    assert!(product.copied.in_stock && product.copied.stock_rev == stock.meta.rev);
    assert_eq!(read.body["categories"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_product_has_its_sales_and_categories() {
    let shop = Shop::open().await;
    let created = shop.stock_up("p1", 1).await;
    assert_eq!(created.body["sold"], json!({"quantity": 0, "orders": 0}));
    assert_eq!(created.body["categories"], json!([created.body["category_path"]]));
    let unchanged = with(product("p1", 1), "stock", json!(1));
    let body = format!("{unchanged}\n");
    let import = Call::new("POST /v1/products/import").header("content-type", "application/x-ndjson").body(body);
    assert_eq!(shop.staff(import).await.body["results"][0]["status"], "unchanged", "derived copies are not compared");
}
