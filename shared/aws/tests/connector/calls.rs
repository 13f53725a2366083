//! Tests of calls: attempts, limits, and the error of each kind of failure.

use std::time::{Duration, Instant};

use aws::{Call, CallError, Failure, Limits, Method, NoConnection, Response, Service, Tls};
use tokio::net::TcpListener;

use super::{connector, server::Server};

const LIMITS: Limits =
    Limits { attempt: Duration::from_secs(5), total: Duration::from_secs(10), attempts: 4, backoff: Duration::ZERO };

fn service(port: u16, limits: Limits) -> Service {
    Service::new(connector(), &format!("http://127.0.0.1:{port}"), None).with_limits(limits)
}

async fn call(service: &Service, path: &str) -> Result<Response, CallError> {
    service.call(&Call::new(Method::POST, path), |response| response.status == 503).await
}

fn failed(failure: Failure, attempts: u32) -> CallError {
    CallError { failure, attempts }
}

#[tokio::test]
async fn a_transient_response_is_followed_by_another_attempt() {
    let server = Server::plain().await;
    let response = call(&service(server.port, LIMITS), "/third-time").await.unwrap();
    assert_eq!((response.status, response.attempts, server.requests()), (200, 3, 3));
}

#[tokio::test]
async fn only_responses_that_the_caller_considers_transient_are_retried_and_the_last_response_is_returned() {
    let server = Server::plain().await;
    let service = service(server.port, LIMITS);
    let response = call(&service, "/always-busy").await.unwrap();
    assert_eq!((response.status, response.attempts, &response.body[..]), (503, 4, &b"later"[..]));
    let response = service.call(&Call::new(Method::POST, "/always-busy"), |_| false).await.unwrap();
    assert_eq!((response.status, response.attempts, server.requests()), (503, 1, 5));
}

#[tokio::test]
async fn a_call_arrives_with_its_path_headers_and_body() {
    let server = Server::plain().await;
    let service = service(server.port, LIMITS);
    let headers = [("content-type", "text/plain"), ("x-amz-target", "A.B")];
    let body = "hello".into();
    let echoed = Call { headers: &headers, body, ..Call::new(Method::PUT, "/body") };
    assert_eq!(service.call(&echoed, |_| false).await.unwrap().body, "hello");
    let response = service.call(&Call { headers: &headers, ..Call::new(Method::GET, "/a%20b?c=d") }, |_| false).await;
    let head = String::from_utf8(response.unwrap().body.to_vec()).unwrap();
    assert!(head.starts_with("GET /a%20b?c=d HTTP/1.1\n"), "{head}");
    for line in ["content-type: text/plain", "x-amz-target: A.B"] {
        assert!(head.lines().any(|other| other == line), "{head}");
    }
}

#[tokio::test]
async fn without_a_connection_the_error_says_that_nothing_was_sent() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let hasty = aws::Connector::new(aws::tls().unwrap(), Duration::from_millis(50));
    let encrypted = Service::new(hasty, &format!("https://localhost:{port}"), None).with_limits(LIMITS);
    let unconnected = |cause| failed(Failure::NotConnected(cause), 4);
    assert_eq!(call(&encrypted, "/").await.unwrap_err(), unconnected(NoConnection::Timeout), "no handshake in time");
    drop(silent);
    let refused = call(&service(port, LIMITS), "/").await.unwrap_err();
    assert_eq!(refused, unconnected(NoConnection::Refused), "no listener");
    assert_eq!(refused.to_string(), "no connection: the connection was refused");

    let (server, _) = Server::encrypted("localhost").await;
    let roots = Tls::trusting(Server::encrypted("localhost").await.1.as_bytes()).unwrap();
    let wary = aws::Connector::new(roots, Duration::from_secs(5));
    let other = Service::new(wary, &format!("https://localhost:{}", server.port), None).with_limits(LIMITS);
    assert_eq!(call(&other, "/").await.unwrap_err(), unconnected(NoConnection::UnknownIssuer), "another issuer");
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn a_request_without_a_response_may_have_arrived_and_is_sent_as_often_as_the_limits_say() {
    let server = Server::plain().await;
    let once = Limits::once(Duration::from_secs(5));
    for (limits, attempts) in [(once, 1), (LIMITS, 4)] {
        for path in ["/unanswered", "/broken"] {
            let before = server.requests();
            let error = call(&service(server.port, limits), path).await.unwrap_err();
            assert_eq!(error, failed(Failure::Broken, attempts), "{path}");
            assert_eq!(server.requests() - before, usize::try_from(attempts).unwrap(), "{path}");
        }
    }
}

#[tokio::test]
async fn the_wait_for_a_response_ends_at_the_limit_of_the_attempt_or_of_the_call() {
    let server = Server::plain().await;
    let attempt = Duration::from_millis(100);
    for (limits, attempts, least) in [
        (Limits::once(attempt), 1, 100),
        (Limits { attempt, ..LIMITS }, 4, 400),
        (Limits { attempt, total: Duration::from_millis(250), ..LIMITS }, 3, 250),
    ] {
        let (started, before) = (Instant::now(), server.requests());
        let error = call(&service(server.port, limits), "/silent").await.unwrap_err();
        let (took, sent) = (started.elapsed(), server.requests() - before);
        assert_eq!((error, sent), (failed(Failure::Timeout, attempts), usize::try_from(attempts).unwrap()));
        assert!((least..least + 2_000).contains(&took.as_millis()), "{took:?}");
    }
}

#[tokio::test]
async fn a_body_may_take_longer_than_an_attempt_if_it_does_not_stall() {
    let server = Server::plain().await;
    let patient = Limits { attempt: Duration::from_secs(2), ..LIMITS };
    let response = call(&service(server.port, patient), "/slow").await.unwrap();
    assert_eq!((&response.body[..], response.attempts), (&b"aaaaa"[..], 1));
    let hasty = Limits { attempt: Duration::from_millis(50), ..LIMITS };
    assert_eq!(call(&service(server.port, hasty), "/stalls").await.unwrap_err(), failed(Failure::Timeout, 4));
    let brief = Limits { total: Duration::from_secs(1), ..patient };
    assert_eq!(call(&service(server.port, brief), "/slow").await.unwrap_err(), failed(Failure::Timeout, 1));
}

#[tokio::test]
async fn a_pause_that_would_end_after_the_deadline_is_not_begun() {
    let server = Server::plain().await;
    let limits = Limits { backoff: Duration::from_secs(3600), ..LIMITS };
    let started = Instant::now();
    let response = call(&service(server.port, limits), "/always-busy").await.unwrap();
    assert!(response.attempts <= 2 && started.elapsed() < LIMITS.total, "{response:?}");
}

#[tokio::test]
async fn a_response_is_read_up_to_the_limit_of_its_call() {
    let server = Server::plain().await;
    let service = service(server.port, LIMITS);
    let limited = async |path, max_response| {
        service.call(&Call { max_response, ..Call::new(Method::POST, path) }, |_| false).await
    };
    for path in ["/large", "/large-in-chunks"] {
        assert_eq!(limited(path, 100_000).await.unwrap().body.len(), 100_000, "{path}");
        assert_eq!(limited(path, 99_999).await.unwrap_err(), failed(Failure::TooLong(99_999), 1), "{path}");
    }
    // The long error page of a proxy must not hide the status of the response.
    let response = limited("/large-error", 99_999).await.unwrap();
    assert!(response.status == 503 && response.body.len() <= 99_999, "{}", response.body.len());
    let head = service.call(&Call { max_response: 10, ..Call::new(Method::HEAD, "/head") }, |_| false).await.unwrap();
    assert_eq!((head.header("content-length"), head.body.len()), (Some("100000"), 0));
}

#[tokio::test]
async fn a_request_that_cannot_be_built_is_not_attempted_again() {
    let server = Server::plain().await;
    let address = format!("http://127.0.0.1:{}", server.port);
    let headers = [("x-a", "b\nc")];
    for (address, call) in [
        (address.as_str(), Call { headers: &headers, ..Call::new(Method::GET, "/") }),
        (address.as_str(), Call::new(Method::GET, "/a b")),
        ("ftp://127.0.0.1", Call::new(Method::GET, "/")),
        ("", Call::new(Method::GET, "/")),
    ] {
        let service = Service::new(connector(), address, None).with_limits(LIMITS);
        let error = service.call(&call, |_| true).await.unwrap_err();
        assert!(matches!(error, CallError { failure: Failure::Invalid(_), attempts: 1 }), "{error:?}");
    }
    assert_eq!(server.requests(), 0);
}
