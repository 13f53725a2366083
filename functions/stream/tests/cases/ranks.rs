//! Tests of the leaderboards: their counts are exact for every behaviour of the stream.

use futures::future::join_all;
use key_schema::entity::AnyEntity;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::leaderboard::{self, Board, DAYS_KEPT, Period, Tally};
use key_schema::like::{self, LikeCount};
use key_schema::order::{Order, OrderStatus};
use key_schema::product;
use serde_json::Value;

use crate::derived::Shop;
use crate::support::{consumer, earliest, insert, meta, modify, order};

const DAY: i64 = 24 * 60 * 60;

impl Shop {
    /// Returns the products of a board with their counts.
    async fn board(&self, board: Board, period: Period) -> Vec<(String, u64)> {
        let found = self.table.query(&leaderboard::top(board, period).unwrap()).await.unwrap().items;
        found.into_iter().map(|rank| (rank.product_id.to_string(), rank.count)).collect()
    }

    /// Returns the stored counts of two products' sales as records, as the stream has them now.
    async fn counts(&self, day: Instant, sequence: &mut u32) -> Vec<Value> {
        let mut records = Vec::new();
        let mut next = || {
            *sequence += 1;
            sequence.to_string()
        };
        for id in ["p1", "p2"].map(|id| id.parse().unwrap()) {
            let days = leaderboard::days(Board::Sales, &id, day).unwrap();
            let tallies = self.table.query(&days).await.unwrap().items;
            records.extend(tallies.iter().map(|tally| insert(&next(), tally)));
            for item in self.table.query(&product::page(&id).unwrap()).await.unwrap().items {
                if let AnyEntity::ProductSales(sales) = item {
                    records.push(insert(&next(), &sales));
                }
            }
        }
        records
    }
}

/// Returns an order that was placed at an instant, with one piece of `p1` and two of `p2`.
fn placed(id: &str, status: OrderStatus, rev: u64, at: Instant) -> Stored<Order> {
    let mut order = order(id, status, rev, 2);
    order.data.placed_at = at;
    order.meta.updated_at = at;
    order
}

fn boards(at: Instant) -> [Period; 3] {
    [Period::day(at), Period::week(at), Period::All]
}

fn counted(counts: &[(&str, u64)]) -> Vec<(String, u64)> {
    counts.iter().map(|(product, count)| ((*product).to_owned(), *count)).collect()
}

/// Places three orders and cancels one. Returns the records of all counts in between.
async fn sell(shop: &Shop, now: Instant) -> Vec<Value> {
    use OrderStatus::{Cancelled, Pending};
    let (mut records, mut sequence) = (Vec::new(), 100);
    let cancelled = placed("b", Cancelled, 2, now);
    let steps = ["a", "b", "c"].map(|id| (placed(id, Pending, 1, now), insert(id, &placed(id, Pending, 1, now))));
    let steps = steps.into_iter().chain([(cancelled.clone(), modify("1", &placed("b", Pending, 1, now), &cancelled))]);
    for (number, (order, record)) in steps.enumerate() {
        shop.place(&order).await;
        let mut record = record;
        record["dynamodb"]["SequenceNumber"] = (number + 1).to_string().into();
        shop.deliver(&[&[record]]).await;
        records.extend(shop.counts(now, &mut sequence).await);
    }
    records
}

#[tokio::test]
async fn case_37_leaderboards_of_sales_are_exact_when_records_are_repeated_and_reordered() {
    let now = Instant::now();
    for seed in 0..4 {
        let shop = Shop::open().await;
        let records = sell(&shop, now).await;
        let mut random = fastrand::Rng::with_seed(seed);
        let mut delivered = [records.clone(), records].concat();
        random.shuffle(&mut delivered);
        let batches: Vec<&[Value]> = delivered.chunks(random.usize(1..=5)).collect();
        shop.deliver(&batches).await;
        for period in boards(now) {
            // Orders a and c each have one piece of p1 and two of p2.
            assert_eq!(shop.board(Board::Sales, period).await, counted(&[("p2", 4), ("p1", 2)]), "{period} {seed}");
        }
    }
}

#[tokio::test]
async fn a_product_whose_orders_are_all_cancelled_leaves_the_boards() {
    let (shop, now) = (Shop::open().await, Instant::now());
    let (pending, cancelled) = (placed("a", OrderStatus::Pending, 1, now), placed("a", OrderStatus::Cancelled, 2, now));
    let mut sequence = 10;
    for (order, record) in [(&pending, insert("1", &pending)), (&cancelled, modify("2", &pending, &cancelled))] {
        shop.place(order).await;
        shop.deliver(&[&[record]]).await;
        let counts = shop.counts(now, &mut sequence).await;
        shop.deliver(&[&counts]).await;
        let places = if order.status == OrderStatus::Pending { 2 } else { 0 };
        for period in boards(now) {
            assert_eq!(shop.board(Board::Sales, period).await.len(), places, "{period}");
        }
    }
}

fn tally(period: Period, part: u32, count: i64, rev: u64) -> Stored<Tally> {
    let data = Tally { board: Board::Likes, product_id: "p1".parse().unwrap(), period, part, count };
    Stored { meta: meta(rev), data }
}

fn likes(shard: u32, likes: u64, rev: u64) -> Stored<LikeCount> {
    Stored { meta: meta(rev), data: LikeCount { product_id: "p1".parse().unwrap(), shard, likes } }
}

/// The parts of a count are different items, so their records can arrive in any order. Three
/// consumers take the same records at once, while the parts continue to change.
#[tokio::test]
async fn likes_in_several_parts_and_days_are_summed_once_by_concurrent_consumers() {
    let now = Instant::now();
    let (monday, sunday) = Period::week(now).days().unwrap();
    for seed in 0..2 {
        let shop = Shop::open().await;
        let (mut random, mut records) = (fastrand::Rng::with_seed(seed), Vec::new());
        for (rev, part) in (1..=3_u64).flat_map(|rev| [(rev, 0), (rev, 1), (rev, 2)]) {
            let count = rev * 10 + u64::from(part);
            let sequence = |kind: u64| (rev * 100 + u64::from(part) * 10 + kind).to_string();
            let total = likes(part, count, rev);
            shop.put(&total).await;
            records.push(insert(&sequence(1), &total));
            let days = [(monday, i64::try_from(count).unwrap()), (sunday, -1)];
            for ((day, count), kind) in days.into_iter().zip(2..) {
                let tally = tally(Period::Day(day), part, count, rev);
                shop.put(&tally).await;
                records.push(insert(&sequence(kind), &tally));
            }
            let mut delivered = records.clone();
            random.shuffle(&mut delivered);
            let consumers = [shop.sink(), shop.sink(), shop.sink()].map(|sink| consumer([sink]).0);
            let answers = join_all(consumers.iter().map(|consumer| earliest(consumer, &delivered))).await;
            assert_eq!(answers, [None, None, None]);
        }
        // The parts have 30, 31 and 32 likes.
        for (period, count) in [(Period::All, 93), (Period::Day(monday), 93), (Period::Week(monday), 90)] {
            assert_eq!(shop.board(Board::Likes, period).await, counted(&[("p1", count)]), "{period} {seed}");
        }
        assert_eq!(shop.board(Board::Likes, Period::Day(sunday)).await, []);
        assert_eq!(
            like::total(&shop.table.query(&like::sum(&"p1".parse().unwrap()).unwrap()).await.unwrap().items),
            93
        );
    }
}

/// DynamoDB may have removed some days of a week that has expired, so a sum would be too small.
#[tokio::test]
async fn the_days_of_an_expired_week_are_no_longer_summed() {
    let (shop, now) = (Shop::open().await, Instant::now());
    let recent = Period::day(now.plus_seconds(-(DAYS_KEPT - 2) * DAY));
    let expired = Period::day(now.plus_seconds(-(DAYS_KEPT + 7) * DAY));
    for (sequence, period, places) in [("1", recent, 1), ("2", expired, 0)] {
        let tally = tally(period, 0, 5, 1);
        shop.put(&tally).await;
        shop.deliver(&[&[insert(sequence, &tally)]]).await;
        let Period::Day(day) = period else { unreachable!() };
        for period in [period, Period::week(day)] {
            assert_eq!(shop.board(Board::Likes, period).await.len(), places, "{period}");
        }
    }
}
