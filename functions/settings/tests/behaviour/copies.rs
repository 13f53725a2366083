//! Tests of the ten copies of the settings.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::join_all;
use key_schema::settings::{self as schema, COPIES};
use serde_json::json;

use crate::shop::{Shop, change, first, get, whole};

#[tokio::test]
async fn one_of_fifty_concurrent_changes_wins_in_every_copy() {
    let shop = Shop::open().await;
    let functions: Vec<_> = (0..5).map(|_| shop.function()).collect();
    for version in 0..3_u64 {
        let attempts = (0..50).map(|n| {
            let (function, body) = (&functions[n % 5], json!({ "values": { "by": n, "at": version } }));
            async move {
                let call = if version == 0 && n % 2 == 0 { first(&body) } else { change(&body, version) };
                function.settled(call).await
            }
        });
        let answers = join_all(attempts).await;
        let won: Vec<_> = answers.iter().filter(|answer| answer.status < 300).collect();
        assert_eq!(won.len(), 1, "{version}");
        let lost = answers.iter().filter(|answer| answer.status >= 300);
        assert!(lost.into_iter().all(|answer| [409, 412].contains(&answer.status)));
        for copy in 0..COPIES {
            let stored = shop.own().get(&schema::read(copy).unwrap()).await.unwrap().unwrap();
            assert_eq!((stored.copy, stored.meta.version), (copy, version + 1));
            assert_eq!(stored.values, won[0].body["values"].to_string());
        }
        shop.wait(30_000);
        for function in &functions {
            assert_eq!(function.send(get()).await.body["values"], won[0].body["values"]);
        }
    }
}

#[tokio::test]
async fn readers_spread_over_the_copies() {
    let shop = Shop::open().await;
    let function = shop.function();
    function.set(first(&json!({ "values": {} }))).await;
    // The test writes a different value into each copy, which the function itself never does.
    for copy in 0..COPIES {
        let values = AttributeValue::S(format!("{{\"copy\":{copy}}}"));
        shop.set(&format!("SETTINGS#{copy:020}"), "SETTINGS", "values", values).await;
    }
    let mut seen = BTreeSet::new();
    // A run misses one of the ten copies in 400 tries only once in 10^17 runs.
    for _ in 0..400 {
        seen.insert(function.send(whole()).await.body["values"]["copy"].as_u64().unwrap());
    }
    assert_eq!(seen, (0..COPIES).collect());
}

#[tokio::test]
async fn every_route_uses_exactly_the_recorded_patterns() {
    let shop = Shop::open().await;
    let function = shop.function();
    let body = json!({ "values": {} });
    let calls = [
        ("GET /v1/settings", get()),
        ("GET /v1/settings/private", whole()),
        ("PUT /v1/settings", first(&body)),
        ("PUT /v1/settings", change(&body, 1)),
    ];
    let mut used = BTreeSet::new();
    for (route, call) in calls.into_iter().chain(crate::rules::calls()).chain(crate::promotions::calls()) {
        assert!(function.send(call).await.status < 300, "{route}");
        used.extend(function.requests().into_keys().map(|pattern| (route.to_owned(), pattern)));
    }
    crate::webhooks::each(&shop, &function, |route| {
        used.extend(function.requests().into_keys().map(|pattern| (route.to_owned(), pattern)));
    })
    .await;
    fixture::assert_recorded(&settings::routes().keys().map(str::to_owned).collect(), &used);
}
