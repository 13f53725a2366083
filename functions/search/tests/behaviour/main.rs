//! Tests of the searches through their routes, called with the events that API Gateway sends. The
//! tests use the embedded index, or the OpenSearch at `SEARCH_ENDPOINT`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod orders;
mod products;
mod shop;
mod suggestions;
mod variants;

use std::collections::BTreeSet;

use fixture::TestTable;
use http_api::SHARED_PATTERNS;
use http_api::sample::{Answered, Call};
use serde_json::json;

use crate::shop::{Shop, id, order, product};

#[tokio::test]
async fn the_routes_read_only_the_revocation_of_the_callers_sign_in() {
    let test = TestTable::create().await;
    let ice = product("p1", "Ice", "Glace", &["FROZEN"], 100);
    let mut shop = Shop::with(&[ice], &[order("o1", "c1", "paid", 1)]).await;
    shop.app.services.table = test.table();
    let mut routes = BTreeSet::new();
    for (route, list, found) in [
        ("GET /v1/search/products", "items", "p1"),
        ("GET /v1/search/suggestions", "products", "p1"),
        ("GET /v1/search/orders", "items", "o1"),
    ] {
        let ids = |answer: &Answered| answer.body[list].as_array().unwrap().iter().map(id).collect::<Vec<_>>();
        assert_eq!(ids(&shop.send(Call::new(route).staff("s1")).await), [found]);
        // A public page needs the settings, and each environment reads them once.
        let settings = shop.app.services.table.meter().take();
        assert!(settings.iter().all(|cost| cost.pattern == &key_schema::settings::READ), "{route}: {settings:?}");
        // The function caches sign-ins, so the token for each route has a different sign-in.
        let claims = json!({ "sub": "s1", "cognito:groups": "[staff]", "sid": route });
        assert_eq!(ids(&shop.send(Call::new(route).claims(claims)).await), [found]);
        let used = shop.app.services.table.meter().take();
        let used: Vec<_> = used.iter().map(|cost| (("token", cost.pattern), cost.requests)).collect();
        assert!(matches!(used.as_slice(), [(lookup, 1)] if SHARED_PATTERNS.contains(lookup)), "{route}: {used:?}");
        routes.insert(route);
    }
    assert_eq!(routes, search::routes().keys().collect());
}
