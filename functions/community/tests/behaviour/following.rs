//! Tests of follows.

use serde_json::json;

use crate::town::{FOLLOW, FOLLOWS, Town, UNFOLLOW, each, edge, followers, following};

#[tokio::test]
async fn a_follow_is_listed_for_both_customers_and_read_by_its_path() {
    let town = Town::open(&["a", "b", "c"], &[]).await;
    let made = town.follow("a", "b").await;
    assert_eq!((made.status, made.header("location")), (201, Some("/v1/customers/a/following/b")));
    assert_eq!((&made.body["customer_id"], &made.body["followed_id"]), (&json!("a"), &json!("b")));
    let read = town.send(edge(FOLLOWS, "a", "b").customer("c")).await;
    assert_eq!((read.status, &read.body), (200, &made.body));
    for (one, other) in [("b", "a"), ("a", "c"), ("c", "b")] {
        assert_eq!(town.send(edge(FOLLOWS, one, other).customer("c")).await.status, 404);
    }
    for list in [following("a"), followers("b")] {
        assert_eq!(town.list(&list, 10).await, std::slice::from_ref(&made.body));
    }
    assert!(town.list(&following("b"), 10).await.is_empty() && town.list(&followers("a"), 10).await.is_empty());
}

#[tokio::test]
async fn a_repeated_follow_has_no_effect() {
    let town = Town::open(&["a", "b"], &[]).await;
    let first = town.follow("a", "b").await;
    let second = town.follow("a", "b").await;
    assert_eq!((second.status, &second.body, second.header("location")), (200, &first.body, None));
    assert_eq!(town.list(&followers("b"), 10).await.len(), 1);
}

#[tokio::test]
async fn a_customer_may_unfollow_without_following_and_then_follow_again() {
    let town = Town::open(&["a", "b"], &[]).await;
    let first = town.follow("a", "b").await.body;
    for _ in 0..2 {
        assert_eq!(town.send(edge(UNFOLLOW, "a", "b").customer("a")).await.status, 204);
        assert!(town.list(&followers("b"), 10).await.is_empty() && town.list(&following("a"), 10).await.is_empty());
    }
    assert_eq!(town.send(edge(UNFOLLOW, "a", "nobody").customer("a")).await.status, 204);
    let again = town.follow("a", "b").await;
    assert_eq!(again.status, 201);
    assert!(again.body["since"].as_str() >= first["since"].as_str());
}

#[tokio::test]
async fn customers_cannot_follow_themselves_or_missing_customers() {
    let town = Town::open(&["a", "b"], &[]).await;
    let oneself = town.send(edge(FOLLOW, "a", "a").customer("a")).await;
    assert_eq!((oneself.status, oneself.code()), (422, Some("follows_self")));
    let nobody = town.send(edge(FOLLOW, "a", "nobody").customer("a")).await;
    assert_eq!((nobody.status, nobody.code()), (404, Some("not_found")));
    // A token is still valid when its customer no longer exists.
    let stranger = town.send(edge(FOLLOW, "gone", "b").customer("gone")).await;
    assert_eq!((stranger.status, stranger.code()), (404, Some("not_found")));
    town.follow("a", "b").await;
    town.delete_profile("a").await;
    assert_eq!(town.send(edge(FOLLOW, "a", "b").customer("a")).await.status, 404, "an erased customer follows nobody");
    assert_eq!(each(&town.list(&followers("b"), 10).await, "customer_id"), ["a"], "only the profile was removed");
}

#[tokio::test]
async fn a_customer_whose_erasure_has_begun_gets_no_followers() {
    let town = Town::open(&["a", "b"], &[]).await;
    town.begin_erasure("b").await;
    let refused = town.send(edge(FOLLOW, "a", "b").customer("a")).await;
    assert_eq!((refused.status, refused.code()), (404, Some("not_found")));
    assert_eq!(town.list(&followers("b"), 10).await.len(), 0);
}
