use fixture::seed;
use local::System;
use serde_json::Value as Json;

use crate::support::client::Call;
use crate::support::shop::{customer, moved, order, path, products};
use crate::support::{drain, with_own_system};

const TEA: &str = "board-tea";
const CUP: &str = "board-cup";
/// After this number of reads, the sample almost certainly contains a read. The probability that it
/// contains none is (63/64)^2,500, about 10^-17.
const MOST_READS: usize = 2_500;
const PERIODS: [&str; 3] = ["day", "week", "all"];

async fn board(system: &System, by: &str, period: &str) -> Vec<(String, Option<u64>)> {
    let found = Call::new("GET", &format!("/v1/leaderboards/{by}?period={period}")).send(system).await.expect(200);
    let entry = |item: &Json| (item["product_id"].as_str().unwrap().to_owned(), item["count"].as_u64());
    found.body["items"].as_array().unwrap().iter().map(entry).collect()
}

async fn expect(system: &System, by: &str, expected: &[(&str, Option<u64>)]) {
    drain(system).await;
    let expected: Vec<_> = expected.iter().map(|(id, count)| ((*id).to_owned(), *count)).collect();
    for period in PERIODS {
        assert_eq!(board(system, by, period).await, expected, "{by} {period}");
    }
}

#[test]
fn leaderboards_follow_orders_likes_and_views() {
    with_own_system(async |system| {
        seed::today().await;
        for id in ["board-ann", "board-bob"] {
            customer(system, id).await;
        }
        products(system, &[TEA, CUP], 100).await;
        let large = order(system, "board-ann", &[(TEA, 5), (CUP, 1)], "board 1").await;
        let small = order(system, "board-bob", &[(CUP, 2)], "board 2").await;
        let large = moved(system, large, &["paid", "picking"]).await;
        expect(system, "sales", &[]).await;
        let large = moved(system, large, &["shipped"]).await;
        moved(system, small, &["paid", "picking", "shipped"]).await;
        expect(system, "sales", &[(TEA, None), (CUP, None)]).await;
        moved(system, large, &["delivered", "returned"]).await;
        expect(system, "sales", &[(CUP, None)]).await;

        let like = |method, id, product| Call::new(method, &path(&["customers", id, "likes", product])).customer(id);
        for (id, product) in [("board-ann", TEA), ("board-bob", TEA), ("board-ann", CUP)] {
            like("PUT", id, product).send(system).await.expect(201);
        }
        expect(system, "likes", &[(TEA, Some(2)), (CUP, Some(1))]).await;
        for id in ["board-ann", "board-bob"] {
            like("DELETE", id, TEA).send(system).await.expect(204);
        }
        expect(system, "likes", &[(CUP, Some(1))]).await;

        let mut reads = 0;
        while board(system, "views", "all").await.is_empty() {
            assert!(reads < MOST_READS, "no view was counted");
            for _ in 0..50 {
                Call::new("POST", &path(&["products", TEA, "views"])).send(system).await.expect(204);
            }
            reads += 50;
            drain(system).await;
        }
        let viewed = board(system, "views", "all").await;
        assert!(viewed[0].1.is_some_and(|views| views > 0 && views % 64 == 0), "{viewed:?}");
        expect(system, "views", &[(TEA, viewed[0].1)]).await;

        let retire = Call::new("DELETE", &path(&["products", CUP])).staff().header("if-match", "\"1\"");
        retire.send(system).await.expect(204);
        expect(system, "likes", &[]).await;
        expect(system, "sales", &[]).await;
    });
}
