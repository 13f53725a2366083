//! Tests of `ops item`: repairs by hand keep `rev`, index keys and the search index right.

use aws_sdk_dynamodb::types::AttributeValue as Sdk;
use key_schema::entity::AnyEntity;
use key_schema::item::{CAUSE, Entity as _, FromItem as _, IMPORTED, Item, Stored};
use key_schema::key::Key;
use key_schema::product::Product;
use ops::item::{Edit, WrittenItem, assignment, delete, put, show};
use search_index::Collection;
use serde_dynamo::AttributeValue;

use crate::shop::Shop;
use crate::things::product;

fn key(product: &Stored<Product>) -> Key {
    product.data.key().unwrap()
}

fn setting(assignments: &[&str]) -> Edit {
    Edit { set: assignments.iter().map(|text| assignment(text).unwrap()).collect(), ..Edit::default() }
}

async fn written(shop: &Shop, key: &Key, edit: Edit) -> WrittenItem {
    put(&shop.items, Some(&shop.search), key, edit, false).await.unwrap()
}

async fn stored(shop: &Shop, key: &Key) -> Stored<Product> {
    Stored::from_item(show(&shop.items, key).await.unwrap().item).unwrap()
}

#[tokio::test]
async fn an_unreadable_item_is_repaired_with_the_next_rev_and_its_index_keys() {
    let shop = Shop::open().await;
    let tea = product("tea", 4);
    shop.put_and_deliver(&tea).await;
    let key = key(&tea);
    let (pk, sk) = (key.pk.as_str(), key.sk.as_str());
    shop.table.set(pk, sk, "name", Sdk::N("1".to_owned())).await;
    shop.table.set(pk, sk, "GSI2SK", Sdk::S("LOST".to_owned())).await;
    assert!(show(&shop.items, &key).await.unwrap().fault.unwrap().starts_with("malformed Product"));

    let repair = setting(&[r#"name={"S":"Tea"}"#, r#"price.amount={"N":"450"}"#]);
    let planned = put(&shop.items, None, &key, repair.clone(), true).await.unwrap();
    assert!(planned.to_string().ends_with("dry run: nothing was written"), "{planned}");
    assert!(show(&shop.items, &key).await.unwrap().fault.is_some());

    let done = written(&shop, &key, repair.clone()).await;
    assert!(done.is_complete(), "{done}");
    let now = stored(&shop, &key).await;
    assert_eq!((now.meta.rev, now.meta.version, now.name.as_str(), now.price.amount), (5, 5, "Tea", 450));
    let item = show(&shop.items, &key).await.unwrap().item;
    assert_eq!(AnyEntity::from_item(item.clone()).unwrap().to_item().unwrap().get("GSI2SK"), item.get("GSI2SK"));
    // The consumer indexes the repaired item.
    let record = shop.put(&now).await;
    shop.deliver(&[record]).await;
    assert_eq!(shop.found(Collection::Products).await, [("tea".to_owned(), 5)]);

    let again = written(&shop, &key, repair).await;
    assert_eq!(again.changes, [], "{again}");
    assert_eq!(stored(&shop, &key).await.meta.rev, 5);
}

#[tokio::test]
async fn an_item_that_was_deleted_is_written_with_a_rev_beyond_its_tombstone() {
    let shop = Shop::open().await;
    let tea = product("tea", 9);
    shop.put_and_deliver(&tea).await;
    let removal = shop.remove(&tea).await;
    shop.deliver(&[removal]).await;
    let tombstone = shop.stored(Collection::Products, &tea).await.unwrap();
    assert!(tombstone.is_tombstone());

    // The file is older than the deleted item.
    let whole: Item = product("tea", 3).to_item().unwrap();
    written(&shop, &key(&tea), Edit { whole: Some(whole), ..Edit::default() }).await;
    let item = show(&shop.items, &key(&tea)).await.unwrap().item;
    assert_eq!(item.get(CAUSE), Some(&AttributeValue::S(IMPORTED.to_owned())), "no event is published again");
    let now = stored(&shop, &key(&tea)).await;
    assert_eq!(now.meta.rev, tombstone.rev + 1);
    // Without the index, the command warns.
    delete(&shop.items, &key(&tea), false).await.unwrap();
    let edit = Edit { whole: Some(product("tea", 3).to_item().unwrap()), ..Edit::default() };
    let hidden = put(&shop.items, None, &key(&tea), edit, true).await.unwrap();
    assert!(hidden.to_string().contains("the search index was not read"), "{hidden}");
    let record = shop.put(&now).await;
    shop.deliver(&[record]).await;
    assert_eq!(shop.found(Collection::Products).await, [("tea".to_owned(), tombstone.rev + 1)]);
}

#[tokio::test]
async fn an_unreadable_item_or_the_item_of_another_key_is_not_written() {
    let shop = Shop::open().await;
    let tea = product("tea", 1);
    shop.put(&tea).await;
    let other = Edit { whole: Some(product("ice", 1).to_item().unwrap()), ..Edit::default() };
    for edit in [setting(&[r#"price.amount={"S":"abc"}"#]), setting(&[r#"id={"S":"ice"}"#]), other] {
        assert_eq!(put(&shop.items, None, &key(&tea), edit, false).await.unwrap_err().exit_code(), 2);
    }
    assert!(put(&shop.items, None, &key(&tea), setting(&[r#"nothing.at={"S":"x"}"#]), false).await.is_err());
    // The file is from before another change of the item.
    let stale = Edit { whole: Some(product("tea", 7).to_item().unwrap()), ..Edit::default() };
    assert_eq!(put(&shop.items, None, &key(&tea), stale, false).await.unwrap_err().exit_code(), 1);
    assert_eq!(stored(&shop, &key(&tea)).await, tea);
    for wrong in ["name", "name=Tea", r#"={"S":"x"}"#, r#"name={"X":"x"}"#] {
        assert!(assignment(wrong).is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn an_item_is_deleted_after_a_dry_run() {
    let shop = Shop::open().await;
    let tea = product("tea", 1);
    shop.put(&tea).await;
    let planned = delete(&shop.items, &key(&tea), true).await.unwrap();
    assert!(planned.changes.iter().any(|change| change.name == "name" && change.new.is_none()), "{planned}");
    assert_eq!(stored(&shop, &key(&tea)).await, tea);
    assert!(delete(&shop.items, &key(&tea), false).await.unwrap().is_complete());
    assert_eq!(show(&shop.items, &key(&tea)).await.unwrap_err().exit_code(), 1);
}
