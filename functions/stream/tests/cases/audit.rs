//! Tests of expiry: an expired item is archived once and recorded once.

mod belongings;

use std::sync::Arc;

use emulators::faults::{Fault, FaultKind};
use fixture::{TestTable, seed};
use key_schema::archive::{collection, objects};
use key_schema::cart::{Cart, CartLine};
use key_schema::customer;
use key_schema::entity::AnyEntity;
use key_schema::expiration::{self, Expiration, RemovedBy};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Stored};
use key_schema::order::{CustomerOrder, OrderStatus, OrderStatusEvent};
use key_schema::session::Session;
use serde_json::{Value, json};
use stream::Consumer;
use stream::archive::{self, Archived};
use stream::audit::Audit;
use stream::sink::Sink;
use table::Table;

use crate::store::Bucket;
use crate::support::{consumer, earliest, image, insert, line, meta, modify, order, product, remove};

/// The day of every record in these tests.
const DAY: &str = "2017-01-01";
const REMOVED_AT: &str = "2017-01-01T11:53:26.000Z";

struct Shop {
    test: TestTable,
    table: Arc<Table>,
    bucket: Bucket,
    consumer: Consumer,
}

impl Shop {
    /// Opens a shop with the customer who owns the expiring items.
    async fn open() -> Self {
        let shop = Self::without_customers().await;
        shop.sign_up("c1", meta(1).created_at).await;
        shop
    }

    async fn without_customers() -> Self {
        let test = TestTable::create().await;
        let (table, bucket) = (Arc::new(test.table()), Bucket::create().await);
        let sink: Box<dyn Sink> = Box::new(Audit::new(table.clone(), bucket.store.clone(), 4));
        let consumer = consumer([sink]).0;
        Self { test, table, bucket, consumer }
    }

    async fn sign_up(&self, id: &str, at: Instant) {
        let customer = Stored::new(seed::customer(id), "b1".parse().unwrap(), at);
        self.test.transact(&customer::create(&customer).unwrap()).await;
    }

    async fn erase(&self, id: &str) {
        self.test.delete_profile(id).await;
    }

    async fn take(&self, records: &[Value]) -> Option<String> {
        earliest(&self.consumer, records).await
    }

    /// Returns the audit entries of the day, newest first.
    async fn entries(&self) -> Vec<Stored<Expiration>> {
        self.table.query(&expiration::of_day(DAY).unwrap()).await.unwrap().items
    }

    async fn counts(&self) -> (usize, usize) {
        (self.bucket.names().len(), self.entries().await.len())
    }
}

fn session(id: &str) -> Stored<Session> {
    let data = Session {
        sign_in: None,
        id: id.parse().unwrap(),
        customer_id: "c1".parse().unwrap(),
        expires_at: "2017-01-01T11:00:00.000Z".parse().unwrap(),
        device: "Laptop".into(),
    };
    Stored { meta: meta(1), data }
}

fn cart() -> Stored<Cart> {
    let line = CartLine { quantity: 2, added_at: Instant::EPOCH };
    let data = Cart {
        customer_id: "c1".parse().unwrap(),
        expires_at: "2017-01-01T11:00:00.000Z".parse().unwrap(),
        lines: [("p1".parse().unwrap(), line)].into(),
    };
    Stored { meta: meta(3), data }
}

/// Returns the record of a removal by DynamoDB. The identity has Lambda's spelling.
fn expire<T: Entity>(sequence: &str, old: &Stored<T>) -> Value {
    by(remove(sequence, old), json!({"type": "Service", "principalId": "dynamodb.amazonaws.com"}))
}

fn by(mut record: Value, identity: Value) -> Value {
    record["userIdentity"] = identity;
    record
}

#[tokio::test]
async fn case_32_an_expiry_that_is_delivered_again_creates_one_object_and_one_entry() {
    let shop = Shop::open().await;
    let session = session("s1");
    for _ in 0..3 {
        assert_eq!(shop.take(&[expire("7", &session)]).await, None);
    }
    let (key, sequence) = (session.data.key().unwrap(), "7".parse().unwrap());
    let name = archive::name(&AnyEntity::Session(session.clone()), &key, &sequence).unwrap();
    assert_eq!(shop.bucket.names(), std::slice::from_ref(&name));
    assert_eq!(
        shop.bucket.json(&name),
        json!({
            "entity": "Session", "key": {"PK": "SESSION#s1", "SK": "SESSION"}, "removed_at": REMOVED_AT,
            "removed_by": "ttl",
            "sequence_number": "7", "item": image(&session),
        })
    );
    let entries = shop.entries().await;
    let [entry] = entries.as_slice() else { panic!("{entries:?}") };
    let expected = Expiration {
        kind: "Session".into(),
        item: archive::hash(&key),
        removed_at: REMOVED_AT.parse().unwrap(),
        sequence_number: "7".into(),
        removed_by: RemovedBy::Ttl,
        archive: Some(name),
    };
    assert_eq!(entry.data, expected);
}

#[tokio::test]
async fn case_32_a_crash_between_object_and_entry_ends_with_one_object_and_one_entry() {
    let shop = Shop::open().await;
    let refused = Fault { kind: FaultKind::Throttle, rate: 1.0, count: None, seed: 0 };
    let _throttles = shop.test.count_throttles();
    shop.test.faults().add_to_keys(refused, "AUDIT#").unwrap();
    assert_eq!(shop.take(&[expire("7", &session("s1"))]).await.as_deref(), Some("7"));
    shop.test.faults().clear();
    // The object is written first, so an entry always names an existing object.
    assert_eq!(shop.counts().await, (1, 0));
    assert_eq!(shop.take(&[expire("7", &session("s1"))]).await, None);
    assert_eq!(shop.counts().await, (1, 1));
}

#[tokio::test]
async fn without_the_archive_no_entry_is_written_and_the_record_is_delivered_again() {
    let shop = Shop::open().await;
    let away = Fault { kind: FaultKind::Error, rate: 1.0, count: None, seed: 0 };
    shop.bucket.server.faults().add(away).unwrap();
    assert_eq!(shop.take(&[expire("7", &session("s1")), expire("8", &cart())]).await.as_deref(), Some("7"));
    assert_eq!(shop.counts().await, (0, 0));
    shop.bucket.server.faults().clear();
    assert_eq!(shop.take(&[expire("7", &session("s1")), expire("8", &cart())]).await, None);
    assert_eq!(shop.counts().await, (2, 2));
}

#[tokio::test]
async fn case_33_a_removal_by_a_caller_leaves_no_trace() {
    let shop = Shop::open().await;
    let batch = [remove("1", &session("s1")), by(remove("2", &cart()), Value::Null)];
    assert_eq!(shop.take(&batch).await, None);
    assert_eq!(shop.counts().await, (0, 0));
}

#[tokio::test]
async fn case_33_a_removal_by_an_unknown_identity_is_recorded_as_unknown() {
    let shop = Shop::open().await;
    let identities = [
        json!({"type": "Service", "principalId": "replication.dynamodb.amazonaws.com"}),
        json!({"type": "Root", "principalId": "dynamodb.amazonaws.com"}),
        json!({"type": "Service"}),
        json!("dynamodb.amazonaws.com"),
    ];
    for (number, identity) in identities.into_iter().enumerate() {
        assert_eq!(shop.take(&[by(remove(&format!("{}", 10 + number), &session("s1")), identity)]).await, None);
    }
    let entries = shop.entries().await;
    assert_eq!(entries.len(), 4);
    assert!(entries.iter().all(|entry| entry.removed_by == RemovedBy::Unknown));
    assert!(shop.bucket.all().iter().all(|object| object["removed_by"] == "unknown"));
}

#[tokio::test]
async fn dynamodb_is_recognised_in_either_spelling_of_its_identity() {
    let shop = Shop::open().await;
    let lambda = json!({"type": "Service", "principalId": "dynamodb.amazonaws.com"});
    let streams = json!({"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"});
    for (sequence, identity) in [("1", lambda), ("2", streams)] {
        assert_eq!(shop.take(&[by(remove(sequence, &session("s1")), identity)]).await, None);
    }
    let labels: Vec<RemovedBy> = shop.entries().await.iter().map(|entry| entry.removed_by).collect();
    assert_eq!(labels, [RemovedBy::Ttl, RemovedBy::Ttl]);
}

#[tokio::test]
async fn secrets_of_a_session_are_neither_archived_nor_recorded() {
    let shop = Shop::open().await;
    let mut record = expire("7", &session("s1"));
    // The schema does not have these attributes, but another program may have stored them.
    for secret in ["token", "refresh_token", "password", "ip"] {
        record["dynamodb"]["OldImage"][secret] = json!({"S": "hunter2"});
    }
    assert_eq!(shop.take(&[record]).await, None);
    let names = shop.bucket.names();
    let text = shop.bucket.text(&names[0]);
    assert!(!text.contains("hunter2") && !text.contains("token"), "{text}");
    let archived: Archived = serde_json::from_str(&text).unwrap();
    let mut attributes: Vec<&str> = archived.item.keys().map(String::as_str).collect();
    attributes.sort_unstable();
    let schema = ["GSI1PK", "GSI1SK", "PK", "SK", "born", "created_at"];
    let own = ["customer_id", "device", "entity", "expires_at", "id", "rev", "ttl", "updated_at", "version"];
    assert_eq!(attributes, [&schema[..], &own[..]].concat());
    assert!(!serde_json::to_string(&shop.entries().await[0].data).unwrap().contains("hunter2"));
}

#[tokio::test]
async fn an_audit_entry_names_no_customer() {
    let shop = Shop::open().await;
    let mut cart = cart();
    cart.data.customer_id = "household-2375".parse().unwrap();
    shop.sign_up("household-2375", meta(1).created_at).await;
    assert_eq!(shop.take(&[expire("7", &cart)]).await, None);
    let entry = image(&shop.entries().await[0]).to_string();
    assert!(!entry.contains("household"), "{entry}");
    assert!(!shop.bucket.names()[0].contains("household"));
}

#[tokio::test]
async fn every_item_of_a_retired_order_is_archived_but_only_its_head_is_recorded() {
    let shop = Shop::open().await;
    let gone = Some("2017-01-01T11:00:00.000Z".parse().unwrap());
    let mut head = order("o1", OrderStatus::Delivered, 6, 1);
    head.data.expires_at = gone;
    let mut line = line("o1", 1);
    line.data.expires_at = gone;
    let step = OrderStatusEvent {
        order_id: "o1".parse().unwrap(),
        status: OrderStatus::Delivered,
        at: "2017-01-01T10:00:00.000Z".parse().unwrap(),
        by: "staff-1".into(),
        note: None,
        message: None,
        carrier: None,
        tracking: None,
        expires_at: gone,
    };
    let step = Stored { meta: meta(2), data: step };
    let copy = Stored { meta: meta(5), data: CustomerOrder::of(&head) };
    let batch = [expire("1", &head), expire("2", &line), expire("3", &step), expire("4", &copy)];
    assert_eq!(shop.take(&batch).await, None);
    assert_eq!(shop.counts().await, (4, 1));
    assert_eq!(shop.entries().await[0].kind, "Order");
    assert!(shop.bucket.objects().iter().all(|object| object.class == "GLACIER_IR"), "{:?}", shop.bucket.objects());
    // The objects of the head, the lines and the history have the same prefix.
    let together = collection(&head.data.key().unwrap().pk);
    assert_eq!(shop.bucket.names().iter().filter(|name| name.starts_with(&together)).count(), 3);
}

#[tokio::test]
async fn other_changes_are_not_audited() {
    let shop = Shop::open().await;
    let entry = Expiration {
        kind: "Session".into(),
        item: "h".into(),
        removed_at: REMOVED_AT.parse().unwrap(),
        sequence_number: "1".into(),
        removed_by: RemovedBy::Ttl,
        archive: Some("a".into()),
    };
    let batch = [
        insert("1", &session("s1")),
        modify("2", &session("s1"), &session("s1")),
        // The order is not retired, so it has no time to live.
        by(remove("3", &order("o1", OrderStatus::Paid, 1, 1)), json!({"type": "Service", "principalId": "x"})),
        by(remove("4", &line("o1", 1)), json!({"type": "Service", "principalId": "x"})),
        expire("5", &product("p1", 1)),
        // The sink itself wrote this item.
        expire("6", &entry.stored().unwrap()),
    ];
    assert_eq!(shop.take(&batch).await, None);
    assert_eq!(shop.counts().await, (0, 0));
}

#[tokio::test]
async fn a_key_that_expires_twice_is_archived_and_recorded_twice() {
    let shop = Shop::open().await;
    assert_eq!(shop.take(&[expire("7", &session("s1")), expire("9", &session("s1"))]).await, None);
    assert_eq!(shop.counts().await, (2, 2));
    let session = session("s1");
    let under = objects(&AnyEntity::Session(session.clone()), &session.data.key().unwrap()).unwrap();
    assert!(shop.bucket.names().iter().all(|name| name.starts_with(&under)));
}
