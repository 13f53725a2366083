//! Tests of the category tree and its lists.

use std::collections::BTreeSet;

use fixture::seed::stored;
use http_api::sample::{Answered, Call};
use key_schema::category::CategoryNode;
use key_schema::product::CategoryPath;
use serde_json::{Value, json};

use crate::shop::{Shop, each, product, with};

fn get(route: &'static str, path: &str) -> Call {
    Call::new(route).path("path", path)
}

fn put(path: &str, body: &Value) -> Call {
    Call::new("PUT /v1/categories/{path}").path("path", path).json(body)
}

fn segment(names: &[&str]) -> String {
    CategoryPath::new(names.iter().map(ToString::to_string).collect()).unwrap().to_segment()
}

async fn listed(shop: &Shop, names: &[&str]) -> Vec<String> {
    let answer = shop.send(get("GET /v1/categories/{path}/products", &segment(names)).query("limit", "100")).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    each(&answer, "id").into_iter().map(str::to_owned).collect()
}

/// Sends the lines of an import.
async fn import(shop: &Shop, products: &[Value]) -> Answered {
    let lines: String = products.iter().map(|product| format!("{product}\n")).collect();
    shop.staff(Call::new("POST /v1/products/import").header("content-type", "application/x-ndjson").body(lines)).await
}

#[tokio::test]
async fn a_new_product_creates_its_categories() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let path = "GROCERY~FRZN_20ICE~ICE_20-_20CRUSHED_2FCUBED";
    let category = shop.send(get("GET /v1/categories/{path}", path)).await;
    assert_eq!((category.status, category.version()), (200, Some(1)));
    let expected = json!({
        "id": path, "path": ["GROCERY", "FRZN ICE", "ICE - CRUSHED/CUBED"], "name": "ICE - CRUSHED/CUBED",
        "title": null, "description": null, "version": 1,
    });
    assert_eq!(category.body, expected);
    assert_eq!(category.header("cache-control"), Some("public, max-age=5, stale-while-revalidate=30"));
    let above = shop.send(get("GET /v1/categories/{path}/ancestors", path)).await;
    assert_eq!(each(&above, "id"), ["GROCERY", "GROCERY~FRZN_20ICE"]);
    let top = shop.send(get("GET /v1/categories/{path}/ancestors", "GROCERY")).await;
    assert_eq!(top.body, json!({"items": [], "next_cursor": null}));
    let children = shop.send(get("GET /v1/categories/{path}/children", "GROCERY")).await;
    assert_eq!(each(&children, "name"), ["FRZN ICE"]);
    let leaf = shop.send(get("GET /v1/categories/{path}/children", path)).await;
    assert_eq!((leaf.status, &leaf.body["items"]), (200, &json!([])));
}

#[tokio::test]
async fn a_category_is_created_with_its_ancestors_and_described_at_its_version() {
    let shop = Shop::open().await;
    let created = shop.staff(put("A~B~C", &json!({"title": "See"})).header("if-none-match", "*")).await;
    assert_eq!((created.status, created.version(), &created.body["title"]), (201, Some(1), &json!("See")));
    assert_eq!(created.header("location"), Some("/v1/categories/A~B~C"));
    let described = shop.staff(put("A~B~C", &json!({"title": "Sea"})).header("if-match", "\"1\"")).await;
    assert_eq!((described.status, described.version(), &described.body["title"]), (200, Some(2), &json!("Sea")));
    let again = shop.staff(put("A~B~C", &json!({})).header("if-none-match", "*")).await;
    assert_eq!((again.status, again.code()), (409, Some("already_exists")));
    let above = shop.send(get("GET /v1/categories/{path}", "A~B")).await;
    assert_eq!((above.status, above.version()), (200, Some(1)));
    assert_eq!(
        shop.staff(put("A~B", &json!({})).header("if-none-match", "*")).await.status,
        409,
        "the category exists without a description"
    );

    let first = shop.staff(put("A~B", &json!({"title": "Bee"})).header("if-match", "\"1\"")).await;
    assert_eq!((first.status, first.version()), (200, Some(2)));
    let stale = shop.staff(put("A~B", &json!({"title": "Be"})).header("if-match", "\"1\"")).await;
    assert_eq!((stale.status, stale.code()), (412, Some("version_mismatch")));
    let second = shop.staff(put("A~B", &json!({"description": "Buzz"})).header("if-match", "\"2\"")).await;
    assert_eq!((second.status, second.version()), (200, Some(3)));
    assert_eq!((&second.body["title"], &second.body["description"]), (&Value::Null, &json!("Buzz")));
    assert_eq!(shop.send(get("GET /v1/categories/{path}", "A~B")).await.body, second.body);
}

#[tokio::test]
async fn a_category_is_not_described_before_it_exists_or_without_a_precondition() {
    let shop = Shop::open().await;
    for version in ["\"0\"", "\"1\"", "\"2\""] {
        assert_eq!(shop.staff(put("A", &json!({})).header("if-match", version)).await.status, 404, "{version}");
    }
    let bare = shop.staff(put("A", &json!({})).header("if-none-match", "*")).await;
    assert_eq!((bare.status, bare.version()), (201, Some(1)));
    for version in ["\"0\"", "\"2\"", "\"18446744073709551615\""] {
        assert_eq!(shop.staff(put("A", &json!({})).header("if-match", version)).await.status, 412, "{version}");
    }
}

#[tokio::test]
async fn a_category_lists_its_subtree_and_no_category_with_a_similar_name() {
    let shop = Shop::open().await;
    let paths: &[&[&str]] = &[
        &["A"],
        &["AB"],
        &["A", "B"],
        &["A", "BC"],
        &["A", "B#C"],
        &["A#B"],
        &["A", "B~"],
        &["A", "B/C"],
        &["A", "B%"],
        &["A", "B%23C"],
        &["A", "B$"],
        &["A", "B C"],
        &["A", "Bä"],
        &["A", "B製品"],
        &["A", "B", "製品"],
        &["A", "B", "ä#~%/"],
    ];
    let products: Vec<Value> = paths
        .iter()
        .enumerate()
        .map(|(n, path)| with(product(&format!("p{n:02}"), 1), "category_path", json!(path)))
        .collect();
    let answer = import(&shop, &products).await;
    assert!(
        answer.body["results"].as_array().unwrap().iter().all(|line| line["status"] == "created"),
        "{}",
        answer.body
    );
    for category in paths {
        let below = paths.iter().enumerate().filter(|(_, path)| path.starts_with(category));
        let expected: BTreeSet<String> = below.map(|(n, _)| format!("p{n:02}")).collect();
        let found: BTreeSet<String> = listed(&shop, category).await.into_iter().collect();
        assert_eq!(found, expected, "{category:?}");
        let nodes = shop.send(get("GET /v1/categories/{path}/children", &segment(category))).await;
        let children: BTreeSet<&str> = each(&nodes, "name").into_iter().collect();
        let expected: BTreeSet<&str> = paths
            .iter()
            .filter(|path| path.starts_with(category))
            .filter_map(|path| path.get(category.len()).copied())
            .collect();
        assert_eq!(children, expected, "{category:?}");
        let list = get("GET /v1/categories/{path}/subtree", &segment(category));
        let mut expected: Vec<String> = paths
            .iter()
            .filter(|path| path.len() > category.len() && path.starts_with(category))
            .map(|path| segment(path))
            .collect();
        expected.sort();
        for limit in [1, 3, 100] {
            let (found, requests) = shop.all(&list, limit).await;
            let mut found: Vec<&str> = found.iter().map(|below| below["id"].as_str().unwrap()).collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{category:?} in pages of {limit}");
            // An empty list costs one more request, which checks that the category exists.
            assert!(requests.iter().all(|requests| *requests == 1 + u32::from(expected.is_empty())));
        }
    }
    let (top, requests) = shop.all(&Call::new("GET /v1/categories"), 2).await;
    let top: Vec<&str> = top.iter().map(|category| category["name"].as_str().unwrap()).collect();
    assert_eq!((top, requests), (vec!["A", "A#B", "AB"], vec![1, 1]));
}

#[tokio::test]
async fn a_list_of_a_thousand_products_takes_five_requests_per_page_and_repeats_no_product() {
    let shop = Shop::open().await;
    let of = |n: usize| with(product(&format!("p{n:04}"), 1), "category_path", json!(["A", format!("B{}", n % 7)]));
    let answer = import(&shop, &(0..1000).map(of).collect::<Vec<_>>()).await;
    assert_eq!(answer.status, 200);
    let mut seen = Vec::new();
    let mut cursor: Option<String> = None;
    let _ = shop.app.services.table.meter().take();
    loop {
        let mut call = get("GET /v1/categories/{path}/products", "A").query("limit", "93");
        if let Some(cursor) = &cursor {
            call = call.query("cursor", cursor);
        }
        let page = shop.send(call).await;
        assert_eq!(page.status, 200, "{}", page.body);
        let cost = shop.app.services.table.meter().take();
        assert_eq!(
            cost.iter().map(|cost| (cost.pattern.id, cost.requests)).collect::<Vec<_>>(),
            [("categories.products", 4), ("products.by-ids", 1)]
        );
        let items = page.body["items"].as_array().unwrap();
        seen.extend(
            items.iter().map(|item| (item["category_path"].to_string(), item["id"].as_str().unwrap().to_owned())),
        );
        assert_eq!(page.body["next_cursor"].is_null(), page.header("link").is_none());
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(seen.len(), 1000);
    assert!(seen.is_sorted_by(|a, b| a < b), "each product is listed once, by category and id");
    let first = &shop.send(get("GET /v1/categories/{path}/products", "A").query("limit", "1")).await.body;
    let mut members: Vec<_> = first["items"][0].as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    let expected = "average_rating brand category_path compare_at id in_stock name package_size price review_count \
        summary thumbnail version";
    assert_eq!(members, Vec::from_iter(expected.split(' ')));
}

#[tokio::test]
async fn children_are_paged_by_name() {
    let shop = Shop::open().await;
    let of = |n: usize| with(product(&format!("p{n}"), 1), "category_path", json!(["A", format!("B{n:02}"), "C"]));
    import(&shop, &(0..30).map(of).collect::<Vec<_>>()).await;
    let page = shop.send(get("GET /v1/categories/{path}/children", "A").query("limit", "20")).await;
    let next = page.body["next_cursor"].as_str().unwrap();
    let rest =
        shop.send(get("GET /v1/categories/{path}/children", "A").query("limit", "20").query("cursor", next)).await;
    let names: Vec<&str> = [each(&page, "name"), each(&rest, "name")].concat();
    assert_eq!(names, (0..30).map(|n| format!("B{n:02}")).collect::<Vec<_>>());
    assert!(rest.body["next_cursor"].is_null());
}

#[tokio::test]
async fn a_subtree_of_a_thousand_categories_is_read_with_one_request_per_page() {
    let shop = Shop::open().await;
    let names = |n: usize| vec!["A".to_owned(), format!("B{:02}", n / 40), format!("C{:02}", n % 40)];
    let nodes = (0..1000).map(|n| CategoryNode::new(CategoryPath::new(names(n)).unwrap()));
    let above = (0..25).map(|n| CategoryNode::new(CategoryPath::new(names(40 * n)[..2].to_vec()).unwrap()));
    shop.put_all(above.chain(nodes).map(stored)).await;
    let expected: Vec<String> = (0..1000)
        .flat_map(|n| {
            let leaf = names(n).join("~");
            [names(n)[..2].join("~"), leaf].into_iter().skip(usize::from(n % 40 != 0))
        })
        .collect();
    for limit in [100, 17] {
        let (found, requests) = shop.all(&get("GET /v1/categories/{path}/subtree", "A"), limit).await;
        let found: Vec<&str> = found.iter().map(|below| below["id"].as_str().unwrap()).collect();
        assert_eq!(found, expected, "each category comes before its own subtree, in pages of {limit}");
        assert!(requests.iter().all(|requests| *requests == 1), "{requests:?}");
    }
    let page = shop.send(get("GET /v1/categories/{path}/subtree", "A~B07").query("limit", "5")).await;
    assert_eq!(page.header("cache-control"), Some("public, max-age=5, stale-while-revalidate=30"));
    assert_eq!(shop.send(get("GET /v1/categories/{path}/subtree", "Z")).await.status, 404);
}
