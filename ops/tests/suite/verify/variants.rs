//! Plants damage in variants, their parents and the lists of variants.

use aws_sdk_dynamodb::types::AttributeValue;
use fixture::{TestTable, seed};
use ops::verify::Kind::{Behind, Bounds, Claim, Link, Orphan, Total};

use super::damage::finds;
use super::{options, run, world};

/// Fills a table with a shop, and a shirt in two sizes.
async fn shop() -> TestTable {
    let table = TestTable::create().await;
    world::fill(&table).await;
    shirts(&table).await;
    assert!(run(&table, &options(false)).await.is_clean());
    table
}

pub async fn shirts(table: &TestTable) {
    table.sell(seed::product("shirt", seed::usd(100)), 0).await;
    for size in ["M", "L"] {
        table.vary("shirt", seed::product(&format!("shirt-{size}"), seed::usd(100)), size, 5).await;
    }
}

/// Returns the sort key of the first entry in the list of the shirt's variants.
async fn entry(table: &TestTable) -> String {
    let keys = table.keys("PRODUCT#shirt").await;
    keys.into_iter().map(|(_, sk)| sk).find(|sk| sk.starts_with("PRODUCT#VARIANT#")).unwrap()
}

#[tokio::test]
async fn variants_are_compared_with_the_list_and_the_count_of_their_parent() {
    let table = shop().await;
    let parent = "PRODUCT#shirt";
    let entry = entry(&table).await;
    table.set(parent, &entry, "name", AttributeValue::S("Old name".to_owned())).await;
    finds(&table, "old name", &[(Behind, &format!("{parent} {entry}"))], true).await;
    table.set(parent, &entry, "thumbnail", AttributeValue::S("m1".to_owned())).await;
    finds(&table, "old picture", &[(Behind, &format!("{parent} {entry}"))], true).await;
    table.set(parent, "PRODUCT", "variants", AttributeValue::N("7".to_owned())).await;
    finds(&table, "count", &[(Total, "PRODUCT#shirt PRODUCT")], true).await;
    table.delete_at(parent, &entry).await;
    finds(&table, "no entry", &[(Claim, &format!("{parent} {entry}")), (Total, "PRODUCT#shirt PRODUCT")], true).await;
    table.set("STOCK#shirt#main#00000000000000000000", "STOCK", "available", AttributeValue::N("3".to_owned())).await;
    finds(&table, "pieces of a parent", &[(Bounds, "PRODUCT#shirt PRODUCT")], false).await;
}

#[tokio::test]
async fn an_entry_without_a_variant_and_a_variant_without_a_parent_are_found() {
    let table = shop().await;
    for (pk, sk) in [("PRODUCT#shirt-M", "PRODUCT"), ("STOCK#shirt-M#main#00000000000000000000", "STOCK")] {
        table.delete_at(pk, sk).await;
    }
    let found = run(&table, &options(false)).await;
    assert_eq!((found.left(), found.found[&Orphan].left), (1, 1), "{found}");
    // The first run deletes the entry, and the second one corrects the count of the parent.
    for _ in 0..2 {
        run(&table, &options(true)).await;
    }
    let clean = run(&table, &options(false)).await;
    assert!(clean.is_clean(), "{clean}");
    table.set("PRODUCT#shirt", "PRODUCT", "parent", AttributeValue::S("coat".to_owned())).await;
    finds(&table, "no parent", &[(Link, "PRODUCT#shirt-L PRODUCT")], false).await;
}
