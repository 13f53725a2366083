//! Tests of carts, and of carts that become checkouts.

use serde_json::json;

use crate::shop::{CREATE, Shop, amount, codes, shipping, wanted, with};

const CREATE_CART: &str = "POST /ucp/carts";
const READ_CART: &str = "GET /ucp/carts/{id}";
const REPLACE_CART: &str = "PUT /ucp/carts/{id}";
const CANCEL_CART: &str = "POST /ucp/carts/{id}/cancel";

#[tokio::test]
async fn a_cart_estimates_the_price_and_needs_no_buyer() {
    let shop = Shop::open().await;
    shop.ship().await;
    let lines = json!({ "line_items": [{ "item": { "id": "tea" }, "quantity": 2 }] });
    let cart = shop.expect(201, shop.acme.call(CREATE_CART).json(&lines)).await;
    assert_eq!((amount(&cart, "total"), codes(&cart), cart.get("status")), (Some(1000), vec![], None), "{cart}");
    let lines = json!({ "line_items": [{ "item": { "id": "tea" }, "quantity": 3 }] });
    let replaced = shop.expect(200, shop.acme.about(REPLACE_CART, &cart).json(&lines)).await;
    assert_eq!((amount(&replaced, "total"), &replaced["id"]), (Some(1500), &cart["id"]));
    assert_eq!(shop.expect(200, shop.acme.about(READ_CART, &cart)).await, replaced);
    shop.expect(200, shop.acme.about(CANCEL_CART, &cart)).await;
    assert_eq!(codes(&shop.expect(200, shop.acme.about(READ_CART, &cart)).await), ["not_found"]);
    assert_eq!(codes(&shop.expect(200, shop.acme.about(CANCEL_CART, &cart)).await), ["not_found"]);
    let convert = shop.expect(200, shop.acme.call(CREATE).json(&json!({ "cart_id": cart["id"] }))).await;
    assert_eq!((codes(&convert), shop.stock("tea").await), (vec!["not_found"], 10));
}

#[tokio::test]
async fn a_cart_becomes_one_checkout() {
    let shop = Shop::open().await;
    shop.ship().await;
    let cart = shop.acme.call(CREATE_CART).json(&with(wanted(&[("tea", 2)]), &shipping("CH", None)));
    let cart = shop.expect(201, cart).await;
    let convert = |id: &serde_json::Value| {
        let body = json!({ "cart_id": id, "line_items": [{ "item": { "id": "tea" }, "quantity": 9 }] });
        shop.acme.call(CREATE).json(&body)
    };
    let session = shop.expect(201, convert(&cart["id"])).await;
    assert_eq!(
        (&session["status"], amount(&session, "total")),
        (&json!("ready_for_complete"), Some(1700)),
        "{session}"
    );
    let again = shop.expect(200, convert(&cart["id"])).await;
    assert_eq!(again["id"], session["id"]);
    let other = shop.agent("other").await;
    for call in [other.call(CREATE).json(&json!({ "cart_id": cart["id"] })), convert(&json!("none"))] {
        assert_eq!(codes(&shop.expect(200, call).await), ["not_found"]);
    }
    assert_eq!(shop.expect(200, shop.acme.complete(&session, "pm_card_visa")).await["status"], "completed");
    let next = shop.expect(201, convert(&cart["id"])).await;
    assert_ne!(next["id"], session["id"]);
}
