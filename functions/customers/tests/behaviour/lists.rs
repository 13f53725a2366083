//! Tests of the lists of customers: all, by email address and by tier.

use std::collections::BTreeSet;

use fixture::seed;
use http_api::sample::{Answered, Call};
use key_schema::customer::{Customer, Tier};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::lists::FIRST;
use serde_json::Value;

use crate::shop::{Shop, ids, sign_up};

async fn list(shop: &Shop, parameters: &[(&str, &str)]) -> Answered {
    let call = parameters
        .iter()
        .fold(Call::new("GET /v1/customers").staff("s"), |call, (name, value)| call.query(name, value));
    shop.send(call).await
}

#[tokio::test]
async fn a_list_leaves_out_an_unreadable_profile_and_counts_it() {
    let shop = Shop::open().await;
    for id in ["ann", "bob"] {
        shop.customer(id).await;
    }
    shop.spoil("CUSTOMER#ann", "PROFILE", "addresses").await;
    let found = list(&shop, &[]).await;
    assert_eq!((found.status, found.header("x-left-out")), (200, Some("1")), "{}", found.body);
    assert_eq!(ids(&found.body["items"]), ["bob"]);
}

#[tokio::test]
async fn an_email_address_is_found_only_as_a_whole_but_in_any_spelling() {
    let shop = Shop::open().await;
    let ann = shop.send(sign_up("ann", "Straße@example.com", "ann")).await.body;
    for email in ["Straße@example.com", "STRASSE@example.com", "strasse@EXAMPLE.com"] {
        let found = list(&shop, &[("email", email)]).await;
        assert_eq!(found.status, 200);
        assert_eq!(found.body["items"].as_array().unwrap(), std::slice::from_ref(&ann), "{email}");
        assert_eq!(found.body["next_cursor"], Value::Null);
    }
    for other in ["stra@example.com", "strasse@example.co", "%@example.com"] {
        assert!(shop.find(other).await.is_empty(), "{other}");
    }
}

#[tokio::test]
async fn a_tier_is_paged_through_all_shards_oldest_first_and_each_member_once() {
    let shop = Shop::open().await;
    let everybody: Vec<String> = (0..11).map(|n| format!("c{n}")).collect();
    for id in &everybody {
        shop.customer(id).await;
    }
    let shards: BTreeSet<u32> = everybody.iter().map(|id| FIRST.of(id)).collect();
    assert!(shards.len() > 1, "the customers must be in several shards");
    shop.move_to("c4", Tier::Gold).await;

    let whole = list(&shop, &[("tier", "bronze")]).await.body;
    let mut order: Vec<(&str, &str)> = whole["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|customer| (customer["created_at"].as_str().unwrap(), customer["id"].as_str().unwrap()))
        .collect();
    assert_eq!(ids(&whole["items"]), order.iter().map(|(_, id)| *id).collect::<Vec<_>>());
    assert!(order.is_sorted());
    order.sort_by_key(|(_, id)| *id);
    let mut expected: Vec<&str> = everybody.iter().map(String::as_str).filter(|id| *id != "c4").collect();
    expected.sort_unstable();
    assert_eq!(order.iter().map(|(_, id)| *id).collect::<Vec<_>>(), expected);
    assert_eq!(whole["items"][0], shop.read(ids(&whole["items"])[0]).await.body);

    let tier = Call::new("GET /v1/customers").query("tier", "bronze").staff("s");
    for limit in [1, 3, 10, 100] {
        assert_eq!(&shop.all(&tier, limit).await.0, whole["items"].as_array().unwrap(), "limit {limit}");
    }
}

/// Writes customers directly into the table. Three customers share each time of creation.
async fn put(shop: &Shop, count: usize, tier: impl Fn(usize) -> Tier) -> Vec<(String, String)> {
    let at = |n: usize| Instant::EPOCH.plus_seconds(i64::try_from(n / 3).unwrap());
    let customers = (0..count).map(|n| {
        let customer = Customer { tier: tier(n), ..seed::customer(&format!("c{:04}", n * 7919 % 10_000)) };
        Stored::new(customer, seed::born(), at(n))
    });
    let customers: Vec<_> = customers.collect();
    let key = |customer: &Stored<Customer>| (customer.meta.created_at.to_string(), customer.id.to_string());
    let mut keys: Vec<_> = customers.iter().map(key).collect();
    keys.sort();
    shop.put_all(customers).await;
    keys
}

fn keys(items: &[Value]) -> Vec<(String, String)> {
    let text = |customer: &Value, member: &str| customer[member].as_str().unwrap().to_owned();
    items.iter().map(|customer| (text(customer, "created_at"), text(customer, "id"))).collect()
}

#[tokio::test]
async fn a_thousand_customers_of_all_tiers_are_read_oldest_first_at_the_same_cost_per_page() {
    let everybody = Call::new("GET /v1/customers").staff("s");
    // A page costs one request for each shard of each tier, and one for the profiles. If most
    // customers are in one tier, the page reads the four shards of this tier twice.
    for (tier, usual, most) in [
        ((|n| Tier::ALL[n % 3]) as fn(usize) -> Tier, 13, 15),
        (|n| if n % 50 == 0 { Tier::Gold } else { Tier::Bronze }, 17, 17),
    ] {
        let shop = Shop::open().await;
        let expected = put(&shop, 1000, tier).await;
        for limit in [100, 7] {
            let (found, mut requests) = shop.all(&everybody, limit).await;
            assert_eq!(keys(&found), expected, "in pages of {limit}");
            requests.pop();
            assert!(requests.iter().all(|requests| *requests <= most), "{requests:?}");
            let usual = requests.iter().filter(|requests| **requests <= usual).count();
            assert!(usual * 10 >= requests.len() * 9, "{requests:?}");
        }
    }
}

#[tokio::test]
async fn a_customer_between_two_tiers_is_listed_once() {
    let shop = Shop::open().await;
    let expected = put(&shop, 5, |_| Tier::Bronze).await;
    // The index may show an entry of the former tier for a moment. An extra item simulates that
    // entry.
    let late = Customer { tier: Tier::Gold, ..seed::customer(&expected[2].1) };
    let late = Stored::new(late, seed::born(), expected[2].0.parse().unwrap());
    let mut item = late.to_item().unwrap();
    *item.get_mut("PK").unwrap() = item.get("entity").unwrap().clone();
    shop.put_item(item).await;
    for limit in [1, 2, 3, 100] {
        let (found, _) = shop.all(&Call::new("GET /v1/customers").staff("s"), limit).await;
        assert_eq!(keys(&found), expected, "in pages of {limit}");
    }
}
