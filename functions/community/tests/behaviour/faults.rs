//! Tests of likes while the table fails: a request that the client repeats counts once.

use emulators::table::FaultKind;
use futures::future::join_all;

use crate::town::{FOLLOW, LIKE, Town, UNLIKE, edge, like_call, likers};

const CUSTOMERS: [&str; 4] = ["a", "b", "c", "d"];

#[tokio::test]
async fn faults_of_the_table_neither_lose_nor_double_a_like() {
    let kinds = [FaultKind::Conflict, FaultKind::Throttle, FaultKind::Error, FaultKind::Reset];
    for (seed, kind) in (0..).zip(kinds) {
        let town = Town::open(&CUSTOMERS, &["p"]).await;
        town.break_with(kind, 0.4, None, seed);
        let like = |id: &'static str| town.settled(like_call(LIKE, id, "p").customer(id));
        for answer in join_all(CUSTOMERS.map(like)).await {
            assert!([200, 201].contains(&answer.status), "{kind:?}: {}", answer.body);
        }
        let unlike = town.settled(like_call(UNLIKE, "d", "p").customer("d")).await;
        let follow = town.settled(edge(FOLLOW, "a", "b").customer("a")).await;
        assert!(town.clear_faults() > 0, "{kind:?}");
        assert!(unlike.status == 204 && [200, 201].contains(&follow.status), "{kind:?}");
        assert_eq!((town.count("p").await, town.list(&likers("p"), 10).await.len()), (3, 3), "{kind:?}");
    }
}

/// The table executes the transaction, but its response is lost. The SDK sends the transaction
/// again. DynamoDB recognises it by the client request token.
#[tokio::test]
async fn a_like_counts_once_when_the_response_of_the_table_is_lost() {
    let town = Town::open(&["a"], &["p"]).await;
    // The response to the earlier read of the product is lost as well.
    town.break_with(FaultKind::Timeout, 1.0, Some(2), 0);
    let answer = town.settled(like_call(LIKE, "a", "p").customer("a")).await;
    assert_eq!(town.clear_faults(), 2);
    assert!([200, 201].contains(&answer.status), "{}", answer.body);
    assert_eq!((town.count("p").await, town.list(&likers("p"), 10).await.len()), (1, 1));
}

#[tokio::test]
async fn a_like_that_always_conflicts_gets_503_and_is_not_counted() {
    let town = Town::open(&["a"], &["p"]).await;
    town.break_with(FaultKind::Conflict, 1.0, None, 0);
    let answer = town.send(like_call(LIKE, "a", "p").customer("a")).await;
    town.clear_faults();
    assert_eq!((answer.status, answer.code()), (503, Some("throttled")));
    assert_eq!((town.count("p").await, town.list(&likers("p"), 10).await.len()), (0, 0));
}
