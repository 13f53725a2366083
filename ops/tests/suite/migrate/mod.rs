//! Tests of `ops migrate` with items that earlier releases stored.

mod live;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use emulators::table::FaultKind;
use fixture::{records, seed};
use key_schema::category::CategoryNode;
use key_schema::customer;
use key_schema::document::{CustomerDocument, Document, Tie};
use key_schema::entity::AnyEntity;
use key_schema::id::{Born, CustomerId, LogId};
use key_schema::item::{Entity, FromItem as _, Item, Stored};
use key_schema::money::Currency;
use key_schema::order::{Order, OrderLine, OrderLog, OrderStatus};
use key_schema::place::{self, SalePlace};
use key_schema::review::Review;
use key_schema::review::recent::{Month, RecentReview, ReviewMonth};
use key_schema::sales::{self, Sale};
use key_schema::wallet::{self, Wallet};
use ops::migrate::{
    ALL, DOCUMENT_ROLES, MigrateOptions, Migrated, Migration, NEWEST_REVIEWS, SALE_CUSTOMERS, WALLET_BALANCES,
    run_migration, status,
};

use crate::shop::Shop;

const OPTIONS: MigrateOptions =
    MigrateOptions { dry_run: false, segments: 4, max_read_units: None, max_write_units: None };

/// Returns an item that an earlier release stored, from the samples in the repository.
fn released<T: Entity>(name: &str) -> Stored<T> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/key-schema/tests/suite/released");
    let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    Stored::from_item(serde_json::from_str::<Item>(&text).unwrap()).unwrap()
}

fn id(number: usize) -> CustomerId {
    CustomerId::new(format!("c{number}")).unwrap()
}

pub fn foreign(number: usize) -> Stored<Wallet> {
    let mut wallet = released::<Wallet>("Wallet-foreign");
    wallet.data.customer_id = id(number);
    wallet
}

pub fn review(number: usize) -> Stored<Review> {
    let mut review = released::<Review>("Review");
    review.data.customer_id = id(number);
    let days = i64::try_from(number % 90).unwrap();
    review.meta.created_at = review.meta.created_at.plus_seconds(days * 24 * 60 * 60);
    review
}

fn document(number: usize) -> Stored<Document> {
    let mut head = released::<Document>("Document");
    head.data.id = format!("document-{number}").parse().unwrap();
    head.data.owner_id = Some(id(number % 40));
    head.data.editors = [id(number % 40 + 1)].into();
    head
}

fn order(number: usize) -> Stored<Order> {
    let mut order = records::order(&format!("o{number}"), OrderStatus::Paid, 1, 1);
    order.data.customer_id = id(number % 40);
    order
}

/// Returns the sales row that the first release wrote for the only line of an order.
fn sale(number: usize) -> Stored<Sale> {
    let line = seed::line(&order(number).id, 1, "p1".parse().unwrap());
    let mut row = sales::derive(&order(number), &line);
    row.data.customer_id = None;
    row
}

/// Returns a log line for an even number, and a category for an odd number.
fn entry(number: usize) -> AnyEntity {
    if number.is_multiple_of(2) {
        let mut line = released::<OrderLog>("OrderLog");
        line.data.id = LogId::generate(line.at, [u8::try_from(number % 251).unwrap(); 10]);
        line.data.order_id = order(number).id.clone();
        AnyEntity::OrderLog(line)
    } else {
        let mut node = released::<CategoryNode>("CategoryNode");
        node.data.path = seed::path(&["GROCERY", &format!("C{number}")]);
        AnyEntity::CategoryNode(node)
    }
}

/// Returns the entry as an earlier release stored it, without the index key of its list.
fn unlisted(number: usize) -> Item {
    let mut item = entry(number).to_item().unwrap();
    for name in ["GSI2PK", "GSI2SK", "GSI3PK", "GSI3SK"] {
        item.inner_mut().remove(name);
    }
    item
}

/// Fills a shop with items of earlier releases.
async fn old(shop: &Shop, items: usize) {
    for number in 0..items / 4 {
        shop.table.put_item(unlisted(number)).await;
    }
    shop.table.put_all((0..items).map(foreign)).await;
    shop.table.put_all((0..items).map(review)).await;
    shop.table.put_all((0..items / 4).map(document)).await;
    shop.table.put_all((0..items / 2).map(order)).await;
    shop.table.put_all((0..items / 2).map(sale)).await;
    shop.table.put_all((0..41).map(|number| seed::stored(seed::customer(id(number).as_str())))).await;
}

async fn run(shop: &Shop, migration: &Migration) -> Migrated {
    run_migration(&shop.items, migration, &OPTIONS).await.unwrap()
}

/// Returns every item of a shop by its key.
async fn all(shop: &Shop) -> BTreeMap<String, Item> {
    let items = shop.table.items("").await;
    items.into_iter().map(|item| (format!("{:?} {:?}", item["PK"], item["SK"]), item)).collect()
}

/// Asserts that every item has its present form.
async fn is_migrated(shop: &Shop, items: usize) {
    let all = all(shop).await;
    let stored = |item: Item| all.get(&format!("{:?} {:?}", item["PK"], item["SK"])).cloned();
    for number in 0..items {
        let review = review(number);
        let entry = RecentReview::of(&review).to_item().unwrap();
        assert_eq!(stored(entry.clone()), Some(entry));
        let month = ReviewMonth { month: Month::of(review.meta.created_at) };
        assert!(stored(seed::stored(month).to_item().unwrap()).is_some());
        let wallet = stored(foreign(number).to_item().unwrap()).unwrap();
        let wallet = Stored::<Wallet>::from_item(wallet).unwrap();
        assert_eq!((wallet.currency, wallet.amount), (Currency::SHOP, 0));
        assert_eq!(wallet.balances().iter().map(|money| money.amount).sum::<i64>(), 4_500);
        assert_eq!((wallet.meta.version, wallet.meta.rev), (3, 9), "the version for clients is unchanged");
    }
    for number in 0..items / 2 {
        let mut right = sale(number);
        right.data.customer_id = Some(id(number % 40));
        assert_eq!(stored(sale(number).to_item().unwrap()), Some(right.to_item().unwrap()));
    }
    for number in 0..items / 4 {
        let mut listed = entry(number).to_item().unwrap();
        let rev = |rev: u64| serde_dynamo::AttributeValue::N(rev.to_string());
        assert_eq!(listed["rev"], rev(8), "the rev of the sample");
        listed.inner_mut().insert("rev".to_owned(), rev(9));
        assert_eq!(stored(unlisted(number)), Some(listed));
        let head = document(number);
        for (customer_id, tie) in [(id(number % 40), Tie::Owner), (id(number % 40 + 1), Tie::Editor)] {
            let role = CustomerDocument { customer_id, document_id: head.id.clone(), tie };
            assert!(stored(seed::stored(role).to_item().unwrap()).is_some());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn old_items_get_their_present_form_and_a_second_run_writes_nothing() {
    let shop = Shop::open().await;
    old(&shop, 1_000).await;
    let before = all(&shop).await;
    let counts = |statuses: &ops::migrate::Statuses| -> Vec<u64> {
        statuses.migrations.iter().map(|migration| migration.migrated).collect()
    };
    assert_eq!(counts(&status(&shop.items, &OPTIONS).await.unwrap()), [250, 1_000, 1_000, 500, 250]);
    for (migration, count) in ALL.into_iter().zip([250, 1_000, 1_000, 500, 250]) {
        let dry = run_migration(&shop.items, migration, &MigrateOptions { dry_run: true, ..OPTIONS }).await.unwrap();
        assert_eq!((dry.migrated, dry.done), (count, 0), "{dry}");
        assert!((1..=2).contains(&dry.sample.len()), "each kind of change is shown once: {dry}");
        assert!(
            !dry.to_string().contains("household") && !dry.to_string().contains("c1"),
            "the report shows no values: {dry}"
        );
    }
    assert!(all(&shop).await == before, "a dry run writes nothing");
    for (migration, count) in ALL.into_iter().zip([250, 1_000, 1_000, 500, 250]) {
        let migrated = run(&shop, migration).await;
        assert_eq!((migrated.migrated, migrated.done, migrated.contended), (count, 0, 0), "{migrated}");
        assert!(migrated.is_complete());
    }
    is_migrated(&shop, 1_000).await;
    let after = all(&shop).await;
    for (migration, count) in ALL.into_iter().zip([250, 1_000, 1_000, 500, 250]) {
        assert_eq!((run(&shop, migration).await.migrated, run(&shop, migration).await.done), (0, count));
    }
    assert!(all(&shop).await == after, "a second run writes nothing");
    assert_eq!(counts(&status(&shop.items, &OPTIONS).await.unwrap()), [0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn a_dry_run_shows_attributes_and_kinds() {
    let shop = Shop::open().await;
    old(&shop, 4).await;
    let dry = MigrateOptions { dry_run: true, ..OPTIONS };
    let shown = run_migration(&shop.items, &WALLET_BALANCES, &dry).await.unwrap().sample.remove(0);
    let changes = "EUR absent -> number, amount number -> number, currency text -> text, rev number -> number";
    assert_eq!(shown, format!("Wallet: {changes}"));
    let shown = run_migration(&shop.items, &DOCUMENT_ROLES, &dry).await.unwrap().sample.remove(0);
    assert!(shown.starts_with("new CustomerDocument: PK text, SK text, born text,"), "{shown}");
}

/// A wallet that a request converts equals a wallet that the migration converts.
#[tokio::test]
async fn a_migrated_wallet_equals_one_that_a_request_converted() {
    let shop = Shop::open().await;
    shop.table.put(&foreign(1)).await;
    run(&shop, &WALLET_BALANCES).await;
    let migrated = all(&shop).await;
    shop.table.put(&foreign(1)).await;
    shop.table.own().write(&wallet::convert(&foreign(1)).unwrap().unwrap()).await.unwrap().unwrap();
    assert_eq!(all(&shop).await, migrated);
}

/// The consumer upgrades the rows of an order whose record it takes, and the scan upgrades the
/// other rows. Both give a row the same form, and neither changes a row that the other has written.
#[tokio::test]
async fn a_migration_by_the_stream_and_one_by_a_scan_give_the_same_rows() {
    let shop = Shop::open().await;
    shop.table.put_all((0..2).map(order)).await;
    shop.table.put_all((0..2).map(|number| records::at_rev(line(number), 1))).await;
    shop.table.put_all((0..2).map(sale)).await;
    let place = |number| SalePlace::of(&order(number), None, place::store_of(&order(number)));
    shop.table.put_all((0..2).map(|number| Stored { meta: order(number).meta, data: place(number) })).await;
    let (consumer, _) = crate::events::deriving(&shop);
    crate::shop::deliver_to(&consumer, &[records::insert("000000000000000000001", &order(0))]).await;
    let migrated = run(&shop, &SALE_CUSTOMERS).await;
    assert_eq!((migrated.migrated, migrated.done), (1, 1), "the stream had upgraded one row");
    let rows = || async {
        let items = shop.table.items("SALES#").await.into_iter();
        let mut rows: Vec<Item> = items.filter(|item| item.contains_key("line")).collect();
        rows.sort_by_key(|item| format!("{:?}", item["PK"]));
        rows
    };
    let after = rows().await;
    let right = (0..2).map(|number| sales::derive(&order(number), &line(number)).to_item().unwrap());
    assert_eq!(after, right.collect::<Vec<_>>());
    crate::shop::deliver_to(&consumer, &[records::insert("000000000000000000002", &order(1))]).await;
    assert_eq!((rows().await, run(&shop, &SALE_CUSTOMERS).await.migrated), (after, 0));
}

fn line(number: usize) -> OrderLine {
    seed::line(&order(number).id, 1, "p1".parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_stopped_anywhere_is_resumed() {
    let shop = Shop::open().await;
    old(&shop, 200).await;
    let (mut stopped, mut written) = (0, 0);
    for migration in ALL {
        let mut stop = 5;
        loop {
            let run = run_migration(&shop.items, migration, &OPTIONS);
            match tokio::time::timeout(Duration::from_millis(stop), run).await {
                Ok(done) => {
                    written += done.unwrap().migrated;
                    break;
                }
                Err(_) => stopped += 1,
            }
            stop += 20;
        }
    }
    assert!(stopped > 3, "{stopped}");
    assert!(written < 550, "a resumed run skips the written items: {written}");
    is_migrated(&shop, 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_completes_while_the_table_throttles() {
    let shop = Shop::open().await;
    old(&shop, 20).await;
    shop.table.break_with(FaultKind::Throttle, 0.3, None, 7);
    for migration in ALL {
        assert!(run(&shop, migration).await.is_complete());
    }
    assert!(shop.table.clear_faults() > 10);
    is_migrated(&shop, 20).await;
}

/// The SDK gives up after a few attempts of a call. The tool continues.
#[tokio::test]
async fn a_read_of_related_items_continues_after_the_sdk_has_given_up() {
    let shop = Shop::open().await;
    let old = review(1);
    shop.table.put(&old).await;
    shop.table.break_with(FaultKind::Throttle, 1.0, Some(8), 0);
    assert_eq!(shop.items.get(&[old.key().unwrap()]).await.unwrap().len(), 1);
    assert_eq!(shop.table.clear_faults(), 8);
}

#[tokio::test]
async fn the_limit_of_write_units_holds() {
    let shop = Shop::open().await;
    shop.table.put_all((0..20).map(foreign)).await;
    let started = tokio::time::Instant::now();
    // Each wallet takes two units, because the write is a transaction.
    let options = MigrateOptions { max_write_units: Some(20), ..OPTIONS };
    assert_eq!(run_migration(&shop.items, &WALLET_BALANCES, &options).await.unwrap().migrated, 20);
    assert!(started.elapsed() >= Duration::from_millis(1_500), "{:?}", started.elapsed());
}

/// If a review is removed or changes between the read and the write, no entry is written for it.
#[tokio::test]
async fn no_entry_is_written_for_a_review_that_changed_after_it_was_read() {
    let shop = Shop::open().await;
    let (old, key) = (review(1), review(1).key().unwrap());
    let item = old.to_item().unwrap();
    let entity = AnyEntity::from_item(item.clone()).unwrap();
    let others = std::collections::HashMap::new();
    let seen = ops::migrate::Seen { item: &item, entity: &entity, others: &others };
    let ops::migrate::Plan::Write(writes) = (NEWEST_REVIEWS.plan)(&seen).unwrap() else { panic!("nothing to do") };
    let pace = ops::Pace::new(None);
    let entry = writes.last().unwrap();
    assert_eq!(shop.items.repair(entry, &pace).await.unwrap(), ops::items::Repaired::Refused, "the review is removed");
    let mut newer = old.clone();
    newer.meta.rev += 1;
    shop.table.put(&newer).await;
    assert_eq!(shop.items.repair(entry, &pace).await.unwrap(), ops::items::Repaired::Refused, "the review has changed");
    let mut again = old.clone();
    again.meta.born = Born::new("again").unwrap();
    shop.table.put(&again).await;
    assert_eq!(
        shop.items.repair(entry, &pace).await.unwrap(),
        ops::items::Repaired::Refused,
        "the review was deleted and written again"
    );
    assert_eq!(shop.table.keys("RECENTREVIEWS").await, []);
    shop.table.delete(&key).await;
    shop.table.put(&old).await;
    assert_eq!(shop.items.repair(entry, &pace).await.unwrap(), ops::items::Repaired::Done);
}

#[tokio::test]
async fn a_role_is_written_only_for_a_customer_with_a_profile() {
    let shop = Shop::open().await;
    shop.table.put(&document(1)).await;
    let migrated = run(&shop, &DOCUMENT_ROLES).await;
    assert_eq!((migrated.migrated, migrated.kept.values().sum::<u64>()), (0, 1), "{migrated}");
    shop.table.sign_up("c1").await;
    assert_eq!(run(&shop, &DOCUMENT_ROLES).await.migrated, 1, "the owner has a profile, the editor has none");
    shop.table.transact(&customer::create(&seed::stored(seed::customer("c2"))).unwrap()).await;
    assert_eq!(run(&shop, &DOCUMENT_ROLES).await.migrated, 1);
    assert_eq!(shop.table.keys("CUSTOMER#").await.iter().filter(|(_, sk)| sk.starts_with("DOCUMENT#")).count(), 2);
}

/// For an item that a migration wrote, the consumer of the stream makes no event and writes no
/// item. So there is no loop.
#[tokio::test]
async fn a_migration_is_silent_in_the_stream() {
    let shop = Shop::open().await;
    shop.table.put_all((0..5).map(foreign)).await;
    shop.table.put_all((0..5).map(review)).await;
    shop.table.put_all((0..5).map(document)).await;
    shop.table.put_all((0..9).map(|number| seed::stored(seed::customer(id(number).as_str())))).await;
    let old = all(&shop).await;
    for migration in ALL {
        run(&shop, migration).await;
    }
    let new = all(&shop).await;
    let mut written = Vec::new();
    for (key, item) in new.iter().filter(|(key, item)| old.get(*key) != Some(*item)) {
        let mut record = records::insert("000000000000000000001", &foreign(0));
        let image = |item: &Item| serde_json::to_value(item).unwrap();
        let change = &mut record["dynamodb"];
        change["SequenceNumber"] = format!("{:021}", written.len() + 1).into();
        change["Keys"] = serde_json::json!({"PK": image(item)["PK"], "SK": image(item)["SK"]});
        change["NewImage"] = image(item);
        if let Some(old) = old.get(key) {
            change["OldImage"] = image(old);
            record["eventName"] = "MODIFY".into();
        }
        written.push(record);
    }
    assert_eq!(written.len(), 5 + 5 + 1 + 10, "wallets, entries, a month, roles");
    let (consumer, published) = crate::events::deriving(&shop);
    crate::shop::deliver_to(&consumer, &written).await;
    assert_eq!(*published.lock().unwrap(), Vec::<String>::new());
    assert!(all(&shop).await == new, "the consumer writes nothing");
}
