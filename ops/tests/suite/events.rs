//! Tests the replay of records that the sinks `bus`, `audit` and `derived` refused.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bus::{Event, Outcome};
use fixture::seed;
use futures::future::BoxFuture;
use key_schema::item::{Item, Stored};
use key_schema::order::{Order, OrderLine, OrderStatus};
use ops::OpsError;
use ops::redrive::{Images, Present, Sinks, names, replay, replay_with};
use search_index::Collection;
use serde_json::{Value, json};
use stream::audit::Audit;
use stream::bus::Bus;
use stream::consumer::Consumer;
use stream::derived::Derived;
use stream::ports::Publisher;
use stream::search::Search;
use stream::sink::Sink;
use stream::transitions::Rules;

use crate::redrive::{aside, given_up};
use crate::shop::Bucket;
use crate::shop::{PanickingQuarantine, Shop, deliver_to};
use crate::things::{image, modify, order, remove, with_meta};

/// A bus that accepts every event and records its id.
#[derive(Clone, Default)]
struct Published(Arc<Mutex<Vec<String>>>);

impl Publisher for Published {
    fn publish<'a>(&'a self, events: &'a [Event]) -> BoxFuture<'a, Vec<Outcome>> {
        self.0.lock().unwrap().extend(events.iter().map(|event| event.id.as_str().to_owned()));
        Box::pin(async { events.iter().map(|_| Outcome::Published).collect() })
    }
}

/// Returns a consumer with the sinks that publish events and derive items. Also returns the ids of
/// the published events.
pub fn deriving(shop: &Shop) -> (Consumer, Arc<Mutex<Vec<String>>>) {
    let (table, published) = (Arc::new(shop.table.table()), Published::default());
    let rules = Rules { table: shop.table.name().to_owned(), stock_low: 10 };
    let bus = Box::new(Bus::new(Arc::clone(&table), published.clone(), rules));
    let sinks: Vec<Box<dyn Sink>> = vec![bus, Box::new(Derived::new(table, 2))];
    (Consumer::new(sinks, Box::new(PanickingQuarantine), stream::Settings::default()), published.0)
}

/// The sinks of the functions, with a test bus behind the bus sink.
struct AllSinks<'s> {
    shop: &'s Shop,
    archive: &'s Bucket,
    published: Published,
}

impl Sinks for AllSinks<'_> {
    fn search(&self) -> BoxFuture<'_, Result<Present, OpsError>> {
        Box::pin(async { Ok(Present::new(self.shop.search.clone(), self.shop.items.clone())) })
    }

    fn open<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Box<dyn Sink>, OpsError>> {
        Box::pin(async move {
            let table = Arc::new(self.shop.table.table());
            let rules = Rules { table: self.shop.table.name().to_owned(), stock_low: 10 };
            Ok(match name {
                "bus" => Box::new(Bus::new(table, self.published.clone(), rules)) as Box<dyn Sink>,
                "audit" => Box::new(Audit::new(table, Arc::new(self.archive.store.clone()), 2)),
                _ => Box::new(Derived::new(table, 2)),
            })
        })
    }
}

/// The state that all sinks together have produced: table, archive, bus and index.
#[derive(Debug, PartialEq)]
struct State {
    table: BTreeMap<String, Value>,
    archive: Vec<String>,
    published: Vec<String>,
    orders: Vec<(String, u64)>,
}

impl AllSinks<'_> {
    async fn consumer(&self) -> Consumer {
        let mut sinks: Vec<Box<dyn Sink>> = vec![Box::new(Search::open(self.shop.search.clone()).await)];
        for name in ["bus", "audit", "derived"] {
            sinks.push(self.open(name).await.unwrap());
        }
        Consumer::new(sinks, Box::new(PanickingQuarantine), stream::Settings::default())
    }

    async fn state(&self) -> State {
        let items = self.shop.table.items("").await.into_iter().map(|item| serde_json::to_value(item).unwrap());
        let published = self.published.0.lock().unwrap().clone();
        State {
            table: items.map(|item| (format!("{} {}", item["PK"], item["SK"]), item)).collect(),
            archive: self.archive.names().await,
            published,
            orders: self.shop.found(Collection::Orders).await,
        }
    }
}

impl State {
    fn of_entity(&self, entity: &str) -> Vec<&Value> {
        self.table.values().filter(|item| item["entity"]["S"] == entity).collect()
    }
}

fn placed(order: &Stored<Order>) -> Value {
    let mut record = modify(1, order);
    record["eventName"] = "INSERT".into();
    record["dynamodb"].as_object_mut().unwrap().remove("OldImage");
    record
}

fn moved(sequence: u64, old: &Stored<Order>, new: &Stored<Order>) -> Value {
    let mut record = modify(sequence, new);
    record["dynamodb"]["OldImage"] = image(old);
    record
}

fn expired() -> Value {
    let session = seed::session("s1", "c1", "2017-01-01T11:00:00.000Z".parse().unwrap());
    let mut record = remove(3, &with_meta(session, 1));
    record["userIdentity"] = json!({"type": "Service", "principalId": "dynamodb.amazonaws.com"});
    record
}

#[tokio::test]
async fn case_36_a_repeated_redrive_of_bus_audit_and_derived_data_keeps_newer_data() {
    let (shop, bucket, archive) = (Shop::open().await, Bucket::open().await, Bucket::open().await);
    let sinks = AllSinks { shop: &shop, archive: &archive, published: Published::default() };
    let (pending, cancelled) = (order("o1", OrderStatus::Pending, 1), order("o1", OrderStatus::Cancelled, 2));
    for line in [1, 2] {
        let line = seed::line(&pending.id, line, "p1".parse().unwrap());
        let line = OrderLine { quantity: 3, unit_price: pending.total, total: pending.total, ..line };
        shop.put(&with_meta(line, 1)).await;
    }
    // The expired session below is archived only if its customer has a profile.
    shop.put(&with_meta(seed::customer("c1"), 1)).await;
    // The consumer set aside the record of the placement, and processed the record of the
    // cancellation.
    shop.put(&cancelled).await;
    deliver_to(&sinks.consumer().await, &[moved(2, &pending, &cancelled)]).await;
    let before = sinks.state().await;
    assert_eq!((before.published.len(), before.archive.len()), (1, 0));

    let mut after = None;
    for round in 0..2 {
        for sink in ["bus", "audit", "derived"] {
            bucket.put(&format!("quarantine/2017-01-01/e1-{sink}.json"), &aside(sink, &placed(&pending)));
        }
        let batch = [placed(&pending), moved(2, &pending, &cancelled), expired()];
        bucket.put("aws/lambda/mapping/batch", &given_up("shop-StreamEvents-1", &batch));
        let names = names(&bucket.store).await.unwrap();
        let replayed = replay(&bucket.store, &sinks, &names).await.unwrap();
        assert_eq!((replayed.objects, replayed.records, replayed.is_complete()), (4, 6, true), "{replayed}");

        let state = sinks.state().await;
        assert_eq!(state.orders, [("o1".to_owned(), 2)]);
        let sales = state.of_entity("Sale");
        assert_eq!(sales.len(), 2);
        for sale in sales {
            assert_eq!(
                (&sale["rev"]["N"], &sale["reversed"]),
                (&json!("2"), &json!({"BOOL": true})),
                "the newer state wins"
            );
        }
        let sold: Vec<&Value> = state.of_entity("ProductSales").iter().map(|sold| &sold["quantity"]["N"]).collect();
        assert!(sold.iter().all(|quantity| **quantity == json!("0")), "{sold:?}");
        // The placement has an event, and so has the cancellation.
        assert_eq!((state.published.len(), state.archive.len(), state.of_entity("Expiration").len()), (2, 1, 1));
        match &after {
            None => after = Some(state),
            Some(after) => assert_eq!(&state, after, "round {round}"),
        }
    }
}

#[tokio::test]
async fn the_event_of_a_record_whose_old_image_cannot_be_read_is_sent_with_a_corrected_image() {
    let (shop, bucket, archive) = (Shop::open().await, Bucket::open().await, Bucket::open().await);
    let sinks = AllSinks { shop: &shop, archive: &archive, published: Published::default() };
    let (pending, cancelled) = (order("o1", OrderStatus::Pending, 1), order("o1", OrderStatus::Cancelled, 2));
    let mut record = moved(2, &pending, &cancelled);
    record["dynamodb"]["OldImage"].as_object_mut().unwrap().remove("total");
    let name = "quarantine/2017-01-01/e1-bus.json".to_owned();
    bucket.put(&name, &aside("bus", &record));
    let names = [name];
    let kept = replay(&bucket.store, &sinks, &names).await.unwrap();
    assert!(kept.kept[0].reasons[0].contains("unreadable_old_image"), "{kept}");

    let image = |order: &Stored<Order>| Some(order.to_item().unwrap());
    let broken: Item = serde_json::from_value(record["dynamodb"]["OldImage"].clone()).unwrap();
    for old in [image(&order("o2", OrderStatus::Pending, 1)), Some(broken)] {
        let refused = replay_with(&bucket.store, &sinks, &names, &Images { old, new: None }).await.unwrap_err();
        assert_eq!(refused.exit_code(), 2, "{refused}");
    }
    let images = Images { old: image(&pending), new: None };
    let replayed = replay_with(&bucket.store, &sinks, &names, &images).await.unwrap();
    assert!(replayed.is_complete(), "{replayed}");
    // The event has the id that it would have had with a readable image.
    deliver_to(&sinks.consumer().await, &[moved(2, &pending, &cancelled)]).await;
    assert_eq!(sinks.published.0.lock().unwrap().len(), 1);
    assert_eq!(ops::redrive::names(&bucket.store).await.unwrap(), Vec::<String>::new());
}
