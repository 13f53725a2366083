//! Tests of `ops shards` while functions read and write the list, and while operators stop the
//! command.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use fixture::{TestTable, crash_after, records, with_writer};
use futures::future::join_all;
use http_api::SettingsCache;
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::lists;
use key_schema::order::{OrderStatus, Step as Advance};
use key_schema::shard::{Layout, Shards};
use ops::Items;
use ops::shards::{ShardsOptions, change};

use super::{assert_clean, items, layout, order, paid, partitions, run, to};

/// Kills the command at each of its waits for a response, and starts it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_killed_at_any_request_continues() {
    let test = TestTable::create().await;
    let table = test.own();
    let numbers = AtomicU32::new(0);
    let place = async || {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        test.put(&order(number, layout(table, &order::BY_STATUS).await.write)).await;
    };
    for _ in 0..8 {
        place().await;
    }
    let (mut states, mut runs) = (Vec::new(), 0);
    for number in [8, 4] {
        for waits in 1.. {
            let before = layout(table, &order::BY_STATUS).await;
            if states.last() != Some(&before) {
                states.push(before);
            }
            runs += 1;
            // Later runs get further. `waits` grows slowly, so that each request is the last
            // request of at least one run.
            if let Some(changed) = crash_after(waits, change(&items(&test), &to(&order::BY_STATUS, number))).await {
                assert!(changed.unwrap().is_complete());
                break;
            }
            place().await;
            let seen = paid(table, async || layout(table, &order::BY_STATUS).await).await;
            let placed = usize::try_from(numbers.load(Ordering::Relaxed)).unwrap();
            assert_eq!((seen.len(), seen.iter().collect::<BTreeSet<_>>().len()), (placed, placed));
            assert_clean(&test).await;
        }
    }
    assert_eq!(layout(table, &order::BY_STATUS).await, Layout::stable(Shards(4)));
    let changing = |from, to, write| Layout { from: Shards(from), to: Shards(to), write: Shards(write) };
    let expected = [
        lists::unchanged(),
        changing(4, 8, 4),
        changing(4, 8, 8),
        Layout::stable(Shards(8)),
        changing(8, 4, 8),
        changing(8, 4, 4),
    ];
    assert!(states.starts_with(&expected), "a run was killed in each state: {states:?}");
    assert!(runs > 20, "{runs}");
}

/// Functions cache the settings. The clock of these caches is 20 times as fast as the real clock.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_grows_under_traffic_shows_each_order_once_to_every_function() {
    let test = TestTable::create().await;
    for number in 0..60 {
        test.put(&order(number, lists::FIRST)).await;
    }
    let (ended, reads) = (AtomicBool::new(false), AtomicU32::new(0));
    // Each environment has its own cache. The fast clock makes the settings expire early.
    let start = Instant::now().as_millis();
    let environment =
        || SettingsCache::new(move || Instant::from_millis(start + (Instant::now().as_millis() - start) * 20).unwrap());
    let reader = async || {
        let (table, cache) = (test.table(), environment());
        while !ended.load(Ordering::Relaxed) || reads.load(Ordering::Relaxed) <= 10 {
            let seen = paid(&table, async || cache.current(&table).await.unwrap().0.lists.of(&order::BY_STATUS)).await;
            let mut count = BTreeMap::<&OrderId, u32>::new();
            seen.iter().for_each(|id| *count.entry(id).or_default() += 1);
            assert!(count.values().all(|times| *times == 1), "an order came twice");
            let first =
                (0..60).filter(|number| count.contains_key(&format!("o{number}").parse::<OrderId>().unwrap())).count();
            assert_eq!(first, 60, "an order was skipped");
            reads.fetch_add(1, Ordering::Relaxed);
        }
    };
    let writer = async |number: u32| {
        let (table, cache) = (test.table(), environment());
        let mut next = 1_000 * number;
        while !ended.load(Ordering::Relaxed) || next <= 1_000 * number + 10 {
            let write = cache.current(&table).await.unwrap().0.lists.of(&order::BY_STATUS).write;
            test.put(&order(next, write)).await;
            // Another function reads this order and then changes its status.
            let head = table.get(&order::head(&format!("o{next}").parse().unwrap()).unwrap()).await.unwrap().unwrap();
            let step = Advance::new(&head, &[], OrderStatus::Shipped, Instant::now(), "sam");
            test.put(&records::at_rev(order::CustomerOrder::of(&head), 1)).await;
            let _ = table.transact(&order::transition(step).unwrap()).await.unwrap();
            next += 1;
        }
    };
    let growth = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let options = ShardsOptions { wait: Duration::from_secs(3), ..to(&order::BY_STATUS, 16) };
        let changed = change(&items(&test), &options).await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        ended.store(true, Ordering::Relaxed);
        changed
    };
    let readers = join_all([reader(), reader()]);
    let writers = join_all([writer(1), writer(2)]);
    let (changed, ..) = tokio::join!(growth, readers, writers);
    assert!(changed.is_complete() && changed.moved >= 50, "{changed}");
    assert_clean(&test).await;
    let shards = partitions(&test, "GSI2PK", "STATUS#paid#").await;
    assert_eq!(shards.len(), 16);
}

/// A function reads an order, the order moves, and then the function changes its status. The index
/// key in that change is computed with the number of shards that the function read. The last scan
/// moves the order again.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_by_a_function_that_read_the_order_before_it_moved_is_found_by_the_last_scan() {
    let test = TestTable::create().await;
    for number in 0..20 {
        test.put(&order(number, lists::FIRST)).await;
    }
    let table = test.own();
    let read = order::head(&"o3".parse().unwrap()).unwrap();
    let before = table.get(&read).await.unwrap().unwrap();
    test.put(&records::at_rev(order::CustomerOrder::of(&before), 1)).await;
    let (late_table, is_late) = (test.table(), Arc::new(AtomicBool::new(false)));
    let late = Arc::clone(&is_late);
    let client = with_writer(&test.client(), move |_| {
        let (table, late, before) = (late_table.clone(), Arc::clone(&late), before.clone());
        async move {
            let read = order::head(&before.id).unwrap();
            let has_moved = table.get(&read).await.unwrap().unwrap().list_shards != lists::FIRST;
            if has_moved && !late.swap(true, Ordering::Relaxed) {
                let step = Advance::new(&before, &[], OrderStatus::Shipped, Instant::now(), "sam");
                table.transact(&order::transition(step).unwrap()).await.unwrap().unwrap();
                let changed = table.get(&read).await.unwrap().unwrap();
                assert_eq!((changed.status, changed.list_shards), (OrderStatus::Shipped, lists::FIRST));
            }
        }
    });
    let command = Items::new(client, test.name().to_owned());
    let changed = change(&command, &to(&order::BY_STATUS, 16)).await.unwrap();
    assert!(is_late.load(Ordering::Relaxed));
    assert!(changed.is_complete() && changed.moved == 21, "{changed}");
    assert_eq!(table.get(&read).await.unwrap().unwrap().list_shards, Shards(16));
    assert_clean(&test).await;
}

/// A run is paused before each of its requests in turn. Meanwhile other runs end its change and the
/// next one. The paused run then moves no item, and changes no layout.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_paused_during_a_later_change_does_not_undo_it() {
    for pause in 0.. {
        let test = Arc::new(TestTable::create().await);
        for number in 0..6 {
            test.put(&order(number, lists::FIRST)).await;
        }
        let (others, requests) = (Arc::clone(&test), Arc::new(AtomicU32::new(0)));
        let counted = Arc::clone(&requests);
        let client = with_writer(&test.client(), move |_| {
            let (test, requests) = (Arc::clone(&others), Arc::clone(&counted));
            async move {
                let is_begun = layout(test.own(), &order::BY_STATUS).await.write != lists::FIRST;
                if is_begun && requests.fetch_add(1, Ordering::Relaxed) == pause {
                    for number in [8, 16] {
                        assert!(run(&test, &order::BY_STATUS, number).await.is_complete());
                    }
                }
            }
        });
        let paused = change(&Items::new(client, test.name().to_owned()), &to(&order::BY_STATUS, 8)).await;
        if requests.load(Ordering::Relaxed) <= pause {
            assert!(paused.unwrap().is_complete() && pause > 10, "{pause}");
            break;
        }
        let reason = paused.unwrap_err().to_string();
        assert!(reason.contains("to 16 shards"), "{pause}: {reason}");
        assert_eq!(layout(test.own(), &order::BY_STATUS).await, Layout::stable(Shards(16)));
        for number in 0..6 {
            let head = order::head(&format!("o{number}").parse().unwrap()).unwrap();
            assert_eq!(test.own().get(&head).await.unwrap().unwrap().list_shards, Shards(16));
        }
        assert_clean(&test).await;
    }
}
