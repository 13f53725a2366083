//! Tests of the verification of email addresses.
//!
//! These tests send no mail. They derive the code from the stored request, as the notifier does.

mod addresses;

use std::collections::BTreeSet;

use http_api::sample::{Answered, Call};
use key_schema::code::Subject;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::recipient::MAX_CODES;
use key_schema::verification::VerificationItem;
use key_schema::verification::{self, CODE_SECONDS, EmailVerification, MAX_MAILS, MAX_TRIES, WINDOW_SECONDS};
use serde_json::{Value, json};

use crate::shop::{Shop, if_match, sign_up, sign_up_unproven};

const ROUTE: &str = "/v1/customers/{id}/email/verification";

/// Signs up `id` with the unverified address `<id>@example.com`.
async fn unverified(shop: &Shop, id: &str) -> Value {
    let answer = shop.send(sign_up_unproven(id, &format!("{id}@example.com"), id)).await;
    assert_eq!((answer.status, &answer.body["email_verified"]), (201, &json!(false)), "{}", answer.body);
    answer.body
}

fn call(method: &'static str, id: &str) -> Call {
    let route: &'static str = match method {
        "POST" => "POST /v1/customers/{id}/email/verification",
        _ => "PUT /v1/customers/{id}/email/verification",
    };
    assert!(route.ends_with(ROUTE));
    Call::new(route).path("id", id).customer(id)
}

async fn request(shop: &Shop, id: &str) -> Answered {
    shop.send(call("POST", id)).await
}

async fn enter(shop: &Shop, id: &str, code: &str) -> Answered {
    shop.send(call("PUT", id).json(&json!({ "code": code }))).await
}

async fn pending(shop: &Shop, id: &str) -> Option<Stored<EmailVerification>> {
    let found = shop.own().batch_get(&verification::read(&id.parse().unwrap()).unwrap()).await.unwrap();
    match found.into_iter().nth(1).unwrap() {
        Some(VerificationItem::EmailVerification(pending)) => Some(pending),
        _ => None,
    }
}

/// Returns the code of the customer's latest request.
async fn code(shop: &Shop, id: &str) -> String {
    let pending = pending(shop, id).await.unwrap();
    let (customer, nonce) = (id.parse().unwrap(), pending.nonce.clone().unwrap());
    let subject = Subject { customer: &customer, email: &pending.email, nonce: &nonce };
    shop.app.codes().await.unwrap().code(&pending.key, &subject).unwrap()
}

/// Returns a code other than `code`.
fn other_than(code: &str) -> String {
    format!("{:06}", (code.parse::<u32>().unwrap() + 1) % 1_000_000)
}

async fn patch(shop: &Shop, call: Call, id: &str, body: &Value) -> Answered {
    let version = shop.read(id).await.version().unwrap();
    shop.send(if_match(call.path("id", id).json(body), version)).await
}

fn patch_call() -> Call {
    Call::new("PATCH /v1/customers/{id}")
}

/// Two sign-ins can have one address. Only one of their profiles can have it verified.
#[tokio::test]
async fn a_change_that_names_no_address_succeeds_although_another_customer_has_the_address() {
    let shop = Shop::open().await;
    unverified(&shop, "ann").await;
    assert_eq!(shop.send(sign_up("bob", "ann@example.com", "bob")).await.status, 201);
    let hers = || patch_call().customer_with_email("ann", "ann@example.com");
    let renamed = patch(&shop, hers(), "ann", &json!({ "name": "Anna" })).await;
    assert_eq!((renamed.status, &renamed.body["name"]), (200, &json!("Anna")), "{}", renamed.body);
    assert_eq!(renamed.body["email_verified"], false);
    let taken = patch(&shop, hers(), "ann", &json!({ "email": "ann@example.com" })).await;
    assert_eq!((taken.status, taken.code()), (409, Some("email_taken")));
}

#[tokio::test]
async fn the_code_verifies_the_address_and_claims_it() {
    let shop = Shop::open().await;
    unverified(&shop, "ann").await;
    assert!(shop.find("ann@example.com").await.is_empty());
    let before = Instant::now();
    let requested = request(&shop, "ann").await;
    assert_eq!((requested.status, &requested.body["email_verified"]), (202, &json!(false)));
    let expires_at: Instant = serde_json::from_value(requested.body["expires_at"].clone()).unwrap();
    assert!(expires_at >= before.plus_seconds(CODE_SECONDS) && expires_at < before.plus_seconds(CODE_SECONDS + 30));
    let code = code(&shop, "ann").await;
    let verified = enter(&shop, "ann", &code).await;
    assert_eq!((verified.status, verified.version()), (200, Some(2)), "{}", verified.body);
    assert_eq!(verified.body["email_verified"], true);
    assert_eq!(shop.find("ann@example.com").await, std::slice::from_ref(&verified.body));
    // The code cannot be used again, and a repeated request changes nothing.
    assert_eq!(pending(&shop, "ann").await.unwrap().nonce, None);
    assert_eq!(enter(&shop, "ann", &code).await.body, verified.body);
    let again = request(&shop, "ann").await;
    assert_eq!((again.status, again.body), (202, json!({ "email_verified": true, "expires_at": null })));
}

#[tokio::test]
async fn the_table_holds_no_code() {
    let shop = Shop::open().await;
    unverified(&shop, "ann").await;
    request(&shop, "ann").await;
    let (code, pending) = (code(&shop, "ann").await, pending(&shop, "ann").await.unwrap());
    let stored = format!("{:?}", pending.to_item().unwrap());
    assert!(!stored.contains(&code), "{stored}");
}

#[tokio::test]
async fn five_wrong_tries_end_a_code() {
    let shop = Shop::open().await;
    unverified(&shop, "ann").await;
    request(&shop, "ann").await;
    let code = code(&shop, "ann").await;
    for _ in 0..MAX_TRIES {
        let refused = enter(&shop, "ann", &other_than(&code)).await;
        assert_eq!((refused.status, refused.code(), refused.pointers()), (422, Some("code_invalid"), vec!["/code"]));
    }
    for text in [code.as_str(), "000000"] {
        let ended = enter(&shop, "ann", text).await;
        assert_eq!((ended.status, ended.code()), (429, Some("too_many_tries")), "{text}");
    }
    assert_eq!(shop.read("ann").await.body["email_verified"], false);
    // Each code has a separate count of tries.
    request(&shop, "ann").await;
    assert_eq!(enter(&shop, "ann", &self::code(&shop, "ann").await).await.status, 200);
}

#[tokio::test]
async fn a_try_is_not_counted_while_the_keys_of_codes_cannot_be_read() {
    let mut shop = Shop::open().await;
    unverified(&shop, "ann").await;
    request(&shop, "ann").await;
    let code = code(&shop, "ann").await;
    let keys = shop.harness.app.codes.take();
    for _ in 0..=MAX_TRIES {
        assert!(enter(&shop, "ann", &code).await.status >= 500);
    }
    assert_eq!(pending(&shop, "ann").await.unwrap().tries, 0);
    shop.harness.app.codes = keys;
    assert_eq!(enter(&shop, "ann", &code).await.status, 200);
}

#[tokio::test]
async fn concurrent_tries_share_the_limit() {
    let shop = Shop::open().await;
    unverified(&shop, "ann").await;
    request(&shop, "ann").await;
    let wrong = other_than(&code(&shop, "ann").await);
    let answers = futures::future::join_all((0..20).map(|_| enter(&shop, "ann", &wrong))).await;
    let compared = answers.iter().filter(|answer| answer.status == 422).count();
    let ended = answers.iter().filter(|answer| answer.status == 429).count();
    assert_eq!((compared, ended), (usize::try_from(MAX_TRIES).unwrap(), 15));
}

#[tokio::test]
async fn two_concurrent_entries_of_a_code_both_return_the_verified_profile() {
    let shop = Shop::open().await;
    unverified(&shop, "ann").await;
    request(&shop, "ann").await;
    let code = code(&shop, "ann").await;
    let (one, two) = futures::future::join(enter(&shop, "ann", &code), enter(&shop, "ann", &code)).await;
    assert_eq!((one.status, two.status, one.body), (200, 200, two.body));
}

#[tokio::test]
async fn a_code_ends_after_ten_minutes() {
    let shop = Shop::open().await;
    unverified(&shop, "ann").await;
    request(&shop, "ann").await;
    let code = code(&shop, "ann").await;
    let mut expired = pending(&shop, "ann").await.unwrap();
    expired.data.code_expires_at = Instant::now();
    shop.put(&expired).await;
    let refused = enter(&shop, "ann", &code).await;
    assert_eq!((refused.status, refused.code()), (422, Some("code_invalid")));
}

#[tokio::test]
async fn a_customer_gets_three_codes_a_day() {
    let shop = Shop::open().await;
    unverified(&shop, "ann").await;
    let mut codes = BTreeSet::new();
    for _ in 0..MAX_MAILS {
        assert_eq!(request(&shop, "ann").await.status, 202);
        codes.insert(code(&shop, "ann").await);
    }
    assert!(codes.len() > 1);
    let before = pending(&shop, "ann").await;
    let refused = request(&shop, "ann").await;
    assert_eq!((refused.status, refused.code()), (429, Some("too_many_mails")));
    let wait: i64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((WINDOW_SECONDS - 30..=WINDOW_SECONDS).contains(&wait), "{wait}");
    assert_eq!(pending(&shop, "ann").await, before);
    // A changed address does not allow more mails.
    let moved = patch(&shop, patch_call().customer("ann"), "ann", &json!({ "email": "other@example.com" })).await;
    assert_eq!(moved.status, 200);
    assert_eq!(request(&shop, "ann").await.status, 429);
    // A day after the first request, the customer may request another code.
    let mut earlier = pending(&shop, "ann").await.unwrap();
    earlier.data.requested_at[0] = Instant::now().plus_seconds(-WINDOW_SECONDS);
    shop.put(&earlier).await;
    shop.delete_partitions("RECIPIENT#").await;
    shop.delete_partitions("QUOTA#").await;
    assert_eq!(request(&shop, "ann").await.status, 202);
    assert_eq!(request(&shop, "ann").await.status, 429);
}

#[tokio::test]
async fn an_erasure_does_not_reset_the_limit_of_codes() {
    let shop = Shop::open().await;
    for round in 0..2 {
        unverified(&shop, "ann").await;
        let accepted = if round == 0 { MAX_MAILS } else { 0 };
        for _ in 0..accepted {
            assert_eq!(request(&shop, "ann").await.status, 202);
        }
        let refused = request(&shop, "ann").await;
        assert_eq!((refused.status, refused.code()), (429, Some("too_many_mails")), "{round}");
        let wait: i64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=WINDOW_SECONDS).contains(&wait), "{wait}");
        let erase = Call::new("DELETE /v1/customers/{id}").path("id", "ann").customer("ann");
        assert_eq!(shop.send(if_match(erase, 1)).await.status, 204);
    }
}

#[tokio::test]
async fn many_accounts_together_get_no_more_codes_for_an_address_than_its_daily_limit() {
    let shop = Shop::open().await;
    let mut accepted = 0;
    for number in 0..5 {
        let id = format!("mal-{number}");
        // Both spellings are the same address.
        let email = if number % 2 == 0 { "victim@example.com" } else { "Victim@Example.com" };
        assert_eq!(shop.send(sign_up_unproven(&id, email, &id)).await.status, 201);
        for _ in 0..MAX_MAILS {
            accepted += u64::from(request(&shop, &id).await.status == 202);
        }
    }
    assert_eq!(accepted, MAX_CODES);
}

#[tokio::test]
async fn concurrent_requests_share_the_limit() {
    let shop = Shop::open().await;
    unverified(&shop, "ann").await;
    let answers = futures::future::join_all((0..8).map(|_| request(&shop, "ann"))).await;
    let accepted = answers.iter().filter(|answer| answer.status == 202).count();
    assert!((1..=MAX_MAILS).contains(&accepted), "{accepted}");
    assert!(answers.iter().all(|answer| [202, 409, 429].contains(&answer.status)));
    assert_eq!(pending(&shop, "ann").await.unwrap().requested_at.len(), accepted);
}

#[tokio::test]
async fn a_code_verifies_only_the_address_to_which_it_was_sent() {
    let shop = Shop::open().await;
    unverified(&shop, "ann").await;
    request(&shop, "ann").await;
    let code = code(&shop, "ann").await;
    let victim = json!({ "email": "victim@example.com" });
    assert_eq!(patch(&shop, patch_call().customer("ann"), "ann", &victim).await.status, 200);
    let refused = enter(&shop, "ann", &code).await;
    assert_eq!((refused.status, refused.code()), (422, Some("code_invalid")));
    assert!(shop.find("victim@example.com").await.is_empty());
}

#[tokio::test]
async fn without_an_open_request_no_code_is_valid() {
    let shop = Shop::open().await;
    unverified(&shop, "ann").await;
    for text in ["000000", "12345", "none", "１２３４５６"] {
        let refused = enter(&shop, "ann", text).await;
        assert_eq!((refused.status, refused.code()), (422, Some("code_invalid")), "{text}");
    }
    for body in [json!({}), json!({ "code": 123_456 }), json!({ "code": "" }), json!({ "code": "1".repeat(33) })] {
        let refused = shop.send(call("PUT", "ann").json(&body)).await;
        assert_eq!((refused.status, refused.code()), (422, Some("invalid_body")), "{body}");
    }
}
