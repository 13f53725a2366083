//! Tests that the registry of access patterns lists the routes that use each pattern.

use std::collections::BTreeSet;

use fixture::TestTable;
use http_api::sample::Call;
use key_schema::registry;
use serde_json::json;

use crate::shop::{Shop, ids, order, product};

/// The registry lists this lookup under `token`, because every function makes it for each route.
#[tokio::test]
async fn the_routes_read_only_the_revocation_of_the_callers_sign_in() {
    let test = TestTable::create().await;
    let ice = product("p1", "Ice", "Glace", &["FROZEN"], 100);
    let mut shop = Shop::with(&[ice], &[order("o1", "c1", "paid", 1)]).await;
    shop.app.table = test.table();
    let mut routes = BTreeSet::new();
    for (route, found) in [("GET /v1/search/products", "p1"), ("GET /v1/search/orders", "o1")] {
        assert_eq!(ids(&shop.send(Call::new(route).staff("s1")).await), [found]);
        assert_eq!(shop.app.table.meter().take(), [], "{route}");
        // The function remembers a sign-in, so each route gets a token of another one.
        let claims = json!({ "sub": "s1", "cognito:groups": "[staff]", "sid": route });
        assert_eq!(ids(&shop.send(Call::new(route).claims(claims)).await), [found]);
        let used: Vec<_> = shop.app.table.meter().take().iter().map(|cost| (cost.pattern.id, cost.requests)).collect();
        assert_eq!(used, [("revocations.get", 1)], "{route}");
        routes.insert(route);
    }
    assert_eq!(routes, search::routes().keys().collect());
    let listed = registry::all().filter(|pattern| pattern.used_by.iter().any(|route| routes.contains(route)));
    assert_eq!(listed.map(|pattern| pattern.id).collect::<Vec<_>>(), [""; 0]);
}
