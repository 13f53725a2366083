//! Tests that the local gateway handles a request like an HTTP API of API Gateway, before the
//! request reaches a function.

use local::System;
use serde_json::json;

use crate::support::client::{Answer, Call, http};
use crate::support::{shop, with_own_system, with_system};

fn staff(method: &str, path: &str) -> Call {
    Call::new(method, path).staff()
}

async fn products(system: &System, ids: &[&str]) {
    for id in ids {
        let product = shop::product_body(id, &["gateway"], 1);
        staff("POST", "/v1/products").json(&product).send(system).await.expect(201);
    }
}

async fn read(system: &System, path: &str) -> Answer {
    staff("GET", path).send(system).await
}

#[test]
fn a_path_is_decoded_twice_and_cut_before_it_is_routed() {
    with_own_system(async |system| {
        products(system, &["gw", "gw b", "gw#b"]).await;
        for (sent, id) in [
            ("/v1/products/gw", "gw"),
            ("/v1/products/g%77", "gw"),
            ("/v1/products/g%2577", "gw"),
            ("/v1/products%2Fgw", "gw"),
            ("/v1/products%252Fgw", "gw"),
            ("/v1/products/gw%3Fb", "gw"),
            ("/v1/products/gw%20b", "gw b"),
            ("/v1/products/gw%23b", "gw#b"),
        ] {
            assert_eq!(read(system, sent).await.expect(200).body["id"], id, "{sent}");
        }
        assert!(read(system, "/v1/products/gw%2Freviews").await.expect(200).body["items"].is_array());
        for sent in ["/v1/products/gw%25", "/v1/products/gw%25x", "/v1/products/gw%zz", "/v1/products/%FF"] {
            assert_eq!(read(system, sent).await.expect(400).body, json!({"message": "Bad Request"}), "{sent}");
        }
        assert_eq!(read(system, "/v1/products/gw%2Fnone").await.expect(404).body, json!({"message": "Not Found"}));
        for sent in ["/v1/products/gw%253Fb", "/v1/products/gw%2525b"] {
            assert_eq!(read(system, sent).await.expect(422).code(), "invalid_id", "{sent}");
        }
    });
}

/// The gateway shortens or changes a path with one of these ids, so the path would name another
/// product.
#[test]
fn a_product_whose_path_would_name_another_product_cannot_be_created() {
    with_own_system(async |system| {
        products(system, &["gw"]).await;
        for id in ["gw?b", "gw/reviews", "gw%", "gw%2F", "gw\\b", ".", ".."] {
            let product = shop::product_body(id, &["gateway"], 1);
            let refused = staff("POST", "/v1/products").json(&product).send(system).await.expect(422);
            assert_eq!((refused.code(), refused.pointers()), ("invalid_body", vec!["/id"]), "{id}");
        }
        let retired = staff("DELETE", "/v1/products/gw%3Fb").header("if-match", "\"1\"");
        retired.send(system).await.expect(204);
        read(system, "/v1/products/gw").await.expect(404);
    });
}

#[test]
fn a_request_with_two_tokens_counts_as_a_request_without_a_token() {
    with_system(async |system| {
        let send = async |path: &str, values: &[String]| {
            let request = http().get(format!("{}{path}", system.url()));
            let request = values.iter().fold(request, |request, value| request.header("authorization", value));
            request.send().await.unwrap().status().as_u16()
        };
        let token = format!("Bearer {}", system.token("staff", &["staff".to_owned()]));
        let list = "/v1/orders?status=pending";
        assert_eq!(send(list, std::slice::from_ref(&token)).await, 200);
        for values in [[token.clone(), token.clone()], [token.clone(), String::new()], [String::new(), token.clone()]] {
            assert_eq!(send(list, &values).await, 401, "{values:?}");
            assert_eq!(send("/v1/reviews/recent", &values).await, 200, "a public route needs no token");
        }
    });
}

#[test]
fn a_token_whose_subject_is_no_valid_id_gets_403_with_the_reason() {
    with_system(async |system| {
        for subject in ["auth0/5f7c", "a?b", "50%"] {
            let answer = Call::new("GET", "/v1/customers/ann").customer(subject).send(system).await.expect(403);
            assert_eq!(answer.code(), "forbidden", "{subject}");
            let detail = answer.body["detail"].as_str().unwrap();
            assert!(detail.starts_with("The token's `sub` is not a valid customer id"), "{detail}");
        }
    });
}
