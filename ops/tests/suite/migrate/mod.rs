//! Tests of `ops migrate`: of its rules, with migrations that only these tests have, and of the
//! migrations of this release.

mod live;
mod stocks;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use emulators::table::FaultKind;
use fixture::{records, seed};
use key_schema::document::{CustomerDocument, Tie};
use key_schema::entity::AnyEntity;
use key_schema::id::{Born, CustomerId};
use key_schema::item::{Entity, FromItem as _, Item, Stored, key_of};
use key_schema::key::Key;
use key_schema::money::Currency;
use key_schema::review::Review;
use key_schema::review::recent::{self, Month, RecentReview, ReviewMonth};
use key_schema::wallet::Wallet;
use ops::OpsError;
use ops::items::{Check, Repair, RepairWrite, set, sets};
use ops::migrate::{MigrateOptions, Migrated, Migration, Plan, Seen, Statuses, run_migration, status};
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};

use crate::shop::Shop;

const OPTIONS: MigrateOptions =
    MigrateOptions { dry_run: false, segments: 4, max_read_units: None, max_write_units: None };

pub const MIGRATIONS: [&dyn Migration; 3] = [&Euros, &Entries, &Roles];

/// The attribute in which old wallets have their euros.
pub const OLD_EUROS: &str = "euros";
/// The balance of a wallet, in minor units.
pub const BALANCE: i64 = 4_500;

/// Moves euros from an old attribute to the attribute of their currency.
pub struct Euros;

impl Migration for Euros {
    fn name(&self) -> &'static str {
        "euros"
    }

    fn about(&self) -> &'static str {
        "wallets with euros in an attribute of their own"
    }

    fn entities(&self) -> &[&'static str] {
        &["Wallet"]
    }

    fn plan(&self, seen: &Seen<'_>) -> Result<Plan, OpsError> {
        let AnyEntity::Wallet(wallet) = seen.entity else { return Ok(Plan::Done) };
        let Some(AttributeValue::N(old)) = seen.item.get(OLD_EUROS) else { return Ok(Plan::Done) };
        let sum = wallet.balance(euros()).amount + old.parse::<i64>().unwrap();
        let mut right = set(seen.item.clone(), "EUR", number(sum));
        right.inner_mut().remove(OLD_EUROS);
        let change = sets(seen.item, &right, ["EUR", OLD_EUROS], true);
        Ok(Plan::Write(vec![Repair { checks: Vec::new(), change }]))
    }
}

/// Adds reviews to the list of the newest reviews: an entry for each, and an item for each month.
struct Entries;

impl Migration for Entries {
    fn name(&self) -> &'static str {
        "entries"
    }

    fn about(&self) -> &'static str {
        "reviews without an entry in the list of the newest reviews"
    }

    fn entities(&self) -> &[&'static str] {
        &["Review"]
    }

    fn needs(&self, entity: &AnyEntity) -> Result<Vec<Key>, OpsError> {
        let AnyEntity::Review(review) = entity else { return Ok(Vec::new()) };
        Ok(vec![RecentReview::of(review).key()?, recent::month(&Month::of(review.meta.created_at))?.key().clone()])
    }

    fn plan(&self, seen: &Seen<'_>) -> Result<Plan, OpsError> {
        let AnyEntity::Review(review) = seen.entity else { return Ok(Plan::Done) };
        let month =
            Stored { meta: review.meta.clone(), data: ReviewMonth { month: Month::of(review.meta.created_at) } };
        let unchanged = Check::of(&review.key()?, Some(seen.item));
        let mut writes = Vec::new();
        for (item, checks) in [(month.to_item()?, Vec::new()), (RecentReview::of(review).to_item()?, vec![unchanged])] {
            if !seen.others.contains_key(&key_of(&item).unwrap()) {
                writes.push(Repair { checks, change: RepairWrite::Put(item) });
            }
        }
        Ok(if writes.is_empty() { Plan::Done } else { Plan::Write(writes) })
    }
}

/// Moves the role items of documents from their old key to the key of the entity.
struct Roles;

impl Migration for Roles {
    fn name(&self) -> &'static str {
        "roles"
    }

    fn about(&self) -> &'static str {
        "role items under their old key"
    }

    fn entities(&self) -> &[&'static str] {
        &["CustomerDocument"]
    }

    fn needs(&self, entity: &AnyEntity) -> Result<Vec<Key>, OpsError> {
        let AnyEntity::CustomerDocument(role) = entity else { return Ok(Vec::new()) };
        Ok(vec![role.key()?])
    }

    fn plan(&self, seen: &Seen<'_>) -> Result<Plan, OpsError> {
        let AnyEntity::CustomerDocument(role) = seen.entity else { return Ok(Plan::Done) };
        let key = role.key()?;
        if key_of(seen.item).as_ref() == Some(&key) {
            return Ok(Plan::Done);
        }
        if seen.others.contains_key(&key) {
            return Ok(Plan::Keep("another item has the new key"));
        }
        let change = RepairWrite::Move { old: seen.item.clone(), new: role.to_item()? };
        Ok(Plan::Write(vec![Repair { checks: Vec::new(), change }]))
    }
}

fn euros() -> Currency {
    "EUR".parse().unwrap()
}

fn number(number: i64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

pub fn id(number: usize) -> CustomerId {
    CustomerId::new(format!("c{number}")).unwrap()
}

/// Returns a wallet with [`BALANCE`] in euros.
pub fn wallet(number: usize) -> Stored<Wallet> {
    let id = id(number);
    let item = json!({
        "PK": {"S": format!("WALLET#{id}")}, "SK": {"S": "WALLET"}, "entity": {"S": "Wallet"},
        "customer_id": {"S": id}, "EUR": {"N": BALANCE.to_string()},
        "born": {"S": seed::born()}, "version": {"N": "3"}, "rev": {"N": "8"},
        "created_at": {"S": "2017-01-01T00:00:00.000Z"}, "updated_at": {"S": "2017-01-01T00:00:00.000Z"},
    });
    Stored::from_item(serde_json::from_value::<Item>(item).unwrap()).unwrap()
}

/// Returns the wallet in its old form. A part of its euros is already in the new attribute.
pub fn old_wallet(number: usize) -> Item {
    let old = set(wallet(number).to_item().unwrap(), "EUR", self::number(BALANCE - 500));
    set(old, OLD_EUROS, self::number(500))
}

fn review(number: usize) -> Stored<Review> {
    let data = Review {
        product_id: "tea".parse().unwrap(),
        customer_id: id(number),
        rating: 5,
        display_name: None,
        title: "Tea".to_owned(),
        text: "As a household expects.".to_owned(),
    };
    let mut review = records::at_rev(data, 1);
    let days = i64::try_from(number % 90).unwrap();
    review.meta.created_at = review.meta.created_at.plus_seconds(days * 24 * 60 * 60);
    review
}

fn role(number: usize) -> Item {
    let document_id = format!("document-{number}").parse().unwrap();
    let role = CustomerDocument { customer_id: id(number), document_id, tie: Tie::Owner };
    records::at_rev(role, 1).to_item().unwrap()
}

fn old_role(number: usize) -> Item {
    set(role(number), "SK", AttributeValue::S(format!("OLD#document-{number}")))
}

/// Fills a shop with old items: of each kind, this number.
pub async fn old(shop: &Shop, items: usize) {
    for number in 0..items {
        shop.table.put_item(old_wallet(number)).await;
        shop.table.put_item(old_role(number)).await;
    }
    shop.table.put_all((0..items).map(review)).await;
}

async fn run(shop: &Shop, migration: &dyn Migration) -> Migrated {
    run_migration(&shop.items, migration, &OPTIONS).await.unwrap()
}

/// Returns every item of a shop by its key.
async fn all(shop: &Shop) -> BTreeMap<Key, Item> {
    shop.table.items("").await.into_iter().map(|item| (key_of(&item).unwrap(), item)).collect()
}

/// Asserts that every item has its present form.
async fn is_migrated(shop: &Shop, items: usize) {
    let all = all(shop).await;
    let stored = |item: &Item| all.get(&key_of(item).unwrap()).cloned();
    for number in 0..items {
        let entry = RecentReview::of(&review(number)).to_item().unwrap();
        assert_eq!(stored(&entry), Some(entry));
        let month = ReviewMonth { month: Month::of(review(number).meta.created_at) };
        assert!(all.contains_key(&month.key().unwrap()));
        let mut right = wallet(number);
        right.meta.rev += 1;
        assert_eq!(stored(&old_wallet(number)), Some(right.to_item().unwrap()), "version and balance are unchanged");
        assert_eq!((stored(&role(number)), stored(&old_role(number))), (Some(role(number)), None));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn old_items_get_their_present_form_and_a_second_run_writes_nothing() {
    let shop = Shop::open().await;
    old(&shop, 500).await;
    let before = all(&shop).await;
    let left = async || -> Vec<u64> {
        let Statuses { migrations } = status(&shop.items, &MIGRATIONS, &OPTIONS).await.unwrap();
        migrations.iter().map(|migration| migration.migrated).collect()
    };
    assert_eq!(left().await, [500, 500, 500]);
    for migration in MIGRATIONS {
        let dry = run_migration(&shop.items, migration, &MigrateOptions { dry_run: true, ..OPTIONS }).await.unwrap();
        assert_eq!((dry.migrated, dry.done), (500, 0), "{dry}");
        assert!((1..=2).contains(&dry.sample.len()), "each kind of change is shown once: {dry}");
        assert!(
            !dry.to_string().contains("household") && !dry.to_string().contains("c1"),
            "the report shows no values: {dry}"
        );
    }
    assert!(all(&shop).await == before, "a dry run writes nothing");
    for migration in MIGRATIONS {
        let migrated = run(&shop, migration).await;
        // A run may also read items that it has moved.
        assert_eq!((migrated.migrated, migrated.contended), (500, 0), "{migrated}");
        assert!(migrated.is_complete());
    }
    is_migrated(&shop, 500).await;
    let after = all(&shop).await;
    for migration in MIGRATIONS {
        let again = run(&shop, migration).await;
        assert_eq!((again.migrated, again.done), (0, 500), "{again}");
    }
    assert!(all(&shop).await == after, "a second run writes nothing");
    assert_eq!(left().await, [0, 0, 0]);
}

#[tokio::test]
async fn a_dry_run_shows_attributes_and_kinds() {
    let shop = Shop::open().await;
    old(&shop, 1).await;
    let dry = MigrateOptions { dry_run: true, ..OPTIONS };
    let shown = async |migration| run_migration(&shop.items, migration, &dry).await.unwrap().sample;
    assert_eq!(shown(&Euros).await, ["Wallet: EUR number -> number, euros number -> absent, rev number -> number"]);
    let entries = shown(&Entries).await;
    assert!(entries[0].starts_with("new ReviewMonth: ") && entries[0].contains("PK text, SK text, born text,"));
    assert_eq!(shown(&Roles).await, ["CustomerDocument under another key"]);
}

#[tokio::test]
async fn a_release_without_migrations_has_an_empty_status_and_reads_nothing() {
    let shop = Shop::open().await;
    shop.table.break_with(FaultKind::Error, 1.0, None, 0);
    let none = status(&shop.items, &[], &OPTIONS).await.unwrap();
    assert_eq!(none.to_string(), "this release has no migrations\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_stopped_anywhere_is_resumed() {
    let shop = Shop::open().await;
    old(&shop, 200).await;
    let (mut stopped, mut written) = (0, 0);
    for migration in MIGRATIONS {
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
    for migration in MIGRATIONS {
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
    for number in 0..20 {
        shop.table.put_item(old_wallet(number)).await;
    }
    let started = tokio::time::Instant::now();
    // Each wallet takes two units, because the write is a transaction.
    let options = MigrateOptions { max_write_units: Some(20), ..OPTIONS };
    assert_eq!(run_migration(&shop.items, &Euros, &options).await.unwrap().migrated, 20);
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
    let Plan::Write(writes) = Entries.plan(&Seen { item: &item, entity: &entity, others: &others }).unwrap() else {
        panic!("nothing to do")
    };
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
async fn an_item_whose_new_key_is_taken_or_that_has_changed_is_not_moved() {
    let shop = Shop::open().await;
    let changed = |item: Item| set(item, "rev", number(9));
    for item in [changed(role(1)), old_role(1), changed(old_role(2))] {
        shop.table.put_item(item).await;
    }
    let before = all(&shop).await;
    let pace = ops::Pace::new(None);
    for (number, why) in [(1, "the key is taken"), (2, "the item has changed")] {
        let change = RepairWrite::Move { old: old_role(number), new: role(number) };
        let moved = shop.items.repair(&Repair { checks: Vec::new(), change }, &pace).await.unwrap();
        assert_eq!(moved, ops::items::Repaired::Refused, "{why}");
    }
    assert!(all(&shop).await == before, "nothing was written");
    let migrated = run(&shop, &Roles).await;
    assert_eq!((migrated.migrated, migrated.kept.values().sum::<u64>()), (1, 1), "{migrated}");
    let after = [changed(role(1)), old_role(1), changed(role(2))].map(|item| (key_of(&item).unwrap(), item));
    assert_eq!(all(&shop).await, BTreeMap::from(after));
}

/// Returns the stream records of the change from one state of the table to another.
fn records_between(old: &BTreeMap<Key, Item>, new: &BTreeMap<Key, Item>) -> Vec<Value> {
    let keys: BTreeSet<&Key> = old.keys().chain(new.keys()).collect();
    let changed = keys.into_iter().filter(|key| old.get(*key) != new.get(*key));
    (1..).zip(changed).map(|(number, key)| record(number, old.get(key), new.get(key))).collect()
}

/// Returns the stream record of a change of an item.
fn record(number: usize, old: Option<&Item>, new: Option<&Item>) -> Value {
    let mut record = records::insert("000000000000000000001", &wallet(0));
    let key = key_of(old.or(new).unwrap()).unwrap();
    let image = |item: &Item| serde_json::to_value(item).unwrap();
    let change = record["dynamodb"].as_object_mut().unwrap();
    change.insert("SequenceNumber".to_owned(), format!("{number:021}").into());
    change.insert("Keys".to_owned(), json!({"PK": {"S": key.pk.as_str()}, "SK": {"S": key.sk.as_str()}}));
    change.remove("NewImage");
    change.extend(old.map(|item| ("OldImage".to_owned(), image(item))));
    change.extend(new.map(|item| ("NewImage".to_owned(), image(item))));
    record["eventName"] = match (old, new) {
        (None, _) => "INSERT",
        (_, None) => "REMOVE",
        _ => "MODIFY",
    }
    .into();
    record
}

/// For an item that a migration wrote or removed, the consumer of the stream makes no event and
/// writes no item. So there is no loop.
#[tokio::test]
async fn a_migration_is_silent_in_the_stream() {
    let shop = Shop::open().await;
    old(&shop, 5).await;
    let old = all(&shop).await;
    for migration in MIGRATIONS {
        run(&shop, migration).await;
    }
    let new = all(&shop).await;
    let written = records_between(&old, &new);
    assert_eq!(written.len(), 5 + 5 + 1 + 10, "wallets, entries, a month, roles under both keys");
    let (consumer, published) = crate::events::deriving(&shop);
    crate::shop::deliver_to(&consumer, &written).await;
    assert_eq!(*published.lock().unwrap(), Vec::<String>::new());
    assert!(all(&shop).await == new, "the consumer writes nothing");
}
