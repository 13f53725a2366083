//! Tests that each route uses the access patterns that it declares.

use std::collections::BTreeSet;

use crate::town::{
    FOLLOW, FOLLOWS, LIKE, LIKES, Town, UNFOLLOW, UNLIKE, count_of, edge, edges, followers, following, liked, likers,
    residents, taste,
};

#[tokio::test]
async fn every_route_uses_exactly_the_patterns_that_it_declares() {
    let town = Town::open(&["a", "b"], &["p"]).await;
    let graph = "GET /v1/graph/{node}/edges";
    let mut calls = vec![
        (FOLLOW, edge(FOLLOW, "a", "b")),
        (FOLLOWS, edge(FOLLOWS, "a", "b")),
        ("GET /v1/customers/{id}/following", following("a")),
        ("GET /v1/customers/{id}/followers", followers("b")),
        (UNFOLLOW, edge(UNFOLLOW, "a", "b")),
        (LIKE, taste(LIKE, "a", "p")),
        (LIKES, taste(LIKES, "a", "p")),
        ("GET /v1/customers/{id}/likes", liked("a")),
        ("GET /v1/products/{id}/likes", count_of("p")),
        ("GET /v1/products/{id}/likers", likers("p")),
        (UNLIKE, taste(UNLIKE, "a", "p")),
        ("GET /v1/places/{path}/customers", residents("DE")),
    ];
    calls.extend(["follows", "likes", "reviewed", "bought", "lives-in"].map(|kind| (graph, edges("a", kind))));
    let routes: BTreeSet<&str> = calls.iter().map(|(route, _)| *route).collect();
    assert_eq!(routes, community::routes().keys().collect());
    let mut used = BTreeSet::new();
    for (route, call) in calls {
        town.ok(call.staff("s")).await;
        used.extend(town.app.services.table.meter().take().iter().map(|cost| (route, cost.pattern.id)));
    }
    assert_eq!(used, community::routes().patterns().map(|(route, pattern)| (route, pattern.id)).collect());
}
