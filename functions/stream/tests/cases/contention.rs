//! Tests of contended counters, on a table that reports transaction conflicts like DynamoDB. The
//! embedded table by itself never reports them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use key_schema::item::FromItem;
use key_schema::key::Key;
use key_schema::order::OrderStatus;
use key_schema::region::{self, SaleRegion};
use key_schema::request::{BatchGet, BatchWrite, BatchWriteAction, Get, Guarded, Query, Single, Transaction, Write};
use key_schema::sales;
use serde_json::Value;
use stream::consumer::Consumer;
use stream::derived::Derived;
use stream::ports::Items;
use stream::sink::Sink;
use table::{Backoff, Page, Refusal, Refusals, Table, TableError};
use tokio::time::Instant;

use crate::derived::Shop;
use crate::support::{consumer, earliest, insert, line, modify, order};

/// A table that cancels conflicting transactions and then retries them like [`Table`].
struct Contended {
    table: Arc<Table>,
    under_way: Arc<Mutex<BTreeSet<Key>>>,
    conflicts: Arc<AtomicUsize>,
    /// Transactions of another consumer. They are applied right before the first `transact`.
    before: Mutex<Vec<Transaction<()>>>,
    /// If set, every transaction is in conflict for this long and then fails.
    stuck: Option<Duration>,
}

impl Contended {
    /// Claims the items for a transaction, unless another transaction has claimed one of them.
    fn claim(&self, keys: &BTreeSet<Key>) -> bool {
        let mut under_way = self.under_way.lock().unwrap();
        let free = under_way.is_disjoint(keys);
        if free {
            under_way.extend(keys.iter().cloned());
        }
        free
    }
}

fn key_of(guarded: &Guarded) -> Key {
    match &guarded.write {
        Write::Put { item } => key_schema::item::key_of(item).unwrap(),
        Write::Update { key, .. } | Write::Delete { key } | Write::Check { key } => key.clone(),
    }
}

impl Items for Contended {
    async fn get<T: FromItem + Send>(&self, get: &Get<T>) -> Result<Option<T>, TableError> {
        self.table.get(get).await
    }

    async fn batch_get<T: FromItem + Clone + Send>(&self, batch: &BatchGet<T>) -> Result<Vec<Option<T>>, TableError> {
        self.table.batch_get(batch).await
    }

    async fn query<T: FromItem + Send>(&self, query: &Query<T>) -> Result<Page<T>, TableError> {
        self.table.query(query).await
    }

    async fn write(&self, write: &Single<()>) -> Result<Result<(), Refusal>, TableError> {
        self.table.write(write).await
    }

    async fn transact<A: Clone + Send + Sync>(
        &self,
        transaction: &Transaction<A>,
    ) -> Result<Result<(), Refusals<A>>, TableError> {
        let before = std::mem::take(&mut *self.before.lock().unwrap());
        for other in before {
            self.table.transact(&other).await.unwrap().unwrap();
        }
        if let Some(stuck) = self.stuck {
            self.conflicts.fetch_add(1, Ordering::Relaxed);
            tokio::time::pause();
            tokio::time::sleep(stuck).await;
            tokio::time::resume();
            return Err(TableError::Contended);
        }
        let keys: BTreeSet<Key> = transaction.actions().iter().map(|(_, guarded)| key_of(guarded)).collect();
        let mut backoff = Backoff::new();
        while !self.claim(&keys) {
            self.conflicts.fetch_add(1, Ordering::Relaxed);
            backoff.after_conflict().await?;
        }
        let done = self.table.transact(transaction).await;
        self.under_way.lock().unwrap().retain(|key| !keys.contains(key));
        done
    }

    async fn batch_write(&self, batch: &BatchWrite) -> Result<Vec<BatchWriteAction>, TableError> {
        self.table.batch_write(batch).await
    }
}

/// Delivers 200 orders for one product in one store to this number of consumers, in equal shares.
/// Each consumer has eight lanes. Returns the number of conflicts.
async fn conflicts(consumers: usize) -> usize {
    let shop = Shop::open().await;
    let mut records: Vec<Value> = Vec::new();
    for number in 1..=200 {
        let order = order(&format!("o{number:03}"), OrderStatus::Pending, 1, 1);
        shop.place(&order).await;
        records.push(insert(&number.to_string(), &order));
    }
    let (under_way, conflicts) = (Arc::default(), Arc::<AtomicUsize>::default());
    let consumers = (0..consumers).map(|_| {
        let (under_way, conflicts) = (Arc::clone(&under_way), conflicts.clone());
        let sink = Derived::new(
            Arc::new(Contended {
                table: shop.table.clone(),
                under_way,
                conflicts,
                before: Mutex::default(),
                stuck: None,
            }),
            8,
        );
        consumer([Box::new(sink) as Box<dyn Sink>]).0
    });
    let consumers: Vec<Consumer> = consumers.collect();
    let shares = consumers.iter().zip(records.chunks(records.len() / consumers.len()));
    let answers = join_all(shares.map(|(consumer, share)| earliest(consumer, share))).await;
    assert!(answers.iter().all(Option::is_none), "every order succeeds within the budget: {answers:?}");
    assert_eq!(shop.sold("p1").await, (200, 200));
    assert_eq!(shop.totals("US").await, ["unknown/online/2017-01-01: 200 for 25800 USD"]);
    conflicts.load(Ordering::Relaxed)
}

#[tokio::test]
async fn the_lanes_of_one_consumer_never_conflict_on_a_counter() {
    assert_eq!(conflicts(1).await, 0);
}

#[tokio::test]
async fn four_consumers_that_change_the_same_counters_all_succeed() {
    assert!(conflicts(4).await > 0, "there were no conflicts");
}

#[tokio::test]
async fn a_consumer_reads_again_if_another_consumer_has_already_written_the_sales_of_an_older_head() {
    let shop = Shop::open().await;
    let (pending, cancelled) = (order("o1", OrderStatus::Pending, 1, 1), order("o1", OrderStatus::Cancelled, 2, 1));
    shop.place(&cancelled).await;
    let counted_at = SaleRegion::of(&pending, None, region::store_of(&pending));
    let late =
        sales::apply(&pending, &[line("o1", 1)], &sales::Derived::default(), counted_at, pending.meta.updated_at)
            .unwrap();
    let (table, before) = (shop.table.clone(), Mutex::new(late));
    let table = Contended { table, under_way: Arc::default(), conflicts: Arc::default(), before, stuck: None };
    let consumer = consumer([Box::new(Derived::new(Arc::new(table), 8)) as Box<dyn Sink>]).0;
    assert_eq!(earliest(&consumer, &[modify("2", &pending, &cancelled)]).await, None);
    assert_eq!(shop.sold("p1").await, (0, 0));
    assert_eq!(shop.totals("US").await, ["unknown/online/2017-01-01: 0 for 0 USD"]);
    assert!(shop.rows("o1").await.values().all(|(_, rev, reversed)| rev == "2" && *reversed));
}

/// The conflict lasts 13 s: the table waits up to 5 s, and its last call takes up to 8 s.
#[tokio::test]
async fn an_order_that_always_conflicts_fails_before_the_functions_deadline() {
    let shop = Shop::open().await;
    let placed = order("o1", OrderStatus::Pending, 1, 1);
    shop.place(&placed).await;
    let (table, conflicts) = (shop.table.clone(), Arc::<AtomicUsize>::default());
    let stuck = Some(Duration::from_secs(13));
    let table =
        Contended { table, under_way: Arc::default(), conflicts: conflicts.clone(), before: Mutex::default(), stuck };
    let consumer = consumer([Box::new(Derived::new(Arc::new(table), 8)) as Box<dyn Sink>]).0;
    let began = Instant::now();
    assert_eq!(earliest(&consumer, &[insert("1", &placed)]).await.as_deref(), Some("1"));
    assert_eq!(conflicts.load(Ordering::Relaxed), 3);
    assert!(began.elapsed() < Duration::from_secs(50), "{:?} of the function's 60 s", began.elapsed());
}
