//! Tests of the bus sink: no event is lost, and a repeated event has the same id.

use std::collections::BTreeSet;
use std::sync::Arc;

use aws_sdk_dynamodb::config::retry::RetryConfig;
use bus::{Data, Event, MAX_REQUEST_BYTES, Outcome};
use emulators::events::EventBusServer;
use emulators::search::FaultKind as SearchFault;
use emulators::table::{Fault, FaultKind};
use fixture::TestTable;
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Stored};
use key_schema::mark::{self, Mark};
use key_schema::order::{self, Order, OrderStatus};
use serde_json::Value;
use stream::Consumer;
use stream::bus::Bus;
use stream::derived::Derived;
use stream::ports::Publisher;
use stream::sink::Sink;
use stream::transitions::Rules;
use table::Table;
use tokio::time::Instant as Clock;

use crate::engine::Engine;
use crate::publisher::{ScriptedBus, ScriptedEndpoint, event_bus, retryable};
use crate::support::{consumer, earliest, event, insert, line, modify, order, product, run};
use crate::transitions::event_of;

/// A table for the marks of published events.
struct Shop {
    test: TestTable,
    table: Arc<Table>,
}

impl Shop {
    async fn open() -> Self {
        let test = TestTable::create().await;
        let client = test.client();
        // The client makes one attempt, because its retries are not under test.
        let once = client.config().to_builder().retry_config(RetryConfig::disabled()).build();
        let table = Table::new(aws_sdk_dynamodb::Client::from_conf(once), test.name().to_owned());
        Self { test, table: Arc::new(table) }
    }

    fn sink(&self, publisher: impl Publisher) -> Box<dyn Sink> {
        let rules = Rules { table: self.test.name().to_owned(), stock_low: 10 };
        Box::new(Bus::new(self.table.clone(), publisher, rules))
    }

    /// Creates a consumer with the bus sink alone, as a new process would.
    fn consumer(&self, publisher: impl Publisher) -> Consumer {
        consumer([self.sink(publisher)]).0
    }

    /// Returns the existing marks of these events.
    async fn marks(&self, events: &[Event]) -> Vec<Stored<Mark>> {
        let known = mark::known("bus", events.iter().map(|event| event.id.as_str())).unwrap();
        self.test.table().batch_get(&known).await.unwrap().into_iter().flatten().collect()
    }

    /// Makes the marks of these events older by `days`, and removes expired marks.
    async fn days_pass(&self, events: &[Event], days: i64) {
        let (ago, now) = (-days * 24 * 60 * 60, Instant::now());
        for mut mark in self.marks(events).await {
            mark.data.at = mark.data.at.plus_seconds(ago);
            mark.data.expires_at = mark.data.expires_at.plus_seconds(ago);
            if mark.is_expired(now) {
                self.test.delete(&mark.key().unwrap()).await;
                continue;
            }
            let left = self.table.batch_write(&mark::keep([&mark]).unwrap()).await.unwrap();
            assert!(left.is_empty());
        }
    }
}

fn pending(id: &str) -> Stored<Order> {
    order(id, OrderStatus::Pending, 1, 1)
}

fn paid(id: &str) -> Stored<Order> {
    order(id, OrderStatus::Paid, 2, 1)
}

/// Returns the records of orders: first all orders are placed, then all are paid.
fn placed_and_paid(orders: &[&str]) -> Vec<Value> {
    let placed = orders.iter().enumerate().map(|(at, id)| insert(&(at + 1).to_string(), &pending(id)));
    let count = orders.len();
    let moved =
        orders.iter().enumerate().map(|(at, id)| modify(&(at + count + 1).to_string(), &pending(id), &paid(id)));
    placed.chain(moved).collect()
}

#[tokio::test]
async fn case_02_later_events_of_an_item_wait_for_an_event_that_the_bus_does_not_accept() {
    let (shop, bus) = (Shop::open().await, ScriptedBus::default());
    let consumer = shop.consumer(bus.clone());
    bus.fail(&["a"]);
    assert_eq!(earliest(&consumer, &placed_and_paid(&["a", "b"])).await.as_deref(), Some("1"));
    assert_eq!(bus.calls(), [vec!["a", "b"], vec!["b paid"]]);
}

#[tokio::test]
async fn case_03_an_event_of_another_item_is_not_sent_again_when_the_failed_event_is_retried() {
    let (shop, bus) = (Shop::open().await, ScriptedBus::default());
    let consumer = shop.consumer(bus.clone());
    let batch = [insert("1", &pending("a")), insert("2", &pending("b"))];
    bus.fail(&["a"]);
    assert_eq!(earliest(&consumer, &batch).await.as_deref(), Some("1"));
    bus.recover();
    assert_eq!(earliest(&consumer, &batch).await, None);
    assert_eq!(bus.calls(), [vec!["a", "b"], vec!["a"]]);
    assert_eq!(bus.subjects(), ["b", "a"]);
}

#[tokio::test]
async fn case_11_a_batch_that_is_delivered_twice_is_sent_once() {
    let (shop, bus) = (Shop::open().await, ScriptedBus::default());
    let consumer = shop.consumer(bus.clone());
    let batch = placed_and_paid(&["a", "b"]);
    assert_eq!(earliest(&consumer, &batch).await, None);
    assert_eq!(earliest(&consumer, &batch).await, None);
    // One batch contains the same records twice.
    let orders = [placed_and_paid(&["c"]), placed_and_paid(&["c"])].concat();
    assert_eq!(earliest(&consumer, &orders).await, None);
    assert_eq!(bus.subjects(), ["a", "b", "a paid", "b paid", "c", "c paid"]);
    assert_eq!(shop.marks(&bus.published()).await.len(), 6);
}

#[tokio::test]
async fn case_12_a_replayed_record_sends_no_event_and_a_late_record_sends_its_event() {
    let (shop, bus) = (Shop::open().await, ScriptedBus::default());
    let consumer = shop.consumer(bus.clone());
    let picking = order("a", OrderStatus::Picking, 3, 1);
    let first = insert("1", &pending("a"));
    let second = modify("2", &pending("a"), &paid("a"));
    let third = modify("3", &paid("a"), &picking);
    // The second record was quarantined, so it arrives after the third.
    for batch in [[first.clone()], [third.clone()], [first.clone()], [second.clone()], [third], [second], [first]] {
        assert_eq!(earliest(&consumer, &batch).await, None);
    }
    assert_eq!(bus.subjects(), ["a", "a picking", "a paid"]);
}

#[tokio::test]
async fn case_23_events_are_sent_once_and_not_lost_during_an_outage_of_the_index() {
    let (shop, engine, bus) = (Shop::open().await, Engine::embedded().await, ScriptedBus::default());
    let (consumer, shelf) = consumer([engine.sink().await, shop.sink(bus.clone())]);
    let faults = engine.server.as_ref().unwrap().faults();
    let batch = [insert("1", &product("p", 1)), insert("2", &pending("a")), insert("3", &pending("b"))];
    for kind in [SearchFault::Error, SearchFault::Throttle, SearchFault::Reset] {
        faults.add(Fault { kind, rate: 1.0, count: None, seed: 0 }).unwrap();
        assert_eq!(earliest(&consumer, &batch).await.as_deref(), Some("1"), "{kind:?}");
        faults.clear();
    }
    assert_eq!(bus.subjects(), ["a", "b"]);
    assert_eq!(earliest(&consumer, &batch).await, None);
    assert_eq!(bus.calls().len(), 1);
    assert_eq!(engine.products().await, [("p".to_owned(), 1)]);
    assert_eq!(shelf.kept(), []);
}

#[tokio::test]
async fn case_27_an_unchanged_status_sends_no_event_and_two_status_changes_send_two_events_in_order() {
    let (shop, bus) = (Shop::open().await, ScriptedBus::default());
    let consumer = shop.consumer(bus.clone());
    let touched = order("a", OrderStatus::Paid, 3, 1);
    assert_eq!(earliest(&consumer, &[modify("1", &paid("a"), &touched)]).await, None);
    assert_eq!(bus.calls(), Vec::<Vec<String>>::new());
    let picking = order("a", OrderStatus::Picking, 4, 1);
    let shipped = order("a", OrderStatus::Shipped, 5, 1);
    let batch = [modify("2", &touched, &picking), modify("3", &picking, &shipped)];
    assert_eq!(earliest(&consumer, &batch).await, None);
    // The sink makes two calls, because the bus keeps no order inside one call.
    assert_eq!(bus.calls(), [["a picking"], ["a shipped"]]);
}

#[tokio::test]
async fn case_28_a_crash_between_publishing_and_marking_repeats_the_event_with_its_id() {
    let (shop, bus) = (Shop::open().await, ScriptedBus::default());
    let batch = [insert("1", &pending("a"))];
    bus.hang();
    {
        let (consumer, event) = (shop.consumer(bus.clone()), event(&batch));
        let far = Clock::now() + std::time::Duration::from_secs(60);
        tokio::select! {
            _ = consumer.take(&event, far) => panic!("the bus did not hang"),
            () = bus.hanging() => {}
        }
    }
    bus.recover();
    assert_eq!(earliest(&shop.consumer(bus.clone()), &batch).await, None);
    let published = bus.published();
    let [first, second] = published.as_slice() else { panic!("{published:?}") };
    assert_eq!(first, second);
    assert_eq!(first.to_detail().unwrap(), second.to_detail().unwrap());
}

#[tokio::test]
async fn case_29_only_the_failed_seventh_of_ten_entries_is_sent_again() {
    let (shop, endpoint) = (Shop::open().await, ScriptedEndpoint::failing(7));
    let consumer = shop.consumer(event_bus(&endpoint.start().await, MAX_REQUEST_BYTES));
    let batch: Vec<Value> =
        (1..=10).map(|number| insert(&number.to_string(), &pending(&format!("o{number}")))).collect();
    assert_eq!(earliest(&consumer, &batch).await, None);
    let calls = endpoint.calls();
    let [first, second] = calls.as_slice() else { panic!("{calls:?}") };
    assert_eq!((first.len(), second), (10, &vec![first[6].clone()]));
    assert_eq!(earliest(&consumer, &batch).await, None);
    assert_eq!(endpoint.calls().len(), 2);
}

#[tokio::test]
async fn case_30_an_event_that_is_too_large_is_quarantined_and_the_shard_continues() {
    let (shop, server) = (Shop::open().await, EventBusServer::start(&["shop".to_owned()]).await.unwrap());
    let mut large = pending("b");
    large.data.reference = Some("r".repeat(128).parse().unwrap());
    // The limit is the size of this event. An entry must be smaller than the limit, so the publisher
    // refuses the event.
    let event = event_of(insert("2", &large)).unwrap().unwrap();
    let limit = 14 + "bodega".len() + event.kind().as_str().len() + event.to_detail().unwrap().len();
    let (consumer, shelf) = consumer([shop.sink(event_bus(server.url(), limit))]);
    let mut large_paid = large.clone();
    (large_paid.data.status, large_paid.meta.rev) = (OrderStatus::Paid, 2);
    let batch = [insert("1", &pending("a")), insert("2", &large), modify("3", &large, &large_paid)];
    assert_eq!(earliest(&consumer, &batch).await, None);
    assert_eq!(shelf.sequences(), ["2"]);
    assert_eq!((shelf.kept()[0].kind, shelf.kept()[0].consumer.as_str()), ("bus_refuses", "bus"));
    let sent: Vec<String> = server.published(0, 10).items.into_iter().map(|event| event.detail_type).collect();
    assert_eq!(sent, ["OrderPlaced", "OrderStatusChanged"]);
}

#[tokio::test]
async fn case_31_a_replay_a_day_later_sends_no_event() {
    let (shop, server) = (Shop::open().await, EventBusServer::start(&["shop".to_owned()]).await.unwrap());
    let publisher = || event_bus(server.url(), MAX_REQUEST_BYTES);
    let batch = placed_and_paid(&["a", "b", "c"]);
    assert_eq!(earliest(&shop.consumer(publisher()), &batch).await, None);
    let events: Vec<Event> =
        server.published(0, 100).items.iter().map(|event| Event::from_detail(&event.detail).unwrap()).collect();
    // The batch is replayed after one day, after another day, and after 30 days in the quarantine.
    for days in [1, 1, 30] {
        shop.days_pass(&events, days).await;
        assert_eq!(shop.marks(&events).await.len(), 6, "{days}");
        assert_eq!(earliest(&shop.consumer(publisher()), &batch).await, None);
        assert_eq!(server.published(0, 100).items.len(), 6, "{days}");
    }
    // After the marks have expired, all events are sent again with the same ids.
    shop.days_pass(&events, 4).await;
    assert_eq!(shop.marks(&events).await, []);
    assert_eq!(earliest(&shop.consumer(publisher()), &batch).await, None);
    let again: Vec<Event> =
        server.published(6, 100).items.iter().map(|event| Event::from_detail(&event.detail).unwrap()).collect();
    let ids = |events: &[Event]| events.iter().map(|event| event.id.to_string()).collect::<BTreeSet<_>>();
    assert_eq!((again.len(), ids(&again)), (6, ids(&events)));
}

#[tokio::test]
async fn partial_failures_of_the_bus_neither_lose_nor_repeat_an_event() {
    let (shop, server) = (Shop::open().await, EventBusServer::start(&["shop".to_owned()]).await.unwrap());
    let consumer = shop.consumer(event_bus(server.url(), MAX_REQUEST_BYTES));
    let orders: Vec<String> = (1..=40).map(|number| format!("o{number}")).collect();
    let batch = placed_and_paid(&orders.iter().map(String::as_str).collect::<Vec<_>>());
    server.faults().add(Fault { kind: FaultKind::Partial, rate: 0.5, count: None, seed: 7 }).unwrap();
    for _ in 0..20 {
        if earliest(&consumer, &batch).await.is_none() {
            break;
        }
    }
    assert_eq!(earliest(&consumer, &batch).await, None);
    let events = server.published(0, 1_000).items;
    let mut ids: Vec<&str> = events.iter().map(|event| event.detail["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), events.len()), (80, 80));
}

#[tokio::test]
async fn the_event_of_a_placed_order_has_the_lines_that_both_sinks_read_once() {
    let (shop, bus) = (Shop::open().await, ScriptedBus::default());
    let placed = order("a", OrderStatus::Pending, 1, 2);
    shop.test.put(&placed).await;
    for number in 1..=2 {
        shop.test.put(&line("a", number)).await;
    }
    let derived = Box::new(Derived::new(shop.table.clone(), 4));
    let (consumer, _) = consumer([shop.sink(bus.clone()), derived]);
    let batch = [insert("1", &placed)];
    let reads = || {
        let measured = shop.table.meter().take();
        measured
            .iter()
            .filter(|measured| measured.pattern == &order::LINES)
            .map(|measured| measured.requests)
            .sum::<u32>()
    };
    assert_eq!(earliest(&consumer, &batch).await, None);
    assert_eq!(reads(), 1);
    let [event] = &bus.published()[..] else { panic!() };
    let Data::OrderPlaced(told) = &event.data else { panic!("{event:?}") };
    let lines: Vec<(&str, u64, i64)> =
        told.lines.iter().map(|line| (line.product_id.as_str(), line.quantity, line.total.amount)).collect();
    assert_eq!((lines, told.lines_left_out), (vec![("p1", 1, 129), ("p2", 2, 129)], 0));
    // The event has a mark, and each line has a row.
    assert_eq!(earliest(&consumer, &batch).await, None);
    assert_eq!((reads(), bus.published().len()), (0, 1));
}

#[tokio::test]
async fn the_event_of_an_order_with_an_unreadable_line_is_sent_without_lines() {
    let (shop, bus) = (Shop::open().await, ScriptedBus::default());
    let placed = order("a", OrderStatus::Pending, 1, 1);
    let mut broken = line("a", 1).to_item().unwrap();
    broken.inner_mut().insert("quantity".into(), serde_dynamo::AttributeValue::S("many".into()));
    shop.test.put_item(broken).await;
    assert_eq!(earliest(&shop.consumer(bus.clone()), &[insert("1", &placed)]).await, None);
    let Data::OrderPlaced(told) = &bus.published()[0].data else { panic!() };
    assert_eq!((told.lines.len(), told.lines_left_out), (0, 1));
}

#[tokio::test]
async fn no_event_is_sent_while_the_marks_cannot_be_read() {
    let (shop, bus) = (Shop::open().await, ScriptedBus::default());
    let consumer = shop.consumer(bus.clone());
    shop.test.faults().add(Fault { kind: FaultKind::Throttle, rate: 1.0, count: None, seed: 0 }).unwrap();
    let batch = [insert("1", &product("p", 1)), insert("2", &pending("a"))];
    // The product has no event, so its record is done.
    assert_eq!(earliest(&consumer, &batch).await.as_deref(), Some("2"));
    assert_eq!(bus.calls(), Vec::<Vec<String>>::new());
}

#[tokio::test]
async fn a_published_event_without_a_mark_is_sent_again_with_its_id_but_only_after_a_redelivery() {
    let (shop, bus) = (Shop::open().await, ScriptedBus::default());
    let consumer = shop.consumer(bus.clone());
    let faults = shop.test.faults().clone();
    bus.tell(move |_| {
        faults.add(Fault { kind: FaultKind::Error, rate: 1.0, count: None, seed: 0 }).unwrap();
        Outcome::Published
    });
    let batch = [insert("1", &pending("a"))];
    assert_eq!(earliest(&consumer, &batch).await, None);
    shop.test.faults().clear();
    bus.recover();
    assert_eq!(earliest(&consumer, &batch).await, None);
    assert_eq!(earliest(&consumer, &batch).await, None);
    let published = bus.published();
    assert_eq!(published.len(), 2);
    assert_eq!(published[0], published[1]);
}

#[tokio::test]
async fn after_a_failed_call_the_bus_does_not_get_the_rest_of_a_large_batch() {
    let (shop, bus) = (Shop::open().await, ScriptedBus::default());
    let consumer = shop.consumer(bus.clone());
    bus.tell(|_| retryable());
    let batch: Vec<Value> =
        (1..=250).map(|number| insert(&number.to_string(), &pending(&format!("o{number}")))).collect();
    let taken = run(&consumer, &batch).await;
    assert_eq!(taken.answer.earliest().map(ToString::to_string).as_deref(), Some("1"));
    let counts = taken.report.counts("bus").unwrap();
    assert_eq!((counts.failed, counts.unfinished), (100, 150));
    bus.recover();
    assert_eq!(earliest(&consumer, &batch).await, None);
    let calls: Vec<usize> = bus.calls().iter().map(Vec::len).collect();
    assert_eq!(calls, [100, 100, 100, 50]);
}

#[tokio::test]
async fn a_change_whose_old_image_cannot_be_read_is_quarantined_when_an_event_depends_on_it() {
    let (shop, bus) = (Shop::open().await, ScriptedBus::default());
    let (consumer, shelf) = consumer([shop.sink(bus.clone())]);
    let mut unreadable = modify("1", &pending("a"), &paid("a"));
    unreadable["dynamodb"]["OldImage"]["status"] = serde_json::json!({"N": "1"});
    assert_eq!(earliest(&consumer, &[unreadable, insert("2", &pending("b"))]).await, None);
    assert_eq!((shelf.sequences(), shelf.kept()[0].kind), (vec!["1".to_owned()], "unreadable_old_image"));
    assert_eq!(bus.subjects(), ["b"]);
}
