//! Tests of the leaderboards: their counts are exact in every schedule of deliveries.

use futures::future::join_all;
use key_schema::entity::AnyEntity;
use key_schema::instant::Instant;
use key_schema::item::{FromItem as _, Stored};
use key_schema::leaderboard::{self, Board, DAYS_KEPT, Period, Rank, Tally};
use key_schema::like::{self, LikeCount};
use key_schema::order::{Order, OrderStatus};
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

    /// Returns one stream record for each tally of sales, with the tally's current state.
    async fn counts(&self, sequence: &mut u32) -> Vec<Value> {
        let mut records = Vec::new();
        for item in self.test.items("TALLY#").await {
            if let AnyEntity::Tally(tally) = AnyEntity::from_item(item).unwrap()
                && tally.board == Board::Sales
            {
                *sequence += 1;
                records.push(insert(&sequence.to_string(), &tally));
            }
        }
        records
    }

    /// Writes an order, and delivers its record and then the records of all tallies. Returns the
    /// records of the tallies.
    async fn step(&self, old: Option<&Stored<Order>>, new: &Stored<Order>, sequence: &mut u32) -> Vec<Value> {
        self.place(new).await;
        *sequence += 1;
        let record = |old| modify(&sequence.to_string(), old, new);
        let record = old.map_or_else(|| insert(&sequence.to_string(), new), record);
        self.deliver(&[&[record]]).await;
        let counts = self.counts(sequence).await;
        self.deliver(&[&counts]).await;
        counts
    }
}

/// Returns an order that was placed and last changed at an instant, with one piece of `p1` and two
/// of `p2`.
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

/// Ships three orders, and then marks one of them as returned. Returns the records of the tallies
/// after each step.
async fn sell(shop: &Shop, now: Instant) -> Vec<Value> {
    use OrderStatus::{Delivered, Returned, Shipped};
    let (mut records, mut sequence) = (Vec::new(), 0);
    for id in ["a", "b", "c"] {
        records.extend(shop.step(None, &placed(id, Shipped, 1, now), &mut sequence).await);
    }
    let (delivered, returned) = (placed("b", Delivered, 2, now), placed("b", Returned, 3, now));
    records.extend(shop.step(Some(&delivered), &returned, &mut sequence).await);
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

/// An unpaid order costs nothing. If it counted, a customer could place such orders for one product
/// until its rank reveals the sales of another product.
#[tokio::test]
async fn an_order_is_on_the_boards_of_sales_from_its_shipment_until_its_return() {
    use OrderStatus::{Cancelled, Delivered, Paid, Pending, Picking, Returned, Shipped};
    let (shop, now) = (Shop::open().await, Instant::now());
    let (yesterday, mut sequence) = (now.plus_seconds(-DAY), 0);
    for (id, life) in [
        ("a", &[(Pending, 0), (Paid, 0), (Picking, 0), (Shipped, 2), (Delivered, 2), (Returned, 0)][..]),
        ("b", &[(Pending, 0), (Paid, 0), (Cancelled, 0)]),
        ("c", &[(Delivered, 2), (Returned, 0)]),
    ] {
        let mut old = None;
        for (number, (status, places)) in life.iter().enumerate() {
            let mut order = placed(id, *status, number as u64 + 1, now);
            order.data.placed_at = yesterday;
            shop.step(old.as_ref(), &order, &mut sequence).await;
            for period in boards(now) {
                assert_eq!(shop.board(Board::Sales, period).await.len(), *places, "{id} {status} {period}");
            }
            assert_eq!(shop.board(Board::Sales, Period::day(yesterday)).await, [], "the day of the order");
            old = Some(order);
        }
    }
}

/// The records of the shipment and of the delivery may be late, repeated or reordered.
#[tokio::test]
async fn a_shipment_counts_once_and_on_one_day_whenever_its_records_arrive() {
    use OrderStatus::{Delivered, Pending, Returned, Shipped};
    let (shop, now) = (Shop::open().await, Instant::now());
    let (tomorrow, mut sequence) = (now.plus_seconds(DAY), 0);
    let (pending, shipped) = (placed("a", Pending, 1, now), placed("a", Shipped, 2, now));
    let (delivered, returned) = (placed("a", Delivered, 3, tomorrow), placed("a", Returned, 4, tomorrow));
    shop.step(None, &pending, &mut sequence).await;
    shop.step(Some(&pending), &shipped, &mut sequence).await;
    for old in [&shipped, &pending] {
        shop.step(Some(old), &delivered, &mut sequence).await;
        assert_eq!(shop.board(Board::Sales, Period::day(now)).await, counted(&[("p2", 2), ("p1", 1)]));
        assert_eq!(shop.board(Board::Sales, Period::day(tomorrow)).await, []);
    }
    shop.step(Some(&delivered), &returned, &mut sequence).await;
    for period in [Period::day(now), Period::day(tomorrow), Period::week(now), Period::All] {
        assert_eq!(shop.board(Board::Sales, period).await, [], "{period}");
    }
}

/// The consumer that read the older state may write last.
#[tokio::test]
async fn a_sum_of_older_counts_does_not_replace_a_newer_rank() {
    let (shop, now) = (Shop::open().await, Instant::now());
    let period = Period::day(now);
    let first = tally(period, 0, 5, 1);
    let product = "p1".parse().unwrap();
    let stale = Rank::sum(Board::Likes, &product, period, [(&first.meta, first.count)]).unwrap();
    for (sequence, part, count) in [("1", 0, 5), ("2", 1, -2)] {
        let tally = tally(period, part, count, 1);
        shop.put(&tally).await;
        shop.deliver(&[&[insert(sequence, &tally)]]).await;
    }
    assert!(shop.table.write(&leaderboard::store_rank(&stale).unwrap()).await.unwrap().is_err());
    assert_eq!(shop.board(Board::Likes, period).await, counted(&[("p1", 3)]));
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
