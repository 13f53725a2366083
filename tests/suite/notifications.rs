//! Tests mail to customers, from the API call to the mailbox.

use local::System;
use serde_json::{Value as Json, json};

use crate::control::all;
use crate::support::client::Call;
use crate::support::{drain, shop, with_system};

async fn mails(system: &System, address: &str) -> Vec<Json> {
    let mut mails = all(system, "/_local/mail").await;
    mails.retain(|mail| mail["to"] == json!([address]));
    mails
}

async fn subjects(system: &System, address: &str) -> Vec<String> {
    let mails = mails(system, address).await;
    let mut subjects: Vec<String> = mails.iter().map(|mail| mail["subject"].as_str().unwrap().to_owned()).collect();
    subjects.sort();
    subjects
}

#[test]
fn a_new_order_a_payment_and_a_shipment_each_cause_one_mail() {
    with_system(async |system| {
        shop::customer(system, "notified-ann").await;
        shop::products(system, &["notified-tea"], 10).await;
        let order = shop::order(system, "notified-ann", &[("notified-tea", 2)], "notified").await;
        drain(system).await;
        let address = "notified-ann@example.com";
        assert_eq!(subjects(system, address).await, ["Your order"]);
        let order = shop::moved(system, order, &["paid", "picking"]).await;
        let body = json!({"to": "shipped", "carrier": "Post", "tracking": "CH-0001"});
        shop::step_with(&order, &body).staff().send(system).await.expect(200);
        drain(system).await;
        let told = ["Your order", "Your order is on its way", "Your order is paid"];
        assert_eq!(subjects(system, address).await, told);
        let mails = all(system, "/_local/mail").await;
        let shipped = mails
            .iter()
            .find(|mail| mail["to"] == json!([address]) && mail["subject"].as_str().unwrap().ends_with("on its way"));
        let text = shipped.unwrap()["text"].as_str().unwrap();
        assert!(text.contains("Carrier: Post\nTracking number: CH-0001\n"), "{text}");
    });
}

#[test]
fn an_erased_customer_gets_no_mail() {
    with_system(async |system| {
        let customer = shop::customer(system, "notified-eve").await.body;
        shop::products(system, &["notified-ice"], 10).await;
        let order = shop::order(system, "notified-eve", &[("notified-ice", 1)], "notified").await;
        drain(system).await;
        let erase = Call::new("DELETE", "/v1/customers/notified-eve").customer("notified-eve");
        erase.header("if-match", &format!("\"{}\"", customer["version"])).send(system).await.expect(204);
        shop::moved(system, order, &["paid"]).await;
        drain(system).await;
        assert_eq!(subjects(system, "notified-eve@example.com").await, ["Your order"]);
    });
}

/// Signs up a customer whose token has no email address.
async fn sign_up(system: &System, id: &str, email: &str) {
    let body = json!({ "email": email, "username": id, "name": "Ann" });
    let created = Call::new("POST", "/v1/customers").customer(id).json(&body).send(system).await.expect(201);
    assert_eq!(created.body["email_verified"], false);
}

fn verification(method: &str, id: &str) -> Call {
    Call::new(method, &shop::path(&["customers", id, "email", "verification"])).customer(id)
}

#[test]
fn an_address_gets_mail_about_orders_only_after_it_was_verified() {
    with_system(async |system| {
        let address = "notified-nora@example.com";
        sign_up(system, "notified-nora", address).await;
        shop::products(system, &["notified-pie"], 10).await;
        shop::order(system, "notified-nora", &[("notified-pie", 1)], "notified-nora-1").await;
        drain(system).await;
        assert_eq!(mails(system, address).await, Vec::<Json>::new());

        verification("POST", "notified-nora").send(system).await.expect(202);
        drain(system).await;
        let [mail] = mails(system, address).await.try_into().unwrap();
        assert_eq!(mail["subject"], "Confirm your email address");
        let text = mail["text"].as_str().unwrap();
        let code = text.lines().find(|line| line.len() == 6 && line.bytes().all(|byte| byte.is_ascii_digit())).unwrap();
        // No event contains the code.
        let mut events = all(system, "/_local/events").await;
        events.retain(|event| event["type"] == "EmailVerificationRequested");
        assert!(!events.is_empty() && !events.iter().any(|event| event.to_string().contains(code)), "{events:?}");
        let wrong = if code == "000000" { "000001" } else { "000000" };
        let refused = verification("PUT", "notified-nora").json(&json!({ "code": wrong })).send(system).await;
        assert_eq!(refused.expect(422).body["code"], "code_invalid");
        let verified = verification("PUT", "notified-nora").json(&json!({ "code": code })).send(system).await;
        assert_eq!(verified.expect(200).body["email_verified"], true);

        shop::order(system, "notified-nora", &[("notified-pie", 2)], "notified-nora-2").await;
        drain(system).await;
        assert_eq!(subjects(system, address).await, ["Confirm your email address", "Your order"]);
    });
}

#[test]
fn a_squatter_of_an_address_neither_blocks_its_owner_nor_causes_mail_to_the_owner() {
    with_system(async |system| {
        let address = "notified-vera@example.com";
        sign_up(system, "notified-squatter", address).await;
        shop::products(system, &["notified-jam"], 10).await;
        let order = async |customer: &str, reference: &str| {
            let mut body = shop::order_body(customer, &[("notified-jam", 1)]);
            body["reference"] = json!(reference);
            shop::order_call(&body, customer).customer(customer).send(system).await.expect(201).body
        };
        order("notified-squatter", "https://evil.example/pay").await;
        let body = json!({ "email": address, "username": "notified-vera", "name": "Vera" });
        let create = Call::new("POST", "/v1/customers").customer_with_email("notified-vera", address).json(&body);
        assert_eq!(create.send(system).await.expect(201).body["email_verified"], true);
        let found = Call::new("GET", &format!("/v1/customers?email={}", shop::segment(address))).staff();
        assert_eq!(found.send(system).await.expect(200).body["items"][0]["id"], "notified-vera");
        let order = order("notified-vera", "www.evil.example").await;
        drain(system).await;
        let [mail] = mails(system, address).await.try_into().unwrap();
        assert!(mail["text"].as_str().unwrap().contains(order["number"].as_str().unwrap()));
        assert!(!mail.to_string().contains("evil"), "{mail}");
    });
}

#[test]
fn a_bounce_or_a_complaint_stops_mail_until_staff_sets_the_address_again() {
    with_system(async |system| {
        shop::products(system, &["notified-bun"], 20).await;
        for kind in ["bounce", "complaint"] {
            // The label after the plus sign makes an address of SES's mailbox simulator unique.
            let (id, address) = (format!("notified-{kind}"), format!("{kind}+notified@simulator.amazonses.com"));
            let body = json!({ "id": id, "email": address, "username": id, "name": "Bo" });
            Call::new("POST", "/v1/customers").staff().json(&body).send(system).await.expect(201);
            for (number, expected) in [(1, 1), (2, 1)] {
                shop::order(system, &id, &[("notified-bun", 1)], &format!("notified-{kind}-{number}")).await;
                drain(system).await;
                assert_eq!(mails(system, &address).await.len(), expected, "{kind} {number}");
            }
            let give = Call::new("PATCH", &shop::path(&["customers", &id])).staff().header("if-match", "\"1\"");
            give.json(&json!({ "email": address })).send(system).await.expect(200);
            shop::order(system, &id, &[("notified-bun", 1)], &format!("notified-{kind}-3")).await;
            drain(system).await;
            assert_eq!(mails(system, &address).await.len(), 2, "{kind}");
        }
    });
}
