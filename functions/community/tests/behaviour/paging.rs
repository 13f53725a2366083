//! Tests of long lists: every page costs the same number of requests.

use std::collections::BTreeSet;

use http_api::sample::Call;
use key_schema::follow::{FOLLOWER_SHARDS, Follow};
use key_schema::id::{CustomerId, ProductId};
use key_schema::item::Stored;
use key_schema::like::{LIKER_SHARDS, Like};
use key_schema::residence::LOCATION_SHARDS;
use serde_json::Value;

use crate::town::{Town, at, born, each, edges, followers, following, liked, likers, profile, residents};

const COUNT: i64 = 1000;

fn customer(n: i64) -> CustomerId {
    CustomerId::new(format!("customer {n:04}")).unwrap()
}

fn star() -> CustomerId {
    CustomerId::new("star").unwrap()
}

/// Reads a list in pages and checks that every item appears once, in order.
async fn is_read_whole(town: &Town, call: &Call, wanted: &[String], key: impl Fn(&Value) -> String) {
    // The page size does not divide the length of the list.
    let found: Vec<String> = town.list(call, 97).await.iter().map(&key).collect();
    assert_eq!(found, wanted);
}

#[tokio::test]
async fn a_thousand_followers_are_read_newest_first_from_all_shards() {
    let town = Town::open(&["star"], &[]).await;
    // Every three follows share one time, so the time alone does not define the order.
    let follow = |n: i64| Stored::new(Follow { customer_id: customer(n), followed_id: star() }, born(), at(n / 3));
    town.put_all((0..COUNT).map(follow)).await;
    let shards: BTreeSet<u32> = (0..COUNT).map(|n| FOLLOWER_SHARDS.of(customer(n).as_str())).collect();
    assert_eq!(shards.len(), 4);
    let wanted: Vec<String> = (0..COUNT).rev().map(|n| customer(n).to_string()).collect();
    is_read_whole(&town, &followers("star"), &wanted, |follower| follower["customer_id"].as_str().unwrap().into())
        .await;
}

#[tokio::test]
async fn a_thousand_followed_customers_and_a_thousand_likes_are_read_by_id() {
    let town = Town::open(&["star"], &[]).await;
    let follow = |n: i64| Stored::new(Follow { customer_id: star(), followed_id: customer(n) }, born(), at(n * 7 % 11));
    town.put_all((0..COUNT).map(follow)).await;
    let product = |n: i64| ProductId::new(format!("product #{n:04}")).unwrap();
    let like = |n: i64| Stored::new(Like { customer_id: star(), product_id: product(n) }, born(), at(n * 7 % 11));
    town.put_all((0..COUNT).map(like)).await;
    let customers: Vec<String> = (0..COUNT).map(|n| customer(n).to_string()).collect();
    let products: Vec<String> = (0..COUNT).map(|n| product(n).to_string()).collect();
    let text = |name: &'static str| move |item: &Value| item[name].as_str().unwrap().to_owned();
    is_read_whole(&town, &following("star"), &customers, text("followed_id")).await;
    is_read_whole(&town, &liked("star"), &products, text("product_id")).await;
    is_read_whole(&town, &edges("star", "follows"), &customers, text("target")).await;
    is_read_whole(&town, &edges("star", "likes"), &products, text("target")).await;
}

#[tokio::test]
async fn a_thousand_likers_of_a_product_are_read_newest_first_from_all_shards() {
    let town = Town::open(&["star"], &["p"]).await;
    let product = ProductId::new("p").unwrap();
    let like = |n: i64| Stored::new(Like { customer_id: customer(n), product_id: product.clone() }, born(), at(n / 3));
    town.put_all((0..COUNT).map(like)).await;
    let shards: BTreeSet<u32> = (0..COUNT).map(|n| LIKER_SHARDS.of(customer(n).as_str())).collect();
    assert_eq!(shards.len(), 4);
    let wanted: Vec<String> = (0..COUNT).rev().map(|n| customer(n).to_string()).collect();
    is_read_whole(&town, &likers("p"), &wanted, |like| like["customer_id"].as_str().unwrap().into()).await;
}

#[tokio::test]
async fn a_thousand_customers_of_a_country_are_read_by_city_from_all_shards() {
    let town = Town::open(&[], &[]).await;
    let cities = ["Köln", "Köln 2", "Köln#", "Ulm"];
    let city = |n: i64| cities[usize::try_from(n % 4).unwrap()];
    let resident = |n: i64| profile(customer(n).as_str(), Some(("DE", city(n))));
    town.put_all((0..COUNT).map(resident)).await;
    town.put_all([profile("abroad", Some(("D", "Ulm"))), profile("elsewhere", Some(("DEU", "Köln")))]).await;
    let shards: BTreeSet<u32> = (0..COUNT).map(|n| LOCATION_SHARDS.of(customer(n).as_str())).collect();
    assert_eq!(shards.len(), 4);
    let key = |resident: &Value| format!("{} {}", resident["place"]["city"].as_str().unwrap(), resident["id"]);
    let mut wanted: Vec<(String, String)> =
        (0..COUNT).map(|n| (city(n).to_owned(), format!("{} {:?}", city(n), customer(n).as_str()))).collect();
    // A key contains escapes for `#` and the space. They sort after the end of a text and before
    // all unescaped characters.
    wanted.sort_by_key(|(city, key)| (key_schema::encoding::encode(city), key.clone()));
    let all: Vec<String> = wanted.iter().map(|(_, key)| key.clone()).collect();
    is_read_whole(&town, &residents("DE"), &all, key).await;
    for (segment, city) in [("DE~K_C3_B6ln", "Köln"), ("DE~K_C3_B6ln_23", "Köln#"), ("DE~Ulm", "Ulm")] {
        let found = town.list(&residents(segment), 100).await;
        assert_eq!(found.len(), 250, "{segment}");
        assert!(found.iter().all(|resident| resident["place"]["city"] == city));
    }
    assert!(each(&town.list(&residents("DE~K"), 10).await, "id").is_empty(), "a prefix of a name finds nothing");
}
