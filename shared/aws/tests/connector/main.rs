//! Tests of the connector and of calls over it. The test server can behave correctly or in several
//! faulty ways.

#![allow(clippy::unwrap_used, clippy::panic)]

mod calls;
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aws::{Connector, SetupError, Tls};
use aws_smithy_runtime_api::client::http::HttpConnector as _;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use futures::future::join_all;
use http::Request;
use http_body_util::BodyExt as _;
use tokio::net::TcpListener;

use server::Server;

fn connector() -> Connector {
    Connector::new(aws::tls().unwrap(), Duration::from_secs(5))
}

async fn ask(connector: &Connector, url: &str, body: &str) -> Result<HttpResponse, ConnectorError> {
    let request = Request::post(url).body(SdkBody::from(body)).unwrap();
    connector.call(request.try_into().unwrap()).await
}

/// Sends a request. Returns the status, and the body if it can be read to the end.
async fn answer(connector: &Connector, url: &str) -> (u16, Option<String>) {
    let response = ask(connector, url, "hello").await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.ok();
    (status, body.map(|body| String::from_utf8(body.to_bytes().to_vec()).unwrap()))
}

fn ok(text: &str) -> (u16, Option<String>) {
    (200, Some(text.to_owned()))
}

#[tokio::test]
async fn requests_one_after_the_other_share_a_connection() {
    let server = Server::plain().await;
    let (connector, base) = (connector(), format!("http://127.0.0.1:{}", server.port));
    for _ in 0..20 {
        assert_eq!(answer(&connector, &format!("{base}/body")).await, ok("hello"));
        assert_eq!(answer(&connector, &format!("{base}/chunked")).await, ok("ok"));
        assert_eq!(answer(&connector, &format!("{base}/empty")).await, (204, Some(String::new())));
    }
    assert_eq!(server.connections(), 1);
    // The same server under another host name is another origin.
    assert_eq!(answer(&connector, &format!("http://localhost:{}/body", server.port)).await, ok("hello"));
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn concurrent_requests_have_a_connection_each_and_later_requests_reuse_them() {
    let server = Server::plain().await;
    let (connector, url) = (connector(), format!("http://127.0.0.1:{}/body", server.port));
    for _ in 0..3 {
        let answers = join_all((0..50).map(|_| answer(&connector, &url))).await;
        assert!(answers.iter().all(|answer| *answer == ok("hello")));
        assert_eq!(server.connections(), 50);
    }
}

#[tokio::test]
async fn a_request_has_its_host_and_its_path() {
    let server = Server::plain().await;
    let (connector, port) = (connector(), server.port);
    let (_, head) = answer(&connector, &format!("http://127.0.0.1:{port}/a/b?c=d%20e")).await;
    let head = head.unwrap();
    assert!(head.starts_with("POST /a/b?c=d%20e HTTP/1.1\n"), "{head}");
    assert!(head.lines().any(|line| line == format!("host: 127.0.0.1:{port}")), "{head}");
    let (_, head) = answer(&connector, &format!("http://127.0.0.1:{port}")).await;
    assert!(head.unwrap().starts_with("POST / HTTP/1.1\n"));
    let named = Request::get(format!("http://127.0.0.1:{port}/x")).header("host", "bucket.example");
    let response = connector.call(named.body(SdkBody::empty()).unwrap().try_into().unwrap()).await.unwrap();
    let head = response.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&head).contains("\nhost: bucket.example"), "the request keeps its host header");
    for url in ["/x", "ftp://127.0.0.1/x"] {
        assert!(ask(&connector, url, "").await.unwrap_err().is_user(), "{url}");
    }
}

#[tokio::test]
async fn a_failed_or_half_read_connection_is_not_used_again() {
    let server = Server::plain().await;
    let (connector, base) = (connector(), format!("http://127.0.0.1:{}", server.port));
    let url = |path: &str| format!("{base}/{path}");
    let mut opened = 1;
    for path in ["failing", "last", "broken", "unread"] {
        match path {
            // The client drops the response without reading its body.
            "unread" => drop(ask(&connector, &url("body"), "hello").await.unwrap()),
            "broken" => assert_eq!(answer(&connector, &url(path)).await, (200, None)),
            _ => assert!(answer(&connector, &url(path)).await.1.is_some()),
        }
        assert_eq!(server.connections(), opened, "{path}");
        assert_eq!(answer(&connector, &url("body")).await, ok("hello"), "{path}");
        opened += 1;
        assert_eq!(server.connections(), opened, "{path}");
    }
}

#[tokio::test]
async fn a_request_succeeds_although_the_server_has_closed_an_idle_connection() {
    let server = Server::plain().await;
    let (connector, base) = (connector(), format!("http://127.0.0.1:{}", server.port));
    for turn in 1..=20 {
        assert_eq!(answer(&connector, &format!("{base}/hangs-up")).await.0, 200);
        // The sleep blocks the runtime, as the freezing of an environment does. So the client
        // cannot notice the closed connection.
        std::thread::sleep(Duration::from_millis(if turn == 1 { 1_100 } else { 5 }));
        assert_eq!(answer(&connector, &format!("{base}/body")).await, ok("hello"), "{turn}");
    }
}

#[tokio::test]
async fn a_missing_response_is_an_error_and_no_request_is_sent_twice() {
    let server = Server::plain().await;
    let (connector, url) = (connector(), format!("http://127.0.0.1:{}/unanswered", server.port));
    assert!(ask(&connector, &url, "hello").await.unwrap_err().is_io());
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_server_without_a_valid_certificate_gets_no_request() {
    let (server, issuer) = Server::encrypted("localhost").await;
    let url = format!("https://localhost:{}/body", server.port);
    let trusting = Connector::new(Tls::trusting(issuer.as_bytes()).unwrap(), Duration::from_secs(5));
    assert_eq!(answer(&trusting, &url).await, ok("hello"));
    assert_eq!(answer(&trusting, &url).await, ok("hello"));
    assert_eq!(server.connections(), 1);
    let error = ask(&trusting, &format!("https://127.0.0.1:{}/body", server.port), "").await.unwrap_err();
    assert!(error.is_io(), "another name: {error:?}");
    let error = ask(&connector(), &url, "").await.unwrap_err();
    assert!(error.is_io(), "another issuer: {error:?}");
}

/// Returns a client that trusts `first` and falls back to `then`, and a counter of how often `then`
/// was loaded.
fn falling_back(first: &str, then: String) -> (Tls, Arc<AtomicUsize>) {
    let loaded = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&loaded);
    let load = move || {
        count.fetch_add(1, Ordering::Relaxed);
        Tls::trusting(then.as_bytes())
    };
    (Tls::trusting(first.as_bytes()).unwrap().falling_back(load), loaded)
}

#[tokio::test]
async fn an_unknown_issuer_causes_one_attempt_with_the_fallback_roots() {
    let (server, issuer) = Server::encrypted("localhost").await;
    let (stranger, other) = Server::encrypted("localhost").await;
    let url = |server: &Server| format!("https://localhost:{}/body", server.port);
    let connect = |tls: &Tls| Connector::new(tls.clone(), Duration::from_secs(5));

    // The certificate chains to the first roots, so the fallback is not loaded.
    let (tls, loaded) = falling_back(&issuer, other.clone());
    assert_eq!(answer(&connect(&tls), &url(&server)).await, ok("hello"));
    assert_eq!((server.connections(), loaded.load(Ordering::Relaxed)), (1, 0));

    // The first connection tries both sets of roots. The second connection tries the set that
    // worked.
    let (tls, loaded) = falling_back(&other, issuer.clone());
    assert_eq!(answer(&connect(&tls), &url(&server)).await, ok("hello"));
    assert_eq!((server.connections(), loaded.load(Ordering::Relaxed)), (3, 1));
    assert_eq!(answer(&connect(&tls), &url(&server)).await, ok("hello"));
    assert_eq!((server.connections(), loaded.load(Ordering::Relaxed)), (4, 1));

    // A wrong host name is not an unknown issuer, so the fallback is not loaded.
    let (tls, loaded) = falling_back(&issuer, other.clone());
    let error = ask(&connect(&tls), &format!("https://127.0.0.1:{}/body", server.port), "").await.unwrap_err();
    assert!(error.is_io() && loaded.load(Ordering::Relaxed) == 0, "{error:?}");

    // An issuer that is in neither set is refused at every attempt. The fallback is loaded once.
    let (tls, loaded) = falling_back(&issuer, issuer.clone());
    for _ in 0..2 {
        assert!(ask(&connect(&tls), &url(&stranger), "").await.unwrap_err().is_io());
    }
    assert_eq!((stranger.requests(), loaded.load(Ordering::Relaxed)), (0, 1));

    // If the fallback cannot be loaded, the certificate is still refused.
    let (tls, _) = falling_back(&other, "no PEM".to_owned());
    assert!(ask(&connect(&tls), &url(&server), "").await.unwrap_err().is_io());
}

#[tokio::test]
async fn an_attempt_to_connect_ends_after_its_time_limit() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connector = Connector::new(aws::tls().unwrap(), Duration::from_millis(100));
    let (started, url) = (Instant::now(), format!("https://localhost:{}/", silent.local_addr().unwrap().port()));
    let error = ask(&connector, &url, "").await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(5));
    drop(silent);
    assert!(ask(&connector, &url, "").await.unwrap_err().is_io(), "no server listens");
}

#[test]
fn a_set_of_roots_must_contain_at_least_one_certificate_and_nothing_else() {
    for bad in ["", "no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        assert!(matches!(Tls::trusting(bad.as_bytes()), Err(SetupError::Roots)), "{bad:?}");
    }
}
