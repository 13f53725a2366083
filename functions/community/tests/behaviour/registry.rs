//! Tests that each route uses the access patterns that it declares.

use fixture::Recorder;

use crate::town::{
    FOLLOW, FOLLOWS, LIKE, LIKES, Town, UNFOLLOW, UNLIKE, count_of, edge, edges, followers, following, liked, likers,
    residents, taste,
};

#[tokio::test]
async fn every_route_uses_exactly_the_patterns_that_it_declares() {
    let town = Town::open(&["a", "b"], &["p"]).await;
    let mut calls = vec![
        edge(FOLLOW, "a", "b"),
        edge(FOLLOWS, "a", "b"),
        following("a"),
        followers("b"),
        edge(UNFOLLOW, "a", "b"),
        taste(LIKE, "a", "p"),
        taste(LIKES, "a", "p"),
        liked("a"),
        count_of("p"),
        likers("p"),
        taste(UNLIKE, "a", "p"),
        residents("DE"),
    ];
    calls.extend(["follows", "likes", "reviewed", "bought", "lives-in"].map(|kind| edges("a", kind)));
    let mut recorder = Recorder::new(&town);
    for call in calls {
        recorder.ok(call.staff("s")).await;
    }
    recorder.assert_as_declared();
}
