//! Tests of `GET /v1/search/products`.

use emulators::search::{Fault, FaultKind};
use http_api::sample::with_page_bytes;
use search_index::ProductDocument;
use serde_json::{Value, json};

use crate::shop::{Shop, ids, product};

fn shelf() -> Vec<ProductDocument> {
    vec![
        product("p1", "Crushed ice", "Private", &["GROCERY", "FRZN ICE"], 129),
        product("p2", "Cubed ice", "National", &["GROCERY", "FRZN ICE"], 99),
        product("p3", "Strawberry yoghurt", "National", &["GROCERY", "DAIRY"], 250),
        product("p4", "Garden hose", "Private", &["GARDEN"], 1_999),
    ]
}

#[tokio::test]
async fn anybody_finds_products_by_words_despite_typing_mistakes() {
    let shop = Shop::with(&shelf(), &[]).await;
    assert_eq!(shop.ids(&[("q", "strawberry")]).await, ["p3"]);
    assert_eq!(shop.ids(&[("q", "strawbery yogurt")]).await, ["p3"]);
    assert_eq!(shop.ids(&[("q", "ice"), ("sort", "price")]).await, ["p2", "p1"]);
    assert_eq!(shop.ids(&[("q", "submarine")]).await, [""; 0]);
    assert_eq!(shop.ids(&[]).await.len(), 4);
}

#[tokio::test]
async fn punctuation_and_emoji_alone_find_nothing_and_do_not_affect_other_words() {
    let shop = Shop::with(&shelf(), &[]).await;
    for nothing in ["!!!", "&", "?", "\u{2014}", "\u{1f9ca}", "\u{1f9ca} \u{2603} !", "/ -", "\u{200b}", "the"] {
        let answer = shop.products(&[("q", nothing)]).await;
        assert_eq!(
            (answer.status, &answer.body["total"], &answer.body["items"]),
            (200, &json!(0), &json!([])),
            "{nothing}"
        );
        assert_eq!(answer.body["facets"], json!({"category": [], "category_levels": [], "brand": []}), "{nothing}");
    }
    assert_eq!(shop.ids(&[("q", "& strawberry !"), ("sort", "name")]).await, ["p3"]);
    assert_eq!(shop.ids(&[("q", "the hose")]).await, ["p4"]);
}

#[tokio::test]
async fn a_hit_is_a_product_with_its_score_and_its_marked_words() {
    let mut ice = product("p1", "Crushed ice", "Private", &["GROCERY", "FRZN ICE"], 129);
    ice.package_size = Some("22 LB".into());
    ice.summary = "Cold & <clear> ice".into();
    (ice.in_stock, ice.rating_sum, ice.rating_count) = (true, 13, 3);
    ice.thumbnail = Some("m1".to_owned());
    ice.compare_at_amount = Some(150);
    let shop = Shop::with(&[ice], &[]).await;
    let answer = shop.products(&[("q", "ice")]).await;
    let mut item = answer.body["items"][0].clone();
    assert!(item["score"].as_f64().unwrap() > 0.0);
    item.as_object_mut().unwrap().remove("score");
    assert_eq!(
        item,
        json!({
            "id": "p1", "name": "Crushed ice", "brand": "Private", "package_size": "22 LB",
            "category_path": ["GROCERY", "FRZN ICE"], "price": {"amount": 129, "currency": "USD"},
            "compare_at": {"amount": 150, "currency": "USD"},
            "summary": "Cold & <clear> ice",
            "thumbnail": "/v1/products/p1/pictures/m1", "in_stock": true, "rating": {"average": 4.33, "count": 3},
            "highlights": {"name": ["Crushed <em>ice</em>"], "summary": ["Cold &amp; &lt;clear&gt; <em>ice</em>"]},
        })
    );
    assert_eq!(answer.body["total"], 1);
    assert_eq!(answer.body["next_cursor"], json!(null));
}

#[tokio::test]
async fn facets_count_all_hits_and_their_values_work_as_filters() {
    let shop = Shop::with(&shelf(), &[]).await;
    let facets = shop.products(&[("limit", "1")]).await.body["facets"].clone();
    assert_eq!(facets["brand"], json!([{"value": "National", "count": 2}, {"value": "Private", "count": 2}]));
    assert_eq!(facets["category"][0], json!({"value": "GROCERY", "count": 3}));
    for (level, values) in (1..).zip(facets["category_levels"].as_array().unwrap()) {
        assert_eq!(values["level"], level);
        let all = facets["category"].as_array().unwrap().iter();
        let of_level = all.filter(|facet| facet["value"].as_str().unwrap().split(" / ").count() == level);
        assert_eq!(values["values"].as_array().unwrap().iter().collect::<Vec<_>>(), of_level.collect::<Vec<_>>());
    }
    assert_eq!(facets["category_levels"][0]["values"][0], facets["category"][0]);
    for facet in facets["category"].as_array().unwrap() {
        let followed = shop.ids(&[("category", facet["value"].as_str().unwrap())]).await;
        assert_eq!(followed.len() as u64, facet["count"].as_u64().unwrap());
    }
}

/// A facet that only had the chosen value would offer no second value to choose.
#[tokio::test]
async fn a_facet_ignores_its_own_filter_and_respects_all_others() {
    let shop = Shop::with(&shelf(), &[]).await;
    let search = async |query: &[(&str, &str)]| {
        let body = shop.products(query).await.body;
        let facets = |values: &Value| -> Vec<String> {
            let shown = |facet: &Value| format!("{} {}", facet["value"].as_str().unwrap(), facet["count"]);
            values.as_array().into_iter().flatten().map(shown).collect()
        };
        let levels = &body["facets"]["category_levels"][0]["values"];
        (body["total"].as_u64().unwrap(), facets(&body["facets"]["brand"]), facets(levels))
    };
    let (total, brands, categories) = search(&[("brand", "Private")]).await;
    assert_eq!((total, brands), (2, vec!["National 2".to_owned(), "Private 2".to_owned()]));
    assert_eq!(categories, ["GARDEN 1", "GROCERY 1"]);
    let (total, brands, categories) = search(&[("brand", "Private"), ("category", "GARDEN")]).await;
    assert_eq!((total, brands), (1, vec!["Private 1".to_owned()]));
    assert_eq!(categories, ["GARDEN 1", "GROCERY 1"]);
    let (total, brands, _) = search(&[("brand", "Private"), ("max_price", "100")]).await;
    assert_eq!((total, brands), (0, vec!["National 1".to_owned()]));
}

#[tokio::test]
async fn a_category_name_that_looks_like_a_path_is_not_read_as_a_path() {
    let shelf = [
        product("p1", "Ice", "Private", &["GROCERY / ICE"], 1),
        product("p2", "Ice", "Private", &["GROCERY", "ICE"], 2),
        product("p3", "Ice", "Private", &["GROCERY~ICE"], 3),
    ];
    let shop = Shop::with(&shelf, &[]).await;
    let answer = shop.products(&[]).await;
    let mut found = Vec::new();
    for facet in answer.body["facets"]["category"].as_array().unwrap() {
        let value = facet["value"].as_str().unwrap();
        found.push((value.to_owned(), shop.ids(&[("category", value), ("sort", "name")]).await.join(",")));
    }
    found.sort();
    let expected = [("GROCERY", "p2"), ("GROCERY / ICE", "p2"), ("GROCERY_20_2F_20ICE", "p1"), ("GROCERY_7EICE", "p3")];
    assert_eq!(found, expected.map(|(value, ids)| (value.to_owned(), ids.to_owned())));
}

#[tokio::test]
async fn a_product_without_reviews_has_no_average() {
    let shop = Shop::with(&shelf(), &[]).await;
    let answer = shop.products(&[("q", "hose")]).await;
    assert_eq!(answer.body["items"][0]["rating"], json!({"average": null, "count": 0}));
    assert_eq!(answer.body["items"][0]["in_stock"], json!(false));
}

#[tokio::test]
async fn filters_select_the_hits_and_the_sort_parameter_sorts_them() {
    let mut shelf = shelf();
    shelf[2].in_stock = true;
    let shop = Shop::with(&shelf, &[]).await;
    for (query, expected) in [
        (&[("category", "GROCERY~FRZN_20ICE"), ("sort", "name")][..], &["p1", "p2"][..]),
        (&[("category", "GARDEN"), ("category", "GROCERY / DAIRY"), ("sort", "price")], &["p3", "p4"]),
        (&[("brand", "National"), ("brand", "Private"), ("max_price", "200"), ("sort", "price")], &["p2", "p1"]),
        (&[("brand", "National"), ("category", "GARDEN")], &[]),
        (&[("in_stock", "true")], &["p3"]),
        (&[("in_stock", "false"), ("sort", "price")], &["p2", "p1", "p4"]),
        (&[("category", "GROCERY"), ("sort", "-price")], &["p3", "p1", "p2"]),
        (&[("category", "GROCER")], &[]),
        (&[("brand", "Private"), ("sort", "price")], &["p1", "p4"]),
        (&[("brand", "private")], &[]),
        (&[("min_price", "129"), ("max_price", "250"), ("sort", "price_asc")], &["p1", "p3"]),
        (&[("min_price", "129"), ("max_price", "129")], &["p1"]),
        (&[("sort", "price_desc")], &["p4", "p3", "p1", "p2"]),
        (&[("sort", "newest")], &["p2", "p4", "p3", "p1"]),
        (&[("sort", "name")], &["p1", "p2", "p4", "p3"]),
    ] {
        assert_eq!(shop.ids(query).await, expected, "{query:?}");
    }
}

#[tokio::test]
async fn pages_in_every_sort_order_leave_no_gap_and_repeat_no_product() {
    let many: Vec<_> =
        (0..23).map(|n| product(&format!("p{n:02}"), "Ice \"é\"", "Private", &["GROCERY"], n % 5)).collect();
    let shop = Shop::with(&many, &[]).await;
    for sort in ["relevance", "price", "-price", "newest", "name"] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let mut query = vec![("q", "ice"), ("sort", sort), ("limit", "5")];
            if !cursor.is_empty() {
                query.push(("cursor", &cursor));
            }
            let answer = shop.products(&query).await;
            seen.extend(ids(&answer));
            assert_eq!(answer.body["total"], 23);
            match answer.body["next_cursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(seen.len(), 23, "{sort}");
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 23, "{sort}");
    }
}

#[tokio::test]
async fn a_full_last_page_has_no_cursor_and_an_earlier_page_links_to_the_next() {
    let shop = Shop::with(&shelf(), &[]).await;
    assert_eq!(shop.products(&[("limit", "4")]).await.body["next_cursor"], json!(null));
    let first = shop.products(&[("limit", "3"), ("q", "")]).await;
    assert!(first.header("link").unwrap().starts_with("</v1/search/products?cursor="));
}

#[tokio::test]
async fn a_page_of_hits_ends_where_it_would_be_too_large_for_a_response() {
    let mut shelf: Vec<_> = (0..9).map(|n| product(&format!("p{n}"), "Ice", "Private", &["GROCERY"], n)).collect();
    shelf.iter_mut().for_each(|product| product.summary = "\"".repeat(2000));
    let shop = Shop::with(&shelf, &[]).await;
    let (mut found, mut pages, mut cursor) = (Vec::new(), 0, None::<String>);
    loop {
        let mut query = vec![("sort", "price"), ("limit", "100")];
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let answer = with_page_bytes(30_000, shop.products(&query)).await;
        let wire = serde_json::to_string(&answer.body.to_string()).unwrap().len();
        assert!(wire <= 30_000, "{wire} bytes");
        found.extend(ids(&answer));
        pages += 1;
        match answer.body["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!((found.join(" "), pages), ("p0 p1 p2 p3 p4 p5 p6 p7 p8".to_owned(), 3));
}

#[tokio::test]
async fn the_longest_name_and_id_still_fit_a_cursor() {
    let long =
        |n: u32| product(&format!("{n}{}", "\"".repeat(127)), &format!("{}{n}", "\"".repeat(199)), "B", &["C"], 1);
    let shop = Shop::with(&[long(1), long(2)], &[]).await;
    let first = shop.products(&[("sort", "name"), ("limit", "1")]).await;
    let cursor = first.body["next_cursor"].as_str().unwrap();
    let second = shop.products(&[("sort", "name"), ("limit", "1"), ("cursor", cursor)]).await;
    assert_ne!(ids(&first), ids(&second));
}

#[tokio::test]
async fn a_search_in_a_shop_without_products_finds_no_product() {
    let answer = Shop::empty().await.products(&[("q", "ice")]).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(
        answer.body,
        json!({"items": [], "facets": {"category": [], "category_levels": [], "brand": []}, "total": 0, "next_cursor": null})
    );
}

#[tokio::test]
async fn an_unavailable_engine_causes_a_503_with_retry_after() {
    let shop = Shop::embedded().await;
    let faults = shop.server.as_ref().unwrap().faults();
    for kind in [FaultKind::Error, FaultKind::Throttle, FaultKind::Reset] {
        faults.add(Fault { kind, rate: 1.0, count: None, seed: 0 }).unwrap();
        let answer = shop.products(&[("q", "ice")]).await;
        assert_eq!((answer.status, answer.code()), (503, Some("unavailable")), "{kind:?}");
        assert!(answer.header("retry-after").is_some());
        assert_eq!(faults.counts()[0].fired, 2, "{kind:?}: the search was sent again");
        faults.clear();
    }
}

/// The engine answers 500 or, since OpenSearch's pull request 21725, 400.
#[tokio::test]
async fn a_query_with_too_many_clauses_for_the_engine_is_the_clients_error() {
    let nested = r#"{"error":{"root_cause":[{"type":"too_many_nested_clauses","reason":"maxClauseCount is set to 1024"}],"type":"search_phase_execution_exception","reason":"all shards failed","phase":"query","grouped":true,"failed_shards":[]},"status":500}"#;
    let other = r#"{"error":{"root_cause":[{"type":"query_shard_exception","reason":"failed to create query"}],
        "type":"search_phase_execution_exception","reason":"all shards failed"},"status":500}"#;
    for (status, body, expected) in [
        (500, nested, (400, Some("invalid_parameter"))),
        (400, nested, (400, Some("invalid_parameter"))),
        (500, other, (500, Some("internal"))),
    ] {
        let answer = Shop::refusing(status, body).await.products(&[("q", "ice")]).await;
        assert_eq!((answer.status, answer.code()), expected, "{}", answer.body);
    }
}

/// The engine may still process the first search, so a second search would double its load.
#[tokio::test]
async fn a_search_without_a_response_in_time_is_not_sent_again() {
    let shop = Shop::impatient().await;
    let faults = shop.server.as_ref().unwrap().faults();
    faults.add(Fault { kind: FaultKind::Timeout, rate: 1.0, count: None, seed: 0 }).unwrap();
    let answer = shop.products(&[("q", "ice")]).await;
    assert_eq!((answer.status, answer.code()), (503, Some("unavailable")), "{}", answer.body);
    assert_eq!(faults.counts()[0].fired, 1);
}
