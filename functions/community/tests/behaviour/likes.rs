//! Tests of likes and their count.

use fixture::seed;
use key_schema::id::ProductId;
use key_schema::leaderboard::{self, Board};
use key_schema::product::{self, Product};
use serde_json::json;

use crate::town::{LIKE, LIKES, Town, UNLIKE, count_of, each, like_call, liked, likers};

#[tokio::test]
async fn a_like_is_listed_for_its_customer_and_its_product_and_counted() {
    let town = Town::open(&["a", "b"], &["p#1", "p2"]).await;
    let made = town.like("a", "p#1").await;
    assert_eq!((made.status, made.header("location")), (201, Some("/v1/customers/a/likes/p%231")));
    let read = town.ok(like_call(LIKES, "a", "p#1").customer("a")).await;
    assert_eq!(read.body, made.body);
    assert_eq!((&made.body["customer_id"], &made.body["product_id"]), (&json!("a"), &json!("p#1")));
    assert_eq!(town.list(&likers("p#1"), 10).await, std::slice::from_ref(&made.body));
    assert_eq!(each(&town.list(&liked("a"), 10).await, "product_id"), ["p#1"]);
    assert_eq!((town.count("p#1").await, town.count("p2").await), (1, 0));
    town.like("b", "p#1").await;
    assert_eq!(town.count("p#1").await, 2);
    assert_eq!(town.send(like_call(LIKES, "b", "p2").customer("b")).await.status, 404);
}

/// A second request reads all products of the page.
#[tokio::test]
async fn a_list_of_likes_shows_the_current_name_price_and_picture_of_each_product() {
    let town = Town::open(&["a"], &["p1", "p2"]).await;
    let pictured = Product { thumbnail: Some("m1".parse().unwrap()), ..seed::product("p#3", seed::usd(349)) };
    town.sell(pictured, 0).await;
    let mut likes = Vec::new();
    for product in ["p#3", "p1", "p2"] {
        likes.push(town.like("a", product).await.body);
    }
    town.retire("p1").await;
    town.requests();
    let listed = town.ok(liked("a")).await.body["items"].clone();
    assert_eq!(town.requests(), [("likes.of-customer", 1), ("likes.products", 1)].into());
    let shown = [
        json!({ "name": "p#3", "price": { "amount": 349, "currency": "USD" }, "thumbnail": "/v1/products/p%233/pictures/m1" }),
        json!({ "name": null, "price": null, "thumbnail": null }),
        json!({ "name": "p2", "price": { "amount": 100, "currency": "USD" }, "thumbnail": null }),
    ];
    for (like, product) in likes.iter_mut().zip(&shown) {
        like.as_object_mut().unwrap().extend(product.as_object().unwrap().clone());
    }
    likes.sort_by_key(|like| like["product_id"].to_string());
    assert_eq!(listed, json!(likes));
    town.spoil("PRODUCT#p2", "PRODUCT", "price").await;
    let page = town.ok(liked("a")).await;
    assert_eq!((page.header("x-left-out"), page.body["items"].as_array().unwrap().len()), (Some("1"), 3));
}

#[tokio::test]
async fn a_repeated_like_or_unlike_has_no_effect() {
    let town = Town::open(&["a"], &["p"]).await;
    let first = town.like("a", "p").await;
    for _ in 0..3 {
        let again = town.like("a", "p").await;
        assert_eq!((again.status, &again.body), (200, &first.body));
        assert_eq!(town.count("p").await, 1);
    }
    for _ in 0..3 {
        assert_eq!(town.send(like_call(UNLIKE, "a", "p").customer("a")).await.status, 204);
        assert_eq!(town.count("p").await, 0);
    }
    assert_eq!(town.like("a", "p").await.status, 201);
    assert_eq!(town.count("p").await, 1);
}

/// A tally has several parts, and the leaderboards show their sum.
#[tokio::test]
async fn a_like_counts_once_for_its_day_until_it_is_removed() {
    let (town, now) = (Town::open(&["a", "b", "c"], &["p"]).await, seed::today().await);
    let of_week = async || {
        let week = leaderboard::days(Board::Likes, &"p".parse().unwrap(), now).unwrap();
        let parts = town.own().query(&week).await.unwrap().items;
        parts.iter().map(|tally| tally.count).sum::<i64>()
    };
    for (liking, count) in [("a", 1), ("b", 2), ("a", 2), ("c", 3)] {
        town.like(liking, "p").await;
        assert_eq!(of_week().await, count, "{liking}");
    }
    for count in [2, 2] {
        town.ok(like_call(UNLIKE, "b", "p").customer("b")).await;
        assert_eq!(of_week().await, count);
    }
}

#[tokio::test]
async fn only_products_of_the_catalogue_can_be_liked_and_every_like_can_be_removed() {
    let town = Town::open(&["a", "b"], &["p"]).await;
    town.like("a", "p").await;
    town.like("b", "p").await;
    town.retire("p").await;
    for call in [like_call(LIKE, "a", "p"), like_call(LIKE, "a", "nothing"), like_call(LIKE, "gone", "p")] {
        let answer = town.send(call.staff("s")).await;
        assert_eq!((answer.status, answer.code()), (404, Some("not_found")));
    }
    assert_eq!(town.send(count_of("p")).await.status, 404);
    assert_eq!(town.send(count_of("nothing")).await.status, 404);
    assert_eq!(each(&town.list(&liked("a"), 5).await, "product_id"), ["p"], "the like stays in the list");
    assert_eq!(town.send(like_call(UNLIKE, "a", "p").customer("a")).await.status, 204);
    assert!(town.list(&liked("a"), 5).await.is_empty());
    // A revived product still has its count.
    let id = ProductId::new("p").unwrap();
    let retired = town.own().get(&product::read_for_update(&id).unwrap()).await.unwrap().unwrap();
    town.own().transact(&product::revive(&retired, &retired, 3, &[]).unwrap()).await.unwrap().unwrap();
    assert_eq!(town.count("p").await, 1);
}

#[tokio::test]
async fn a_missing_customer_cannot_like_a_product() {
    let town = Town::open(&["a"], &["p"]).await;
    town.delete_profile("a").await;
    assert_eq!(town.send(like_call(LIKE, "a", "p").customer("a")).await.status, 404);
    assert_eq!(town.count("p").await, 0);
    assert!(town.list(&liked("a"), 5).await.is_empty());
}

#[tokio::test]
async fn a_products_page_neither_shows_nor_reads_the_count() {
    let town = Town::open(&["a"], &["p"]).await;
    let page = product::page(&ProductId::new("p").unwrap()).unwrap();
    let before = town.own().query(&page).await.unwrap().items;
    town.like("a", "p").await;
    assert_eq!(town.own().query(&page).await.unwrap().items, before);
}
