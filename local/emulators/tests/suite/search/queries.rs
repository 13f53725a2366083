use std::collections::BTreeSet;

use search_index::{
    BulkOperation, BulkOutcome, Collection, Facet, OrderDocument, OrderQuery, PageStart, ProductDocument, ProductQuery,
    ProductSort, SearchError, SearchText, document_id,
};

use super::engine::{Engine, ids, key, product, remove, search_for, shop, write};

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort_unstable();
    ids
}

#[tokio::test]
async fn indices_can_be_ensured_again_and_concurrently() {
    let engine = Engine::start().await;
    let (one, other) = tokio::join!(engine.client.ensure_indices(), engine.client.ensure_indices());
    one.unwrap();
    other.unwrap();
    assert_eq!(engine.client.count(Collection::Products).await.unwrap(), 0);
}

#[tokio::test]
async fn a_write_before_the_index_exists_creates_no_index() {
    let engine = Engine::without_indices().await;
    let outcomes = engine.client.bulk(&[write(&shop()[0], 1)]).await.unwrap();
    assert!(matches!(&outcomes[..], [BulkOutcome::Rejected { status: 404, .. }]), "{outcomes:?}");
    let missing = engine.client.count(Collection::Products).await.unwrap_err();
    assert!(
        matches!(&missing, SearchError::Rejected { status: 404, kind, .. } if kind == "index_not_found_exception"),
        "{missing:?}"
    );
}

#[tokio::test]
async fn the_highest_rev_wins_in_every_order_of_arrival() {
    let engine = Engine::start().await;
    let named = |name: &str| product("p", name, "b", &["c"], 1);
    let writes = [
        write(&named("second"), 2),
        write(&named("first"), 1),
        write(&named("repaired"), 2),
        write(&named("third"), 3),
    ];
    let outcomes = engine.client.bulk(&writes).await.unwrap();
    assert_eq!(outcomes, [BulkOutcome::Applied, BulkOutcome::Stale, BulkOutcome::Applied, BulkOutcome::Applied]);
    assert_eq!(engine.client.bulk(&writes[..3]).await.unwrap(), vec![BulkOutcome::Stale; 3]);
    let stored = engine.client.get::<ProductDocument>(&key("p")).await.unwrap().unwrap();
    assert_eq!((stored.rev, stored.document), (3, Some(named("third"))));
}

#[tokio::test]
async fn a_tombstone_hides_the_document_and_blocks_older_writes() {
    let engine = Engine::with_products(&shop()).await;
    engine.write(&[remove("milk", 2)]).await;
    assert_eq!(engine.client.bulk(&[write(&shop()[2], 1)]).await.unwrap(), [BulkOutcome::Stale]);
    engine.client.refresh().await.unwrap();
    assert_eq!(engine.ids("milk").await, Vec::<String>::new());
    assert_eq!(engine.client.count(Collection::Products).await.unwrap(), 4);
    let stored = engine.client.get::<ProductDocument>(&key("milk")).await.unwrap().unwrap();
    assert_eq!((stored.rev, stored.document), (2, None));
    assert_eq!(engine.client.get::<ProductDocument>(&key("unknown")).await.unwrap(), None);
    engine.write(&[write(&shop()[2], 3)]).await;
    assert_eq!(engine.ids("milk").await, ["milk"]);
}

#[tokio::test]
async fn a_document_that_does_not_fit_the_mapping_is_rejected_alone() {
    let engine = Engine::start().await;
    let misfit = ProductDocument { created_at: "yesterday".to_owned(), ..shop()[0].clone() };
    let outcomes = engine.client.bulk(&[write(&misfit, 1), write(&shop()[1], 1)]).await.unwrap();
    assert!(matches!(&outcomes[..], [BulkOutcome::Rejected { status: 400, .. }, BulkOutcome::Applied]), "{outcomes:?}");
}

#[tokio::test]
async fn products_are_found_by_words_of_the_name_the_brand_the_category_and_the_summary() {
    let mut shop = shop();
    shop[3].summary = "Dark and bitter, seventy percent.".to_owned();
    let engine = Engine::with_products(&shop).await;
    for (words, expected) in [
        ("crushed", &["ice"][..]),
        ("frzn ice cubed", &["ice"]),
        ("private milk", &["milk"]),
        ("candy national", &["chocolate"]),
        ("seventy", &["chocolate"]),
        ("sons", &["soap"]),
        ("CREME", &["soap"]),
        ("the soap & hands", &["soap"]),
        ("chocolates", &["chocolate"]),
        ("milk chocolate", &[]),
        ("nothing", &[]),
    ] {
        assert_eq!(engine.ids(words).await, expected, "{words}");
    }
    assert_eq!(engine.ids("").await.len(), 5);
}

#[tokio::test]
async fn typing_mistakes_are_forgiven_and_exact_words_come_first() {
    let engine = Engine::with_products(&shop()).await;
    for (words, expected) in
        [("mlik", "milk"), ("choclate", "chocolate"), ("chcolat bras", "chocolate"), ("saop", "soap")]
    {
        assert_eq!(engine.ids(words).await, [expected], "{words}");
    }
    assert_eq!(engine.ids("ice").await, ["ice", "rice"]);
    assert_eq!(engine.ids("rice").await, ["rice", "ice"]);
}

#[tokio::test]
async fn typed_text_is_never_query_syntax() {
    let engine = Engine::with_products(&shop()).await;
    for words in ["*", "name:*", "ice OR milk", "-ice", "\"", "}}", "/.*/", "(", "a\\", "id:milk~2^4", "日本語", "🧊"]
    {
        let page = engine.products(&search_for(words)).await;
        assert!(page.hits.len() <= 5, "{words}");
    }
    assert_eq!(engine.ids("name:milk").await, Vec::<String>::new());
}

#[tokio::test]
async fn the_engine_accepts_the_longest_text() {
    let products: Vec<_> =
        (0..300).map(|n| product(&n.to_string(), &format!("abcde{n:03}fg"), "brand", &["c"], 1)).collect();
    let engine = Engine::with_products(&products).await;
    for words in [["abcde000fg"; SearchText::MAX_WORDS].join(" "), ["abcde000fg"; 5].join(" ")] {
        assert_eq!(engine.ids(&words).await[0], "0");
    }
    for words in
        ["氷".repeat(SearchText::MAX_WORDS), "🧊".repeat(SearchText::MAX_WORDS), "a/".repeat(SearchText::MAX_WORDS)]
    {
        engine.ids(&words).await;
    }
}

#[tokio::test]
async fn filters_narrow_hits_and_the_facets_of_other_filters() {
    let mut products = shop();
    products[4].in_stock = false;
    let engine = Engine::with_products(&products).await;
    let all = || ProductQuery { size: 20, ..ProductQuery::default() };
    for (query, expected) in [
        (ProductQuery { categories: vec!["GROCERY".into()], ..all() }, &["chocolate", "ice", "milk", "rice"][..]),
        (ProductQuery { categories: vec!["GROCERY~FRZN_20ICE".into()], ..all() }, &["ice"]),
        (ProductQuery { categories: vec!["GROC".into()], ..all() }, &[]),
        (ProductQuery { brands: vec!["Tom & Sons".into()], ..all() }, &["soap"]),
        (
            ProductQuery { brands: vec!["Tom & Sons".into(), "National".into()], max_price: Some(99), ..all() },
            &["chocolate"],
        ),
        (ProductQuery { in_stock: Some(true), ..all() }, &["chocolate", "ice", "milk", "rice"]),
        (ProductQuery { in_stock: Some(false), ..all() }, &["soap"]),
        (ProductQuery { min_price: Some(199), max_price: Some(259), ..all() }, &["ice", "milk"]),
        (ProductQuery { min_price: Some(260), ..all() }, &["rice", "soap"]),
        (ProductQuery { max_price: Some(99), brands: vec!["National".into()], ..all() }, &["chocolate"]),
        (ProductQuery { categories: vec!["GROCERY".into()], ..search_for("soap") }, &[]),
    ] {
        let page = engine.products(&query).await;
        assert_eq!(sorted(ids(&page)), expected, "{query:?}");
        assert_eq!(page.total, expected.len() as u64);
    }
    let page = engine.products(&ProductQuery { categories: vec!["GROCERY".into()], ..all() }).await;
    let facet = |value: &str, count| Facet { value: value.to_owned(), count };
    assert_eq!(page.facets["brand"], [facet("National", 2), facet("Private", 2)]);
    let whole = engine.products(&all()).await.facets;
    assert_eq!(page.facets["category"], whole["category"], "a facet ignores its own filter");
    assert!(whole["category"].contains(&facet("GROCERY", 4)) && whole["brand"].contains(&facet("Tom & Sons", 1)));
}

#[tokio::test]
async fn highlights_are_html_with_the_matching_words_marked() {
    let mut soap = shop()[4].clone();
    soap.summary = "No soap <like> it; soaps wash/clean.".to_owned();
    let engine = Engine::with_products(&[soap]).await;
    let page = engine.products(&search_for("saop creme")).await;
    let highlights = &page.hits[0].highlights;
    assert_eq!(highlights["name"], "<em>Crème</em> <em>Soap</em> for the hands");
    assert_eq!(highlights["summary"], "No <em>soap</em> &lt;like&gt; it; <em>soaps</em> wash&#x2F;clean.");
    assert!(engine.products(&search_for("")).await.hits[0].highlights.is_empty());
}

#[tokio::test]
async fn paging_returns_every_product_once_in_every_sort_order() {
    let names = ["eclair", "Éclair", "Apple", "apple", "banana"];
    let products: Vec<_> = (0..23)
        .map(|n: i64| ProductDocument {
            created_at: format!("2017-01-{:02}T00:00:00.000Z", n % 5 + 1),
            ..product(&format!("p{n}"), names[n as usize % names.len()], "brand", &["c"], n % 4)
        })
        .collect();
    let engine = Engine::with_products(&products).await;
    for (sort, words) in [
        (ProductSort::Relevance, ""),
        (ProductSort::Relevance, "brand"),
        (ProductSort::PriceAscending, ""),
        (ProductSort::PriceDescending, ""),
        (ProductSort::Newest, ""),
        (ProductSort::Name, ""),
    ] {
        let mut query = ProductQuery { sort, size: 5, ..search_for(words) };
        let mut seen = Vec::new();
        loop {
            let page = engine.products(&query).await;
            assert_eq!(page.total, 23);
            let Some(end) = page.end().cloned() else {
                break;
            };
            let end = serde_json::from_str(&serde_json::to_string(&end).unwrap()).unwrap();
            query.start = PageStart::After(Some(end));
            seen.extend(page.hits.into_iter().map(|hit| hit.document));
        }
        assert_eq!(seen.len(), 23, "{sort:?}");
        assert_eq!(seen.iter().map(|product| &product.id).collect::<BTreeSet<_>>().len(), 23, "{sort:?}");
        let in_order = |a: &ProductDocument, b: &ProductDocument| match sort {
            ProductSort::Relevance => true,
            ProductSort::PriceAscending => (a.price_amount, &a.id) < (b.price_amount, &b.id),
            ProductSort::PriceDescending => (b.price_amount, &a.id) < (a.price_amount, &b.id),
            ProductSort::Newest => (&b.created_at, &a.id) < (&a.created_at, &b.id),
            ProductSort::Name => {
                let folded = |name: &str| name.to_lowercase().replace('é', "e");
                (folded(&a.name), &a.id) < (folded(&b.name), &b.id)
            }
        };
        assert!(seen.windows(2).all(|pair| in_order(&pair[0], &pair[1])), "{sort:?}");
    }
}

#[tokio::test]
async fn only_searches_by_relevance_return_scores() {
    let engine = Engine::with_products(&shop()).await;
    let hit = engine.products(&search_for("soap")).await.hits.remove(0);
    assert!(hit.score.unwrap() > 0.0);
    let query = ProductQuery { sort: ProductSort::Name, ..search_for("soap") };
    assert_eq!(engine.products(&query).await.hits[0].score, None);
}

#[tokio::test]
async fn live_documents_are_listed_page_by_page_with_version_and_rev() {
    let engine = Engine::with_products(&shop()).await;
    engine.write(&[remove("milk", 9), write(&ProductDocument { version: 4, ..shop()[0].clone() }, 7)]).await;
    let first = engine.client.list(Collection::Products, 3, None).await.unwrap();
    let rest = engine.client.list(Collection::Products, 3, first.next.as_ref()).await.unwrap();
    assert_eq!(rest.next, None);
    let listed: Vec<_> =
        first.items.iter().chain(&rest.items).map(|item| (item.id.as_str(), item.version, item.rev)).collect();
    assert_eq!(listed, [("chocolate", 1, 1), ("ice", 4, 7), ("rice", 1, 1), ("soap", 1, 1)]);
    assert_eq!(first.items[0].document_id, key("chocolate"));
    assert_eq!(engine.client.count(Collection::Products).await.unwrap(), 4);
    assert_eq!(engine.client.count(Collection::Orders).await.unwrap(), 0);
}

#[tokio::test]
async fn orders_are_found_by_id_number_reference_customer_and_status_newest_first() {
    let order =
        |id: &str, number: &str, reference: Option<&str>, customer: &str, status: &str, day: u32| OrderDocument {
            id: id.to_owned(),
            number: number.to_owned(),
            reference: reference.map(str::to_owned),
            customer_id: customer.to_owned(),
            store_id: None,
            destination_country: None,
            destination_city: None,
            status: status.to_owned(),
            total_amount: 1_299,
            total_currency: "USD".to_owned(),
            placed_at: format!("2017-01-{day:02}T11:53:26.000Z"),
            line_count: 3,
            version: 1,
            deleted: false,
        };
    let orders = [
        order("01AB-first", "B7K3-9QXD", Some("31198570044"), "1337", "paid", 1),
        order("01AC-second", "B7K4-2MNP", Some("PO 2017/Smith"), "household-1337", "shipped", 2),
        order("01AD-third", "XY22-3456", None, "né # 7", "paid", 3),
    ];
    let engine = Engine::start().await;
    let writes = orders.iter().map(|order| BulkOperation::index(document_id(&order.id, "ORDER"), 1, order).unwrap());
    engine.write(&writes.collect::<Vec<_>>()).await;
    let found = async |words: &str| {
        let query = OrderQuery { text: SearchText::parse(words).unwrap(), size: 10, after: None };
        let page = engine.client.search_orders(&query).await.unwrap();
        page.hits.into_iter().map(|hit| hit.document.id).collect::<Vec<_>>()
    };
    for (words, expected) in [
        ("", &["01AD-third", "01AC-second", "01AB-first"][..]),
        ("paid", &["01AD-third", "01AB-first"]),
        ("PAI", &["01AD-third", "01AB-first"]),
        ("1337", &["01AC-second", "01AB-first"]),
        ("01ab-first", &["01AB-first"]),
        ("01a", &["01AD-third", "01AC-second", "01AB-first"]),
        ("b7k3-9qxd", &["01AB-first"]),
        ("B7K", &["01AC-second", "01AB-first"]),
        ("3119857", &["01AB-first"]),
        ("po 2017/sm", &["01AC-second"]),
        ("smith shipped", &["01AC-second"]),
        ("smith paid", &[]),
        ("né # 7", &["01AD-third"]),
        ("*", &[]),
    ] {
        assert_eq!(found(words).await, expected, "{words}");
    }
    let query = OrderQuery { size: 2, ..OrderQuery::default() };
    let first = engine.client.search_orders(&query).await.unwrap();
    let rest = OrderQuery { after: first.end().cloned(), ..query };
    let rest = engine.client.search_orders(&rest).await.unwrap();
    assert_eq!(rest.hits[0].document, orders[0]);
    assert_eq!((first.total, rest.total, rest.hits.len()), (3, 3, 1));
}

#[tokio::test]
async fn a_large_bulk_request_has_an_outcome_for_each_operation() {
    let engine = Engine::start().await;
    let operations: Vec<_> =
        (0..2_500).map(|n| write(&product(&n.to_string(), "name", "brand", &["c"], n), 1)).collect();
    engine.write(&operations).await;
    assert_eq!(engine.client.count(Collection::Products).await.unwrap(), 2_500);
}
