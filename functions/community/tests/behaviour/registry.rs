//! Tests that each route uses the access patterns that it declares.

use fixture::Recorder;

use crate::town::{
    FOLLOW, FOLLOWS, LIKE, LIKES, Town, UNFOLLOW, UNLIKE, count_of, edge, edges, followers, following, like_call,
    liked, likers, residents,
};

#[tokio::test]
async fn every_route_uses_exactly_the_recorded_patterns() {
    let town = Town::open(&["a", "b"], &["p"]).await;
    let mut calls = vec![
        edge(FOLLOW, "a", "b"),
        edge(FOLLOWS, "a", "b"),
        following("a"),
        followers("b"),
        edge(UNFOLLOW, "a", "b"),
        like_call(LIKE, "a", "p"),
        like_call(LIKES, "a", "p"),
        liked("a"),
        count_of("p"),
        likers("p"),
        like_call(UNLIKE, "a", "p"),
        residents("DE"),
    ];
    calls.extend(["follows", "likes", "reviewed", "bought", "lives-in"].map(|kind| edges("a", kind)));
    let mut recorder = Recorder::new(&town);
    for call in calls {
        recorder.ok(call.staff("s")).await;
    }
    recorder.assert_recorded();
}
