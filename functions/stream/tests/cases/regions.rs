//! Tests of the totals of places: an order is subtracted from the place in which it was counted.

use std::collections::BTreeMap;
use std::slice::from_ref;

use key_schema::item::Stored;
use key_schema::money::{Currency, Money};
use key_schema::order::{Order, OrderStatus};
use key_schema::region::{self, SHARDS, StoreLocation};

use crate::derived::Shop;
use crate::support::{insert, meta, modify, order};

fn sold_in(id: &str, store: Option<&str>, status: OrderStatus, rev: u64) -> Stored<Order> {
    let mut order = order(id, status, rev, 1);
    order.data.store_id = store.map(|store| store.parse().unwrap());
    order
}

fn store(id: &str, country: &str, city: &str) -> Stored<StoreLocation> {
    let data =
        StoreLocation { id: id.parse().unwrap(), country: country.into(), city: city.into(), name: "Shop".into() };
    Stored { meta: meta(1), data }
}

#[tokio::test]
async fn an_order_is_counted_at_the_place_of_its_shop_and_as_unknown_if_the_place_is_unknown() {
    let shop = Shop::open().await;
    shop.put(&store("364", "CH", "Zürich")).await;
    shop.put(&store("a#b~!", "CH", "St. Gallen #1 ~ 聖加侖 %23")).await;
    let orders = [Some("364"), Some("364"), Some("a#b~!"), Some("365"), None].into_iter().enumerate();
    for (number, at) in orders {
        let order = sold_in(&format!("o{number}"), at, OrderStatus::Pending, 1);
        shop.place(&order).await;
        shop.deliver(&[&[insert("1", &order)]]).await;
    }
    let swiss = ["St. Gallen #1 ~ 聖加侖 %23/a#b~!/2017-01-01: 1 for 129 USD", "Zürich/364/2017-01-01: 2 for 258 USD"];
    assert_eq!(shop.totals("CH").await, swiss);
    let unknown = ["unknown/365/2017-01-01: 1 for 129 USD", "unknown/online/2017-01-01: 1 for 129 USD"];
    assert_eq!(shop.totals("US").await, unknown);
}

#[tokio::test]
async fn staff_may_set_the_place_of_the_online_shop() {
    let shop = Shop::open().await;
    shop.put(&store("online", "CH", "Bern")).await;
    let order = sold_in("o1", None, OrderStatus::Pending, 1);
    shop.place(&order).await;
    shop.deliver(&[&[insert("1", &order)]]).await;
    assert_eq!(shop.totals("CH").await, ["Bern/online/2017-01-01: 1 for 129 USD"]);
}

#[tokio::test]
async fn an_order_is_subtracted_where_it_was_counted_although_its_shop_has_moved() {
    let shop = Shop::open().await;
    shop.put(&store("364", "CH", "Zürich")).await;
    let [delivered, returned] = [(OrderStatus::Delivered, 5), (OrderStatus::Returned, 6)]
        .map(|(status, rev)| sold_in("o1", Some("364"), status, rev));
    shop.place(&delivered).await;
    let placed = insert("1", &delivered);
    shop.deliver(&[from_ref(&placed)]).await;
    shop.put(&store("364", "DE", "Konstanz")).await;
    shop.put(&returned).await;
    let brought_back = modify("2", &delivered, &returned);
    shop.deliver(&[&[brought_back.clone(), placed.clone()], &[brought_back], &[placed]]).await;
    assert_eq!(shop.totals("CH").await, ["Zürich/364/2017-01-01: 0 for 0 USD"]);
    assert!(shop.totals("DE").await.is_empty());
}

#[tokio::test]
async fn amounts_of_two_currencies_are_never_added() {
    let shop = Shop::open().await;
    for (id, currency) in [("a", "USD"), ("b", "EUR"), ("c", "EUR")] {
        let mut order = sold_in(id, Some("364"), OrderStatus::Pending, 1);
        order.data.total = Money::new(100, currency.parse::<Currency>().unwrap());
        shop.place(&order).await;
        shop.deliver(&[&[insert("1", &order)]]).await;
    }
    assert_eq!(
        shop.totals("US").await,
        ["unknown/364/2017-01-01: 2 for 200 EUR", "unknown/364/2017-01-01: 1 for 100 USD"]
    );
}

#[tokio::test]
async fn an_order_counts_on_the_day_in_utc_on_which_it_was_placed() {
    let shop = Shop::open().await;
    let mut order = sold_in("o1", None, OrderStatus::Pending, 1);
    order.data.placed_at = "2017-02-01T01:00:00+02:00".parse().unwrap();
    shop.place(&order).await;
    shop.deliver(&[&[insert("1", &order)]]).await;
    assert_eq!(shop.totals("US").await, ["unknown/online/2017-01-31: 1 for 129 USD"]);
}

/// Returns the number of orders in each shard of the online store's total.
async fn counted(shop: &Shop) -> BTreeMap<u32, i64> {
    let month = "2017-01".parse().unwrap();
    let parts = shop.table.query(&region::sales("US", &month, None).unwrap()).await.unwrap().items;
    parts.iter().map(|part| (part.shard, part.orders)).collect()
}

#[tokio::test]
async fn online_orders_are_spread_over_the_shards_and_subtracted_where_they_were_counted() {
    let shop = Shop::open().await;
    let id = |number| format!("o{number}");
    let orders: Vec<_> = (0..100).map(|number| sold_in(&id(number), None, OrderStatus::Pending, 1)).collect();
    let mut placed = Vec::new();
    for order in &orders {
        shop.place(order).await;
        placed.push(insert(&placed.len().to_string(), order));
    }
    shop.deliver(&[&placed]).await;
    let before = counted(&shop).await;
    assert!(before.keys().all(|shard| SHARDS.all().any(|one| one == *shard)), "{before:?}");
    assert!(before.len() >= 40, "100 orders are in about 50 of 64 shards: {before:?}");
    assert!(before.values().all(|orders| *orders <= 10), "no item takes most of the orders: {before:?}");
    assert_eq!(shop.totals("US").await, ["unknown/online/2017-01-01: 100 for 12900 USD"]);

    let mut cancelled = Vec::new();
    for (number, before) in orders.iter().enumerate().filter(|(number, _)| number % 2 == 0) {
        let after = sold_in(&id(number), None, OrderStatus::Cancelled, 2);
        shop.put(&after).await;
        cancelled.push(modify(&(200 + number).to_string(), before, &after));
    }
    shop.deliver(&[&cancelled, &placed]).await;
    assert_eq!(shop.totals("US").await, ["unknown/online/2017-01-01: 50 for 6450 USD"]);
    assert!(counted(&shop).await.iter().all(|(shard, orders)| *orders <= before[shard]));
}

#[tokio::test]
async fn orders_of_a_shop_that_is_not_online_are_counted_in_one_item() {
    let shop = Shop::open().await;
    for number in 0..20 {
        let order = sold_in(&format!("o{number}"), Some("364"), OrderStatus::Pending, 1);
        shop.place(&order).await;
        shop.deliver(&[&[insert("1", &order)]]).await;
    }
    assert_eq!(counted(&shop).await, BTreeMap::from([(SHARDS.of("364"), 20)]));
}
