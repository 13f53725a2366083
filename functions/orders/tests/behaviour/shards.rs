//! Orders of a product whose stock is in shards.

use emulators::table::{Fault, FaultKind};
use futures::future::join_all;
use key_schema::id::ProductId;
use key_schema::item::{Entity as _, Stored};
use key_schema::product::{self, ShardedStock, Stock};
use workflows::stock;

use crate::shop::{Shop, moved, reasons, staff_order};
use serde_json::json;

fn id() -> ProductId {
    ProductId::new("tea").unwrap()
}

/// Opens a shop whose tea is in so many shards.
async fn shop(pieces: u64, shards: u32) -> Shop {
    let shop = Shop::open().await;
    shop.product("tea", pieces).await;
    reshard(&shop, shards).await;
    shop
}

/// Changes the number of shards, as staff who repeat the request after 503.
async fn reshard(shop: &Shop, number: u32) {
    while stock::reshard::<()>(shop.own(), &id(), number).await.is_err() {}
    stock::level::<()>(shop.own(), &id()).await.unwrap();
}

async fn shards(shop: &Shop) -> Vec<Stored<Stock>> {
    let first = shop.own().get(&product::stock(&id()).unwrap()).await.unwrap().unwrap();
    stock::shards::<()>(shop.own(), first).await.unwrap()
}

/// Returns the pieces of each shard.
async fn pieces(shop: &Shop) -> Vec<u64> {
    shards(shop).await.iter().map(|shard| shard.available).collect()
}

async fn listed(shop: &Shop) -> Vec<(u32, Option<u32>)> {
    let listed: Vec<Stored<ShardedStock>> = shop.own().query(&product::sharded().unwrap()).await.unwrap().items;
    listed.iter().map(|stock| (stock.shards, stock.least)).collect()
}

/// Makes transactions on one shard conflict.
async fn busy(shop: &Shop, shard: usize, count: Option<u32>) {
    let _ = shop.test.count_throttles();
    let partition = shards(shop).await[shard].key().unwrap().pk.into_string();
    shop.faults().add_to_keys(Fault { kind: FaultKind::Conflict, rate: 1.0, count, seed: 7 }, &partition).unwrap();
}

#[tokio::test]
async fn pieces_are_spread_over_shards_and_none_is_lost_when_their_number_changes() {
    let shop = shop(50, 4).await;
    assert_eq!(pieces(&shop).await, [13, 13, 12, 12]);
    assert_eq!(shop.send(staff_order(&[("tea", 3)], "k", &json!({}))).await.status, 201);
    assert_eq!(pieces(&shop).await.iter().sum::<u64>(), 47);
    for number in [16, 64, 64, 2, 1, 1] {
        reshard(&shop, number).await;
        let shards = pieces(&shop).await;
        assert_eq!((shards.len(), shards.iter().sum::<u64>()), (usize::try_from(number).unwrap(), 47));
        assert!(shards.iter().max().unwrap() - shards.iter().min().unwrap() <= 1, "{shards:?}");
        let product = shop.own().get(&product::read_for_update(&id()).unwrap()).await.unwrap().unwrap();
        let shards = (number > 1).then_some(number);
        assert_eq!((product.stock_shards, product.meta.version), (shards, 1));
        assert_eq!(listed(&shop).await, [(number, Some(number))]);
    }
}

#[tokio::test]
async fn orders_of_a_sharded_stock_write_different_items() {
    let shop = shop(160, 16).await;
    for number in 0..40 {
        assert_eq!(shop.send(staff_order(&[("tea", 1)], &format!("k{number}"), &json!({}))).await.status, 201);
    }
    let used = pieces(&shop).await.into_iter().filter(|left| *left < 10).count();
    assert!(used > 8, "{used} of 16 shards were used");
}

/// An order finds five pieces although no shard has more than one.
#[tokio::test]
async fn the_last_pieces_are_gathered_from_all_shards_and_the_next_order_is_refused() {
    let shop = shop(5, 16).await;
    let refused = shop.send(staff_order(&[("tea", 6)], "six", &json!({}))).await;
    assert_eq!((refused.status, reasons(&refused)), (409, vec!["insufficient_stock"]), "{}", refused.body);
    assert_eq!(shop.send(staff_order(&[("tea", 5)], "five", &json!({}))).await.status, 201);
    assert_eq!(pieces(&shop).await.iter().sum::<u64>(), 0);
    let refused = shop.send(staff_order(&[("tea", 1)], "one", &json!({}))).await;
    assert_eq!((refused.status, reasons(&refused)), (409, vec!["out_of_stock"]), "{}", refused.body);
}

/// The pieces of 40 products are in two shards each, so the lines need more actions than one
/// transaction has.
#[tokio::test]
async fn an_order_that_gathers_more_pieces_than_a_transaction_can_hold_is_placed_in_several() {
    let shop = Shop::open().await;
    let names: Vec<String> = (0..40).map(|number| format!("p{number}")).collect();
    for name in &names {
        shop.product(name, 2).await;
        stock::reshard::<()>(shop.own(), &name.parse().unwrap(), 2).await.unwrap().unwrap();
    }
    let lines: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 2)).collect();
    let placed = shop.send(staff_order(&lines, "k", &json!({}))).await;
    assert_eq!(placed.status, 201, "{}", placed.body);
    for name in &names {
        assert_eq!(shop.stock(name).await, 0);
    }
}

#[tokio::test]
async fn an_order_whose_shard_is_busy_takes_its_pieces_from_another() {
    let shop = shop(40, 2).await;
    busy(&shop, 0, None).await;
    for number in 0..10 {
        assert_eq!(shop.send(staff_order(&[("tea", 1)], &format!("k{number}"), &json!({}))).await.status, 201);
    }
    assert_eq!(pieces(&shop).await, [20, 10]);
}

#[tokio::test]
async fn orders_that_conflict_again_and_again_give_the_stock_more_shards_once_in_ten_seconds() {
    let shop = shop(100, 1).await;
    for (key, conflicts, expected) in [("k1", 2, 1), ("k2", 3, 4), ("k3", 6, 4)] {
        for shard in 0..pieces(&shop).await.len() {
            busy(&shop, shard, Some(conflicts)).await;
        }
        assert_eq!(shop.send(staff_order(&[("tea", 1)], key, &json!({}))).await.status, 201);
        shop.faults().clear();
        assert_eq!(pieces(&shop).await.len(), expected, "{key}");
    }
    assert_eq!(listed(&shop).await, [(4, None)]);
    assert_eq!(pieces(&shop).await.iter().sum::<u64>(), 97);
    let product = shop.own().get(&product::read_for_update(&id()).unwrap()).await.unwrap().unwrap();
    assert_eq!((product.stock_shards, product.meta.version), (Some(4), 1));
}

#[tokio::test]
async fn a_stock_of_few_pieces_gets_no_more_shards() {
    let shop = shop(3, 1).await;
    busy(&shop, 0, Some(6)).await;
    assert_eq!(shop.send(staff_order(&[("tea", 1)], "k", &json!({}))).await.status, 201);
    assert_eq!(pieces(&shop).await, [2]);
}

#[tokio::test]
async fn concurrent_orders_cancellations_and_changes_of_the_shards_keep_every_piece() {
    let shop = shop(60, 4).await;
    let placed = join_all((0..30).map(|number| {
        let shop = &shop;
        async move {
            let quantity = 1 + number % 4;
            if number % 10 == 9 {
                reshard(shop, [1, 8, 3][usize::try_from(number).unwrap() / 10]).await;
            }
            let placed = shop.send(staff_order(&[("tea", quantity)], &format!("k{number}"), &json!({}))).await;
            if placed.status == 201 && number % 5 == 0 {
                assert_eq!(shop.send(moved(&placed.body, "cancelled")).await.status, 200);
                return 0;
            }
            assert!([201, 409, 503].contains(&placed.status), "{}", placed.body);
            if placed.status == 201 { quantity } else { 0 }
        }
    }))
    .await;
    assert_eq!(pieces(&shop).await.iter().sum::<u64>() + placed.iter().sum::<u64>(), 60);
    reshard(&shop, 1).await;
    let left = pieces(&shop).await[0];
    if left > 0 {
        assert_eq!(shop.send(staff_order(&[("tea", left)], "rest", &json!({}))).await.status, 201);
    }
    assert_eq!(shop.send(staff_order(&[("tea", 1)], "none", &json!({}))).await.status, 409);
}
