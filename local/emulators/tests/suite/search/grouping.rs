use search_index::{PageStart, ProductDocument, ProductQuery, ProductSort};
use serde_json::json;

use super::engine::{Engine, ids, product, search_for};

/// Returns a variant of the product `shirt` with a size, a colour and a price.
fn variant(id: &str, size: &str, colour: &str, price: i64) -> ProductDocument {
    ProductDocument {
        parent: Some("shirt".to_owned()),
        options: vec![colour.to_owned(), size.to_owned()],
        group: "shirt".to_owned(),
        ..product(id, "Linen shirt", "Weaver", &["CLOTHES"], price)
    }
}

fn clothes() -> Vec<ProductDocument> {
    let shirt = ProductDocument { has_variants: true, ..product("shirt", "Linen shirt", "Weaver", &["CLOTHES"], 1) };
    vec![
        shirt,
        variant("shirt-m", "M", "red", 300),
        variant("shirt-l", "L", "red", 200),
        variant("shirt-xl", "XL", "blue", 400),
        product("scarf", "Linen scarf", "Weaver", &["CLOTHES"], 250),
        product("hat", "Linen hat", "Weaver", &["CLOTHES"], 350),
    ]
}

fn grouped(sort: ProductSort, words: &str) -> ProductQuery {
    ProductQuery { sort, start: PageStart::Group(0), ..search_for(words) }
}

#[tokio::test]
async fn a_result_has_the_best_variant_of_each_parent_and_no_parent() {
    let engine = Engine::with_products(&clothes()).await;
    for (sort, expected) in [
        (ProductSort::PriceAscending, ["shirt-l", "scarf", "hat"]),
        (ProductSort::PriceDescending, ["shirt-xl", "hat", "scarf"]),
    ] {
        for words in ["", "linen"] {
            let page = engine.products(&grouped(sort, words)).await;
            assert_eq!((ids(&page), page.total), (expected.map(str::to_owned).to_vec(), 3), "{words}");
        }
    }
    // The facets count variants, because a filter applies to variants.
    let page = engine.products(&grouped(ProductSort::Relevance, "")).await;
    assert_eq!(page.facets["brand"][0].count, 5);
}

#[tokio::test]
async fn a_page_says_whether_the_hits_of_all_pages_include_variants() {
    let engine = Engine::with_products(&clothes()).await;
    for (words, expected) in [("linen", true), ("scarf", false), ("", true), ("hat", false)] {
        let query = ProductQuery { size: 1, sort: ProductSort::Newest, ..search_for(words) };
        assert_eq!(engine.products(&query).await.has_variants(), expected, "{words}");
    }
}

#[tokio::test]
async fn the_words_of_the_options_find_a_variant() {
    let engine = Engine::with_products(&clothes()).await;
    for (words, expected) in [("red M", "shirt-m"), ("shirt xl", "shirt-xl"), ("blue shirt", "shirt-xl")] {
        let page = engine.products(&grouped(ProductSort::Relevance, words)).await;
        assert_eq!((ids(&page), page.total), (vec![expected.to_owned()], 1), "{words}");
    }
}

#[tokio::test]
async fn pages_return_each_group_once() {
    let many: Vec<_> = (0..40_i64)
        .map(|number| {
            let id = format!("p{number:02}");
            ProductDocument {
                group: format!("g{}", number % 10),
                ..product(&id, "Linen shirt", "Weaver", &["CLOTHES"], (number * 7) % 40)
            }
        })
        .collect();
    let engine = Engine::with_products(&many).await;
    for sort in [ProductSort::Relevance, ProductSort::PriceAscending, ProductSort::Newest] {
        let mut query = ProductQuery { size: 3, ..grouped(sort, "shirt") };
        let (mut groups, mut pages) = (Vec::new(), 0);
        loop {
            let page = engine.products(&query).await;
            assert_eq!(page.total, 10);
            if page.hits.is_empty() {
                break;
            }
            pages += 1;
            query.start = PageStart::Group(pages * query.size);
            groups.extend(page.hits.into_iter().map(|hit| hit.document.group));
        }
        assert_eq!((groups.len(), pages), (10, 4), "{sort:?}: {groups:?}");
        groups.sort_unstable();
        groups.dedup();
        assert_eq!(groups.len(), 10, "{sort:?}");
    }
}

/// OpenSearch refuses the first two searches, and so does the local engine.
#[tokio::test]
async fn a_collapsed_search_continues_only_by_an_offset_within_the_window() {
    let engine = Engine::with_products(&clothes()).await;
    let path = format!("/{}-products/_search", engine.prefix);
    let (sort, collapse) = (json!([{"price_amount": "asc"}, {"id": "asc"}]), json!({"field": "group"}));
    let after = json!({"sort": sort, "collapse": collapse, "search_after": [200, "shirt-l"]});
    assert!(engine.send("POST", &path, &after).await.0 >= 400);
    let beyond = json!({"sort": sort, "collapse": collapse, "from": 9_999, "size": 2});
    assert_eq!(engine.send("POST", &path, &beyond).await.0, 400);
    let last = json!({"sort": sort, "collapse": collapse, "from": 9_999, "size": 1});
    assert_eq!(engine.send("POST", &path, &last).await.0, 200);
}
