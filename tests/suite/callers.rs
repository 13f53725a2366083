//! Tests tokens on a public route, where the function and not the gateway checks them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use local::System;
use serde_json::{Value as Json, json};
use time::{Duration, OffsetDateTime};

use crate::import::bodega;
use crate::support::client::Call;
use crate::support::{shop, with_system};

/// Returns the likes of a product as a caller with this header sees them.
async fn likes(system: &System, product: &str, authorization: Option<&str>) -> Json {
    let call = Call::new("GET", &shop::path(&["products", product, "likes"]));
    let call = authorization.into_iter().fold(call, |call, value| call.header("authorization", value));
    let answer = call.send(system).await.expect(200);
    assert_eq!(answer.headers["cache-control"], "no-store");
    answer.body
}

#[test]
fn a_like_is_shown_only_to_the_customer_who_gave_it() {
    with_system(async |system| {
        shop::products(system, &["callers"], 1).await;
        for id in ["callers-a", "callers-b"] {
            shop::customer(system, id).await;
        }
        Call::new("PUT", "/v1/customers/callers-a/likes/callers").customer("callers-a").send(system).await.expect(201);
        let of = |liked_by_me: bool| json!({ "count": 1, "liked_by_me": liked_by_me });
        let now = OffsetDateTime::now_utc();
        let token = |id: &str, groups: &[&str], issued: OffsetDateTime| {
            let groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
            system.token_of(id, &groups, issued)
        };
        let owner = token("callers-a", &[], now);
        let printed = bodega(["token", "--sub", "callers-a"]).await;
        for (authorization, liked) in [
            (Some(format!("Bearer {owner}")), true),
            (Some(format!("bearer {owner}")), true),
            (Some(owner.clone()), true),
            (Some(format!("Bearer {}", printed.out.trim())), true),
            (Some(format!("Bearer {}", token("callers-a", &["other", "staff"], now))), true),
            (Some(format!("Bearer {}", token("callers-b", &[], now))), false),
            (Some(format!("Bearer {}", token("staff", &["staff"], now))), false),
            (Some(format!("Bearer {}", token("callers-a", &[], now - Duration::hours(13)))), false),
            (Some(format!("Bearer {}", token("callers-a", &[], now + Duration::hours(1)))), false),
            (Some(format!("Bearer {}", unsigned(&owner))), false),
            (Some("Bearer x.y.z".to_owned()), false),
            (Some("Basic Y2FsbGVycy1hOg==".to_owned()), false),
            (None, false),
        ] {
            assert_eq!(likes(system, "callers", authorization.as_deref()).await, of(liked), "{authorization:?}");
        }
        // On a route that requires a token, the gateway refuses an expired token.
        let expired = format!("Bearer {}", token("callers-a", &[], now - Duration::hours(13)));
        let own = Call::new("GET", "/v1/customers/callers-a").header("authorization", &expired);
        assert_eq!(own.send(system).await.expect(401).body, json!({ "message": "Unauthorized" }));
    });
}

/// Returns a product as a caller with this header sees it.
async fn product(system: &System, id: &str, authorization: Option<&str>) -> Json {
    let call = Call::new("GET", &shop::path(&["products", id]));
    let call = authorization.into_iter().fold(call, |call, value| call.header("authorization", value));
    let answer = call.send(system).await.expect(200);
    assert_eq!(answer.headers["cache-control"], "no-store");
    answer.body
}

#[test]
fn staff_see_the_stock_and_sales_of_a_product_but_others_see_only_its_availability() {
    with_system(async |system| {
        shop::products(system, &["callers-stock"], 7).await;
        shop::customer(system, "callers-buyer").await;
        let staff = system.token("staff", &["staff".to_owned()]);
        let seen = product(system, "callers-stock", Some(&format!("Bearer {staff}"))).await;
        assert_eq!((&seen["stock"], &seen["sold"]), (&json!(7), &json!({ "quantity": 0, "orders": 0 })));
        let customer = system.token("callers-buyer", &[]);
        for header in [None, Some(format!("Bearer {customer}")), Some(format!("Bearer {}", unsigned(&staff)))] {
            let seen = product(system, "callers-stock", header.as_deref()).await;
            assert_eq!((&seen["in_stock"], &seen["availability"]), (&json!(true), &json!("low")));
            assert_eq!((&seen["stock"], &seen["sold"]), (&Json::Null, &Json::Null), "{header:?}");
        }
        // The refusal of an order does not show the stock either.
        let lines = json!([{ "product_id": "callers-stock", "quantity": 8 }]);
        let order = json!({ "customer_id": "callers-buyer", "lines": lines });
        let call = Call::new("POST", "/v1/orders").customer("callers-buyer").header("idempotency-key", "callers");
        let refused = call.json(&order).send(system).await.expect(409);
        assert_eq!(refused.body["errors"][0]["detail"], "not enough in stock");
    });
}

/// Returns an unsigned token with the same claims. Its `alg` is `none`.
fn unsigned(token: &str) -> String {
    let payload = token.split('.').nth(1).unwrap();
    let header = token.split('.').next().unwrap();
    let mut header: Json = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
    header["alg"] = "none".into();
    format!("{}.{payload}.", URL_SAFE_NO_PAD.encode(header.to_string()))
}

#[test]
fn the_local_issuer_shows_its_public_key_where_the_functions_find_it() {
    with_system(async |system| {
        let environment = Call::new("GET", "/_local/environment").send(system).await.expect(200).body;
        let endpoint = environment["JWT_ISSUER_ENDPOINT"].as_str().unwrap();
        let path = endpoint.strip_prefix(&system.url()).unwrap();
        let get = async |path: String| Call::new("GET", &path).send(system).await.expect(200).body;
        let discovery = get(format!("{path}/.well-known/openid-configuration")).await;
        assert_eq!(discovery["issuer"], environment["JWT_ISSUER"]);
        let place = discovery["jwks_uri"].as_str().unwrap().strip_prefix(&system.url()).unwrap();
        let keys = get(place.to_owned()).await;
        let [key] = keys["keys"].as_array().unwrap().as_slice() else { panic!("{keys}") };
        assert_eq!((&key["kty"], &key["d"]), (&json!("EC"), &Json::Null), "the private key is not published");
        let claims = system.token("callers-a", &[]);
        let claims = URL_SAFE_NO_PAD.decode(claims.split('.').nth(1).unwrap()).unwrap();
        let claims: Json = serde_json::from_slice(&claims).unwrap();
        assert_eq!((&claims["iss"], &claims["aud"]), (&environment["JWT_ISSUER"], &environment["JWT_AUDIENCE"]));
    });
}
