//! Tests of creating and reading customers.

use http_api::sample::Call;
use serde_json::{Value, json};

use crate::shop::{Shop, sign_up};

#[tokio::test]
async fn a_sign_up_returns_the_profile_with_its_place_and_version() {
    let shop = Shop::open().await;
    let body = json!({
        "email": "Ann@Example.com", "username": "ann", "name": "Ann", "place": { "country": "DE", "city": "Ulm" },
    });
    let created = shop.send(Call::new("POST /v1/customers").customer("a#1").json(&body)).await;
    assert_eq!(created.status, 201, "{}", created.body);
    assert_eq!(created.header("location"), Some("/v1/customers/a%231"));
    assert_eq!(created.version(), Some(1));
    let at = &created.body["created_at"];
    let expected = json!({
        "id": "a#1", "email": "Ann@Example.com", "email_verified": false, "username": "ann", "name": "Ann",
        "tier": "bronze",
        "place": { "country": "DE", "city": "Ulm" }, "addresses": {}, "version": 1, "created_at": at, "updated_at": at,
    });
    assert_eq!(created.body, expected);

    let read = shop.send(Call::new("GET /v1/customers/{id}").path("id", "a#1").customer("a#1")).await;
    assert_eq!((read.status, read.version()), (200, Some(1)));
    assert_eq!(read.body, expected);
}

#[tokio::test]
async fn me_names_the_caller_in_every_path_of_customers() {
    let shop = Shop::open().await;
    let hers = shop.customer("ann").await;
    let me = |route: &'static str| Call::new(route).path("id", "me");
    assert_eq!(shop.send(me("GET /v1/customers/{id}").customer("ann")).await.body, hers);
    assert_eq!(shop.send(me("GET /v1/customers/{id}").customer("bob")).await.status, 404);
    let staff = shop.send(me("GET /v1/customers/{id}").staff("sam")).await;
    assert_eq!(staff.status, 404, "a member of staff is no customer");
    let home = json!({ "name": "Ann", "line1": "Am See 1", "city": "Ulm", "postal_code": "89073", "country": "DE" });
    let put = me("PUT /v1/customers/{id}/addresses/{name}").path("name", "home").json(&home);
    let stored = shop.send(put.customer("ann")).await;
    assert_eq!(stored.status, 200, "{}", stored.body);
    assert_eq!(shop.read("ann").await.body["addresses"]["home"]["city"], "Ulm");
    let body = json!({ "id": "me", "email": "me@example.com", "username": "me", "name": "N" });
    let reserved = shop.send(Call::new("POST /v1/customers").staff("sam").json(&body)).await;
    assert_eq!((reserved.status, reserved.pointers()), (422, vec!["/id"]));
    let body = json!({ "email": "me@example.com", "username": "me", "name": "N" });
    let reserved = shop.send(Call::new("POST /v1/customers").customer("me").json(&body)).await;
    assert_eq!((reserved.status, reserved.code()), (403, Some("forbidden")), "the subject of the token is no id");
}

#[tokio::test]
async fn a_customer_without_a_place_has_a_null_place() {
    let shop = Shop::open().await;
    let created = shop.customer("ann").await;
    assert_eq!(created.get("place"), Some(&Value::Null));
    assert_eq!(created["addresses"], json!({}));
}

#[tokio::test]
async fn staff_may_create_any_profile_and_a_customer_only_their_own() {
    let shop = Shop::open().await;
    let body = |id: &str| json!({ "id": id, "email": format!("{id}@example.com"), "username": id, "name": "N" });
    let by_staff = shop.send(Call::new("POST /v1/customers").staff("s").json(&body("ann"))).await;
    assert_eq!((by_staff.status, &by_staff.body["id"]), (201, &json!("ann")));
    let own = shop.send(Call::new("POST /v1/customers").customer("bob").json(&body("bob"))).await;
    assert_eq!(own.status, 201);
    let other = shop.send(Call::new("POST /v1/customers").customer("bob").json(&body("eve"))).await;
    assert_eq!((other.status, other.code()), (403, Some("forbidden")));
    assert_eq!(shop.read("eve").await.status, 404);
}

#[tokio::test]
async fn a_customer_is_created_once_and_the_second_request_gets_the_location() {
    let shop = Shop::open().await;
    let first = shop.customer("ann").await;
    let again = shop.send(sign_up("ann", "other@example.com", "other")).await;
    assert_eq!((again.status, again.code()), (409, Some("already_exists")));
    assert_eq!(again.header("location"), Some("/v1/customers/ann"));
    assert_eq!(shop.read("ann").await.body, first);
    assert!(shop.find("other@example.com").await.is_empty());
}

#[tokio::test]
async fn a_sign_up_reports_the_first_of_several_conflicts() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let all = shop.send(sign_up("ann", "ann@example.com", "ann")).await;
    assert_eq!(all.code(), Some("already_exists"));
    let names = shop.send(sign_up("bob", "ann@example.com", "ann")).await;
    assert_eq!((names.status, names.code(), names.pointers()), (409, Some("email_taken"), vec!["/email"]));
    let username = shop.send(sign_up("bob", "bob@example.com", "ann")).await;
    assert_eq!(
        (username.status, username.code(), username.pointers()),
        (409, Some("username_taken"), vec!["/username"])
    );
    assert_eq!(shop.read("bob").await.status, 404);
    assert!(shop.find("bob@example.com").await.is_empty());
}

#[tokio::test]
async fn a_missing_customer_is_not_found() {
    let shop = Shop::open().await;
    for route in ["GET /v1/customers/{id}", "GET /v1/customers/{id}/overview"] {
        let answer = shop.send(Call::new(route).path("id", "ann").customer("ann")).await;
        assert_eq!((answer.status, answer.code()), (404, Some("not_found")), "{route}");
    }
}
