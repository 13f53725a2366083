//! Tests the mail service with requests in the REST JSON protocol of SES's API version 2.
//! `.ci/wire` sends them with AWS's client.

use std::time::Duration;

use emulators::events::EventBusServer;
use emulators::faults::{Fault, FaultKind};
use emulators::mail::MailServer;
use serde_json::{Value, json};

fn text(data: &str) -> Value {
    json!({"Data": data, "Charset": "UTF-8"})
}

fn content(subject: Value, body: Value) -> Value {
    json!({"Simple": {"Subject": subject, "Body": body}})
}

fn to(addresses: &[&str]) -> Value {
    json!({"ToAddresses": addresses})
}

fn tags(tags: &[(&str, &str)]) -> Value {
    tags.iter().map(|(name, value)| json!({"Name": name, "Value": value})).collect()
}

fn mail() -> Value {
    json!({
        "FromEmailAddress": "Bodega <shop@example.com>",
        "Destination": to(&["ann@example.com"]),
        "Content": content(text("Your order"), json!({"Text": text("Paid: 5 €")})),
    })
}

fn with(member: &str, value: Value) -> Value {
    let mut mail = mail();
    mail[member] = value;
    mail
}

/// Sends a message. Returns its id, or else the error code. The code is `none` if there is no
/// response.
async fn send(server: &MailServer, mail: Value) -> Result<String, String> {
    let request = reqwest::Client::new().post(format!("{}/v2/email/outbound-emails", server.url()));
    let Ok(response) = request.json(&mail).send().await else { return Err("none".to_owned()) };
    match response.headers().get("x-amzn-errortype") {
        Some(code) => Err(code.to_str().unwrap().to_owned()),
        None => Ok(response.json::<Value>().await.unwrap()["MessageId"].as_str().unwrap().to_owned()),
    }
}

#[tokio::test]
async fn mail_to_the_mailbox_simulator_causes_bounce_and_complaint_events_on_the_default_bus() {
    let (server, bus) = (MailServer::start().await.unwrap(), EventBusServer::start(&[]).await.unwrap());
    server.report_to(bus.service_events());
    let mut ids = Vec::new();
    for address in [
        "success@simulator.amazonses.com",
        "bounce@simulator.amazonses.com",
        "complaint+label@simulator.amazonses.com",
        "bounce@example.com",
    ] {
        let mut mail = with("Destination", to(&[address]));
        mail["ConfigurationSetName"] = json!("bodega");
        ids.push(send(&server, mail).await.unwrap());
    }
    // Without a configuration set, SES sends no event.
    send(&server, with("Destination", to(&["bounce@simulator.amazonses.com"]))).await.unwrap();
    let events = bus.published(0, 10).items;
    let [bounce, complaint] = &events[..] else { panic!("{events:?}") };
    for (event, kind, id) in [(bounce, "Email Bounced", &ids[1]), (complaint, "Email Complaint Received", &ids[2])] {
        assert_eq!(
            (event.source.as_str(), event.detail_type.as_str(), event.bus.as_str()),
            ("aws.ses", kind, "default")
        );
        assert_eq!(event.detail["mail"]["messageId"], id.as_str());
        assert_eq!(event.detail["mail"]["tags"]["ses:configuration-set"], json!(["bodega"]));
    }
    assert_eq!(bounce.detail["bounce"]["bounceType"], "Permanent");
    let complained = &complaint.detail["complaint"]["complainedRecipients"][0]["emailAddress"];
    assert_eq!(complained, "complaint+label@simulator.amazonses.com");
    let odd = with("ConfigurationSetName", json!("a b"));
    assert_eq!(send(&server, odd).await, Err("BadRequestException".to_owned()));
}

#[tokio::test]
async fn a_message_is_kept_as_it_was_sent() {
    let server = MailServer::start().await.unwrap();
    let first = send(&server, mail()).await.unwrap();
    let mut second = with("Content", content(text("Zweite"), json!({"Html": text("<b>Paid</b>")})));
    second["Destination"] = to(&["a@b.example", "c@d.example"]);
    second["EmailTags"] = tags(&[("kind", "OrderPlaced"), ("event", "0123-abc")]);
    let second = send(&server, second).await.unwrap();
    assert_ne!(first, second);
    let page = server.sent(0, 10);
    assert_eq!((page.next, page.more), (2, false));
    let [one, two] = &page.items[..] else { panic!("{page:?}") };
    assert_eq!((one.message_id.as_str(), one.from.as_str()), (first.as_str(), "Bodega <shop@example.com>"));
    assert_eq!((one.subject.as_str(), one.text.as_str(), one.html.as_deref()), ("Your order", "Paid: 5 €", None));
    assert_eq!(
        (two.message_id.as_str(), two.text.as_str(), two.html.as_deref()),
        (second.as_str(), "", Some("<b>Paid</b>"))
    );
    assert_eq!(two.to, ["a@b.example", "c@d.example"]);
    assert_eq!((two.tags["kind"].as_str(), two.tags["event"].as_str()), ("OrderPlaced", "0123-abc"));
    assert!(one.at.ends_with('Z'), "{}", one.at);
    assert_eq!(server.sent(1, 10).items, page.items[1..]);
}

#[tokio::test]
async fn a_message_that_ses_refuses_is_refused_and_not_kept() {
    let server = MailServer::start().await.unwrap();
    let many: Vec<String> = (0..51).map(|n| format!("{n}@example.com")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let good = || json!({"Text": text("x")});
    let ascii = json!({"Data": "5 €"});
    for (what, mail) in [
        ("no sender", with("FromEmailAddress", Value::Null)),
        ("bad sender", with("FromEmailAddress", json!("shop"))),
        ("no recipient", with("Destination", to(&[]))),
        ("51 recipients", with("Destination", to(&many))),
        ("two in one", with("Destination", to(&["a@example.com, b@example.com"]))),
        ("no domain", with("Destination", to(&["a@"]))),
        ("two @", with("Destination", to(&["a@b@example.com"]))),
        ("a header after an address", with("Destination", to(&["a@example.com\r\nBcc: b@example.com"]))),
        ("a header in a name", with("Destination", to(&["Ann\r\nBcc: Bea <a@example.com>"]))),
        ("no subject", with("Content", content(text(""), good()))),
        ("no body", with("Content", content(text("x"), json!({})))),
        ("a charset without the character", with("Content", content(ascii, good()))),
        ("a bad tag", with("EmailTags", tags(&[("kind", "a b")]))),
        ("an empty tag", with("EmailTags", tags(&[("kind", "")]))),
        ("a tag twice", with("EmailTags", tags(&[("kind", "a"), ("kind", "b")]))),
        ("raw content", with("Content", json!({"Raw": {"Data": "eA=="}}))),
    ] {
        assert_eq!(send(&server, mail).await, Err("BadRequestException".to_owned()), "{what}");
    }
    assert_eq!(server.sent(0, 10).next, 0);
    let other = reqwest::Client::new().get(format!("{}/v2/email/identities", server.url())).send().await.unwrap();
    assert_eq!(other.status(), 404);
}

#[tokio::test]
async fn each_kind_of_fault_has_its_documented_effect() {
    for (kind, code) in [
        (FaultKind::Throttle, "TooManyRequestsException"),
        (FaultKind::Error, "InternalServiceException"),
        (FaultKind::Reset, "none"),
    ] {
        let server = MailServer::start().await.unwrap();
        server.faults().add(Fault { kind, rate: 1.0, count: None, seed: 0 }).unwrap();
        assert_eq!(send(&server, mail()).await, Err(code.to_owned()), "{kind:?}");
        assert!(server.faults().counts()[0].fired > 0, "{kind:?}");
        assert_eq!(server.sent(0, 10).next, 0, "{kind:?}: the request must not be executed");
        server.faults().clear();
        for kind in [FaultKind::Partial, FaultKind::Conflict, FaultKind::Slow] {
            server.faults().add(Fault { kind, rate: 1.0, count: Some(1), seed: 0 }).unwrap();
        }
        assert!(send(&server, mail()).await.is_ok(), "{kind:?}");
    }
    let server = MailServer::start().await.unwrap();
    server.faults().add(Fault { kind: FaultKind::Timeout, rate: 1.0, count: None, seed: 0 }).unwrap();
    let hasty = tokio::time::timeout(Duration::from_millis(300), send(&server, mail())).await;
    assert!(hasty.is_err());
    assert_eq!(server.sent(0, 10).next, 1, "the request must be executed although no response comes");
}
