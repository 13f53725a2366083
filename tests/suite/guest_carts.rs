use serde_json::json;

use crate::support::client::Call;
use crate::support::shop::{customer, path, products};
use crate::support::with_system;

#[test]
fn a_repeated_claim_after_the_checkout_adds_nothing() {
    with_system(async |system| {
        let (ann, tea) = ("guest-cart-ann", "guest-cart-tea");
        customer(system, ann).await;
        products(system, &[tea], 10).await;
        let cart = Call::new("POST", "/v1/carts").send(system).await.expect(201).body;
        let (id, token) = (cart["id"].as_str().unwrap(), cart["token"].as_str().unwrap());
        let line = Call::new("PUT", &path(&["carts", id, "items", tea])).header("cart-token", token);
        line.json(&json!({ "quantity": 2 })).send(system).await.expect(200);
        let claim = || {
            let call = Call::new("POST", &path(&["customers", ann, "cart", "claim"])).customer(ann);
            call.json(&json!({ "cart_id": id, "cart_token": token }))
        };
        assert_eq!(claim().send(system).await.expect(200).body["items"][0]["quantity"], 2);
        let checkout = Call::new("POST", &path(&["customers", ann, "cart", "checkout"])).customer(ann);
        checkout.json(&json!({})).header("idempotency-key", "guest-cart").send(system).await.expect(201);
        assert_eq!(claim().send(system).await.expect(200).body["items"], json!([]));
    });
}
