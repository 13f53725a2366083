//! Tests of the permissions of all routes.

use http_api::sample::Call;

use crate::town::{
    FOLLOW, FOLLOWS, LIKE, LIKES, Town, UNFOLLOW, UNLIKE, count_of, edge, edges, like_call, liked, likers, residents,
};

/// Builds a call without a caller.
fn bare(route: &'static str) -> Call {
    Call::new(route).path("id", "a").path("other", "b").path("product", "p").path("node", "a").path("path", "DE")
}

#[tokio::test]
async fn only_the_owner_and_staff_see_the_owners_items_and_strangers_get_404() {
    let town = Town::open(&["a", "b"], &["p"]).await;
    for route in [FOLLOW, UNFOLLOW, LIKE, LIKES, "GET /v1/customers/{id}/likes", UNLIKE] {
        assert_eq!(town.send(bare(route)).await.code(), Some("unauthenticated"), "{route}");
        for stranger in ["b", "nobody"] {
            let answer = town.send(bare(route).customer(stranger)).await;
            assert_eq!((answer.status, answer.code()), (404, Some("not_found")), "{route} by {stranger}");
        }
        town.ok(bare(route).customer("a")).await;
        town.ok(bare(route).staff("s")).await;
    }
}

#[tokio::test]
async fn refused_requests_of_other_customers_change_nothing() {
    let town = Town::open(&["a", "b"], &["p"]).await;
    for route in [FOLLOW, LIKE] {
        assert_eq!(town.send(bare(route).customer("b")).await.status, 404);
    }
    assert_eq!(town.send(edge(FOLLOWS, "a", "b").customer("x")).await.status, 404);
    assert_eq!(town.count("p").await, 0);
    town.follow("a", "b").await;
    town.like("a", "p").await;
    for route in [UNFOLLOW, UNLIKE] {
        assert_eq!(town.send(bare(route).customer("b")).await.status, 404);
    }
    town.ok(edge(FOLLOWS, "a", "b").customer("x")).await;
    assert_eq!(town.count("p").await, 1);
}

#[tokio::test]
async fn every_signed_in_caller_reads_the_lists_of_followers() {
    let town = Town::open(&["a", "b"], &[]).await;
    town.follow("a", "b").await;
    for route in [FOLLOWS, "GET /v1/customers/{id}/following", "GET /v1/customers/{id}/followers"] {
        assert_eq!(town.send(bare(route)).await.code(), Some("unauthenticated"), "{route}");
        for anybody in ["a", "b", "stranger"] {
            town.ok(bare(route).customer(anybody)).await;
        }
        town.ok(bare(route).staff("s")).await;
    }
}

#[tokio::test]
async fn only_staff_read_the_graph_the_places_and_the_likers_and_anybody_reads_the_count() {
    let town = Town::open(&["a", "b"], &["p"]).await;
    for call in [edges("a", "follows"), likers("p"), residents("DE")] {
        let unsigned = call.clone().claims(serde_json::json!({}));
        assert_eq!(town.send(unsigned).await.code(), Some("unauthenticated"));
        for customer in ["a", "b"] {
            assert_eq!(town.send(call.clone().customer(customer)).await.code(), Some("forbidden"));
        }
        town.ok(call).await;
    }
    for call in [count_of("p"), count_of("p").customer("a"), count_of("p").staff("s")] {
        town.ok(call).await;
    }
}

#[tokio::test]
async fn a_cursor_is_valid_only_for_its_own_list_and_caller() {
    let town = Town::open(&["a", "b", "c"], &["p", "q"]).await;
    for other in ["b", "c"] {
        town.follow("a", other).await;
    }
    for product in ["p", "q"] {
        town.like("a", product).await;
    }
    let list = |id: &str| Call::new("GET /v1/customers/{id}/following").path("id", id);
    let page = town.ok(list("a").customer("b").query("limit", "1")).await.body;
    let cursor = page["next_cursor"].as_str().unwrap();
    town.ok(list("a").customer("b").query("cursor", cursor)).await;
    for call in [list("a").customer("c"), list("b").customer("b"), liked("a").customer("b"), list("a").staff("b2")] {
        let answer = town.send(call.query("cursor", cursor)).await;
        assert!(answer.code() == Some("cursor_invalid") || answer.status == 404, "{}", answer.body);
    }
    assert_eq!(
        town.send(like_call("GET /v1/customers/{id}/likes", "a", "p").customer("a").query("limit", "0")).await.status,
        400
    );
}
