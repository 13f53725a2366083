//! Tests of the requests to SES.

use std::time::Duration;

use aws::{Api, Credentials, Service, SharedCredentialsProvider};
use emulators::faults::{Fault, FaultKind};
use emulators::mail::{Mail, MailServer};
use notifier::mailer::Ses;
use notifier::notifier::{MARGIN, Notifier, NotifyError, Outcome};
use tokio::time::Instant as Clock;

use crate::support::{NOW, Shop, at, at_once};

fn ses(server: &MailServer) -> Ses {
    ses_at(server.url())
}

fn ses_at(url: &str) -> Ses {
    let credentials = SharedCredentialsProvider::new(Credentials::new("local", "local", None, None, "test"));
    let service = Service::of(Api::Ses, "eu-central-1", Some(url), credentials).unwrap();
    Ses::new(service, "shop@example.com".to_owned(), "bodega-test".to_owned())
}

fn mails(server: &MailServer) -> Vec<Mail> {
    server.sent(0, 100).items
}

#[tokio::test]
async fn a_message_reaches_the_mail_service_as_it_was_written() {
    let (shop, server) = (Shop::open().await, MailServer::start().await.unwrap());
    let notifier = Notifier::new(shop.table.table(), ses(&server), shop.table.codes());
    assert_eq!(notifier.take(&shop.placed(1), at(NOW), at_once()).await.unwrap(), Outcome::Sent);
    let [mail] = mails(&server).try_into().unwrap();
    assert_eq!(
        (mail.from.as_str(), mail.to.as_slice()),
        ("shop@example.com", ["zoe@example.com".to_owned()].as_slice())
    );
    assert_eq!((mail.subject.as_str(), mail.configuration_set.as_deref()), ("Your order", Some("bodega-test")));
    assert!(mail.text.starts_with("Dear Zoë,\n"));
    assert_eq!(mail.tags.into_iter().collect::<Vec<_>>(), [("event".to_owned(), "OrderPlaced".to_owned())]);
}

#[tokio::test]
async fn a_throttled_mail_service_gets_another_request() {
    let (shop, server) = (Shop::open().await, MailServer::start().await.unwrap());
    server.faults().add(Fault { kind: FaultKind::Throttle, rate: 1.0, count: Some(3), seed: 0 }).unwrap();
    let notifier = Notifier::new(shop.table.table(), ses(&server), shop.table.codes());
    assert_eq!(notifier.take(&shop.placed(1), at(NOW), at_once()).await.unwrap(), Outcome::Sent);
    assert_eq!(mails(&server).len(), 1);
}

/// If the outcome of a request is unknown, SES may have accepted the request. So another attempt
/// must wait until the lease expires.
#[tokio::test]
async fn an_unclear_answer_is_not_followed_by_another_request_at_once() {
    for kind in [FaultKind::Error, FaultKind::Reset] {
        let (shop, server) = (Shop::open().await, MailServer::start().await.unwrap());
        server.faults().add(Fault { kind, rate: 1.0, count: Some(1), seed: 0 }).unwrap();
        let (notifier, event) = (Notifier::new(shop.table.table(), ses(&server), shop.table.codes()), shop.placed(1));
        assert!(matches!(
            notifier.take(&event, at(NOW), at_once()).await, Err(NotifyError::Mail(error)) if !error.is_certain(),
        ));
        assert!(matches!(notifier.take(&event, at(NOW).plus_seconds(1), at_once()).await, Err(NotifyError::Claimed)));
        assert_eq!(notifier.take(&event, at(NOW).plus_seconds(60), at_once()).await.unwrap(), Outcome::Sent);
        assert_eq!(mails(&server).len(), 1);
    }
}

/// Without a connection SES accepted nothing, so the claim is released for the next attempt.
#[tokio::test]
async fn without_a_connection_another_request_follows_at_once() {
    let (shop, server) = (Shop::open().await, MailServer::start().await.unwrap());
    let (gone, event) = (server.url().to_owned(), shop.placed(1));
    drop(server);
    let notifier = Notifier::new(shop.table.table(), ses_at(&gone), shop.table.codes());
    let soon = Clock::now() + MARGIN + Duration::from_millis(300);
    let error = notifier.take(&event, at(NOW), soon).await.unwrap_err();
    assert!(matches!(&error, NotifyError::Mail(error) if error.is_certain()), "{error}");
    let server = MailServer::start().await.unwrap();
    let notifier = Notifier::new(shop.table.table(), ses(&server), shop.table.codes());
    assert_eq!(notifier.take(&event, at(NOW), at_once()).await.unwrap(), Outcome::Sent);
}
