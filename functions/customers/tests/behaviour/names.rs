//! Tests of unique user names and verified email addresses. Spelling does not matter, and other
//! customers can use a name that a customer gives up.

use http_api::sample::{Answered, Call};
use serde_json::{Value, json};

use crate::shop::{Shop, if_match, sign_up};

async fn patch(shop: &Shop, id: &str, body: &Value) -> Answered {
    let version = shop.read(id).await.version().unwrap();
    let email = body["email"].as_str().unwrap_or("none@example.com");
    let call = Call::new("PATCH /v1/customers/{id}").path("id", id).customer_with_email(id, email).json(body);
    shop.send(if_match(call, version)).await
}

#[tokio::test]
async fn another_spelling_of_a_taken_name_is_taken() {
    let shop = Shop::open().await;
    assert_eq!(shop.send(sign_up("a", "Straße@example.com", "ﬁsh")).await.status, 201);
    for email in ["straße@example.com", "STRASSE@EXAMPLE.COM", "strasse@ｅｘａｍｐｌｅ.com"] {
        let answer = shop.send(sign_up("b", email, "b")).await;
        assert_eq!((answer.status, answer.code()), (409, Some("email_taken")), "{email}");
    }
    for username in ["fish", "FISH", "ｆｉｓｈ"] {
        let answer = shop.send(sign_up("b", "b@example.com", username)).await;
        assert_eq!((answer.status, answer.code()), (409, Some("username_taken")), "{username}");
    }
    // A different letter makes a different name.
    assert_eq!(shop.send(sign_up("b", "strase@example.com", "fisch")).await.status, 201);
}

#[tokio::test]
async fn a_new_name_is_claimed_and_the_old_name_is_free() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let renamed = patch(&shop, "ann", &json!({ "email": "anna@example.com", "username": "anna" })).await;
    assert_eq!(renamed.status, 200, "{}", renamed.body);
    assert_eq!(shop.find("anna@example.com").await, [renamed.body]);
    assert!(shop.find("ann@example.com").await.is_empty());
    let taken = shop.send(sign_up("bob", "ANNA@example.com", "bob")).await;
    assert_eq!(taken.code(), Some("email_taken"));
    let taken = shop.send(sign_up("bob", "bob@example.com", "ANNA")).await;
    assert_eq!(taken.code(), Some("username_taken"));
    assert_eq!(shop.send(sign_up("bob", "ann@example.com", "ann")).await.status, 201);
}

#[tokio::test]
async fn a_name_of_another_customer_cannot_be_taken_over() {
    let shop = Shop::open().await;
    let ann = shop.customer("ann").await;
    let bob = shop.customer("bob").await;
    for (body, code) in [
        (json!({ "email": "ANN@example.com" }), "email_taken"),
        (json!({ "username": "Ann" }), "username_taken"),
        (json!({ "username": "ann", "email": "ann@example.com" }), "email_taken"),
        (json!({ "username": "ann", "email": "free@example.com", "name": "Eve" }), "username_taken"),
    ] {
        let answer = patch(&shop, "bob", &body).await;
        assert_eq!((answer.status, answer.code()), (409, Some(code)), "{body}");
    }
    assert_eq!(shop.read("bob").await.body, bob);
    assert_eq!(shop.find("ann@example.com").await, [ann]);
    assert!(shop.find("free@example.com").await.is_empty());
}

#[tokio::test]
async fn a_customer_may_change_the_spelling_of_their_own_name() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let respelled = patch(&shop, "ann", &json!({ "email": "ANN@Example.com", "username": "Ann" })).await;
    assert_eq!((respelled.status, &respelled.body["email"]), (200, &json!("ANN@Example.com")));
    assert_eq!(shop.find("ann@example.com").await, [respelled.body]);
    assert_eq!(shop.send(sign_up("bob", "ann@example.com", "b")).await.code(), Some("email_taken"));
    assert_eq!(shop.send(sign_up("bob", "b@example.com", "ann")).await.code(), Some("username_taken"));
}

#[tokio::test]
async fn a_customer_may_come_back_to_a_former_name() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    for email in ["b@example.com", "ann@example.com", "c@example.com"] {
        let answer = patch(&shop, "ann", &json!({ "email": email })).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(shop.find(email).await.len(), 1);
    }
}

#[tokio::test]
async fn the_names_of_an_erased_customer_are_free() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let erase = Call::new("DELETE /v1/customers/{id}").path("id", "ann").customer("ann");
    assert_eq!(shop.send(if_match(erase, 1)).await.status, 204);
    assert!(shop.find("ann@example.com").await.is_empty());
    assert_eq!(shop.send(sign_up("bob", "ann@example.com", "ann")).await.status, 201);
}

#[tokio::test]
async fn one_of_two_concurrent_claims_of_a_name_wins() {
    let shop = Shop::open().await;
    let calls = ["a", "b", "c", "d"].map(|id| shop.send(sign_up(id, "one@example.com", id)));
    let answers = futures::future::join_all(calls).await;
    let (created, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 201);
    assert_eq!(created.len(), 1);
    assert!(refused.iter().all(|answer| answer.code() == Some("email_taken")));
    assert_eq!(shop.find("one@example.com").await, [created[0].body.clone()]);
}

/// Spellings of `zoe` that look the same.
const INVISIBLE: [&str; 6] = ["z\u{200B}oe", "zo\u{200D}e", "zo\u{AD}e", "zoe\u{FE0F}", "\u{202E}zoe", "ZOE\u{E0100}"];

#[tokio::test]
async fn an_invisible_character_does_not_make_another_name() {
    let shop = Shop::open().await;
    shop.customer("zoe").await;
    for name in INVISIBLE {
        let taken = shop.send(sign_up("b", &format!("{name}@example.com"), "b")).await;
        assert_eq!((taken.status, taken.code()), (409, Some("email_taken")), "{}", name.escape_unicode());
        let taken = shop.send(sign_up("b", "b@example.com", name)).await;
        assert_eq!((taken.status, taken.code()), (409, Some("username_taken")), "{}", name.escape_unicode());
    }
    // A name is stored without invisible characters, and keeps other characters beyond ASCII.
    let body = shop.send(sign_up("b", "b\u{200B}@example.com", "Straße\u{AD}")).await.body;
    assert_eq!((&body["email"], &body["username"]), (&json!("b@example.com"), &json!("Straße")));
    for email in ["b@example.com", "b\u{200B}@example.com", "\u{200D}B@example.com"] {
        assert_eq!(shop.find(email).await, std::slice::from_ref(&body), "{}", email.escape_unicode());
    }
    let blank = shop.send(sign_up("c", "c@example.com", "\u{200B}\u{AD}")).await;
    assert_eq!((blank.status, blank.pointers()), (422, vec!["/username"]));
}
