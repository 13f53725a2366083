//! Tests of rounds: which counters are split, and how often.

use std::collections::BTreeSet;

use fixture::seed;
use futures::future::join_all;
use key_schema::counter::MAX_SHARDS;
use key_schema::id::ProductId;
use key_schema::instant::Instant;
use key_schema::product::{self, PageItem, ProductSales, ReshardReason};
use key_schema::sales;
use splitter::round::Round;
use tokio::time;

use crate::watch::{Watch, minute, partition};

#[tokio::test]
async fn a_throttled_counter_is_split_and_other_throttled_keys_are_left_alone() {
    let watch = Watch::begin().await;
    for counter in ["hot", "warm", "cold", "product:1", "50 #"] {
        assert!(watch.add(counter).await);
    }
    watch.throttle(&partition("hot", false), minute(0), 10);
    watch.throttle(&partition("50 #", false), minute(0), 500);
    // The splitter ignores a counter with too few throttles, a counter's head, an order and a
    // product.
    watch.throttle(&partition("warm", false), minute(0), 9);
    watch.throttle(&partition("product:1", true), minute(0), 500);
    watch.throttle("ORDER#019aa136-7c00-7aaa-8bbb-000000000301", minute(0), 500);
    watch.throttle("PRODUCT#1", minute(0), 500);
    let round = watch.round(minute(1)).await;
    assert_eq!(round, Round { throttled: 6, hot: 2, split: 2, ..Round::default() });
    for (counter, shards) in [("hot", 2), ("50 #", 2), ("warm", 1), ("cold", 1), ("product:1", 1)] {
        assert_eq!(watch.count(counter).await, (1, shards), "{counter}");
    }
}

#[tokio::test]
async fn the_throttles_of_a_counters_shards_are_added_up() {
    let watch = Watch::begin().await;
    watch.throttle(&partition("views", false), minute(0), 10);
    watch.round(minute(0).plus_seconds(30)).await;
    assert_eq!(watch.shards("views").await, 2);
    let first = partition("views", false);
    let second = format!("{}1", &first[..first.len() - 1]);
    watch.throttle(&first, minute(1), 5);
    watch.throttle(&second, minute(1), 4);
    let now = minute(1).plus_seconds(30);
    assert_eq!(watch.round(now).await.hot, 1, "only the previous minute is hot");
    assert_eq!(watch.shards("views").await, 2);
    watch.throttle(&second, minute(1), 1);
    watch.round(now).await;
    assert_eq!(watch.shards("views").await, 4);
}

#[tokio::test]
async fn each_minute_with_throttles_causes_one_split_even_if_it_is_reported_repeatedly() {
    let watch = Watch::begin().await;
    let hot = partition("views", false);
    watch.throttle(&hot, minute(0), 100);
    let split = Round { throttled: 1, hot: 1, split: 1, ..Round::default() };
    let cooling = Round { split: 0, ..split };
    assert_eq!(watch.round(minute(0).plus_seconds(30)).await, split);
    // Repeated rounds, and the rounds of the next minutes, do not split the counter again.
    for seconds in [30, 31, 60, 120, 300] {
        assert_eq!(watch.round(minute(0).plus_seconds(seconds)).await, cooling, "{seconds}");
    }
    assert_eq!(watch.round(minute(6)).await, Round::default(), "an old minute is not read");
    // Throttles in the minute of the split may precede the split. Throttles in a later minute cause
    // another split.
    watch.throttle(&hot, minute(0).plus_seconds(59), 100);
    assert_eq!(watch.round(minute(1)).await.split, 0);
    watch.throttle(&hot, minute(1), 100);
    assert_eq!((watch.round(minute(2)).await, watch.round(minute(2)).await), (split, cooling));
    assert_eq!(watch.shards("views").await, 4);
}

#[tokio::test]
async fn concurrent_rounds_split_a_counter_once() {
    let watch = Watch::begin().await;
    let counters: Vec<String> = (0..8).map(|number| format!("views {number}")).collect();
    let mut shards = 1;
    for turn in 0..3 {
        for counter in &counters {
            watch.throttle(&partition(counter, false), minute(turn), 20);
        }
        let splitters: Vec<_> = (0..6).map(|_| watch.another()).collect();
        let stop = time::Instant::now() + time::Duration::from_secs(60);
        let rounds = join_all(splitters.iter().map(|splitter| splitter.run_round(minute(turn + 1), stop))).await;
        let split: u32 = rounds.iter().map(|round| round.as_ref().unwrap().split).sum();
        assert_eq!(split, 8);
        assert!(rounds.iter().all(|round| round.as_ref().unwrap().failed == 0), "{rounds:?}");
        shards *= 2;
        for counter in &counters {
            assert_eq!(watch.shards(counter).await, shards, "{counter}");
        }
    }
}

#[tokio::test]
async fn a_counter_that_stays_hot_doubles_up_to_64_shards_and_is_then_reported_as_full() {
    let watch = Watch::begin().await;
    let hot = partition("views", false);
    let mut shards = 1;
    for turn in 0..6 {
        watch.throttle(&hot, minute(2 * turn), 50);
        assert_eq!(watch.round(minute(2 * turn + 1)).await.split, 1);
        shards *= 2;
        assert_eq!(watch.shards("views").await, shards);
    }
    assert_eq!(shards, u64::from(MAX_SHARDS));
    watch.throttle(&hot, minute(20), 50);
    let full = Round { throttled: 1, hot: 1, full: 1, ..Round::default() };
    assert_eq!(watch.round(minute(21)).await, full);
    assert_eq!(watch.shards("views").await, shards);
}

/// Returns the pieces of each shard of the tea's stock.
async fn pieces(watch: &Watch) -> Vec<u64> {
    let first = watch.test.own().get(&product::stock(&tea()).unwrap()).await.unwrap().unwrap();
    let shards = workflows::stock::shards::<()>(watch.test.own(), first).await.unwrap();
    shards.iter().map(|shard| shard.available).collect()
}

fn tea() -> ProductId {
    "tea".parse().unwrap()
}

/// Returns the partition of the tea's first shard.
fn first_shard() -> String {
    product::stock(&tea()).unwrap().key().pk.as_str().to_owned()
}

async fn stock_up(watch: &Watch, pieces: u64) {
    watch.test.put(&seed::stored(seed::product("tea", seed::usd(129)))).await;
    watch.test.put(&seed::stored(seed::stock(tea(), pieces))).await;
}

#[tokio::test]
async fn a_throttled_stock_gets_four_times_as_many_shards_once_for_each_minute() {
    let watch = Watch::begin().await;
    stock_up(&watch, 640).await;
    let now = Instant::now();
    let minute = Instant::EPOCH.plus_seconds(now.as_seconds() / 60 * 60 - 60);
    watch.throttle(&first_shard(), minute, 100);
    let split = Round { throttled: 1, hot: 1, split: 1, ..Round::default() };
    assert_eq!(watch.round(now).await, split);
    assert_eq!(pieces(&watch).await, [160; 4]);
    assert_eq!(watch.round(now).await.split, 0, "the minute is before the growth");
    // The pieces of the new shards come from the first one. The round moves the others' pieces there.
    watch.throttle(&first_shard(), now.plus_seconds(60), 100);
    let round = watch.round(now.plus_seconds(70)).await;
    assert_eq!((round.split, round.moves), (1, 15));
    assert_eq!(pieces(&watch).await, [40; 16]);
}

#[tokio::test]
async fn the_shards_of_a_calm_stock_are_merged_down_to_the_number_of_staff() {
    let watch = Watch::begin().await;
    stock_up(&watch, 64).await;
    let table = watch.test.own();
    workflows::stock::reshard::<()>(table, &tea(), 2).await.unwrap();
    for shards in [8, 32] {
        let hot = ReshardReason::Since(Instant::now().plus_seconds(60));
        assert_eq!(workflows::stock::widen::<()>(table, &tea(), None, hot).await.unwrap(), shards);
        workflows::stock::level::<()>(table, &tea()).await.unwrap();
    }
    let now = Instant::now();
    for (seconds, merged, shards) in [(3_000, 0, 32), (3_700, 1, 8), (3_700, 0, 8), (7_400, 1, 2), (90_000, 0, 2)] {
        let round = watch.round(now.plus_seconds(seconds)).await;
        assert_eq!((round.merged, round.failed), (merged, 0), "{seconds}");
        let pieces = pieces(&watch).await;
        assert_eq!((pieces.len(), pieces.iter().sum::<u64>()), (shards, 64), "{seconds}");
    }
}

/// Returns the counted sales of the tea: those that its page shows, and those of all further items.
async fn sold(watch: &Watch) -> (i64, i64) {
    let page = watch.test.own().query(&product::page(&tea()).unwrap()).await.unwrap().items;
    let first = page.into_iter().find_map(|item| match item {
        PageItem::ProductSales(sales) => Some(sales.quantity),
        _ => None,
    });
    let further = watch.test.own().batch_get(&sales::counts(&tea()).unwrap()).await.unwrap();
    (first.unwrap_or_default(), further.iter().flatten().map(|sales| sales.quantity).sum())
}

#[tokio::test]
async fn the_sales_of_a_hot_product_reach_its_page_and_a_stock_leaves_the_list_after_an_hour_in_one_shard() {
    let watch = Watch::begin().await;
    stock_up(&watch, 64).await;
    let table = watch.test.own();
    workflows::stock::reshard::<()>(table, &tea(), 4).await.unwrap();
    let count = async |shard, quantity| {
        let counted = ProductSales { quantity, orders: 1, ..ProductSales::none(tea(), shard) };
        watch.test.put(&seed::stored(counted)).await;
    };
    for (shard, quantity) in [(0, -2), (1, 5), (3, 7)] {
        count(shard, quantity).await;
    }
    assert_eq!(sold(&watch).await, (-2, 12));
    let now = Instant::now();
    assert_eq!(watch.round(now).await.failed, 0);
    assert_eq!(sold(&watch).await, (10, 0));
    workflows::stock::reshard::<()>(table, &tea(), 1).await.unwrap();
    let listed = async || table.query(&product::sharded().unwrap()).await.unwrap().items.len();
    // Sales of orders from before the merge may still arrive.
    count(2, 1).await;
    assert_eq!(watch.round(now.plus_seconds(3_000)).await.failed, 0);
    assert_eq!((sold(&watch).await, listed().await), ((11, 0), 1));
    assert_eq!(watch.round(now.plus_seconds(3_700)).await.failed, 0);
    assert_eq!(listed().await, 0);
    assert_eq!(pieces(&watch).await, [64]);
}

#[tokio::test]
async fn a_round_uses_exactly_the_patterns_that_the_function_declares_and_costs_little() {
    let watch = Watch::begin().await;
    assert_eq!(watch.round(minute(1)).await, Round::default());
    let costs = || -> Vec<_> { watch.splitter.costs().iter().map(|cost| (cost.pattern.id, cost.requests)).collect() };
    assert_eq!(costs(), [("stock.sharded", 1)], "a round without throttling reads one list");
    watch.throttle(&partition("views", false), minute(0), 50);
    watch.round(minute(1)).await;
    assert_eq!(costs(), [("counters.head", 1), ("counters.split", 1), ("stock.sharded", 1)]);
    // If the counter was split after the throttled minute, the round only reads the counter's head.
    watch.round(minute(1)).await;
    assert_eq!(costs(), [("counters.head", 1), ("stock.sharded", 1)]);
    stock_up(&watch, 640).await;
    workflows::stock::widen::<()>(watch.test.own(), &tea(), None, ReshardReason::Hot).await.unwrap();
    watch.throttle(&first_shard(), Instant::now(), 50);
    let mut used = BTreeSet::from(["counters.head", "counters.split"]);
    let counted = ProductSales { quantity: 1, orders: 1, ..ProductSales::none(tea(), 1) };
    watch.test.put(&seed::stored(counted)).await;
    for now in [Instant::now().plus_seconds(61), Instant::now().plus_seconds(4_000)] {
        watch.throttle(&first_shard(), now, 50);
        watch.round(now).await;
        used.extend(costs().into_iter().map(|(pattern, _)| pattern));
    }
    workflows::stock::reshard::<()>(watch.test.own(), &tea(), 1).await.unwrap();
    let _ = watch.test.own().meter().take();
    watch.round(Instant::now().plus_seconds(9_000)).await;
    used.extend(costs().into_iter().map(|(pattern, _)| pattern));
    assert_eq!(used, splitter::PATTERNS.iter().map(|pattern| pattern.id).collect());
}
