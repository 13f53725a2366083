//! Tests that public pages do not depend on the caller, so that caches may keep them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use regex::Regex;
use serde_json::{Value as Json, json};

use crate::support::client::Call;
use crate::support::openapi::api;
use crate::support::world::World;
use crate::support::{drain, with_own_system, with_system};

#[test]
fn every_public_page_is_the_same_for_every_caller_and_caches_may_keep_it() {
    let caching = Regex::new("^public, max-age=[0-9]+, stale-while-revalidate=[0-9]+$").unwrap();
    with_own_system(async |system| {
        let world = World::create(system).await;
        // The stream's consumer changes some pages, such as ratings and leaderboards.
        drain(system).await;
        let mut pages = 0;
        for operation in api().operations().filter(|operation| operation.method == "GET" && operation.who() == "any") {
            let key = operation.key();
            let good = world.good(system, operation).await;
            let page = good.bare().send(system).await;
            if operation.takes_secret() {
                assert_eq!(page.headers["cache-control"], "no-store", "{key}: a guest's cart or order is private");
                continue;
            }
            pages += 1;
            assert!(page.status == 200 || page.status == 307, "{key}: {} {}", page.status, page.body);
            assert!(caching.is_match(&page.headers["cache-control"]), "{key}: {:?}", page.headers);
            assert!(page.headers["vary"].to_lowercase().contains("origin"), "{key}");
            // The gateway checks no token here, and no function reads one.
            for caller in [good.bare().staff(), good.bare().header("authorization", "Bearer x.y.z")] {
                let seen = caller.send(system).await;
                assert_eq!(seen.status, page.status, "{key}");
                assert_eq!(without_changing_parts(seen.body), without_changing_parts(page.body.clone()), "{key}");
            }
            if page.status == 200 {
                let tag = &page.headers["etag"];
                assert!(tag.starts_with('"'), "{key}: {tag} is weak");
                // A page with a cursor or a signed URL differs each time.
                if without_changing_parts(page.body.clone()) == page.body {
                    let known = good.bare().header("if-none-match", tag).send(system).await;
                    assert_eq!((known.status, &known.body), (304, &Json::Null), "{key}");
                    assert_eq!(&known.headers["etag"], tag, "{key}");
                    assert!(caching.is_match(&known.headers["cache-control"]), "{key}");
                }
            }
            let refused =
                Call::new("GET", &format!("{}{}unknown=1", good.url(), if good.query.is_empty() { "?" } else { "&" }));
            assert_eq!(refused.send(system).await.expect(400).headers["cache-control"], "no-store", "{key}");
        }
        assert!(pages > 15, "{pages}");
    });
}

/// Removes cursors and signed URLs, which differ in each response.
fn without_changing_parts(mut body: Json) -> Json {
    match &mut body {
        Json::Object(members) => {
            members.retain(|name, value| {
                !(["next_cursor", "url", "url_expires_at"].contains(&name.as_str()) && value.is_string())
            });
            for value in members.values_mut() {
                *value = without_changing_parts(value.take());
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| *item = without_changing_parts(item.take())),
        _ => {}
    }
    body
}

#[test]
fn the_settings_determine_how_long_caches_keep_a_page() {
    with_own_system(async |system| {
        let caching = json!({ "max_age_seconds": 60, "stale_while_revalidate_seconds": 600 });
        let settings = Call::new("PUT", "/v1/settings").staff().header("if-none-match", "*");
        settings
            .clone()
            .json(&json!({ "values": { "caching": { "max_age_seconds": -1 } } }))
            .send(system)
            .await
            .expect(422);
        settings.json(&json!({ "values": { "caching": caching } })).send(system).await.expect(201);
        let page = Call::new("GET", "/v1/categories").send(system).await.expect(200);
        assert_eq!(page.headers["cache-control"], "public, max-age=60, stale-while-revalidate=600");
    });
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
