//! Restricts `/_local` to programs and pages of this machine.
//!
//! Any web site can let its name resolve to 127.0.0.1, so that its pages can read responses of this
//! program (DNS rebinding). The browser then sends the site's name as `Host`. A page can also send
//! a simple POST to 127.0.0.1 without reading the response. The browser then sends the page's
//! `Origin`.

use std::net::IpAddr;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{HOST, ORIGIN};
use http::uri::Authority;

use super::answer::Problem;

/// Forwards a request if it names a loopback host and is not from a page of another host. Refuses
/// any other request with 403.
pub(crate) async fn loopback_only(request: Request, next: Next) -> Response {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next().filter(|_| hosts.next().is_none()).and_then(|host| host.to_str().ok());
    let target = request.uri().authority().map(Authority::as_str);
    let is_local_page =
        request.headers().get_all(ORIGIN).iter().all(|origin| origin.to_str().is_ok_and(is_local_origin));
    if host.is_some_and(is_loopback) && target.is_none_or(is_loopback) && is_local_page {
        next.run(request).await
    } else {
        let detail =
            "/_local accepts only requests to localhost, 127.0.0.1 or [::1], and only from pages of these hosts";
        Problem::forbidden(detail).into_response()
    }
}

/// Returns whether an origin, such as `http://localhost:3000`, is on this machine.
fn is_local_origin(origin: &str) -> bool {
    origin.split_once("://").is_some_and(|(_, host)| is_loopback(host))
}

/// Returns whether a host, with or without a port, names this machine without the help of a name
/// server.
pub(super) fn is_loopback(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    // The text `user@127.0.0.1` is not a host.
    if host.contains('@') {
        return false;
    }
    let name = authority.host();
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_machine_are_answered() {
        for origin in ["http://localhost:3000", "http://127.0.0.1:5173", "https://[::1]"] {
            assert!(is_local_origin(origin), "{origin}");
        }
        for origin in ["", "null", "localhost", "https://evil.example", "http://localhost.evil.example:3000"] {
            assert!(!is_local_origin(origin), "{origin}");
        }
    }

    #[test]
    fn only_loopback_hosts_count_as_this_machine() {
        for host in ["localhost", "LocalHost:3000", "127.0.0.1", "127.0.0.1:3000", "127.1.2.3", "[::1]", "[::1]:3000"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            ":3000",
            "evil.example",
            "evil.example:3000",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost@evil.example",
            "evil.example@127.0.0.1",
            "192.168.0.1:3000",
            "0.0.0.0:3000",
            "[::]:3000",
            "host.docker.internal:3000",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
