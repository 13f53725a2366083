//! Tests of the copies on a product: a copy replaces the old value, and the newest source wins.

use key_schema::category::CategoryNode;
use key_schema::item::Stored;
use key_schema::product::{self as schema, Copied, ReviewStats, Stock};
use serde_json::Value;

use crate::derived::Shop;
use crate::support::{insert, meta, modify, product, remove};

fn stock(available: u64, sellable: bool, rev: u64) -> Stored<Stock> {
    let data = Stock { sellable, ..Stock::new("p1".parse().unwrap(), available) };
    Stored { meta: meta(rev), data }
}

fn stats(count: u64, sum: u64, rev: u64) -> Stored<ReviewStats> {
    let data = ReviewStats { product_id: "p1".parse().unwrap(), rating_count: count, rating_sum: sum };
    Stored { meta: meta(rev), data }
}

impl Shop {
    async fn copies(&self) -> Copied {
        self.product("p1").await.unwrap().copied
    }

    /// Opens a shop and creates a product with this many pieces.
    async fn with_product(available: u64) -> Self {
        let shop = Self::open().await;
        let nodes: [Stored<CategoryNode>; 0] = [];
        shop.table.transact(&schema::create(&product("p1", 1), available, &nodes).unwrap()).await.unwrap().unwrap();
        let _ = shop.table.meter().take();
        shop
    }
}

/// Returns the changes of a product's stock: reduced, sold out, refilled, sold out, refilled,
/// retired, revived.
fn stocks() -> Vec<Value> {
    let states = [(5, true), (1, true), (0, true), (3, true), (0, true), (9, true), (9, false), (4, true)];
    let states: Vec<_> =
        states.iter().zip(1..).map(|((pieces, sellable), rev)| stock(*pieces, *sellable, rev)).collect();
    let changes = states.windows(2).enumerate();
    changes.map(|(number, pair)| modify(&(number + 2).to_string(), &pair[0], &pair[1])).collect()
}

#[tokio::test]
async fn a_new_product_already_has_its_stock_level_so_the_first_stock_record_writes_no_copy() {
    for (available, in_stock) in [(0, false), (5, true)] {
        let shop = Shop::with_product(available).await;
        shop.deliver(&[&[insert("1", &stock(available, true, 1)), insert("2", &product("p1", 1))]]).await;
        assert!(shop.table.meter().take().is_empty());
        assert_eq!(shop.copies().await, Copied { in_stock, stock_rev: 1, ..Copied::default() });
        assert_eq!(shop.product("p1").await.unwrap().meta.rev, 1);
    }
}

#[tokio::test]
async fn only_a_changed_stock_level_is_copied_and_the_products_version_stays() {
    let shop = Shop::with_product(5).await;
    shop.deliver(&[&[modify("2", &stock(5, true, 1), &stock(4, true, 2))]]).await;
    assert!(shop.table.meter().take().is_empty());
    shop.deliver(&[&[modify("3", &stock(1, true, 2), &stock(0, true, 3))]]).await;
    assert_eq!(shop.copies().await, Copied { in_stock: false, stock_rev: 3, ..Copied::default() });
    let product = shop.product("p1").await.unwrap();
    assert_eq!((product.meta.version, product.meta.rev), (1, 2));
}

#[tokio::test]
async fn the_stock_at_a_further_location_is_not_copied() {
    let elsewhere = |available, rev| {
        let mut stock = stock(available, true, rev);
        stock.data.location = "ulm".parse().unwrap();
        stock
    };
    let shop = Shop::with_product(0).await;
    shop.deliver(&[&[insert("1", &elsewhere(0, 1)), modify("2", &elsewhere(0, 1), &elsewhere(4, 2))]]).await;
    assert!(shop.table.meter().take().is_empty());
    assert!(!shop.copies().await.in_stock);
}

#[tokio::test]
async fn case_11_and_13_copies_end_at_the_newest_state_after_repetitions_and_reordering() {
    for seed in 0..10 {
        let shop = Shop::with_product(5).await;
        let ratings = [(0, 0), (1, 5), (2, 7), (2, 9), (1, 4)].into_iter().zip(0..);
        let ratings: Vec<_> = ratings.map(|((count, sum), rev)| stats(count, sum, rev)).collect();
        let rated = ratings.windows(2).enumerate();
        let mut records: Vec<Value> =
            rated.map(|(number, pair)| modify(&(number + 20).to_string(), &pair[0], &pair[1])).collect();
        records.extend(stocks());
        let mut delivered = [records.clone(), records].concat();
        fastrand::Rng::with_seed(seed).shuffle(&mut delivered);
        let batches: Vec<&[Value]> = delivered.chunks(4).collect();
        shop.deliver(&batches).await;
        let newest = Copied { in_stock: true, stock_rev: 8, rating_count: 1, rating_sum: 4, rating_rev: 4 };
        assert_eq!(shop.copies().await, newest, "seed {seed}");
    }
}

#[tokio::test]
async fn case_12_a_replay_of_old_records_changes_no_copy() {
    let shop = Shop::with_product(5).await;
    let records = stocks();
    shop.deliver(&[&records]).await;
    let (before, rev) = (shop.copies().await, shop.product("p1").await.unwrap().meta.rev);
    shop.deliver(&[&records[..3], &records]).await;
    assert_eq!((shop.copies().await, shop.product("p1").await.unwrap().meta.rev), (before, rev));
}

#[tokio::test]
async fn a_review_that_changes_no_rating_is_not_copied() {
    let shop = Shop::with_product(5).await;
    shop.deliver(&[&[insert("1", &stats(1, 5, 1)), modify("2", &stats(1, 5, 1), &stats(1, 5, 2))]]).await;
    assert_eq!(shop.copies().await.rating_rev, 1);
    let written: u32 = shop.table.meter().take().iter().map(|cost| cost.requests).sum();
    assert_eq!(written, 1 + 1, "one write and one read of the copy");
}

#[tokio::test]
async fn a_missing_product_causes_no_write() {
    let shop = Shop::open().await;
    let removed = [remove("3", &stock(5, true, 1)), remove("4", &stats(1, 5, 1)), remove("5", &product("p1", 1))];
    shop.deliver(&[&stocks(), &[insert("1", &stats(1, 5, 1))], &removed]).await;
    assert_eq!(shop.product("p1").await, None);
}

/// Returns the change of one shard of a stock in two shards.
fn shard(number: u32, before: u64, after: u64, rev: u64) -> Value {
    let shard = |available, rev| {
        let mut shard = stock(available, true, rev);
        (shard.data.shard, shard.data.shards) = (number, Some(2));
        shard
    };
    modify(&(10 * rev + u64::from(number)).to_string(), &shard(before, rev), &shard(after, rev + 1))
}

/// The record of one empty shard says nothing about the others, so the consumer reads all of them.
#[tokio::test]
async fn a_product_is_in_stock_until_all_shards_are_empty_however_often_and_late_a_record_arrives() {
    let shop = Shop::with_product(2).await;
    let id = "p1".parse().unwrap();
    workflows::stock::reshard::<()>(&shop.table, &id, 2).await.unwrap().unwrap();
    let emptied = [shard(0, 1, 0, 2), shard(1, 1, 0, 1)];
    let sell = async |number: u32| {
        let first = shop.table.get(&schema::stock(&id).unwrap()).await.unwrap().unwrap();
        let shards = workflows::stock::shards::<()>(&shop.table, first).await.unwrap();
        let mut sold = shards[usize::try_from(number).unwrap()].clone();
        (sold.data.available, sold.meta.rev) = (0, sold.meta.rev + 1);
        shop.put(&sold).await;
    };
    sell(0).await;
    shop.deliver(&[&[emptied[0].clone()]]).await;
    assert!(shop.copies().await.in_stock);
    sell(1).await;
    shop.deliver(&[&[emptied[0].clone()]]).await;
    assert!(!shop.copies().await.in_stock, "a late record reads the present shards");
    shop.deliver(&[&[emptied[1].clone()], &[emptied[0].clone()]]).await;
    assert!(!shop.copies().await.in_stock);
    // A record from before the split changes nothing.
    shop.deliver(&[&[modify("9", &stock(0, true, 0), &stock(2, true, 1))]]).await;
    assert!(!shop.copies().await.in_stock);
}
