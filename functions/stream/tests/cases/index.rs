//! Tests of the search index: no schedule of deliveries loses, restores or falsifies a document.

mod spoilt;

use std::sync::Arc;
use std::time::Duration;

use emulators::search::{Fault, FaultKind};
use futures::future::BoxFuture;
use key_schema::item::Stored;
use key_schema::money::{Currency, Money};
use key_schema::order::OrderStatus;
use key_schema::product::Product;
use key_schema::variant::Options;
use search_index::{
    BulkOperation, BulkOutcome, OrderDocument, ProductDocument, SearchClient, SearchError, document_id,
};
use serde_json::{Value, json};
use stream::ports::Index;
use stream::search::Search;
use stream::sink::Sink;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::engine::{Engine, ScriptedEngine};
use crate::support::{Scripted, consumer, earliest, event, insert, modify, order, product, remove, retired};

/// Runs batches one after the other. Each must succeed.
async fn deliver(engine: &Engine, batches: &[&[Value]]) {
    let (consumer, shelf) = consumer([engine.sink().await]);
    for batch in batches {
        assert_eq!(earliest(&consumer, batch).await, None);
    }
    assert_eq!(shelf.kept(), []);
}

/// Returns the rev and the name of a product in the index. A tombstone has no name.
async fn indexed(engine: &Engine, product: &Stored<Product>) -> (u64, Option<String>) {
    let stored = engine.document::<ProductDocument, _>(product).await.unwrap();
    (stored.rev, stored.document.map(|document| document.name))
}

#[tokio::test]
async fn a_product_is_found_with_the_fields_of_its_item() {
    let engine = Engine::start().await;
    deliver(&engine, &[&[insert("1", &product("p1", 1))]]).await;
    let stored = engine.document::<ProductDocument, _>(&product("p1", 1)).await.unwrap();
    let document = stored.document.unwrap();
    assert_eq!((document.id.as_str(), document.price_amount, document.version), ("p1", 129, 1));
    assert_eq!(document.category, ["GROCERY", "GROCERY~FRZN_20ICE"]);
    assert_eq!(engine.products().await, [("p1".to_owned(), 1)]);
}

#[tokio::test]
async fn a_variant_is_found_by_its_options_in_the_group_of_its_parent() {
    let engine = Engine::start().await;
    let mut variant = product("p1", 1);
    let options = [("size", "M"), ("colour", "red")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    variant.data.parent = Some("shirt".parse().unwrap());
    variant.data.options = Some(Options::new(options.into()).unwrap());
    let mut parent = product("shirt", 1);
    parent.data.variants = Some(1);
    let mut childless = product("coat", 1);
    childless.data.variants = Some(0);
    deliver(&engine, &[&[insert("1", &variant), insert("2", &parent), insert("3", &childless)]]).await;
    for (product, group, options, has_variants) in
        [(&variant, "shirt", &["red", "M"][..], false), (&parent, "shirt", &[], true), (&childless, "coat", &[], true)]
    {
        let document = engine.document::<ProductDocument, _>(product).await.unwrap().document.unwrap();
        assert_eq!((&*document.group, document.has_variants), (group, has_variants));
        assert_eq!(
            (document.options, document.parent),
            (
                options.iter().map(ToString::to_string).collect::<Vec<_>>(),
                product.parent.as_ref().map(ToString::to_string),
            )
        );
    }
}

#[tokio::test]
async fn an_order_is_found_once_it_is_visible() {
    let engine = Engine::start().await;
    let placing = order("o1", OrderStatus::Placing, 1, 2);
    let pending = order("o1", OrderStatus::Pending, 2, 2);
    deliver(&engine, &[&[insert("1", &placing)]]).await;
    let stored = engine.document::<OrderDocument, _>(&placing).await.unwrap();
    assert_eq!((stored.rev, stored.document), (1, None));
    deliver(&engine, &[&[modify("2", &placing, &pending)], &[insert("1", &placing)]]).await;
    let document = engine.document::<OrderDocument, _>(&pending).await.unwrap().document.unwrap();
    assert_eq!((document.status.as_str(), document.line_count, document.total_amount), ("pending", 2, 258));
}

#[tokio::test]
async fn case_11_a_batch_that_is_delivered_twice_leaves_the_same_index() {
    let engine = Engine::start().await;
    let batch = [
        insert("1", &product("a", 1)),
        insert("2", &product("b", 1)),
        modify("3", &product("a", 1), &product("a", 2)),
        modify("4", &product("b", 1), &retired("b", 2)),
    ];
    deliver(&engine, &[&batch]).await;
    let once = engine.products().await;
    deliver(&engine, &[&batch]).await;
    assert_eq!(engine.products().await, once);
    assert_eq!(once, [("a".to_owned(), 2)]);
}

#[tokio::test]
async fn case_12_a_batch_that_is_replayed_after_later_updates_leaves_the_index_equal_to_the_table() {
    let engine = Engine::start().await;
    let history: Vec<Value> = (1..=6)
        .flat_map(|rev| {
            let change = |id: &str, at: u64| modify(&at.to_string(), &product(id, rev), &product(id, rev + 1));
            [change("a", rev * 2), change("b", rev * 2 + 1)]
        })
        .collect();
    deliver(&engine, &[&history]).await;
    for start in 0..history.len() {
        deliver(&engine, &[&history[start..(start + 3).min(history.len())]]).await;
        assert_eq!(engine.products().await, [("a".to_owned(), 7), ("b".to_owned(), 7)]);
    }
}

#[tokio::test]
async fn case_13_the_items_of_a_transaction_may_arrive_in_any_order() {
    let engine = Engine::start().await;
    let [a, b, c] = [
        insert("1", &product("a", 3)),
        modify("2", &order("o1", OrderStatus::Pending, 1, 1), &order("o1", OrderStatus::Paid, 2, 1)),
        modify("3", &product("a", 3), &product("a", 4)),
    ];
    for order_of_arrival in [[&a, &b, &c], [&a, &c, &b], [&b, &a, &c], [&b, &c, &a], [&c, &a, &b], [&c, &b, &a]] {
        let batch: Vec<Value> = order_of_arrival.into_iter().cloned().collect();
        // All records arrive in one batch, and then each record in a separate batch.
        deliver(&engine, &[&batch]).await;
        deliver(&engine, &[&batch[..1], &batch[1..2], &batch[2..]]).await;
        assert_eq!(indexed(&engine, &product("a", 4)).await, (4, Some("a at rev 4".to_owned())));
        let stored = engine.document::<OrderDocument, _>(&order("o1", OrderStatus::Paid, 2, 1)).await.unwrap();
        assert_eq!((stored.rev, stored.document.unwrap().status.as_str()), (2, "paid"));
    }
}

/// An engine that applies a bulk call and never responds, so that a test can stop the caller.
struct TakesAndDies {
    client: SearchClient,
    taken: Arc<Notify>,
}

impl Index for TakesAndDies {
    fn ensure(&self) -> BoxFuture<'_, Result<(), SearchError>> {
        Box::pin(self.client.ensure_indices())
    }

    fn bulk<'a>(&'a self, operations: &'a [BulkOperation]) -> BoxFuture<'a, Result<Vec<BulkOutcome>, SearchError>> {
        Box::pin(async move {
            let outcomes = self.client.bulk(operations).await?;
            assert!(outcomes.iter().all(|outcome| *outcome == BulkOutcome::Applied), "{outcomes:?}");
            self.taken.notify_one();
            std::future::pending().await
        })
    }
}

#[tokio::test]
async fn case_14_if_a_consumer_crashes_after_its_write_to_the_index_the_retry_changes_no_document() {
    let engine = Engine::start().await;
    let batch = [insert("1", &product("a", 1)), modify("2", &product("b", 1), &retired("b", 2))];
    let taken = Arc::new(Notify::new());
    let dies = TakesAndDies { client: engine.client.clone(), taken: taken.clone() };
    {
        let (consumer, _) = consumer([Box::new(Search::open(dies).await) as Box<dyn Sink>]);
        let event = event(&batch);
        let deadline = Instant::now() + Duration::from_secs(60);
        tokio::select! {
            answer = consumer.take(&event, deadline) => panic!("it answers: {answer:?}"),
            () = taken.notified() => {}
        }
    }
    let documents = async || {
        let a = engine.document::<ProductDocument, _>(&product("a", 1)).await;
        (a, engine.document::<ProductDocument, _>(&product("b", 1)).await, engine.products().await)
    };
    let written = documents().await;
    assert_eq!(written.2, [("a".to_owned(), 1)]);
    deliver(&engine, &[&batch]).await;
    assert_eq!(documents().await, written);
}

#[tokio::test]
async fn case_15_a_stale_insert_long_after_the_removal_does_not_bring_the_document_back() {
    let engine = Engine::start().await;
    let (first, gone) = (product("a", 1), retired("a", 2));
    deliver(&engine, &[&[insert("1", &first)], &[modify("2", &first, &gone)], &[insert("1", &first)]]).await;
    assert_eq!(indexed(&engine, &gone).await, (2, None));
    // A repeated record must not restore an item that an operator removed from the table.
    let removed = product("b", 5);
    deliver(&engine, &[&[insert("3", &removed)], &[remove("4", &removed)], &[insert("3", &removed)]]).await;
    assert_eq!(indexed(&engine, &removed).await, (6, None));
    assert_eq!(engine.products().await, []);
}

#[tokio::test]
async fn case_16_a_product_that_returns_under_its_key_is_found_and_survives_the_old_removal() {
    let engine = Engine::start().await;
    let (first, gone, back) = (product("a", 1), retired("a", 2), product("a", 3));
    let removal = modify("2", &first, &gone);
    deliver(
        &engine,
        &[
            &[insert("1", &first)],
            std::slice::from_ref(&removal),
            &[modify("3", &gone, &back)],
            std::slice::from_ref(&removal),
        ],
    )
    .await;
    assert_eq!(indexed(&engine, &back).await, (3, Some("a at rev 3".to_owned())));
}

#[tokio::test]
async fn case_17_the_highest_version_wins_regardless_of_the_writers_clock() {
    let engine = Engine::start().await;
    let gone = retired("a", 2);
    let mut back = product("a", 3);
    back.meta.created_at = "1999-01-01T00:00:00.000Z".parse().unwrap();
    back.meta.updated_at = back.meta.created_at;
    let mut record = modify("2", &gone, &back);
    record["dynamodb"]["ApproximateCreationDateTime"] = json!(915_148_800);
    deliver(&engine, &[&[insert("1", &gone)], &[record]]).await;
    assert_eq!(engine.products().await, [("a".to_owned(), 3)]);
}

#[tokio::test]
async fn case_18_a_product_stays_removed_when_its_insert_arrives_after_its_removal() {
    let engine = Engine::start().await;
    let (first, gone) = (product("a", 1), retired("a", 2));
    deliver(&engine, &[&[modify("2", &first, &gone)], &[insert("1", &first)]]).await;
    let by_hand = product("b", 1);
    deliver(&engine, &[&[remove("4", &by_hand)], &[insert("3", &by_hand)]]).await;
    // Both records arrive in one batch.
    deliver(&engine, &[&[remove("6", &product("c", 1)), insert("5", &product("c", 1))]]).await;
    assert_eq!(engine.products().await, []);
}

#[tokio::test]
async fn case_19_the_removal_of_a_document_that_is_not_there_succeeds() {
    let engine = Engine::start().await;
    deliver(&engine, &[&[remove("1", &product("never-seen", 4))]]).await;
    assert_eq!(indexed(&engine, &product("never-seen", 4)).await, (5, None));
}

#[tokio::test]
async fn case_20_in_a_mixed_bulk_response_a_429_is_retried_a_400_is_quarantined_and_a_409_is_a_success() {
    let engine = ScriptedEngine::answering(&[&[201, 409, 429, 400], &[200]]);
    let (consumer, shelf) = consumer([engine.sink().await]);
    let batch: Vec<Value> = (1..=4).map(|n| insert(&n.to_string(), &product(&format!("p{n}"), n))).collect();
    assert_eq!(earliest(&consumer, &batch).await, None);
    assert_eq!(engine.requested_revs(), [vec![1, 2, 3, 4], vec![3]]);
    assert_eq!(shelf.sequences(), ["4"]);
    assert_eq!((shelf.kept()[0].consumer.as_str(), shelf.kept()[0].kind), ("search", "index_rejects"));
}

#[tokio::test]
async fn under_lasting_throttling_the_earliest_throttled_record_fails_and_no_record_is_quarantined() {
    let engine = ScriptedEngine::answering(&[&[201, 429, 503], &[429, 503]]);
    let (consumer, shelf) = consumer([engine.sink().await]);
    let batch: Vec<Value> = (1..=3).map(|n| insert(&n.to_string(), &product(&format!("p{n}"), n))).collect();
    assert_eq!(earliest(&consumer, &batch).await.as_deref(), Some("2"));
    assert_eq!(shelf.kept(), []);
}

#[tokio::test]
async fn no_document_is_quarantined_because_its_index_is_missing() {
    let engine = ScriptedEngine::answering(&[&[404], &[403], &[201]]);
    let (consumer, shelf) = consumer([engine.sink().await]);
    let batch = [insert("1", &product("a", 1))];
    assert_eq!(engine.ensured(), 1);
    assert_eq!(earliest(&consumer, &batch).await.as_deref(), Some("1"));
    assert_eq!(earliest(&consumer, &batch).await.as_deref(), Some("1"));
    assert_eq!(earliest(&consumer, &batch).await, None);
    assert_eq!(shelf.kept(), []);
    // The sink checks the indices again after a 404, but not after a 403.
    assert_eq!(engine.ensured(), 2);
}

#[tokio::test]
async fn a_batch_is_one_bulk_call_with_one_operation_for_each_item() {
    let engine = ScriptedEngine::answering(&[&[201, 201]]);
    let (consumer, _) = consumer([engine.sink().await]);
    let batch = [
        insert("1", &product("a", 1)),
        insert("2", &product("b", 1)),
        modify("3", &product("a", 1), &product("a", 2)),
        modify("4", &product("a", 2), &product("a", 3)),
    ];
    assert_eq!(earliest(&consumer, &batch).await, None);
    assert_eq!(engine.requested_revs(), [[3, 1]]);
}

#[tokio::test]
async fn a_failure_names_the_first_merged_record_and_a_refusal_quarantines_the_newest() {
    let batch = [
        insert("1", &product("b", 1)),
        insert("2", &product("a", 1)),
        modify("3", &product("a", 1), &product("a", 2)),
        modify("4", &product("a", 2), &product("a", 3)),
    ];
    let engine = ScriptedEngine::answering(&[&[201, 503], &[503], &[201, 400]]);
    let (consumer, shelf) = consumer([engine.sink().await]);
    assert_eq!(earliest(&consumer, &batch).await.as_deref(), Some("2"));
    assert_eq!(earliest(&consumer, &batch).await, None);
    assert_eq!(shelf.sequences(), ["4"]);
}

#[test]
fn case_21_keys_that_look_alike_have_separate_documents() {
    assert_ne!(document_id("a|b", "c"), document_id("a", "b|c"));
}

#[tokio::test]
async fn case_21_a_number_or_binary_key_of_equal_text_never_reaches_the_document_of_a_string_key() {
    let engine = Engine::start().await;
    let (consumer, shelf) = consumer([engine.sink().await]);
    assert_eq!(earliest(&consumer, &[insert("1", &product("7", 1))]).await, None);
    for (sequence, kind, text) in [("2", "N", "7"), ("3", "B", "UFJPRFVDVCM3")] {
        let mut other = modify(sequence, &product("7", 1), &product("7", 9));
        other["dynamodb"]["Keys"]["PK"] = json!({ kind: text });
        assert_eq!(earliest(&consumer, &[other]).await, None);
    }
    assert_eq!(indexed(&engine, &product("7", 1)).await.0, 1);
    assert_eq!(shelf.sequences(), ["2", "3"]);
}

#[tokio::test]
async fn case_22_a_number_beyond_double_precision_is_indexed_exactly() {
    // No double equals 2^53 + 1.
    for amount in [9_007_199_254_740_993, i64::MAX - 1] {
        let engine = Engine::start().await;
        let mut dear = product("a", 1);
        dear.data.price = Money::new(amount, Currency::USD);
        deliver(&engine, &[&[insert("1", &dear)]]).await;
        let stored = engine.document::<ProductDocument, _>(&dear).await.unwrap();
        assert_eq!(stored.document.unwrap().price_amount, amount);
    }
}

#[tokio::test]
async fn case_23_during_an_outage_of_the_index_other_sinks_continue_and_no_record_is_lost() {
    let engine = Engine::embedded().await;
    let other = Scripted::failing("other", &[]);
    let (consumer, shelf) = consumer([engine.sink().await, other.boxed()]);
    let faults = engine.server.as_ref().unwrap().faults();
    let batch = [insert("1", &product("a", 1)), insert("2", &product("b", 1))];
    for kind in [FaultKind::Error, FaultKind::Throttle, FaultKind::Reset] {
        faults.add(Fault { kind, rate: 1.0, count: None, seed: 0 }).unwrap();
        assert_eq!(earliest(&consumer, &batch).await.as_deref(), Some("1"), "{kind:?}");
        faults.clear();
    }
    assert_eq!(engine.products().await, []);
    assert_eq!(earliest(&consumer, &batch).await, None);
    assert_eq!(engine.products().await, [("a".to_owned(), 1), ("b".to_owned(), 1)]);
    assert_eq!(shelf.kept(), []);
    assert_eq!(other.attempted().len(), 8);
}

#[tokio::test]
async fn a_consumer_that_starts_while_the_engine_is_down_creates_the_index_later() {
    let engine = Engine::embedded().await;
    let faults = engine.server.as_ref().unwrap().faults();
    faults.add(Fault { kind: FaultKind::Error, rate: 1.0, count: None, seed: 0 }).unwrap();
    let (consumer, _) = consumer([engine.sink().await]);
    faults.clear();
    assert_eq!(earliest(&consumer, &[insert("1", &product("a", 1))]).await, None);
    assert_eq!(engine.products().await, [("a".to_owned(), 1)]);
}
