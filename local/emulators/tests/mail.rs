//! The mail service, as the SDK speaks to it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::time::Duration;

use aws_sdk_sesv2::Client;
use aws_sdk_sesv2::config::retry::RetryConfig;
use aws_sdk_sesv2::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_sesv2::error::ProvideErrorMetadata;
use aws_sdk_sesv2::operation::send_email::builders::SendEmailFluentBuilder;
use aws_sdk_sesv2::types::{Body, Content, Destination, EmailContent, Message, MessageTag, RawMessage};
use emulators::faults::{Fault, FaultKind};
use emulators::mail::MailServer;

async fn start() -> (MailServer, Client) {
    let server = MailServer::start().await.unwrap();
    let config = Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .endpoint_url(server.url())
        .retry_config(RetryConfig::standard().with_initial_backoff(Duration::from_millis(1)))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .build();
    (server, Client::from_conf(config))
}

fn text(data: &str) -> Content {
    Content::builder().data(data).charset("UTF-8").build().unwrap()
}

fn to(addresses: &[&str]) -> Destination {
    Destination::builder()
        .set_to_addresses(Some(addresses.iter().map(|address| (*address).to_owned()).collect()))
        .build()
}

fn content(subject: Content, body: Body) -> EmailContent {
    EmailContent::builder().simple(Message::builder().subject(subject).body(body).build()).build()
}

fn tag(name: &str, value: &str) -> MessageTag {
    MessageTag::builder().name(name).value(value).build().unwrap()
}

/// A message that is taken.
fn mail(client: &Client) -> SendEmailFluentBuilder {
    let body = Body::builder().text(text("Paid: 5 €")).build();
    let mail = client.send_email().from_email_address("Bodega <shop@example.com>");
    mail.destination(to(&["ann@example.com"])).content(content(text("Your order"), body))
}

async fn send(mail: SendEmailFluentBuilder) -> Result<String, String> {
    match mail.send().await {
        Ok(sent) => Ok(sent.message_id().unwrap().to_owned()),
        Err(error) => Err(error.into_service_error().code().unwrap_or("none").to_owned()),
    }
}

#[tokio::test]
async fn a_message_is_kept_as_it_was_sent() {
    let (server, client) = start().await;
    let first = send(mail(&client)).await.unwrap();
    let body = Body::builder().html(text("<b>Paid</b>")).build();
    let second = mail(&client).content(content(text("Zweite"), body)).destination(to(&["a@b.example", "c@d.example"]));
    let second =
        send(second.email_tags(tag("kind", "OrderPlaced")).email_tags(tag("event", "0123-abc"))).await.unwrap();
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
    let (server, client) = start().await;
    let many: Vec<String> = (0..51).map(|n| format!("{n}@example.com")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let good = || Body::builder().text(text("x")).build();
    let ascii = Content::builder().data("5 €").build().unwrap();
    for (what, mail) in [
        ("no sender", mail(&client).set_from_email_address(None)),
        ("bad sender", mail(&client).from_email_address("shop")),
        ("no recipient", mail(&client).destination(to(&[]))),
        ("51 recipients", mail(&client).destination(to(&many))),
        ("two in one", mail(&client).destination(to(&["a@example.com, b@example.com"]))),
        ("no domain", mail(&client).destination(to(&["a@"]))),
        ("two @", mail(&client).destination(to(&["a@b@example.com"]))),
        ("a header of its own", mail(&client).destination(to(&["a@example.com\r\nBcc: b@example.com"]))),
        ("a header in a name", mail(&client).destination(to(&["Ann\r\nBcc: Bea <a@example.com>"]))),
        ("no subject", mail(&client).content(content(text(""), good()))),
        ("no body", mail(&client).content(content(text("x"), Body::builder().build()))),
        ("a charset that does not have it", mail(&client).content(content(ascii.clone(), good()))),
        ("a bad tag", mail(&client).email_tags(tag("kind", "a b"))),
        ("an empty tag", mail(&client).email_tags(tag("kind", ""))),
        ("a tag twice", mail(&client).email_tags(tag("kind", "a")).email_tags(tag("kind", "b"))),
        (
            "raw content",
            mail(&client).content(
                EmailContent::builder().raw(RawMessage::builder().data(b"x".to_vec().into()).build().unwrap()).build(),
            ),
        ),
    ] {
        assert_eq!(send(mail).await, Err("BadRequestException".to_owned()), "{what}");
    }
    assert_eq!(server.sent(0, 10).next, 0);
    let other = reqwest::Client::new().get(format!("{}/v2/email/identities", server.url())).send().await.unwrap();
    assert_eq!(other.status(), 404);
}

#[tokio::test]
async fn a_fault_does_what_it_says() {
    for (kind, code) in [
        (FaultKind::Throttle, "TooManyRequestsException"),
        (FaultKind::Error, "InternalServiceException"),
        (FaultKind::Reset, "none"),
    ] {
        let (server, client) = start().await;
        server.faults().add(Fault { kind, rate: 1.0, count: None, seed: 0 }).unwrap();
        assert_eq!(send(mail(&client)).await, Err(code.to_owned()), "{kind:?}");
        assert_eq!(server.faults().counts()[0].fired, 3, "{kind:?}: the SDK's attempts");
        assert_eq!(server.sent(0, 10).next, 0, "{kind:?}: nothing was done");
        server.faults().clear();
        for kind in [FaultKind::Partial, FaultKind::Conflict, FaultKind::Slow] {
            server.faults().add(Fault { kind, rate: 1.0, count: Some(1), seed: 0 }).unwrap();
        }
        assert!(send(mail(&client)).await.is_ok(), "{kind:?}");
    }
    let (server, client) = start().await;
    server.faults().add(Fault { kind: FaultKind::Timeout, rate: 1.0, count: None, seed: 0 }).unwrap();
    let hasty = tokio::time::timeout(Duration::from_millis(300), send(mail(&client))).await;
    assert!(hasty.is_err());
    assert_eq!(server.sent(0, 10).next, 1, "done, but never answered");
}
