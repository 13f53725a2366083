//! Tests of addresses that a customer changes, that two customers enter, or that a token contains
//! as verified.

use http_api::sample::Call;
use key_schema::instant::Instant;
use serde_json::json;

use super::{code, enter, patch, patch_call, pending, request, unverified};
use crate::shop::{Shop, if_match, sign_up, sign_up_unproven};

#[tokio::test]
async fn an_address_entered_by_another_person_stays_available_to_its_owner() {
    let shop = Shop::open().await;
    // Eve enters the victim's address first and requests codes.
    let squatter = sign_up_unproven("eve", "victim@example.com", "eve");
    assert_eq!(shop.send(squatter).await.status, 201);
    request(&shop, "eve").await;
    let code = code(&shop, "eve").await;
    let owner = shop.send(sign_up("victim", "Victim@example.com", "victim")).await;
    assert_eq!((owner.status, &owner.body["email_verified"]), (201, &json!(true)));
    assert_eq!(shop.find("victim@example.com").await, std::slice::from_ref(&owner.body));
    // After the owner has verified the address, Eve cannot verify it, even with her code.
    let taken = enter(&shop, "eve", &code).await;
    assert_eq!((taken.status, taken.code()), (409, Some("email_taken")));
    assert_eq!(shop.read("eve").await.body["email_verified"], false);
    // Eve's changes and her erasure keep the owner's claim.
    let moved = patch(&shop, patch_call().customer("eve"), "eve", &json!({ "email": "eve@example.com" })).await;
    assert_eq!(moved.status, 200);
    let back = patch(&shop, patch_call().customer("eve"), "eve", &json!({ "email": "victim@example.com" })).await;
    assert_eq!((back.status, &back.body["email_verified"]), (200, &json!(false)));
    let erase = Call::new("DELETE /v1/customers/{id}").path("id", "eve").customer("eve");
    assert_eq!(shop.send(if_match(erase, 3)).await.status, 204);
    assert_eq!(shop.find("victim@example.com").await, [owner.body]);
}

#[tokio::test]
async fn any_number_of_customers_may_enter_an_address_and_one_may_verify_it() {
    let shop = Shop::open().await;
    for id in ["a", "b", "c"] {
        assert_eq!(shop.send(sign_up_unproven(id, "one@example.com", id)).await.status, 201);
        request(&shop, id).await;
    }
    assert_eq!(enter(&shop, "b", &code(&shop, "b").await).await.status, 200);
    let found = shop.find("one@example.com").await;
    assert_eq!((found.len(), &found[0]["id"]), (1, &json!("b")));
    assert_eq!(enter(&shop, "a", &code(&shop, "a").await).await.code(), Some("email_taken"));
}

#[tokio::test]
async fn a_changed_address_is_unverified_until_a_token_or_a_code_or_staff_verifies_it() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let changed = patch(&shop, patch_call().customer("ann"), "ann", &json!({ "email": "new@example.com" })).await;
    assert_eq!(changed.body["email_verified"], false);
    assert!(shop.find("ann@example.com").await.is_empty() && shop.find("new@example.com").await.is_empty());
    // A token with another address or with an unverified address does not verify the new address.
    let other = patch_call().customer_with_email("ann", "ann@example.com");
    let kept = patch(&shop, other, "ann", &json!({ "email": "NEW@example.com" })).await;
    assert_eq!(kept.body["email_verified"], false);
    let claims = json!({ "sub": "ann", "email": "new@example.com", "email_verified": "false" });
    let kept = patch(&shop, patch_call().claims(claims), "ann", &json!({ "name": "Anna" })).await;
    assert_eq!(kept.body["email_verified"], false);
    // Any change verifies the address, if the caller's token contains it as verified.
    let proof = patch_call().customer_with_email("ann", "new@example.com");
    let proven = patch(&shop, proof, "ann", &json!({ "name": "Ann" })).await;
    assert_eq!((proven.status, &proven.body["email_verified"]), (200, &json!(true)));
    assert_eq!(shop.find("new@example.com").await, [proven.body]);
    // A change by staff verifies the address only if the change contains it.
    let changed = patch(&shop, patch_call().customer("ann"), "ann", &json!({ "email": "third@example.com" })).await;
    assert_eq!(changed.body["email_verified"], false);
    let kept = patch(&shop, patch_call().staff("s"), "ann", &json!({ "name": "Anna" })).await;
    assert_eq!(kept.body["email_verified"], false);
    let vouched = patch(&shop, patch_call().staff("s"), "ann", &json!({ "email": "third@example.com" })).await;
    assert_eq!((vouched.status, &vouched.body["email_verified"]), (200, &json!(true)));
}

#[tokio::test]
async fn another_spelling_that_may_be_another_mailbox_is_unverified() {
    let shop = Shop::open().await;
    let ann = shop.send(sign_up("ann", "ann@strasse.example", "ann")).await;
    assert_eq!(ann.body["email_verified"], true);
    let case = patch(&shop, patch_call().customer("ann"), "ann", &json!({ "email": "Ann@Strasse.example" })).await;
    assert_eq!(case.body["email_verified"], true);
    let other = patch(&shop, patch_call().customer("ann"), "ann", &json!({ "email": "ann@straße.example" })).await;
    assert_eq!((other.status, &other.body["email_verified"]), (200, &json!(false)));
}

#[tokio::test]
async fn a_token_that_contains_the_address_as_verified_needs_no_mail() {
    let shop = Shop::open().await;
    unverified(&shop, "ann").await;
    let route = "POST /v1/customers/{id}/email/verification";
    let proven = shop.send(Call::new(route).path("id", "ann").customer_with_email("ann", "ann@example.com")).await;
    assert_eq!((proven.status, proven.body), (202, json!({ "email_verified": true, "expires_at": null })));
    assert_eq!(pending(&shop, "ann").await, None);
    assert_eq!(shop.find("ann@example.com").await.len(), 1);
    // When staff request a mail for a customer, staff's own token verifies no address.
    unverified(&shop, "bob").await;
    let claims =
        json!({ "sub": "s", "cognito:groups": "[staff]", "email": "bob@example.com", "email_verified": "true" });
    let mailed = shop.send(Call::new(route).path("id", "bob").claims(claims)).await;
    assert_eq!((mailed.status, &mailed.body["email_verified"]), (202, &json!(false)));
    assert!(pending(&shop, "bob").await.is_some());
    // Another customer's token cannot take an address that is verified already.
    assert_eq!(shop.send(sign_up_unproven("eve", "ann@example.com", "eve")).await.status, 201);
    let taken = shop.send(Call::new(route).path("id", "eve").customer_with_email("eve", "ann@example.com")).await;
    assert_eq!((taken.status, taken.code()), (409, Some("email_taken")));
}

#[tokio::test]
async fn an_erasure_removes_the_request_and_prevents_new_requests() {
    let shop = Shop::open().await;
    unverified(&shop, "ann").await;
    request(&shop, "ann").await;
    assert!(shop.keys("").await.contains(&("CUSTOMER#ann".to_owned(), "VERIFICATION".to_owned())));
    let erase = Call::new("DELETE /v1/customers/{id}").path("id", "ann").customer("ann");
    assert_eq!(shop.send(if_match(erase, 1)).await.status, 204);
    assert!(!shop.keys("").await.iter().any(|(pk, _)| pk == "CUSTOMER#ann"));
    assert_eq!(request(&shop, "ann").await.status, 404);
    assert_eq!(enter(&shop, "ann", "000000").await.status, 404);
}

#[tokio::test]
async fn staff_who_enter_the_address_again_allow_mail_to_it() {
    use key_schema::recipient::{self, RecipientHash, StopReason};
    let shop = Shop::open().await;
    let ann = shop.customer("ann").await;
    let hash = RecipientHash::of(&"ANN@example.com".parse().unwrap());
    let stop = || recipient::stop(&hash, StopReason::Bounce, Instant::now()).unwrap();
    shop.own().write(&stop()).await.unwrap().unwrap();
    let stopped = async || shop.keys("").await.iter().any(|(_, sk)| sk == "STOP");
    for (call, body) in [
        (patch_call().customer("ann"), json!({ "email": "ann@example.com" })),
        (patch_call().staff("s"), json!({ "name": "Ann" })),
    ] {
        assert_eq!(patch(&shop, call, "ann", &body).await.body, ann);
        assert!(stopped().await);
    }
    let lifted = patch(&shop, patch_call().staff("s"), "ann", &json!({ "email": "ann@example.com" })).await;
    assert_eq!((lifted.status, lifted.body), (200, ann));
    assert!(!stopped().await);
}

/// SES cannot send mail to these addresses. A reachable address may have the same folded form.
/// Requests for an unreachable address must not use up its codes.
#[tokio::test]
async fn an_unreachable_address_gets_no_code_and_uses_no_quota() {
    let shop = Shop::open().await;
    let addresses = ["ann@ex\u{00e4}mple.com", "ann,eve@example.com", "<ann@example.com", "ann@example.com."];
    for (number, address) in addresses.into_iter().enumerate() {
        let customer = format!("ann-{number}");
        assert_eq!(shop.send(sign_up_unproven(&customer, address, &customer)).await.status, 201);
        let refused = request(&shop, &customer).await;
        assert_eq!((refused.status, refused.code()), (422, Some("invalid_body")), "{}", refused.body);
        assert!(pending(&shop, &customer).await.is_none());
    }
    let counted = shop
        .keys("")
        .await
        .into_iter()
        .filter(|(partition, _)| partition.starts_with("QUOTA#") || partition.starts_with("RECIPIENT#"));
    assert_eq!(counted.count(), 0);
}
