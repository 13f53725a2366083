//! Tests of `ops export`, `ops import` and `ops analytics`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::types::AttributeValue;
use fixture::TestTable;
use flate2::read::GzDecoder;
use key_schema::entity::AnyEntity;
use key_schema::item::{CAUSE, FromItem as _, IMPORTED};
use ops::Items;
use ops::export::Export;
use ops::import::{ImportOptions, Imported, RIGHTS};
use ops::migrate::Speed;
use ops::search::ReconcileOptions;
use search_index::Collection;
use serde_json::Value;
use tempfile::TempDir;

use crate::shop::Shop;
use crate::things::product;
use crate::verify::{options, world};

const FAST: Speed = Speed { segments: 3, max_read_units: u32::MAX };

fn items(table: &TestTable) -> Items {
    Items::new(table.client(), table.name().to_owned())
}

async fn shop() -> TestTable {
    let table = TestTable::create().await;
    world::fill(&table).await;
    table
}

/// Exports a table and returns the folder with the export.
async fn exported(table: &TestTable, entities: &[&str]) -> (TempDir, Export) {
    let folder = tempfile::tempdir().unwrap();
    let entities = entities.iter().map(|name| (*name).to_owned()).collect();
    ops::export::export(&items(table), folder.path().join("shop"), entities, FAST).await.unwrap();
    let export = Export::open(folder.path().join("shop")).unwrap();
    (folder, export)
}

async fn import(table: &TestTable, export: &Export) -> Imported {
    let options = ImportOptions { with_rights: true, ..ImportOptions::default() };
    ops::import::import(&items(table), None, export, &options).await.unwrap()
}

/// Returns all items without the ids of the requests that wrote them.
async fn content(table: &TestTable) -> BTreeSet<String> {
    let without_cause = |mut item: Value| {
        item.as_object_mut().unwrap().remove(CAUSE);
        item.to_string()
    };
    let items = table.items("").await.into_iter();
    items.map(|item| without_cause(serde_json::to_value(item).unwrap())).collect()
}

#[tokio::test]
async fn a_count_of_the_items_that_takes_too_long_is_unknown() {
    // The listener accepts connections and never responds.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let table = TestTable::create().await;
    let soon = TimeoutConfig::builder().operation_timeout(Duration::from_millis(100)).build();
    let config = table.client().config().to_builder().timeout_config(soon);
    let config = config.endpoint_url(format!("http://{}", silent.local_addr().unwrap())).build();
    let items = Items::new(Client::from_conf(config), table.name().to_owned());
    assert_eq!(items.estimate().await.unwrap(), None);
}

#[tokio::test]
async fn an_export_is_restored_item_by_item() {
    let shop = shop().await;
    let (_folder, export) = exported(&shop, &[]).await;
    let count = shop.items("").await.len();
    assert_eq!(export.counts().values().sum::<u64>(), count as u64);
    let other = TestTable::create().await;
    let dry = ImportOptions { dry_run: true, with_rights: true, ..ImportOptions::default() };
    let planned = ops::import::import(&items(&other), None, &export, &dry).await.unwrap();
    assert!(other.items("").await.is_empty());
    let imported = import(&other, &export).await;
    assert!(imported.is_complete() && imported.imported == planned.imported, "{imported}");
    assert_eq!(imported.imported, export.counts());
    assert_eq!(content(&other).await, content(&shop).await);
    let verified = ops::verify::verify(&items(&other), &options(false)).await.unwrap();
    assert!(verified.is_clean(), "{verified}");
    let again = import(&other, &export).await;
    assert_eq!((again.present, again.imported.len()), (count as u64, 0), "{again}");
}

#[tokio::test]
async fn an_import_overwrites_nothing_and_names_what_differs() {
    let shop = shop().await;
    let (_folder, export) = exported(&shop, &["Product", "Stock"]).await;
    assert_eq!(export.counts().keys().collect::<Vec<_>>(), ["Product", "Stock"]);
    shop.set("STOCK#tea#main#00000000000000000000", "STOCK", "available", AttributeValue::N("7".to_owned())).await;
    shop.delete_at("STOCK#milk#main#00000000000000000000", "STOCK").await;
    let before = content(&shop).await;
    let imported = import(&shop, &export).await;
    assert!(!imported.is_complete());
    assert_eq!((imported.present, imported.different), (2, 1), "{imported}");
    assert_eq!(imported.imported, BTreeMap::from([("Stock".to_owned(), 1)]));
    assert!(imported.to_string().contains("NOT IMPORTED: segment-0"), "{imported}");
    assert!(imported.named[0].contains(": Stock STOCK#tea#main#00000000000000000000 STOCK: "), "{imported}");
    let after = content(&shop).await;
    assert!(after.is_superset(&before) && after.len() == before.len() + 1);
    // An item that the shop has changed since the export is named by kind, and nothing is wrong.
    shop.set("STOCK#tea#main#00000000000000000000", "STOCK", "rev", AttributeValue::N("9".to_owned())).await;
    let newer = import(&shop, &export).await;
    assert!(newer.is_complete() && newer.newer == BTreeMap::from([("Stock".to_owned(), 1)]), "{newer}");
    assert!(newer.to_string().contains("1  Stock newer in the table, left unchanged"), "{newer}");
    let after = content(&shop).await;
    // If another writer creates an item after the import has read its key, the import does not
    // replace the item.
    let item = export.lines().find_map(|line| line.unwrap().item).unwrap();
    let other = items(&shop).put_new(&item, &ops::Pace::new(None)).await.unwrap();
    assert!(other.is_some() && content(&shop).await == after);
    let mark = serde_dynamo::AttributeValue::S(IMPORTED.to_owned());
    assert_eq!(shop.items("").await.iter().filter(|item| item.get(CAUSE) == Some(&mark)).count(), 1);
}

#[tokio::test]
async fn damaged_exports_are_refused_and_damaged_lines_are_named() {
    let shop = shop().await;
    let (folder, export) = exported(&shop, &["Review"]).await;
    let root = folder.path().join("shop");
    let name = (0..3)
        .map(|number| format!("segment-{number:02}.json"))
        .find(|name| fs::metadata(root.join(name)).unwrap().len() > 0);
    let path = root.join(name.unwrap());
    let text = fs::read_to_string(&path).unwrap();
    // The changed line has the same length. Only its key shows the damage, because the key does not
    // match the attributes any more.
    fs::write(&path, text.replace("\"tea\"", "\"tee\"")).unwrap();
    let other = TestTable::create().await;
    let imported = import(&other, &export).await;
    assert!(imported.invalid > 0 && !imported.is_complete(), "{imported}");
    assert!(imported.to_string().contains("the key does not match the attributes"), "{imported}");
    assert!(imported.named[0].contains(":1: Review PRODUCT#"), "{imported}");
    fs::write(&path, format!("{}\n", "x".repeat(text.len() - 1))).unwrap();
    assert!(import(&other, &export).await.to_string().contains(":1: the line is not an item"));
    fs::write(&path, &text[1..]).unwrap();
    let refused = Export::open(root.clone()).unwrap_err();
    assert!(refused.exit_code() == 2 && refused.to_string().contains("the length that export.json names"), "{refused}");
    let refused = Export::open(folder.path().to_owned()).unwrap_err();
    assert!(refused.to_string().contains("there is no export.json"), "{refused}");
    for (to, entities) in [(root, vec!["Review".to_owned()]), (folder.path().to_owned(), Vec::new())] {
        let refused = ops::export::export(&items(&shop), to, entities, FAST).await.unwrap_err();
        assert_eq!(refused.exit_code(), 2, "{refused}");
    }
}

/// An import into a running shop must not make a removed member a member again.
#[tokio::test]
async fn items_that_give_rights_are_imported_only_on_request() {
    assert!(RIGHTS.iter().all(|name| AnyEntity::NAMES.contains(name)));
    let shop = shop().await;
    let (_folder, export) = exported(&shop, &[]).await;
    let other = TestTable::create().await;
    let imported = ops::import::import(&items(&other), None, &export, &ImportOptions::default()).await.unwrap();
    assert!(imported.is_complete() && imported.imported.keys().all(|name| !RIGHTS.contains(&name.as_str())));
    let counts = export.counts();
    // A product's membership in a further category grants no rights.
    assert_eq!(imported.imported["Membership"], counts["Membership"]);
    let with_rights = counts.iter().filter(|(name, _)| RIGHTS.contains(&name.as_str()));
    let left_out: u64 = with_rights.map(|(_, count)| count).sum();
    assert!(imported.left_out == left_out && left_out > 5, "{imported}");
    assert!(imported.to_string().contains("were left out: see --with-rights"), "{imported}");
}

/// The tombstones of the deleted items have a higher `rev` than the export, because the items
/// changed after the export.
#[tokio::test]
async fn two_products_an_order_and_a_customer_deleted_by_mistake_are_found_again_after_an_import() {
    let shop = Shop::open().await;
    world::fill(&shop.table).await;
    let (_folder, export) = exported(&shop.table, &[]).await;
    let all =
        ReconcileOptions { collections: Collection::ALL.to_vec(), rate: None, dry_run: false, settle: Duration::ZERO };
    ops::search::reconcile(&shop.search, &shop.items, &all).await.unwrap();
    let indexed = (shop.found(Collection::Products).await.len(), shop.found(Collection::Orders).await.len());
    let partitions =
        ["PRODUCT#tea", "PRODUCT#milk", &format!("ORDER#{}", world::PAID), "CUSTOMER#bob"].map(str::to_owned);
    // The stock belongs to its product.
    for partition in partitions.iter().map(String::as_str).chain(["STOCK#tea#", "STOCK#milk#"]) {
        for item in shop.table.items(partition).await {
            let key = key_schema::item::key_of(&item).unwrap();
            match AnyEntity::from_item(item).unwrap() {
                AnyEntity::Product(mut product) => {
                    product.meta.rev += 3;
                    shop.put_and_deliver(&product).await;
                    shop.deliver(&[shop.remove(&product).await]).await;
                }
                AnyEntity::Order(order) => shop.deliver(&[shop.remove(&order).await]).await,
                _ => shop.table.delete(&key).await,
            }
        }
    }
    assert_eq!(shop.found(Collection::Products).await, []);

    let chosen = ImportOptions { partitions: partitions.to_vec(), with_rights: true, ..ImportOptions::default() };
    let imported = ops::import::import(&shop.items, Some(&shop.search), &export, &chosen).await.unwrap();
    assert!(imported.is_complete() && imported.raised == 3, "{imported}");
    for stock in ["STOCK#tea#", "STOCK#milk#"] {
        assert_eq!(shop.table.items(stock).await.len(), 1, "{stock}");
    }
    for item in partitions.iter().map(|partition| shop.table.items(partition)) {
        for item in item.await {
            match AnyEntity::from_item(item).unwrap() {
                AnyEntity::Product(product) => shop.put_and_deliver(&product).await,
                AnyEntity::Order(order) => shop.put_and_deliver(&order).await,
                _ => {}
            }
        }
    }
    let found = (shop.found(Collection::Products).await.len(), shop.found(Collection::Orders).await.len());
    assert_eq!(found, indexed);
    let compared = ops::search::reconcile(&shop.search, &shop.items, &ReconcileOptions { dry_run: true, ..all }).await;
    assert!(compared.as_ref().unwrap().is_clean(), "{}", compared.unwrap());
    let verified = ops::verify::verify(&shop.items, &options(true)).await.unwrap();
    assert!(verified.is_clean(), "{verified}");
    // A partition key that nothing in the export has is a typo.
    let typo = ImportOptions { partitions: vec!["PRODUCT#tee".to_owned(), "PRODUCT#tea".to_owned()], ..chosen.clone() };
    let wrong = ops::import::import(&shop.items, Some(&shop.search), &export, &typo).await.unwrap();
    assert!(!wrong.is_complete() && wrong.not_found == ["PRODUCT#tee"], "{wrong}");
    assert!(
        wrong.to_string().contains("NOT FOUND: no item of the export has the partition key PRODUCT#tee"),
        "{wrong}"
    );
    // A second run finds the items although their `rev` is higher than in the export.
    let again = ops::import::import(&shop.items, Some(&shop.search), &export, &chosen).await.unwrap();
    assert!(again.is_complete() && again.imported.is_empty() && again.raised == 0, "{again}");
}

/// A product takes a copy only of a later `rev` of its stock or its statistics. So after the import
/// of an older item, the product would show none of the next changes.
#[tokio::test]
async fn an_imported_stock_and_statistics_have_at_least_the_rev_that_their_product_has_copied() {
    let number = |number: u64| AttributeValue::N(number.to_string());
    let shop = shop().await;
    let (_folder, export) = exported(&shop, &[]).await;
    const STOCK: &str = "STOCK#tea#main#00000000000000000000";
    let sources = [(STOCK, "STOCK", "stock_rev"), ("PRODUCT#tea", "PRODUCT#STATS", "rating_rev")];
    for (pk, sk, copy) in sources {
        shop.set("PRODUCT#tea", "PRODUCT", copy, number(9)).await;
        shop.delete_at(pk, sk).await;
    }
    shop.set("PRODUCT#tea", "PRODUCT", "rev", number(99)).await;
    let imported = import(&shop, &export).await;
    assert!(imported.raised == 2 && imported.to_string().contains("2 items got a rev beyond"), "{imported}");
    let rev = |item: &Value| item["rev"]["N"].as_str().unwrap().parse::<u64>().unwrap();
    for (pk, sk, _) in sources {
        let items = shop.items(pk).await.into_iter().map(|item| serde_json::to_value(item).unwrap());
        let item = items.into_iter().find(|item| item["SK"]["S"] == sk).unwrap();
        assert_eq!(rev(&item), 9, "{item}");
    }
    let again = import(&shop, &export).await;
    assert!(again.imported.is_empty() && again.different == 0, "{again}");
    // `verify` finds such a copy, however it came about.
    for (sk, copy) in [("PRODUCT", "stock_rev"), ("PRODUCT", "rating_rev"), ("IN#SUMMER", "source_rev")] {
        shop.set("PRODUCT#tea", sk, copy, number(900)).await;
        let found = ops::verify::verify(&items(&shop), &options(true)).await.unwrap();
        assert!(found.is_clean() && found.repaired() >= 1, "{copy}: {found}");
    }
}

/// Starts `ops export` as a process of its own.
fn start(table: &TestTable, to: &Path, units: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_ops"))
        .args(["export", "--segments", "1", "--max-read-units", units, "--to"])
        .arg(to)
        .env_clear()
        .env("AWS_ENDPOINT_URL_DYNAMODB", table.endpoint())
        .env("AWS_ACCESS_KEY_ID", table.access_key())
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .env("AWS_REGION", "us-east-1")
        .env("TABLE_NAME", table.name())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The first run has a limit with which it would take minutes. The test kills the run after its
/// first page, and appends an incomplete line, as if the run had begun to write the next item.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_export_continues_and_has_each_item_once() {
    let shop = TestTable::create().await;
    shop.put_all((0..3_000).map(|number| product(&format!("p{number}"), 1))).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("shop");
    let mut killed = start(&shop, &root, "1");
    while !root.join("position-00.json").exists() {
        assert!(killed.try_wait().unwrap().is_none());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(Export::open(root.clone()).unwrap_err().to_string().contains("is not complete"));
    let part = root.join("segment-00.json");
    let mut cut = fs::read(&part).unwrap();
    let before = cut.len();
    cut.extend_from_slice(b"{\"Item\": {\"PK\"");
    fs::write(&part, cut).unwrap();
    let output = start(&shop, &root, "100000").wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let export = Export::open(root).unwrap();
    let lines: Vec<_> = export.lines().map(|line| line.unwrap().item.unwrap()).collect();
    let keys: BTreeSet<String> = lines.iter().map(|item| format!("{:?}{:?}", item["PK"], item["SK"])).collect();
    assert_eq!((lines.len(), keys.len()), (3_000, 3_000));
    // The second run continued. It did not start from the beginning.
    assert!(before > 0 && fs::read(&part).unwrap().len() > before);
}

fn rows(folder: &Path, table: &str) -> Vec<Value> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder.join(table)).unwrap() {
        let path = entry.unwrap().path();
        files.push(if path.is_dir() { path.join("data.ndjson.gz") } else { path });
    }
    let text = files.iter().map(|path| std::io::read_to_string(GzDecoder::new(fs::File::open(path).unwrap())).unwrap());
    text.collect::<String>().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The columns of each table in docs/analytics.yaml.
fn declared() -> BTreeMap<String, BTreeSet<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/analytics.yaml");
    let text = fs::read_to_string(path).unwrap();
    let column = |line: &str| Some(line.split_once("- {Name: ")?.1.split_once(", Type:")?.0.to_owned());
    let tables = text.split("Type: AWS::Glue::Table").skip(1).map(|section| {
        let section = section.split_once("\n\n").map_or(section, |(section, _)| section);
        let name = section.split_once("        Name: ").unwrap().1.lines().next().unwrap();
        (name.to_owned(), section.lines().filter_map(column).collect())
    });
    tables.collect()
}

#[tokio::test]
async fn the_tables_of_analytics_have_the_declared_columns_and_every_order() {
    let shop = shop().await;
    let (folder, export) = exported(&shop, &[]).await;
    let to = folder.path().join("tables");
    let tables = ops::analytics::tables(&export, &to).unwrap();
    assert_eq!(tables.unreadable, 0);
    let mut declared = declared();
    assert!(declared.remove("events").is_some());
    assert_eq!(tables.rows.keys().copied().collect::<Vec<_>>(), declared.keys().collect::<Vec<_>>());
    for (table, columns) in declared {
        let rows = rows(&to, &table);
        assert_eq!(Some(&(rows.len() as u64)), tables.rows.get(table.as_str()));
        for row in rows {
            assert_eq!(row.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>(), columns, "{table}");
        }
    }
    let (orders, lines) = (rows(&to, "orders"), rows(&to, "order_lines"));
    assert_eq!(orders.len(), 4);
    for order in &orders {
        let of = lines
            .iter()
            .filter(|line| line["order_id"] == order["order_id"] && line["placed_at"] == order["placed_at"]);
        assert_eq!(of.map(|line| line["total"].as_i64().unwrap()).sum::<i64>(), order["total"].as_i64().unwrap());
        let day = order["placed_at"].as_str().unwrap().split_once(' ').unwrap().0.to_owned();
        assert!(to.join(format!("orders/day={day}/data.ndjson.gz")).exists());
    }
    // A second run replaces the tables, and no other folder.
    assert_eq!(ops::analytics::tables(&export, &to).unwrap(), tables);
    let refused = ops::analytics::tables(&export, &folder.path().join("shop")).unwrap_err();
    assert_eq!(refused.exit_code(), 2);
    assert!(Export::open(folder.path().join("shop")).is_ok());
}
