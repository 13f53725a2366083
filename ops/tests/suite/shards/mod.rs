//! Tests of `ops shards`: growth of a list while functions read and write it.

mod live;

use std::collections::BTreeSet;
use std::time::Duration;

use fixture::{TestTable, records, seed};
use futures::future::join_all;
use key_schema::customer::{self, Tier};
use key_schema::id::{Born, LogId, OrderId};
use key_schema::instant::Instant;
use key_schema::item::{Item, Stored};
use key_schema::lists::{self, Lists};
use key_schema::order::{self, Order, OrderLog, OrderStatus};
use key_schema::pattern::Pattern;
use key_schema::settings;
use key_schema::shard::{Layout, Shards};
use ops::migrate::MigrateOptions;
use ops::shards::{Changed, ShardsOptions, Step, change};
use ops::verify::verify;
use ops::{Items, OpsError};
use table::Table;

use crate::events::deriving;
use crate::shop::{Shop, deliver_to};
use crate::things::modify;
use crate::verify::options as verify_options;

const DAY: &str = "2017-01-01";

fn items(test: &TestTable) -> Items {
    Items::new(test.client(), test.name().to_owned())
}

fn to(list: &'static Pattern, number: u32) -> ShardsOptions {
    let scan = MigrateOptions { dry_run: false, segments: 2, max_read_units: None, max_write_units: None };
    ShardsOptions { list, to: Shards(number), wait: Duration::ZERO, scan }
}

async fn run(test: &TestTable, list: &'static Pattern, number: u32) -> Changed {
    change(&items(test), &to(list, number)).await.unwrap()
}

/// Returns a paid order of a list with this number of shards.
fn order(number: u32, shards: Shards) -> Stored<Order> {
    let mut order = records::order(&format!("o{number}"), OrderStatus::Paid, 1, 1);
    order.data.placed_at = order.data.placed_at.plus_seconds(i64::from(number % 50));
    order.data.list_shards = shards;
    order
}

fn log(number: u32) -> Stored<OrderLog> {
    let at: Instant = "2017-01-01T10:00:00Z".parse().unwrap();
    let at = at.plus_seconds(i64::from(number % 20));
    let id = LogId::generate(at, [u8::try_from(number).unwrap(); 10]);
    let order_id = format!("o{number}").parse().unwrap();
    records::at_rev(
        OrderLog { id, order_id, at, by: "sam".to_owned(), text: "called".to_owned(), list_shards: lists::FIRST },
        1,
    )
}

async fn layout(table: &Table, list: &Pattern) -> Layout {
    let known = table.get(&settings::read(7).unwrap()).await.unwrap().map(settings::Known::from).unwrap_or_default();
    known.lists.of(list)
}

/// Reads the list of paid orders to its end, in pages of nine.
async fn paid(table: &Table, mut layout: impl AsyncFnMut() -> Layout) -> Vec<OrderId> {
    let (mut after, mut seen) = (None, Vec::new());
    loop {
        let list = order::by_status(OrderStatus::Paid, None, None, layout().await).unwrap();
        let page = table.query(&list.limit(9).after(after)).await.unwrap();
        seen.extend(page.items.into_iter().map(|listed| listed.order.id));
        after = page.next;
        if after.is_none() {
            return seen;
        }
    }
}

/// Returns the values of an index's partition key `attribute` that begin with `prefix`.
async fn partitions(test: &TestTable, attribute: &str, prefix: &str) -> BTreeSet<String> {
    let value = |item: &Item| match item.get(attribute) {
        Some(serde_dynamo::AttributeValue::S(key)) if key.starts_with(prefix) => Some(key.clone()),
        _ => None,
    };
    test.items("").await.iter().filter_map(value).collect()
}

async fn assert_clean(test: &TestTable) {
    let only = ["Customer", "Order", "OrderLog"].map(str::to_owned).to_vec();
    let options = ops::verify::VerifyOptions { entities: only, ..verify_options(false) };
    let verified = verify(&items(test), &options).await.unwrap();
    let index = |finding: &&ops::verify::Finding| finding.kind == ops::verify::Kind::Index;
    assert_eq!(verified.findings.iter().filter(index).collect::<Vec<_>>(), Vec::<&ops::verify::Finding>::new());
}

#[tokio::test]
async fn each_list_grows_and_shrinks_and_keeps_its_items() {
    let test = TestTable::create().await;
    for number in 0..60 {
        test.put(&order(number, lists::FIRST)).await;
        test.put(&log(number)).await;
        test.sign_up(&format!("c{number}")).await;
    }
    let table = test.own();
    for (number, shards) in [(8, 8), (16, 16), (2, 2), (4, 4), (4, 4)] {
        let [before, log_before] = [&order::BY_STATUS, &order::daily_log::OF_DAY].map(|list| layout(table, list));
        let (before, log_before) = (before.await, log_before.await);
        for list in lists::GROWING {
            let changed = run(&test, list, number).await;
            assert!(changed.is_complete(), "{changed}");
            assert_eq!(layout(table, list).await, Layout::stable(Shards(number)));
            let steps: &[Step] =
                if before.to.0 == number { &[] } else { &[Step::Readers, Step::Writers, Step::Move, Step::End] };
            assert_eq!(changed.steps, steps);
        }
        assert_eq!(before, log_before);
        for (attribute, prefix) in [("GSI2PK", "STATUS#paid#"), ("GSI2PK", "TIER#bronze#"), ("GSI3PK", "LOGDAY#")] {
            assert_eq!(partitions(&test, attribute, prefix).await.len(), shards, "{prefix} {number}");
        }
        let seen = paid(table, async || layout(table, &order::BY_STATUS).await).await;
        assert_eq!((seen.len(), seen.iter().collect::<BTreeSet<_>>().len()), (60, 60));
        let tier = layout(table, &customer::BY_TIER).await;
        assert_eq!(table.query(&customer::by_tier(Tier::Bronze, tier).unwrap()).await.unwrap().items.len(), 60);
        let day = layout(table, &order::daily_log::OF_DAY).await;
        assert_eq!(table.query(&order::daily_log::of_day(DAY, day).unwrap()).await.unwrap().items.len(), 60);
        assert_clean(&test).await;
    }
    // The items are unchanged since the beginning, except for `rev`.
    let item = table.get(&order::head(&"o7".parse().unwrap()).unwrap()).await.unwrap().unwrap();
    assert_eq!((item.data, item.meta.version), (order(7, lists::FIRST).data, 1));
    assert_eq!(item.meta.rev, 5);
}

#[tokio::test]
async fn a_moved_item_causes_no_event_and_no_write_of_the_consumer() {
    let shop = Shop::open().await;
    let (consumer, published) = deriving(&shop);
    let ids: Vec<OrderId> = (0..20).map(|number| order(number, lists::FIRST).data.id).collect();
    let read = async || {
        let heads = ids.iter().map(async |id| shop.table.own().get(&order::head(id).unwrap()).await.unwrap().unwrap());
        join_all(heads).await
    };
    for number in 0..20 {
        shop.table.put(&order(number, lists::FIRST)).await;
        shop.table.put(&records::line(&format!("o{number}"), 1)).await;
        deliver_to(&consumer, &[modify(u64::from(number), &order(number, lists::FIRST))]).await;
    }
    let before = read().await;
    run(&shop.table, &order::BY_STATUS, 8).await;
    let (after, all) = (read().await, shop.table.items("").await);
    published.lock().unwrap().clear();
    let moves = before.iter().zip(&after).filter(|(before, after)| before != after);
    let moved: Vec<_> = moves.map(|(old, new)| records::modify(&format!("{:021}", 900), old, new)).collect();
    assert_eq!(moved.len(), 20);
    for record in moved {
        deliver_to(&consumer, &[record]).await;
    }
    assert_eq!(*published.lock().unwrap(), Vec::<String>::new());
    assert_eq!(shop.table.items("").await, all);
}

#[tokio::test]
async fn changes_that_would_lose_items_or_overlap_another_change_are_refused() {
    let test = TestTable::create().await;
    let refused = async |number: u32| match change(&items(&test), &to(&order::BY_STATUS, number)).await {
        Err(OpsError::Usage(reason)) => reason,
        other => panic!("{other:?}"),
    };
    for number in [3, 5, 6, 7] {
        assert!(refused(number).await.contains("a multiple or a divisor of 4"), "{number}");
    }
    let (known, at) = (settings::Known::default(), Instant::now());
    let growing = Layout { to: Shards(8), ..lists::unchanged() };
    let growing = Lists::default().with(&order::BY_STATUS, growing);
    test.transact(&settings::arrange(&known, &growing, &Born::new("b").unwrap(), at).unwrap()).await;
    for number in [4, 16] {
        assert!(refused(number).await.contains("finish that change first with --to 8"), "{number}");
    }
    // Another list can change at the same time.
    assert!(run(&test, &customer::BY_TIER, 8).await.is_complete());
    assert!(run(&test, &order::BY_STATUS, 8).await.is_complete());
    assert_eq!(layout(test.own(), &customer::BY_TIER).await, Layout::stable(Shards(8)));
}

#[tokio::test]
async fn the_settings_of_staff_and_the_layouts_do_not_overwrite_each_other() {
    let test = TestTable::create().await;
    let (table, at) = (test.own(), Instant::now());
    let set = |text: &str| text.to_owned();
    test.transact(&settings::create(&set(r#"{"a":1}"#), &set("{}"), &Born::new("b").unwrap(), at).unwrap()).await;
    let before = settings::Known::from(table.get(&settings::read(0).unwrap()).await.unwrap().unwrap());
    run(&test, &order::BY_STATUS, 8).await;
    // Staff read the settings before the list grew. Their change is refused as outdated.
    let stale = settings::change(&set(r#"{"a":2}"#), &set("{}"), before.version, at).unwrap();
    assert!(table.transact(&stale).await.unwrap().is_err());
    let known = settings::Known::from(table.get(&settings::read(0).unwrap()).await.unwrap().unwrap());
    assert_eq!((known.version, known.values.as_str()), (4, r#"{"a":1}"#));
    test.transact(&settings::change(&set(r#"{"a":2}"#), &set("{}"), known.version, at).unwrap()).await;
    for copy in 0..settings::COPIES {
        let stored = table.get(&settings::read(copy).unwrap()).await.unwrap().unwrap();
        assert_eq!(
            (stored.values.as_str(), stored.lists.of(&order::BY_STATUS)),
            (r#"{"a":2}"#, Layout::stable(Shards(8)))
        );
    }
}

#[tokio::test]
async fn a_dry_run_counts_the_items_and_changes_nothing() {
    let test = TestTable::create().await;
    for number in 0..10 {
        test.put(&order(number, lists::FIRST)).await;
    }
    let before = test.items("").await;
    let mut options = to(&order::BY_STATUS, 8);
    options.scan.dry_run = true;
    let changed = change(&items(&test), &options).await.unwrap();
    assert_eq!(changed.scan.as_ref().unwrap().migrated, 10);
    assert_eq!(changed.steps, [Step::Readers, Step::Writers, Step::Move, Step::End]);
    assert!(!changed.is_complete() && changed.to_string().contains("would change from 4 to 8 shards"), "{changed}");
    assert_eq!(test.items("").await, before);
}

/// The scan does not move an order that is being placed, because another write to its head would
/// stop the placement. A later scan moves it. An order that is being retired is still in its list.
#[tokio::test]
async fn orders_in_the_middle_of_other_work_move_at_the_right_time() {
    let test = TestTable::create().await;
    let mut placing = order(1, lists::FIRST);
    placing.data.status = OrderStatus::Placing;
    test.put(&placing).await;
    let listed = order(2, lists::FIRST);
    let mut retiring = listed.clone();
    retiring.data.expires_at = Some(Instant::now());
    // The first step of a retirement sets the expiry. It changes neither the index key nor the
    // time to live.
    let mut item = listed.to_item().unwrap();
    let expires_at = retiring.to_item().unwrap()["expires_at"].clone();
    item.inner_mut().insert("expires_at".to_owned(), expires_at);
    test.put_item(item).await;
    let slow = ShardsOptions { wait: Duration::from_millis(20), ..to(&order::BY_STATUS, 8) };
    let changed = change(&items(&test), &slow).await.unwrap();
    assert!(!changed.is_complete() && changed.to_string().contains("the order is being placed"), "{changed}");
    let key = format!("STATUS#paid#{:020}", Shards(8).of("o2"));
    assert!(partitions(&test, "GSI2PK", "STATUS#").await.contains(&key));
    let head = test.own().get(&order::head(&placing.data.id).unwrap()).await.unwrap().unwrap();
    assert_eq!(head, placing);
    // The placement ends. The order still has the number of shards with which it began.
    placing.data.status = OrderStatus::Pending;
    test.put(&placing).await;
    assert!(run(&test, &order::BY_STATUS, 8).await.is_complete());
    assert_clean(&test).await;
}

#[tokio::test]
async fn verify_finds_and_repairs_an_item_in_a_shard_that_no_reader_reads() {
    let test = TestTable::create().await;
    // Items in a shard that no reader reads come from an import, or from an archive.
    for number in 0..10 {
        test.put(&order(number, Shards(8))).await;
    }
    let only = vec!["Order".to_owned()];
    let options = |fix| ops::verify::VerifyOptions { entities: only.clone(), ..verify_options(fix) };
    let found = verify(&items(&test), &options(false)).await.unwrap();
    let said = |finding: &&ops::verify::Finding| finding.what.contains("one of 8 shards, but the list has 4");
    assert_eq!(found.findings.iter().filter(said).count(), 10, "{found}");
    verify(&items(&test), &options(true)).await.unwrap();
    assert_eq!(paid(test.own(), async || lists::unchanged()).await.len(), 10);
    assert_clean(&test).await;
    // While the list grows, both numbers of shards are right.
    let growing = Lists::default().with(&order::BY_STATUS, Layout { to: Shards(8), ..lists::unchanged() });
    let arrange = settings::arrange(&settings::Known::default(), &growing, &seed::born(), Instant::now()).unwrap();
    test.transact(&arrange).await;
    test.put(&order(11, Shards(8))).await;
    assert_clean(&test).await;
    test.put(&order(12, Shards(2))).await;
    assert_eq!(
        verify(&items(&test), &options(false))
            .await
            .unwrap()
            .findings
            .iter()
            .filter(|f| f.what.contains("one of 2 shards"))
            .count(),
        1
    );
}

/// An unreadable item of the list blocks the end of the change, because readers would not find it
/// afterwards. An unreadable item of another list does not block the change.
#[tokio::test]
async fn only_an_unreadable_item_of_the_same_list_blocks_a_change() {
    let test = TestTable::create().await;
    for number in 0..10 {
        test.put(&order(number, lists::FIRST)).await;
    }
    test.sign_up("ann").await;
    let damaged = aws_sdk_dynamodb::types::AttributeValue::Bool(true);
    test.set("CUSTOMER#ann", "PROFILE", "born", damaged.clone()).await;
    assert!(run(&test, &order::BY_STATUS, 8).await.is_complete());
    test.set("ORDER#o1", "ORDER", "born", damaged).await;
    let changed = run(&test, &order::BY_STATUS, 16).await;
    assert!(!changed.is_complete() && changed.to_string().contains("1 cannot be read: see `ops verify`"), "{changed}");
    assert_eq!(changed.moved, 9, "the run moves the other orders");
}

/// A function with an outdated layout adds an order after the change.
#[tokio::test]
async fn verify_moves_an_item_that_enters_the_list_with_the_former_number() {
    let test = TestTable::create().await;
    run(&test, &order::BY_STATUS, 8).await;
    test.put(&order(1, lists::FIRST)).await;
    let only = ops::verify::VerifyOptions { entities: vec!["Order".to_owned()], ..verify_options(true) };
    let fixed = verify(&items(&test), &only).await.unwrap();
    assert!(fixed.to_string().contains("one of 4 shards, but the list has 8 (repaired)"), "{fixed}");
    let head = order::head(&"o1".parse().unwrap()).unwrap();
    assert_eq!(test.own().get(&head).await.unwrap().unwrap().list_shards, Shards(8));
    assert_clean(&test).await;
}

#[test]
fn the_wait_covers_the_cache_of_the_settings_and_the_longest_function() {
    let longest = fixture::template().functions.iter().map(|function| function.timeout).max().unwrap();
    assert!(ops::shards::WAIT >= http_api::SETTINGS_MAX_AGE + longest, "{longest:?}");
}
