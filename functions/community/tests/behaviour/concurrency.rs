//! Tests of many concurrent requests.

use std::collections::BTreeSet;

use futures::future::join_all;
use http_api::sample::Answered;

use crate::town::{
    FOLLOW, LIKE, Town, UNFOLLOW, UNLIKE, each, edge, followers, following, like_call, liked, likers, profile,
};

const CLIENTS: usize = 50;

async fn town(products: &[&str]) -> (Town, Vec<String>) {
    let town = Town::open(&["star"], products).await;
    let ids: Vec<String> = (0..CLIENTS).map(|n| format!("c{n:02}")).collect();
    town.put_all(ids.iter().map(|id| profile(id, None))).await;
    (town, ids)
}

fn statuses(answers: &[Answered]) -> BTreeSet<u16> {
    answers.iter().map(|answer| answer.status).collect()
}

#[tokio::test]
async fn fifty_customers_like_one_product_at_once_and_all_are_counted() {
    let (town, ids) = town(&["p"]).await;
    for _ in 0..2 {
        let answers = join_all(ids.iter().map(|id| town.send(like_call(LIKE, id, "p").customer(id)))).await;
        assert!(statuses(&answers).is_subset(&BTreeSet::from([200, 201])), "{:?}", statuses(&answers));
        assert_eq!(town.count("p").await, 50);
    }
    let found: BTreeSet<String> = each(&town.list(&likers("p"), 7).await, "customer_id").into_iter().collect();
    assert_eq!(found, ids.iter().cloned().collect());
    // Every second customer removes the like while the other customers repeat their likes.
    let call =
        |n: usize, id: &str| if n.is_multiple_of(2) { like_call(UNLIKE, id, "p") } else { like_call(LIKE, id, "p") };
    let answers = join_all(ids.iter().enumerate().map(|(n, id)| town.send(call(n, id).customer(id)))).await;
    assert_eq!(statuses(&answers), BTreeSet::from([200, 204]));
    assert_eq!((town.count("p").await, town.list(&likers("p"), 100).await.len()), (25, 25));
}

#[tokio::test]
async fn the_count_equals_the_likes_after_any_additions_and_removals() {
    let (town, ids) = town(&["p", "q"]).await;
    for round in 0..4_u64 {
        let calls = (0..CLIENTS).map(|n| {
            let mut random = fastrand::Rng::with_seed(round * 1000 + n as u64);
            let (id, product) = (&ids[random.usize(..8)], ["p", "q"][random.usize(..2)]);
            let route = if random.bool() { LIKE } else { UNLIKE };
            town.send(like_call(route, id, product).customer(id))
        });
        let answers = join_all(calls).await;
        assert!(answers.iter().all(|answer| [200, 201, 204].contains(&answer.status)), "{:?}", statuses(&answers));
        for product in ["p", "q"] {
            let likes = town.list(&likers(product), 100).await.len();
            assert_eq!(town.count(product).await, likes as u64);
            let mut of_customers = 0;
            for id in &ids[..8] {
                let likes = each(&town.list(&liked(id), 100).await, "product_id");
                of_customers += likes.iter().filter(|liked| *liked == product).count();
            }
            assert_eq!(of_customers, likes);
        }
    }
}

#[tokio::test]
async fn fifty_customers_follow_one_customer_at_once_and_each_adds_one_edge() {
    let (town, ids) = town(&[]).await;
    for round in 0..2 {
        let answers = join_all(ids.iter().map(|id| town.send(edge(FOLLOW, id, "star").customer(id)))).await;
        assert_eq!(statuses(&answers), BTreeSet::from([if round == 0 { 201 } else { 200 }]));
        let found: BTreeSet<String> =
            each(&town.list(&followers("star"), 7).await, "customer_id").into_iter().collect();
        assert_eq!(found, ids.iter().cloned().collect());
    }
    let call =
        |n: usize, id: &str| if n.is_multiple_of(2) { edge(UNFOLLOW, id, "star") } else { edge(FOLLOW, id, "star") };
    join_all(ids.iter().enumerate().map(|(n, id)| town.ok(call(n, id).customer(id)))).await;
    assert_eq!(town.list(&followers("star"), 100).await.len(), 25);
}

#[tokio::test]
async fn one_customer_follows_fifty_customers_at_once() {
    let (town, ids) = town(&[]).await;
    let calls = ids.iter().flat_map(|id| [id, id]).map(|id| town.send(edge(FOLLOW, "star", id).customer("star")));
    let answers = join_all(calls).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), CLIENTS);
    assert_eq!(each(&town.list(&following("star"), 7).await, "followed_id"), ids);
}
