//! Tests of a migration while requests of this release and of an earlier release change the same
//! items.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue as Sdk;
use key_schema::id::{CustomerId, EntryId};
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, FromItem as _, Stored};
use key_schema::money::{Currency, Money};
use key_schema::wallet::{self, Wallet};
use ops::migrate::WALLET_BALANCES;

use super::{foreign, id, run};
use crate::shop::Shop;

/// Adds euros to a wallet, as the code of this release does.
async fn deposit(shop: &Shop, customer: &CustomerId, amount: i64, number: u8) {
    let euros = Money::new(amount, "EUR".parse().unwrap());
    loop {
        let now = Instant::now();
        let (entry, order) = (EntryId::generate(now, [number; 10]), "o1".parse().unwrap());
        let stored = shop.table.own().get(&wallet::read_for_update(customer).unwrap()).await.unwrap().unwrap();
        if let Some(convert) = wallet::convert(&stored).unwrap() {
            let _ = shop.table.own().write(&convert).await.unwrap();
        }
        let [(_, balance), _] = wallet::credit(customer, euros, &order, &entry, now).unwrap().try_into().unwrap();
        let rendered = balance.render();
        let update = shop.table.client().update_item().table_name(shop.table.name());
        let key = stored.key().unwrap();
        let update = update.key("PK", Sdk::S(key.pk.into_string())).key("SK", Sdk::S(key.sk.into_string()));
        let update = update.set_update_expression(rendered.update).set_condition_expression(rendered.condition);
        let values = rendered.values.into_iter().map(|(name, value)| (name, value.into())).collect();
        let update = update.set_expression_attribute_names(Some(rendered.names.into_iter().collect()));
        if update.set_expression_attribute_values(Some(values)).send().await.is_ok() {
            return;
        }
    }
}

/// Adds money to a wallet as the code of the earlier release does: to the only balance.
async fn earlier_deposit(shop: &Shop, customer: &CustomerId, amount: i64) -> bool {
    let key = foreign(0).key().unwrap();
    let pk = key.pk.as_str().replace("c0", customer.as_str());
    let update = shop.table.client().update_item().table_name(shop.table.name());
    let update = update.key("PK", Sdk::S(pk)).key("SK", Sdk::S(key.sk.into_string()));
    let update =
        update.update_expression("ADD amount :a, rev :one, version :one").condition_expression("currency = :c");
    let number = |number: i64| Sdk::N(number.to_string());
    let update =
        update.expression_attribute_values(":a", number(amount)).expression_attribute_values(":one", number(1));
    update.expression_attribute_values(":c", Sdk::S("EUR".to_owned())).send().await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn money_that_moves_during_a_run_is_not_lost() {
    let shop = Arc::new(Shop::open().await);
    shop.table.put_all((0..150).map(foreign)).await;
    let ended = Arc::new(AtomicBool::new(false));
    let writer = |earlier: bool, number: u8| {
        let (shop, ended) = (Arc::clone(&shop), Arc::clone(&ended));
        tokio::spawn(async move {
            let mut added = 0;
            for round in 0.. {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                let customer = id((round * 7 + usize::from(number)) % 150);
                if earlier {
                    added += i64::from(earlier_deposit(&shop, &customer, 10).await) * 10;
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
    let migrated = run(&shop, &WALLET_BALANCES).await;
    assert_eq!(migrated.contended, 0, "{migrated}");
    ended.store(true, Ordering::Relaxed);
    let mut money = 150 * 4_500;
    for writer in writers {
        money += writer.await.unwrap();
    }
    assert!(money > 150 * 4_500);
    assert_eq!(run(&shop, &WALLET_BALANCES).await.migrated, 0);
    let mut stored = 0;
    for item in shop.table.items("WALLET#").await {
        let wallet = Stored::<Wallet>::from_item(item).unwrap();
        assert_eq!((wallet.currency, wallet.amount), (Currency::SHOP, 0));
        stored += wallet.balance("EUR".parse().unwrap()).amount;
    }
    assert_eq!(stored, money);
}
