//! Tests of `GET /v1/search/suggestions`.

use http_api::sample::{Answered, Call};
use search_index::ProductDocument;
use serde_json::json;

use crate::shop::{Shop, id, product};

async fn suggest(shop: &Shop, text: &str) -> Answered {
    let answer = shop.send(Call::new("GET /v1/search/suggestions").query("q", text)).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer
}

async fn ids(shop: &Shop, text: &str) -> Vec<String> {
    let mut ids: Vec<_> = suggest(shop, text).await.body["products"].as_array().unwrap().iter().map(id).collect();
    ids.sort();
    ids
}

fn shelf() -> Vec<ProductDocument> {
    let variant = |id: &str, size: &str| ProductDocument {
        parent: Some("shirt".to_owned()),
        options: vec![size.to_owned()],
        group: "shirt".to_owned(),
        ..product(id, "Linen shirt", "Weaver", &["CLOTHES"], 2_500)
    };
    let shirt = ProductDocument { has_variants: true, ..product("shirt", "Linen shirt", "Weaver", &["CLOTHES"], 1) };
    vec![
        ProductDocument { rating_count: 3, ..product("p1", "Crème brûlée", "Sweet", &["FOOD", "DESSERTS"], 1) },
        product("p2", "Cream cheese", "Dairy & Sons", &["FOOD", "DAIRY"], 2),
        product("p3", "Oak cutting board", "Werk", &["KITCHEN"], 3),
        product("p4", "Oak cooking spoon", "Werk", &["KITCHEN"], 4),
        shirt,
        variant("shirt-l", "L"),
        variant("shirt-m", "M"),
    ]
}

#[tokio::test]
async fn the_last_word_may_be_a_beginning_and_the_others_may_be_misspelt() {
    let shop = Shop::with(&shelf(), &[]).await;
    for (text, expected) in [
        ("cr", &["p1", "p2"][..]),
        ("CRÈ", &["p1", "p2"]),
        ("oak c", &["p3", "p4"]),
        ("oak cutt", &["p3"]),
        ("oka cut", &["p3"]),
        ("cheese cr", &["p2"]),
        // A word in the middle is a whole word.
        ("cutt oak", &[]),
        ("wer", &["p3", "p4"]),
        ("chese", &["p2"]),
        ("nothing", &[]),
    ] {
        assert_eq!(ids(&shop, text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn a_variant_stands_for_its_siblings_and_the_facets_are_filters() {
    let shop = Shop::with(&shelf(), &[]).await;
    let shirts = suggest(&shop, "linen sh").await;
    let [shirt] = shirts.body["products"].as_array().unwrap().as_slice() else { panic!("{}", shirts.body) };
    assert_eq!((&shirt["parent"], &shirt["price"]["amount"]), (&json!("shirt"), &json!(2_500)));
    let answer = suggest(&shop, "oak").await;
    assert_eq!(answer.body["categories"], json!([{"value": "KITCHEN", "count": 2}]));
    assert_eq!(answer.body["brands"], json!([{"value": "Werk", "count": 2}]));
    let found = shop.ids(&[("q", "oak"), ("category", "KITCHEN"), ("brand", "Werk")]).await;
    assert_eq!(found.len(), 2);
}

#[tokio::test]
async fn without_text_the_products_with_the_most_ratings_come_first() {
    let shop = Shop::with(&shelf(), &[]).await;
    let answer = suggest(&shop, "").await;
    assert_eq!(answer.body["products"][0]["id"], "p1");
    assert_eq!(answer.body["products"].as_array().unwrap().len(), 5);
    let none = Shop::empty().await;
    assert_eq!(suggest(&none, "x").await.body, json!({"products": [], "categories": [], "brands": []}));
}
