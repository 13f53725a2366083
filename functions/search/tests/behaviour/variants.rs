//! Tests of `GET /v1/search/products` with variants.

use search_index::ProductDocument;
use serde_json::json;

use crate::shop::{Shop, ids, product};

fn variant(id: &str, size: &str, price: i64) -> ProductDocument {
    ProductDocument {
        parent: Some("shirt".to_owned()),
        options: vec!["red".to_owned(), size.to_owned()],
        group: "shirt".to_owned(),
        ..product(id, "Linen shirt", "Weaver", &["CLOTHES"], price)
    }
}

fn clothes() -> Vec<ProductDocument> {
    let shirt = ProductDocument { has_variants: true, ..product("shirt", "Linen shirt", "Weaver", &["CLOTHES"], 1) };
    let mut clothes = vec![shirt, variant("shirt-m", "M", 300), variant("shirt-l", "L", 200)];
    clothes.extend([250, 350].map(|price| product(&format!("p{price}"), "Linen scarf", "Weaver", &["CLOTHES"], price)));
    clothes
}

#[tokio::test]
async fn a_result_has_one_hit_for_each_parent_and_its_pages_repeat_none() {
    let shop = Shop::with(&clothes(), &[]).await;
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let query = [("q", "linen"), ("sort", "price"), ("limit", "1")];
        let query: Vec<_> = query.into_iter().chain(cursor.as_deref().map(|cursor| ("cursor", cursor))).collect();
        let page = shop.products(&query).await;
        found.extend(ids(&page));
        assert_eq!(page.body["total"], 3);
        cursor = page.body["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, ["shirt-l", "p250", "p350"]);
}

/// An offset would skip the second hit after the first was removed.
#[tokio::test]
async fn a_search_without_variants_skips_no_hit_when_another_is_removed() {
    let shop = Shop::with(&clothes(), &[]).await;
    let first = shop.products(&[("q", "scarf"), ("sort", "price"), ("limit", "1")]).await;
    assert_eq!(ids(&first), ["p250"]);
    shop.remove("p250").await;
    let cursor = first.body["next_cursor"].as_str().unwrap();
    let second = shop.products(&[("q", "scarf"), ("sort", "price"), ("limit", "1"), ("cursor", cursor)]).await;
    assert_eq!(ids(&second), ["p350"]);
}

#[tokio::test]
async fn the_total_of_chosen_facets_counts_each_parent_once() {
    let mut clothes = clothes();
    clothes.push(product("sock", "Linen sock", "Knitter", &["CLOTHES"], 90));
    let shop = Shop::with(&clothes, &[]).await;
    let found = shop.products(&[("q", "linen"), ("brand", "Weaver")]).await;
    assert_eq!(found.body["total"], 3);
    assert_eq!(found.body["facets"]["brand"][1], json!({"value": "Knitter", "count": 1}));
    // No variant matches, so the result has no groups.
    let found = shop.products(&[("q", "linen"), ("brand", "Knitter")]).await;
    assert_eq!((ids(&found), &found.body["total"]), (vec!["sock".to_owned()], &json!(1)));
}

#[tokio::test]
async fn a_hit_shows_parent_and_options_of_a_variant() {
    let shop = Shop::with(&clothes(), &[]).await;
    let found = shop.products(&[("q", "red M")]).await;
    let [hit] = &found.body["items"].as_array().unwrap()[..] else { panic!("{}", found.body) };
    assert_eq!(
        (&hit["id"], &hit["parent"], &hit["options"]),
        (&json!("shirt-m"), &json!("shirt"), &json!(["red", "M"]))
    );
    let scarf = &shop.products(&[("q", "scarf")]).await.body["items"][0];
    assert_eq!((scarf.get("parent"), scarf.get("options")), (None, None));
}
