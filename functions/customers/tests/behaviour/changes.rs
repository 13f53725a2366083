//! Tests of changing a customer.

use http_api::sample::{Answered, Call};
use key_schema::customer::Tier;
use serde_json::{Value, json};

use crate::shop::{Shop, ids, if_match};

async fn patch(shop: &Shop, version: u64, body: &Value) -> Answered {
    let call = Call::new("PATCH /v1/customers/{id}").path("id", "ann").customer("ann").json(body);
    shop.send(if_match(call, version)).await
}

#[tokio::test]
async fn a_change_writes_only_its_fields_and_returns_the_stored_profile() {
    let shop = Shop::open().await;
    let before = shop.customer("ann").await;
    let changed = patch(&shop, 1, &json!({ "name": "Änne", "place": { "country": "DE", "city": "Ulm" } })).await;
    assert_eq!((changed.status, changed.version()), (200, Some(2)));
    assert_eq!(changed.body["name"], "Änne");
    for same in ["id", "email", "username", "tier", "addresses", "created_at"] {
        assert_eq!(changed.body[same], before[same], "{same}");
    }
    assert_eq!(shop.read("ann").await.body, changed.body);

    let renamed = patch(&shop, 2, &json!({ "email": "new@example.com", "name": "Ann" })).await;
    assert_eq!((renamed.status, renamed.version()), (200, Some(3)));
    assert_eq!(shop.read("ann").await.body, renamed.body);
    assert_eq!((&renamed.body["email"], &renamed.body["name"]), (&json!("new@example.com"), &json!("Ann")));
}

#[tokio::test]
async fn staff_can_change_and_erase_a_profile_in_any_version() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    shop.move_to("ann", Tier::Gold).await;
    let seen = shop.read("ann").await.version().unwrap();
    assert_eq!(patch(&shop, seen, &json!({ "name": "Another Ann" })).await.status, 200);
    let demote = Call::new("PATCH /v1/customers/{id}").json(&json!({ "tier": "bronze" }));
    for (call, status) in [(demote, 200), (Call::new("DELETE /v1/customers/{id}"), 204)] {
        let name = call.name();
        let call = call.path("id", "ann");
        let late = shop.send(if_match(call.clone().staff("sam"), seen)).await;
        assert_eq!((late.status, late.code()), (412, Some("version_mismatch")), "{name}");
        let own = shop.send(call.clone().customer("ann").header("if-match", "*")).await;
        assert_eq!((own.status, own.code()), (400, Some("invalid_header")), "{name}");
        assert_eq!(shop.send(call.staff("sam").header("if-match", "*")).await.status, status, "{name}");
    }
    assert_eq!(shop.read("ann").await.status, 404);
}

#[tokio::test]
async fn a_customer_with_frequent_changes_cannot_delay_a_change_of_any_version_by_staff() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let busy = async || {
        let address =
            json!({ "name": "Ann", "line1": "1 Road", "city": "Ulm", "postal_code": "89073", "country": "DE" });
        for _ in 0..6 {
            let put = Call::new("PUT /v1/customers/{id}/addresses/{name}").path("id", "ann").path("name", "home");
            shop.send(put.customer("ann").json(&address)).await;
        }
    };
    let tier = |tier| Call::new("PATCH /v1/customers/{id}").json(&json!({ "tier": tier }));
    for (call, status) in [(tier("gold"), 200), (tier("silver"), 200), (Call::new("DELETE /v1/customers/{id}"), 204)] {
        let name = call.name();
        let change = shop.send(call.path("id", "ann").staff("sam").header("if-match", "*"));
        let (answer, ()) = futures::future::join(change, busy()).await;
        assert_eq!(answer.status, status, "{name}");
    }
}

#[tokio::test]
async fn a_place_is_cleared_with_null_and_merged_member_by_member() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let half = patch(&shop, 1, &json!({ "place": { "city": "Ulm" } })).await;
    assert_eq!((half.status, half.pointers()), (422, vec!["/place/country"]));
    let none = patch(&shop, 1, &json!({ "place": {} })).await;
    assert_eq!((none.status, none.pointers()), (422, vec!["/place/country", "/place/city"]));
    let set = patch(&shop, 1, &json!({ "place": { "country": "DE", "city": "Ulm" } })).await;
    assert_eq!(set.status, 200);
    let moved = patch(&shop, 2, &json!({ "place": { "city": "Bonn" } })).await;
    assert_eq!(moved.body["place"], json!({ "country": "DE", "city": "Bonn" }));
    let emigrated = patch(&shop, 3, &json!({ "place": { "country": "AT" } })).await;
    assert_eq!(emigrated.body["place"], json!({ "country": "AT", "city": "Bonn" }));
    let cleared = patch(&shop, 4, &json!({ "place": null })).await;
    assert_eq!((cleared.status, cleared.body.get("place")), (200, Some(&Value::Null)));
    assert_eq!(shop.read("ann").await.body, cleared.body);
}

#[tokio::test]
async fn a_change_without_effect_is_not_written() {
    let shop = Shop::open().await;
    let before = shop.customer("ann").await;
    for body in [json!({}), json!({ "name": "Ann" }), json!({ "email": "ann@example.com", "place": null })] {
        let answer = patch(&shop, 1, &body).await;
        assert_eq!((answer.status, answer.version(), &answer.body), (200, Some(1), &before), "{body}");
    }
    assert_eq!(shop.read("ann").await.body, before);
}

#[tokio::test]
async fn only_staff_change_the_tier_of_a_customer_and_the_lists_show_the_new_tier() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let own = patch(&shop, 1, &json!({ "tier": "gold", "name": "Eve" })).await;
    assert_eq!((own.status, own.code()), (403, Some("forbidden")));
    assert_eq!(shop.read("ann").await.body["name"], "Ann");

    shop.move_to("ann", Tier::Gold).await;
    assert_eq!(shop.read("ann").await.body["tier"], "gold");
    for (tier, members) in [("gold", vec!["ann"]), ("bronze", vec![]), ("silver", vec![])] {
        let list = shop.send(Call::new("GET /v1/customers").query("tier", tier).staff("s")).await;
        assert_eq!(ids(&list.body["items"]), members, "{tier}");
    }
}

#[tokio::test]
async fn one_of_two_concurrent_changes_wins_and_the_other_gets_412() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    for (round, a, b) in [
        (1, json!({ "name": "One" }), json!({ "name": "Two" })),
        (2, json!({ "email": "one@example.com" }), json!({ "email": "two@example.com" })),
        (3, json!({ "username": "same" }), json!({ "username": "same" })),
        (4, json!({ "name": "Three" }), json!({ "email": "three@example.com" })),
    ] {
        let (first, second) = futures::future::join(patch(&shop, round, &a), patch(&shop, round, &b)).await;
        let mut statuses = [first.status, second.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 412], "{a} {b}");
        let winner = if first.status == 200 { first } else { second };
        assert_eq!(shop.read("ann").await.body, winner.body);
        assert_eq!(winner.version(), Some(round + 1));
    }
}

#[tokio::test]
async fn a_missing_customer_cannot_be_changed() {
    let shop = Shop::open().await;
    assert_eq!(patch(&shop, 1, &json!({ "name": "Ann" })).await.status, 404);
    assert_eq!(patch(&shop, 1, &json!({ "email": "ann@example.com" })).await.status, 404);
    assert!(shop.find("ann@example.com").await.is_empty());
}
