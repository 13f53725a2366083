//! Tests of a customer's sessions.

use fixture::seed::{self, stored};
use http_api::SignIns;
use http_api::sample::{Answered, Call};
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::item::Entity as _;
use key_schema::quota::Quota;
use key_schema::revocation::SignIn;
use key_schema::session::Session;
use serde_json::{Value, json};

use crate::shop::{Shop, ids};

async fn begin(shop: &Shop, body: &Value) -> Answered {
    shop.send(Call::new("POST /v1/customers/{id}/sessions").path("id", "ann").customer("ann").json(body)).await
}

fn sessions() -> Call {
    Call::new("GET /v1/customers/{id}/sessions").path("id", "ann").customer("ann")
}

async fn list(shop: &Shop) -> Answered {
    shop.send(sessions()).await
}

async fn prolong(shop: &Shop, id: &str, body: &Value) -> Answered {
    shop.send(Call::new("PUT /v1/sessions/{id}").path("id", id).customer("ann").json(body)).await
}

async fn end(shop: &Shop, id: &str) -> Answered {
    shop.send(Call::new("DELETE /v1/sessions/{id}").path("id", id).customer("ann")).await
}

fn millis(instant: &Value) -> i64 {
    instant.as_str().unwrap().parse::<Instant>().unwrap().as_millis()
}

fn length(session: &Value) -> i64 {
    millis(&session["expires_at"]) - millis(&session["created_at"])
}

#[tokio::test]
async fn a_session_is_begun_listed_and_ended() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let begun = begin(&shop, &json!({ "device": "phone", "ttl_seconds": 3600 })).await;
    assert_eq!((begun.status, begun.version()), (201, Some(1)));
    let id = begun.body["id"].as_str().unwrap();
    assert_eq!(begun.header("location"), Some(format!("/v1/sessions/{id}").as_str()));
    assert_eq!((&begun.body["customer_id"], &begun.body["device"]), (&json!("ann"), &json!("phone")));
    assert_eq!(begun.body.as_object().unwrap().len(), 5, "{}", begun.body);
    assert_eq!(length(&begun.body), 3_600_000);
    let listed = list(&shop).await;
    assert_eq!((listed.status, &listed.body["items"]), (200, &json!([begun.body])));

    assert_eq!(end(&shop, id).await.status, 204);
    assert_eq!(list(&shop).await.body["items"], json!([]));
    assert_eq!(end(&shop, id).await.status, 404);
    assert_eq!(prolong(&shop, id, &json!({})).await.status, 404);
}

/// A session is written in a transaction that checks the profile, so an erasure finds all sessions.
#[tokio::test]
async fn a_customer_without_a_profile_begins_no_session() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    begin(&shop, &json!({ "device": "phone" })).await;
    let erase = Call::new("DELETE /v1/customers/{id}").path("id", "ann").customer("ann").header("if-match", "\"1\"");
    assert_eq!(shop.send(erase).await.status, 204);
    for who in ["ann", "stranger"] {
        let call = Call::new("POST /v1/customers/{id}/sessions").path("id", who).json(&json!({ "device": "phone" }));
        for call in [call.clone().customer(who), call.staff("s1")] {
            let answer = shop.send(call).await;
            assert_eq!((answer.status, answer.code()), (404, Some("not_found")), "{who}");
        }
    }
    let left: Vec<_> = shop.keys("").await.into_iter().filter(|(pk, _)| pk.starts_with("SESSION#")).collect();
    assert_eq!(left, []);
}

#[tokio::test]
async fn a_session_lasts_a_day_by_default() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    assert_eq!(length(&begin(&shop, &json!({ "device": "x" })).await.body), 86_400_000);
    assert_eq!(length(&begin(&shop, &json!({ "device": "x", "ttl_seconds": 2_592_000 })).await.body), 2_592_000_000);
}

#[tokio::test]
async fn an_expired_session_is_not_found_even_before_dynamodb_removes_it() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    shop.session("ann", "expired", -1).await;
    shop.session("ann", "alive", 60).await;
    assert_eq!(ids(&list(&shop).await.body["items"]), ["alive"]);
    let answer = prolong(&shop, "expired", &json!({ "ttl_seconds": 60 })).await;
    assert_eq!((answer.status, answer.code()), (404, Some("not_found")));
    assert_eq!(ids(&list(&shop).await.body["items"]), ["alive"]);
}

#[tokio::test]
async fn a_session_is_prolonged_and_its_device_renamed() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    shop.session("ann", "s", 60).await;
    let now = Instant::now().as_millis();
    let prolonged = prolong(&shop, "s", &json!({ "device": "tablet", "ttl_seconds": 7200 })).await;
    assert_eq!((prolonged.status, &prolonged.body["device"]), (200, &json!("tablet")));
    assert!(millis(&prolonged.body["expires_at"]) >= now + 7_200_000);
    assert_eq!(list(&shop).await.body["items"], json!([prolonged.body]));

    // Without a lifetime in the request, the session lasts a day from now and keeps its device.
    let day = prolong(&shop, "s", &json!({})).await;
    assert_eq!(day.body["device"], "tablet");
    assert!(millis(&day.body["expires_at"]) >= now + 86_400_000);
    // A request that only renames the device does not shorten a longer remaining lifetime.
    let month = prolong(&shop, "s", &json!({ "ttl_seconds": 2_592_000 })).await;
    let renamed = prolong(&shop, "s", &json!({ "device": "watch" })).await;
    assert_eq!((&renamed.body["device"], &renamed.body["expires_at"]), (&json!("watch"), &month.body["expires_at"]));
    assert_eq!(list(&shop).await.body["items"], json!([renamed.body]));

    for (body, pointer) in
        [(json!({ "ttl_seconds": 0 }), "/ttl_seconds"), (json!({ "device": 1 }), "/device"), (json!({ "x": 1 }), "/x")]
    {
        let answer = prolong(&shop, "s", &body).await;
        assert_eq!((answer.status, answer.pointers()), (422, vec![pointer]), "{body}");
    }
}

#[tokio::test]
async fn concurrent_changes_of_a_session_lose_neither_the_longest_expiry_nor_the_device() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    for round in 0..8 {
        let begun = begin(&shop, &json!({ "device": "phone", "ttl_seconds": 3600 })).await.body;
        let id = begun["id"].as_str().unwrap();
        let (long, short) = (json!({ "device": "tablet", "ttl_seconds": 86_400 }), json!({ "ttl_seconds": 1 }));
        let (long, ..) = tokio::join!(
            prolong(&shop, id, &long),
            prolong(&shop, id, &short),
            prolong(&shop, id, &short),
            prolong(&shop, id, &short),
        );
        assert_eq!(long.status, 200);
        let after = prolong(&shop, id, &short).await.body;
        assert_eq!((&after["device"], &after["expires_at"]), (&json!("tablet"), &long.body["expires_at"]), "{round}");
    }
}

#[tokio::test]
async fn a_prolongation_never_shortens_a_session() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let begun = begin(&shop, &json!({ "device": "phone", "ttl_seconds": 3600 })).await.body;
    let id = begun["id"].as_str().unwrap();
    let prolonged = prolong(&shop, id, &json!({ "ttl_seconds": 1 })).await;
    assert_eq!((prolonged.status, &prolonged.body["expires_at"]), (200, &begun["expires_at"]));
    // The stored time to live equals that of a session that began with this expiry.
    let (expires_at, item) = (millis(&begun["expires_at"]) / 1000, &shop.items("SESSION#").await[0]);
    let session = seed::session("s", "ann", Instant::EPOCH.plus_seconds(expires_at));
    assert_eq!(item.get("ttl"), stored(session).to_item().unwrap().get("ttl"));
    assert_eq!(list(&shop).await.body["items"], json!([begun]));
}

#[tokio::test]
async fn sessions_are_paged_in_the_order_of_their_expiry() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    shop.session("bob", "other", 60).await;
    shop.session("ann", "gone", -60).await;
    for (id, seconds) in [("c", 300), ("a", 500), ("b", 100), ("d", 200), ("e", 400)] {
        shop.session("ann", id, seconds).await;
    }
    let seen: Vec<Value> = shop.all(&sessions(), 2).await.0.iter().map(|session| session["id"].clone()).collect();
    assert_eq!(seen, ["b", "d", "c", "e", "a"]);
}

/// Returns the claims of a token that belongs to the sign-in `sid`.
fn in_sign_in(sub: &str, sid: &str) -> Value {
    json!({ "sub": sub, "sid": sid })
}

async fn begin_in(shop: &Shop, claims: Value) -> String {
    let call = Call::new("POST /v1/customers/{id}/sessions").path("id", "ann").claims(claims);
    let begun = shop.send(call.json(&json!({ "device": "phone" }))).await;
    assert_eq!((begun.status, begun.body.as_object().unwrap().len()), (201, 5), "{}", begun.body);
    begun.body["id"].as_str().unwrap().to_owned()
}

/// Reads a profile with these claims, in an environment that has not seen the token yet.
async fn status_of(shop: &mut Shop, claims: Value) -> u16 {
    shop.harness.app.sign_ins = SignIns::default();
    shop.send(Call::new("GET /v1/customers/{id}").path("id", claims["sub"].as_str().unwrap()).claims(claims.clone()))
        .await
        .status
}

#[tokio::test]
async fn the_end_of_a_session_ends_its_sign_in_and_no_other_sign_in() {
    let mut shop = Shop::open().await;
    for customer in ["ann", "bob"] {
        shop.customer(customer).await;
    }
    let phone = begin_in(&shop, in_sign_in("ann", "phone")).await;
    let cognito = begin_in(&shop, json!({ "sub": "ann", "origin_jti": "tablet" })).await;
    // Another device of the customer ends the session.
    let end = |id: &str, claims: Value| Call::new("DELETE /v1/sessions/{id}").path("id", id).claims(claims);
    assert_eq!(shop.send(end(&phone, in_sign_in("ann", "laptop"))).await.status, 204);
    // The environment that ended the session refuses the session's token at once, even in a request
    // that would start a new session.
    let again = Call::new("POST /v1/customers/{id}/sessions").path("id", "ann").claims(in_sign_in("ann", "phone"));
    let again = shop.send(again.json(&json!({ "device": "phone" }))).await;
    assert_eq!((again.status, again.code()), (401, Some("unauthenticated")));
    for (sub, sid, status) in [
        ("ann", "phone", 401),
        ("ann", phone.as_str(), 401),
        ("ann", "laptop", 200),
        ("ann", "tablet", 200),
        ("bob", "phone", 200),
    ] {
        assert_eq!(status_of(&mut shop, in_sign_in(sub, sid)).await, status, "{sub} {sid}");
    }
    assert_eq!(status_of(&mut shop, json!({ "sub": "ann" })).await, 200);
    // A token may end its own session.
    assert_eq!(shop.send(end(&cognito, json!({ "sub": "ann", "origin_jti": "tablet" }))).await.status, 204);
    assert_eq!(status_of(&mut shop, json!({ "sub": "ann", "origin_jti": "tablet" })).await, 401);
}

#[tokio::test]
async fn a_session_that_staff_begin_does_not_belong_to_their_sign_in() {
    let mut shop = Shop::open().await;
    shop.customer("ann").await;
    let staff = json!({ "sub": "s1", "cognito:groups": "[staff]", "sid": "desk" });
    let id = begin_in(&shop, staff.clone()).await;
    assert_eq!(end(&shop, &id).await.status, 204);
    let read = Call::new("GET /v1/customers/{id}").path("id", "ann").claims(staff);
    shop.harness.app.sign_ins = SignIns::default();
    assert_eq!(shop.send(read).await.status, 200);
    assert_eq!(status_of(&mut shop, in_sign_in("ann", "desk")).await, 200);
}

/// The tokens of a sign-in can be valid for longer than its session.
#[tokio::test]
async fn an_expired_session_ends_no_sign_in_until_its_owner_or_staff_end_it() {
    let mut shop = Shop::open().await;
    shop.customer("ann").await;
    let days = |days: i64| days * 24 * 60 * 60;
    for (id, seconds) in [("seconds", -1), ("month", -days(30))] {
        let sign_in = Some(SignIn::of(&CustomerId::new("ann").unwrap(), id));
        let expires_at = Instant::now().plus_seconds(seconds);
        let session = stored(Session { sign_in, ..seed::session(&format!("of-{id}"), "ann", expires_at) });
        assert!(!session.is_expired(Instant::now().plus_seconds(days(1) - 60)), "the table keeps {id}");
        shop.put(&session).await;
        assert_eq!(status_of(&mut shop, in_sign_in("ann", id)).await, 200);
    }
    let call = |id: &str| Call::new("DELETE /v1/sessions/{id}").path("id", id);
    assert_eq!(shop.send(call("of-month").customer("bob")).await.status, 404);
    assert_eq!(shop.send(call("of-month").staff("s1")).await.status, 204);
    assert_eq!(shop.send(call("of-seconds").customer("ann")).await.status, 204);
    for id in ["seconds", "month"] {
        assert_eq!(status_of(&mut shop, in_sign_in("ann", id)).await, 401, "{id}");
        assert_eq!(end(&shop, &format!("of-{id}")).await.status, 404);
    }
}

/// Until the profile is deleted, the customer can repeat the request with the same token.
#[tokio::test]
async fn an_erasure_ends_every_sign_in_after_it_has_deleted_the_profile() {
    let mut shop = Shop::open().await;
    shop.customer("ann").await;
    // Ann has two sessions of one sign-in, and one session of another sign-in.
    for sid in ["phone", "phone", "laptop"] {
        begin_in(&shop, in_sign_in("ann", sid)).await;
    }
    let erase = || Call::new("DELETE /v1/customers/{id}").path("id", "ann").claims(in_sign_in("ann", "phone"));
    let stale = shop.send(erase().header("if-match", "\"9\"")).await;
    assert_eq!((stale.status, status_of(&mut shop, in_sign_in("ann", "phone")).await), (412, 200));
    let erased = shop.send(erase().header("if-match", "\"1\"")).await;
    assert_eq!(erased.status, 204, "{}", erased.body);
    for sid in ["phone", "laptop"] {
        assert_eq!(status_of(&mut shop, in_sign_in("ann", sid)).await, 401, "{sid}");
    }
    // The revocations remain. Their keys do not contain the customer's id.
    let left: Vec<_> =
        shop.keys("").await.into_iter().filter(|(partition, _)| partition.starts_with("REVOKED#")).collect();
    assert_eq!(left.len(), 5);
    assert!(left.iter().all(|(partition, _)| !partition.contains("ann")), "{left:?}");
}

#[tokio::test]
async fn a_customer_begins_no_more_sessions_a_day_than_the_quota_even_after_an_erasure() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    shop.test.use_up(&CustomerId::new("ann").unwrap(), Quota::Sessions, 1).await;
    assert_eq!(begin(&shop, &json!({ "device": "phone" })).await.status, 201);
    let erase = Call::new("DELETE /v1/customers/{id}").path("id", "ann").header("if-match", "\"1\"").customer("ann");
    for is_erased in [false, true] {
        if is_erased {
            assert_eq!(shop.send(erase.clone()).await.status, 204);
            shop.customer("ann").await;
        }
        let refused = begin(&shop, &json!({ "device": "laptop" })).await;
        assert_eq!((refused.status, refused.code()), (429, Some("quota_exceeded")), "{}", refused.body);
        assert!(refused.header("retry-after").is_some());
    }
    assert_eq!(list(&shop).await.body["items"], json!([]));
}
