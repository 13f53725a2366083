//! Tests of a migration while the code of the new form and the code of the old form change the same
//! items.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue as Sdk;
use key_schema::id::{CustomerId, EntryId};
use key_schema::instant::Instant;
use key_schema::item::{FromItem as _, Stored};
use key_schema::money::Money;
use key_schema::wallet::{self, Wallet};

use super::{BALANCE, Euros, OLD_EUROS, euros, id, old_wallet, run};
use crate::shop::Shop;

/// Adds euros to a wallet, as the code of the new form does.
async fn deposit(shop: &Shop, customer: &CustomerId, amount: i64, number: u8) {
    let money = Money::new(amount, euros());
    loop {
        let now = Instant::now();
        let (entry, order) = (EntryId::generate(now, [number; 10]), "o1".parse().unwrap());
        let [(_, balance), _] = wallet::credit(customer, money, &order, &entry, now).unwrap().try_into().unwrap();
        let rendered = balance.render();
        let update = shop.table.client().update_item().table_name(shop.table.name());
        let key = wallet::read_for_update(customer).unwrap().key().clone();
        let update = update.key("PK", Sdk::S(key.pk.into_string())).key("SK", Sdk::S(key.sk.into_string()));
        let update = update.set_update_expression(rendered.update).set_condition_expression(rendered.condition);
        let values = rendered.values.into_iter().map(|(name, value)| (name, value.into())).collect();
        let update = update.set_expression_attribute_names(Some(rendered.names.into_iter().collect()));
        if update.set_expression_attribute_values(Some(values)).send().await.is_ok() {
            return;
        }
    }
}

/// Adds euros to a wallet that has the old form, as the code of that form does.
async fn old_deposit(shop: &Shop, customer: &CustomerId, amount: i64) -> bool {
    let key = wallet::read_for_update(customer).unwrap().key().clone();
    let update = shop.table.client().update_item().table_name(shop.table.name());
    let update = update.key("PK", Sdk::S(key.pk.into_string())).key("SK", Sdk::S(key.sk.into_string()));
    let update = update.update_expression("ADD #old :a, rev :one, version :one");
    let update = update.condition_expression("attribute_exists(#old)").expression_attribute_names("#old", OLD_EUROS);
    let number = |number: i64| Sdk::N(number.to_string());
    let update = update.expression_attribute_values(":a", number(amount));
    update.expression_attribute_values(":one", number(1)).send().await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn money_that_moves_during_a_run_is_not_lost() {
    let shop = Arc::new(Shop::open().await);
    for number in 0..150 {
        shop.table.put_item(old_wallet(number)).await;
    }
    let ended = Arc::new(AtomicBool::new(false));
    let writer = |old: bool, number: u8| {
        let (shop, ended) = (Arc::clone(&shop), Arc::clone(&ended));
        tokio::spawn(async move {
            let mut added = 0;
            for round in 0.. {
                if ended.load(Ordering::Relaxed) && (old || added > 0) {
                    break;
                }
                let customer = id((round * 7 + usize::from(number)) % 150);
                if old {
                    added += i64::from(old_deposit(&shop, &customer, 10).await) * 10;
                } else {
                    deposit(&shop, &customer, 3, number).await;
                    added += 3;
                }
            }
            added
        })
    };
    let writers = [writer(true, 1), writer(true, 2), writer(false, 3)];
    tokio::time::sleep(Duration::from_millis(50)).await;
    let migrated = run(&shop, &Euros).await;
    assert_eq!(migrated.contended, 0, "{migrated}");
    ended.store(true, Ordering::Relaxed);
    let mut money = 150 * BALANCE;
    for writer in writers {
        money += writer.await.unwrap();
    }
    assert!(money > 150 * BALANCE);
    assert_eq!(run(&shop, &Euros).await.migrated, 0);
    let mut stored = 0;
    for item in shop.table.items("WALLET#").await {
        assert!(item.get(OLD_EUROS).is_none());
        stored += Stored::<Wallet>::from_item(item).unwrap().balance(euros()).amount;
    }
    assert_eq!(stored, money);
}
