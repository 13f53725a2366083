//! Tests the rebuild of an index with concurrent readers and writers, on any engine. No reader may
//! see an incomplete index, and no write may be lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use search_index::{BulkOperation, BulkOutcome, Collection, Kind, ProductDocument, Rebuild, SearchClient, SearchError};
use serde_json::{Value, json};

use super::engine::{Engine, key, product, remove, shop, write};

const PRODUCTS: Collection = Collection::Products;

async fn backfill(client: &SearchClient, rebuild: &Rebuild, items: &[(ProductDocument, u64)]) {
    let operations: Vec<_> = items.iter().map(|(product, rev)| write(product, *rev)).collect();
    let outcomes = client.bulk_into(rebuild.new_index(), &operations).await.unwrap();
    assert!(outcomes.iter().all(BulkOutcome::is_durable), "{outcomes:?}");
}

fn named(id: &str, name: &str) -> ProductDocument {
    product(id, name, "brand", &["c"], 1)
}

/// Returns each index's number, whether searches read it, and whether changes are written to it.
async fn layout(client: &SearchClient) -> Vec<(u64, bool, bool)> {
    let indices = client.indices(PRODUCTS).await.unwrap();
    indices.into_iter().map(|index| (index.number, index.read, index.written)).collect()
}

async fn rev_in(client: &SearchClient, index: &str, id: &str) -> Option<u64> {
    client.stored_in(index, &[key(id)]).await.unwrap().remove(0).map(|stored| stored.rev)
}

#[tokio::test]
async fn case_26_readers_never_see_an_empty_or_half_index_during_a_rebuild() {
    let engine = Engine::start().await;
    let items: Vec<_> = (0..300).map(|n| (named(&n.to_string(), "name"), 1)).collect();
    engine.write(&items.iter().map(|(product, rev)| write(product, *rev)).collect::<Vec<_>>()).await;
    let client = engine.client.clone();
    let stop = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn({
        let (client, stop) = (client.clone(), stop.clone());
        async move {
            let mut counts = Vec::new();
            while !stop.load(Ordering::Relaxed) || counts.len() <= 3 {
                counts.push(client.count(PRODUCTS).await.unwrap());
            }
            counts
        }
    });
    for _ in 0..3 {
        let rebuild = client.begin_rebuild(PRODUCTS).await.unwrap();
        for part in items.chunks(100) {
            backfill(&client, &rebuild, part).await;
        }
        client.finish_rebuild(&rebuild).await.unwrap();
        client.delete_index(rebuild.old()).await.unwrap();
    }
    assert_eq!(client.count(PRODUCTS).await.unwrap(), 300);
    stop.store(true, Ordering::Relaxed);
    let counts = reader.await.unwrap();
    assert!(counts.iter().all(|count| *count == 300), "{counts:?}");
    assert_eq!(layout(&client).await, [(4, true, true)]);
}

#[tokio::test]
async fn writes_during_a_rebuild_are_in_both_indices_and_older_backfill_does_not_undo_them() {
    let engine = Engine::with_products(&shop()).await;
    let client = &engine.client;
    let rebuild = client.begin_rebuild(PRODUCTS).await.unwrap();
    assert_eq!(layout(client).await, [(1, true, true), (2, false, true)]);
    let outcomes = client.bulk(&[write(&named("ice", "new"), 5), remove("milk", 7)]).await.unwrap();
    assert_eq!(outcomes, [BulkOutcome::Applied, BulkOutcome::Applied]);
    for index in [rebuild.old(), rebuild.new_index()] {
        assert_eq!(rev_in(client, index, "ice").await, Some(5), "{index}");
        assert_eq!(rev_in(client, index, "milk").await, Some(7), "{index}");
    }
    let read_before: Vec<_> = shop().into_iter().map(|product| (product, 1)).collect();
    backfill(client, &rebuild, &read_before).await;
    client.finish_rebuild(&rebuild).await.unwrap();
    client.finish_rebuild(&rebuild).await.unwrap();
    assert_eq!(layout(client).await, [(1, false, false), (2, true, true)]);
    assert_eq!(client.count(PRODUCTS).await.unwrap(), 4);
    let stored = client.get::<ProductDocument>(&key("ice")).await.unwrap().unwrap();
    assert_eq!((stored.rev, stored.document), (5, Some(named("ice", "new"))));
    client.bulk(&[write(&named("ice", "newer"), 6)]).await.unwrap();
    assert_eq!(rev_in(client, rebuild.old(), "ice").await, Some(5));
}

#[tokio::test]
async fn a_rebuild_loses_no_write_of_concurrent_writers() {
    let engine = Engine::with_products(&[]).await;
    let client = engine.client.clone();
    let stop = Arc::new(AtomicBool::new(false));
    // The writer writes the same 20 ids again and again with a rising `rev`. At the end, the index
    // must have the last `rev` of each id.
    let writer = tokio::spawn({
        let (client, stop) = (client.clone(), stop.clone());
        async move {
            let mut rev = 0;
            while !stop.load(Ordering::Relaxed) {
                rev += 1;
                let batch: Vec<_> = (0..20).map(|id| write(&named(&id.to_string(), &rev.to_string()), rev)).collect();
                let outcomes = client.bulk(&batch).await.unwrap();
                assert!(outcomes.iter().all(|outcome| *outcome == BulkOutcome::Applied), "{outcomes:?}");
            }
            rev
        }
    });
    for _ in 0..4 {
        let rebuild = client.begin_rebuild(PRODUCTS).await.unwrap();
        let items: Vec<_> = (0..20).map(|id| (named(&id.to_string(), "read before"), 1)).collect();
        backfill(&client, &rebuild, &items).await;
        client.finish_rebuild(&rebuild).await.unwrap();
        client.delete_index(rebuild.old()).await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    let last = writer.await.unwrap();
    let ids: Vec<_> = (0..20).map(|id| key(&id.to_string())).collect();
    let stored = client.stored(PRODUCTS, &ids).await.unwrap();
    assert!(stored.iter().all(|stored| stored.as_ref().is_some_and(|stored| stored.rev == last)), "{stored:?}");
    assert_eq!(layout(&client).await, [(5, true, true)], "a write created an index");
}

#[tokio::test]
async fn a_rebuild_that_was_interrupted_is_found_and_resumed() {
    let engine = Engine::with_products(&shop()).await;
    let begun = engine.client.begin_rebuild(PRODUCTS).await.unwrap();
    // This client represents another process, which starts after a crash.
    let client = engine.client.clone();
    assert!(matches!(
        client.begin_rebuild(PRODUCTS).await,
        Err(SearchError::RebuildInProgress { collection: "products" })
    ));
    client.ensure_indices().await.unwrap();
    let found = client.rebuild_in_progress(PRODUCTS).await.unwrap().unwrap();
    assert_eq!(found, begun);
    assert_eq!(client.rebuild_in_progress(Collection::Orders).await.unwrap(), None);
    backfill(&client, &found, &shop().into_iter().map(|product| (product, 1)).collect::<Vec<_>>()).await;
    client.finish_rebuild(&found).await.unwrap();
    assert_eq!(client.rebuild_in_progress(PRODUCTS).await.unwrap(), None);
    assert_eq!(client.count(PRODUCTS).await.unwrap(), 5);
}

#[tokio::test]
async fn a_rebuild_that_was_interrupted_can_be_abandoned() {
    let engine = Engine::with_products(&shop()).await;
    let client = &engine.client;
    let rebuild = client.begin_rebuild(PRODUCTS).await.unwrap();
    client.abandon_rebuild(&rebuild).await.unwrap();
    client.abandon_rebuild(&rebuild).await.unwrap();
    assert_eq!(layout(client).await, [(1, true, true)]);
    // A backfill that does not know of the abandonment writes to no index, and cannot finish the
    // rebuild.
    let outcomes = client.bulk_into(rebuild.new_index(), &[write(&shop()[0], 1)]).await.unwrap();
    assert!(matches!(outcomes[..], [BulkOutcome::Rejected { status: 404, .. }]), "{outcomes:?}");
    assert!(matches!(client.finish_rebuild(&rebuild).await, Err(SearchError::Request(_))));
    assert_eq!(layout(client).await, [(1, true, true)]);
    assert_eq!(client.count(PRODUCTS).await.unwrap(), 5);
    assert_eq!(client.bulk(&[write(&shop()[0], 2)]).await.unwrap(), [BulkOutcome::Applied]);
    let finished = client.begin_rebuild(PRODUCTS).await.unwrap();
    client.finish_rebuild(&finished).await.unwrap();
    assert!(matches!(client.abandon_rebuild(&finished).await, Err(SearchError::Request(_))));
}

#[tokio::test]
async fn only_one_of_two_concurrent_rebuilds_begins() {
    let engine = Engine::start().await;
    let (one, other) = tokio::join!(engine.client.begin_rebuild(PRODUCTS), engine.client.begin_rebuild(PRODUCTS));
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    assert_eq!(layout(&engine.client).await.len(), 2);
}

#[tokio::test]
async fn an_index_in_use_is_not_deleted() {
    let engine = Engine::start().await;
    let client = &engine.client;
    let rebuild = client.begin_rebuild(PRODUCTS).await.unwrap();
    for index in [rebuild.old(), rebuild.new_index(), &engine.prefix, "*", "other-products-v1"] {
        assert!(matches!(client.delete_index(index).await, Err(SearchError::Request(_))), "{index}");
    }
    client.finish_rebuild(&rebuild).await.unwrap();
    client.delete_index(rebuild.old()).await.unwrap();
    client.delete_index(rebuild.old()).await.unwrap();
    assert_eq!(layout(client).await, [(2, true, true)]);
}

#[tokio::test]
async fn a_lost_write_alias_is_restored() {
    let engine = Engine::with_products(&shop()).await;
    let index = engine.client.indices(PRODUCTS).await.unwrap().remove(0);
    let write_alias = index.aliases.iter().find(|alias| alias.contains("write")).unwrap();
    let actions = json!({"actions": [{"remove": {"index": index.name, "alias": write_alias}}]});
    assert_eq!(engine.send("POST", "/_aliases", &actions).await.0, 200);
    let outcomes = engine.client.bulk(&[write(&shop()[0], 2)]).await.unwrap();
    assert!(matches!(outcomes[..], [BulkOutcome::Rejected { status: 404, .. }]), "{outcomes:?}");
    engine.client.ensure_indices().await.unwrap();
    assert_eq!(layout(&engine.client).await, [(1, true, true)]);
    assert_eq!(engine.client.bulk(&[write(&shop()[0], 2)]).await.unwrap(), [BulkOutcome::Applied]);
    assert_eq!(engine.client.count(PRODUCTS).await.unwrap(), 5);
}

const PRODUCTS_INDEX: &str = include_str!("../../../../../shared/search-index/src/indices/products.json");

/// Creates an index that lacks some of the current fields, as before a change of the mapping.
async fn make_old_index(engine: &Engine, brand: Value) {
    let mut body: Value = serde_json::from_str(PRODUCTS_INDEX).unwrap();
    let properties = body["mappings"]["properties"].as_object_mut().unwrap();
    properties.retain(|name, _| !matches!(name.as_str(), "document_id" | "in_stock" | "rating_sum" | "rating_count"));
    properties.insert("brand".to_owned(), brand);
    body["aliases"] = json!({format!("{}-products", engine.prefix): {}});
    assert_eq!(engine.send("PUT", &format!("/{}-products-v1", engine.prefix), &body).await.0, 200);
}

#[tokio::test]
async fn a_mapping_that_changed_takes_effect_with_a_rebuild() {
    let engine = Engine::without_indices().await;
    make_old_index(&engine, json!({"type": "long"})).await;
    let client = &engine.client;
    client.ensure_indices().await.unwrap();
    let outcomes = client.bulk(&[write(&shop()[0], 1)]).await.unwrap();
    assert!(matches!(outcomes[..], [BulkOutcome::Rejected { status: 400, .. }]), "{outcomes:?}");
    let rebuild = client.begin_rebuild(PRODUCTS).await.unwrap();
    // If one of the two indices rejects a write, the client reports the write as rejected. The
    // other index stores the write anyway.
    let outcomes = client.bulk(&[write(&shop()[0], 1)]).await.unwrap();
    assert!(matches!(outcomes[..], [BulkOutcome::Rejected { status: 400, .. }]), "{outcomes:?}");
    assert_eq!(rev_in(client, rebuild.new_index(), "ice").await, Some(1));
    client.finish_rebuild(&rebuild).await.unwrap();
    assert_eq!(client.bulk(&[write(&shop()[0], 2)]).await.unwrap(), [BulkOutcome::Applied]);
    assert_eq!(engine.client.count(PRODUCTS).await.unwrap(), 1);
}

#[tokio::test]
async fn new_fields_are_added_to_the_index_in_use_and_its_documents_are_kept() {
    let engine = Engine::without_indices().await;
    let today: Value = serde_json::from_str(PRODUCTS_INDEX).unwrap();
    make_old_index(&engine, today["mappings"]["properties"]["brand"].clone()).await;
    let action = json!({"index": {"_index": format!("{}-products-v1", engine.prefix), "_id": key("old")}});
    engine.send_lines(format!("{action}\n{}\n", json!({"id": "old", "brand": "b", "version": 1}))).await;
    let old = format!("/{}-products-v1/_mapping", engine.prefix);
    let fields = json!({"properties": {"rating_sum": {"type": "long"}, "in_stock": {"type": "boolean"}}});
    assert_eq!(engine.send("PUT", &old, &fields).await.0, 200);
    assert_eq!(engine.send("PUT", &old, &fields).await.0, 200);
    assert_eq!(engine.send("PUT", &old, &json!({"properties": {"in_stock": {"type": "long"}}})).await.0, 400);
    engine.client.ensure_indices().await.unwrap();
    let tombstone = remove("soap", 4);
    engine.write(std::slice::from_ref(&tombstone)).await;
    let stored = engine.client.stored(PRODUCTS, &[key("soap")]).await.unwrap().remove(0).unwrap();
    assert!(stored.is_tombstone());
    assert_eq!(stored.differences(&tombstone).unwrap(), Vec::<String>::new());
    assert_eq!(engine.client.count(PRODUCTS).await.unwrap(), 1);
    let listed = engine.client.list(PRODUCTS, 10, None).await.unwrap();
    assert_eq!(listed.items[0].id, "old");
}

#[tokio::test]
async fn tombstones_are_copied_to_the_new_index_unless_it_has_a_newer_document() {
    let engine = Engine::with_products(&shop()).await;
    let client = &engine.client;
    let old: Vec<_> = ["ice", "rice", "milk", "soap"].iter().map(|id| remove(id, 4)).collect();
    client.bulk(&old).await.unwrap();
    let rebuild = client.begin_rebuild(PRODUCTS).await.unwrap();
    client.bulk(&[write(&named("soap", "again"), 5)]).await.unwrap();
    backfill(client, &rebuild, &[(shop()[3].clone(), 1)]).await;
    let (mut after, mut copied, mut pages) = (None, 0, 0);
    loop {
        let page = client.copy_tombstones(&rebuild, 2, after.as_ref()).await.unwrap();
        assert_eq!(page.failed, 0);
        (copied, pages) = (copied + page.copied, pages + 1);
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    assert_eq!((copied, pages), (3, 2));
    client.finish_rebuild(&rebuild).await.unwrap();
    assert_eq!(client.count_in(rebuild.new_index(), Kind::Live).await.unwrap(), 2);
    assert_eq!(client.count_in(rebuild.new_index(), Kind::Tombstones).await.unwrap(), 3);
    assert_eq!(client.bulk(&[write(&shop()[0], 3)]).await.unwrap(), [BulkOutcome::Stale]);
}

#[tokio::test]
async fn a_late_write_does_not_create_a_deleted_index_again() {
    let engine = Engine::with_products(&shop()).await;
    let client = &engine.client;
    let index = client.indices(PRODUCTS).await.unwrap().remove(0).name;
    assert_eq!(engine.send("DELETE", &format!("/{index}"), &Value::Null).await.0, 200);
    for outcomes in
        [client.bulk(&[write(&shop()[0], 2)]).await, client.bulk_into(&index, &[write(&shop()[0], 2)]).await]
    {
        assert!(matches!(outcomes.unwrap()[..], [BulkOutcome::Rejected { status: 404, .. }]));
    }
    assert_eq!(layout(client).await, []);
}

#[tokio::test]
async fn operations_of_both_collections_go_to_all_their_indices() {
    let engine = Engine::with_products(&shop()).await;
    let client = &engine.client;
    let rebuild = client.begin_rebuild(Collection::Orders).await.unwrap();
    let order = |rev| BulkOperation::tombstone(Collection::Orders, key("o"), rev, "2017-01-02T00:00:00.000Z").unwrap();
    let outcomes = client.bulk(&[order(3), write(&shop()[0], 2), order(2)]).await.unwrap();
    assert_eq!(outcomes, [BulkOutcome::Applied, BulkOutcome::Applied, BulkOutcome::Stale]);
    assert_eq!(client.bulk(&[]).await.unwrap(), []);
    for index in [rebuild.old(), rebuild.new_index()] {
        assert_eq!(rev_in(client, index, "o").await, Some(3), "{index}");
    }
    let other = client.bulk_into(rebuild.new_index(), &[write(&shop()[0], 2)]).await;
    assert!(matches!(other, Err(SearchError::Request(_))));
}
