//! Mail to customers, from the API call to the mailbox.

use local::System;
use serde_json::{Value as Json, json};

use crate::control::all;
use crate::support::client::Call;
use crate::support::{drain, shop, with_system};

/// Returns the subjects of the mail to an address, with the order's number replaced by `N`.
async fn subjects(system: &System, address: &str, order: &Json) -> Vec<String> {
    let mails = all(system, "/_local/mail").await;
    let to = |mail: &&Json| mail["to"] == json!([address]);
    let number = order["id"].as_str().unwrap();
    let subject = |mail: &Json| mail["subject"].as_str().unwrap().replace(number, "N");
    let mut subjects: Vec<String> = mails.iter().filter(to).map(subject).collect();
    subjects.sort();
    subjects
}

#[test]
fn an_order_is_confirmed_once_and_its_steps_are_told_once() {
    with_system(async |system| {
        shop::customer(system, "notified-ann").await;
        shop::products(system, &["notified-tea"], 10).await;
        let order = shop::order(system, "notified-ann", &[("notified-tea", 2)], "notified").await;
        drain(system).await;
        let address = "notified-ann@example.com";
        assert_eq!(subjects(system, address, &order).await, ["Your order N"]);
        let order = shop::moved(system, order, &["paid", "picking"]).await;
        let body = json!({"to": "shipped", "carrier": "Post", "tracking": "CH-0001"});
        let order = shop::step_with(&order, &body).staff().send(system).await.expect(200).body;
        drain(system).await;
        let told = ["Your order N", "Your order N is on its way", "Your order N is paid"];
        assert_eq!(subjects(system, address, &order).await, told);
        let mails = all(system, "/_local/mail").await;
        let shipped = mails
            .iter()
            .find(|mail| mail["to"] == json!([address]) && mail["subject"].as_str().unwrap().ends_with("on its way"));
        let text = shipped.unwrap()["text"].as_str().unwrap();
        assert!(text.contains("Carrier: Post\nTracking number: CH-0001\n"), "{text}");
    });
}

#[test]
fn a_customer_who_was_erased_is_told_nothing() {
    with_system(async |system| {
        let customer = shop::customer(system, "notified-eve").await.body;
        shop::products(system, &["notified-ice"], 10).await;
        let order = shop::order(system, "notified-eve", &[("notified-ice", 1)], "notified").await;
        drain(system).await;
        let erase = Call::new("DELETE", "/v1/customers/notified-eve").customer("notified-eve");
        erase.header("if-match", &format!("\"{}\"", customer["version"])).send(system).await.expect(204);
        let order = shop::moved(system, order, &["paid"]).await;
        drain(system).await;
        assert_eq!(subjects(system, "notified-eve@example.com", &order).await, ["Your order N"]);
    });
}
