use search_index::{
    BulkOperation, BulkOutcome, Collection, Kind, ProductDocument, PurgePage, SearchError, document_id,
};
use serde_json::json;

use super::engine::{Engine, key, product, remove, shop, write};

const PRODUCTS: Collection = Collection::Products;

fn removed_at(id: &str, rev: u64, at: &str) -> BulkOperation {
    BulkOperation::tombstone(PRODUCTS, key(id), rev, at).unwrap()
}

#[tokio::test]
async fn documents_and_tombstones_are_read_in_bulk_as_they_were_written_last() {
    let engine = Engine::with_products(&shop()).await;
    let client = &engine.client;
    let gone = remove("milk", 9);
    client.bulk(std::slice::from_ref(&gone)).await.unwrap();
    let many: Vec<_> = (0..600).map(|n| product(&format!("n{n}"), "name", "brand", &["c"], n)).collect();
    client.bulk(&many.iter().map(|product| write(product, 2)).collect::<Vec<_>>()).await.unwrap();
    let mut ids = vec![key("milk"), key("nothing"), key("ice")];
    ids.extend(many.iter().map(|product| key(&product.id)));
    let stored = client.stored(PRODUCTS, &ids).await.unwrap();
    assert_eq!(stored.len(), ids.len());
    let tombstone = stored[0].clone().unwrap();
    assert!(tombstone.is_tombstone());
    assert_eq!((tombstone.rev, tombstone.deleted_at()), (9, Some("2017-01-02T00:00:00.000Z")));
    assert_eq!(stored[1], None);
    let ice = stored[2].clone().unwrap();
    assert_eq!(ice.document::<ProductDocument>().unwrap().document, Some(shop()[0].clone()));
    assert!(stored[3..].iter().all(|stored| stored.as_ref().is_some_and(|stored| stored.rev == 2)));
    assert_eq!(client.stored(PRODUCTS, &[]).await.unwrap(), []);
}

#[tokio::test]
async fn a_difference_is_named_field_by_field() {
    let engine = Engine::with_products(&shop()).await;
    let stored = |id: &'static str| {
        let client = engine.client.clone();
        async move { client.stored(PRODUCTS, &[key(id)]).await.unwrap().remove(0).unwrap() }
    };
    let ice = stored("ice").await;
    let other = ProductDocument { price_amount: 1, in_stock: false, ..shop()[0].clone() };
    let none: [&str; 0] = [];
    assert_eq!(ice.differences(&write(&shop()[0], 1)).unwrap(), none);
    assert_eq!(ice.differences(&write(&other, 1)).unwrap(), ["in_stock", "price_amount"]);
    assert_eq!(ice.differences(&write(&shop()[0], 2)).unwrap(), ["rev"]);
    assert!(ice.differences(&remove("ice", 1)).unwrap().contains(&"deleted".to_owned()));
    // This write goes directly to the index, without `SearchClient`.
    let action = json!({"index": {"_index": format!("{}-products-v1", engine.prefix), "_id": key("rice")}});
    engine.send_lines(format!("{action}\n{}\n", json!({"id": "rice"}))).await;
    let rice = stored("rice").await;
    assert!(rice.differences(&write(&shop()[1], 1)).unwrap().contains(&"name".to_owned()));
    assert!(matches!(rice.document::<ProductDocument>(), Err(SearchError::Answer(_))));
    engine.write(&[removed_at("soap", 3, "2017-01-05T00:00:00.000Z")]).await;
    assert_eq!(
        stored("soap").await.differences(&remove("soap", 3)).unwrap(),
        none,
        "the time of the deletion is not compared"
    );
}

#[tokio::test]
async fn paging_returns_each_document_and_each_tombstone_once() {
    let engine = Engine::start().await;
    let client = &engine.client;
    let live: Vec<_> = (0..23).map(|n| product(&n.to_string(), "name", "brand", &["c"], n)).collect();
    let mut operations: Vec<_> = live.iter().map(|product| write(product, 1)).collect();
    operations.extend((0..17).map(|n| removed_at(&format!("gone-{n}"), 2, "2017-01-02T00:00:00.000Z")));
    engine.write(&operations).await;
    for (kind, expected) in [(Kind::Live, 23), (Kind::Tombstones, 17)] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = client.documents(PRODUCTS, kind, 5, after.as_ref()).await.unwrap();
            assert!(page.items.iter().all(|item| item.stored.is_tombstone() == (kind == Kind::Tombstones)));
            seen.extend(page.items.into_iter().map(|item| item.document_id));
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!(seen.len(), expected);
        assert!(seen.is_sorted(), "{kind:?}");
        seen.dedup();
        assert_eq!(seen.len(), expected);
    }
}

#[tokio::test]
async fn old_tombstones_are_purged_and_young_tombstones_are_kept() {
    let engine = Engine::with_products(&shop()).await;
    let client = &engine.client;
    engine
        .write(&[
            removed_at("ice", 2, "2017-01-01T00:00:00.000Z"),
            removed_at("rice", 2, "2017-01-02T00:00:00.000Z"),
            removed_at("milk", 2, "2017-01-03T00:00:00.000Z"),
            removed_at("soap", 2, "2017-01-03T00:00:00.001Z"),
        ])
        .await;
    let before = "2017-01-03T00:00:00.001Z";
    let first = client.purge_tombstones(PRODUCTS, before, 2, None).await.unwrap();
    assert_eq!((first.found, first.purged), (2, 2));
    let rest = client.purge_tombstones(PRODUCTS, before, 2, first.next.as_ref()).await.unwrap();
    assert_eq!(rest, PurgePage { found: 1, purged: 1, replaced: 0, failed: 0, next: None });
    client.refresh().await.unwrap();
    let again = client.purge_tombstones(PRODUCTS, before, 100, None).await.unwrap();
    assert_eq!(again.found, 0);
    let keys = ["ice", "rice", "milk", "soap", "chocolate"].map(key);
    let left: Vec<_> = client.stored(PRODUCTS, &keys).await.unwrap().into_iter().map(|s| s.is_some()).collect();
    assert_eq!(left, [false, false, false, true, true]);
    assert!(client.purge_tombstones(PRODUCTS, "yesterday", 100, None).await.is_err());
}

#[tokio::test]
async fn a_document_that_came_back_survives_the_purge() {
    let engine = Engine::with_products(&shop()).await;
    let client = &engine.client;
    engine.write(&[remove("ice", 2), remove("rice", 2), remove("milk", 2)]).await;
    // An engine may show the next two writes late. Then the purge's search still finds the
    // tombstones.
    let back = ProductDocument { version: 3, ..shop()[0].clone() };
    // The second document has the same `rev` as its tombstone, which only a manual repair can
    // cause.
    let outcomes = client.bulk(&[write(&back, 3), write(&shop()[1], 2)]).await.unwrap();
    assert_eq!(outcomes, [BulkOutcome::Applied, BulkOutcome::Applied]);
    let page = client.purge_tombstones(PRODUCTS, "2018-01-01T00:00:00.000Z", 100, None).await.unwrap();
    assert_eq!(page.purged, 1, "{page:?}");
    assert_eq!((page.found - page.replaced, page.failed), (1, 0), "{page:?}");
    let stored = client.stored(PRODUCTS, &["ice", "rice", "milk"].map(key)).await.unwrap();
    let ice = stored[0].clone().unwrap().document::<ProductDocument>().unwrap();
    assert_eq!((ice.rev, ice.document), (3, Some(back)));
    assert!(!stored[1].as_ref().unwrap().is_tombstone());
    assert_eq!(stored[2], None);
}

#[tokio::test]
async fn an_engine_remembers_the_version_of_a_deleted_document_only_for_a_while() {
    let engine = Engine::with_products(&shop()).await;
    let client = &engine.client;
    engine.write(&[remove("ice", 5)]).await;
    client.purge_tombstones(PRODUCTS, "2018-01-01T00:00:00.000Z", 100, None).await.unwrap();
    assert_eq!(client.bulk(&[write(&shop()[0], 4)]).await.unwrap(), [BulkOutcome::Stale]);
    assert_eq!(client.bulk(&[write(&shop()[0], 7)]).await.unwrap(), [BulkOutcome::Applied]);
}

#[tokio::test]
async fn a_probe_of_the_engine_leaves_no_document() {
    let engine = Engine::with_products(&shop()).await;
    let client = &engine.client;
    for _ in 0..2 {
        let support = client.probe().await.unwrap();
        assert!(support.require_alias && support.conditional_delete && support.refresh, "{support:?}");
    }
    let (one, other) = tokio::join!(client.probe(), client.probe());
    one.unwrap();
    other.unwrap();
    client.refresh().await.unwrap();
    assert_eq!(client.documents(PRODUCTS, Kind::Tombstones, 10, None).await.unwrap().items, []);
    assert_eq!(client.stored(PRODUCTS, &[document_id("probe", "")]).await.unwrap(), [None]);
    let (_, aliases) = engine.send("GET", &format!("/{}-probe-*", engine.prefix), &json!({})).await;
    assert_eq!(aliases, json!({}));
}

#[tokio::test]
async fn a_probe_without_the_indices_fails() {
    let engine = Engine::without_indices().await;
    assert!(matches!(engine.client.probe().await, Err(SearchError::Unsupported(_))));
}

/// Sends deletions to `_bulk` without `SearchClient`.
#[tokio::test]
async fn each_deletion_gets_the_status_that_opensearch_documents() {
    let engine = Engine::with_products(&shop()).await;
    let index = format!("{}-products-v1", engine.prefix);
    let delete = |id: &str, condition: serde_json::Value| {
        let mut action = json!({"_index": index, "_id": key(id)});
        action.as_object_mut().unwrap().extend(condition.as_object().unwrap().clone());
        format!("{}\n", json!({"delete": action}))
    };
    let external = |version: u64| json!({"version": version, "version_type": "external_gte"});
    let body: String = [
        delete("ice", external(0)),
        delete("ice", external(1)),
        delete("ice", external(1)),
        delete("nothing", external(1)),
        delete("rice", json!({"if_seq_no": 1_000_000, "if_primary_term": 1})),
        delete("nothing", json!({"if_seq_no": 0, "if_primary_term": 1})),
        delete("milk", json!({})),
        delete("milk", json!({})),
        format!(
            "{}\n",
            json!({"delete": {"_index": format!("{index}-no"), "_id": "1", "if_seq_no": 0, "if_primary_term": 1}})
        ),
    ]
    .concat();
    let answer = engine.send_lines(body).await;
    let items = answer["items"].as_array().unwrap();
    let statuses: Vec<_> = items.iter().map(|item| item["delete"]["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [409, 200, 404, 404, 409, 409, 200, 404, 404]);
    assert_eq!(items[1]["delete"]["_version"], 1);
    assert_eq!(items[6]["delete"]["_version"], 2);
    assert_eq!(items[8]["delete"]["error"]["type"], "index_not_found_exception");
}
