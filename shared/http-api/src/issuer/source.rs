//! Fetches the issuer's keys. The discovery document (OpenID Connect Discovery 1.0, section 4) has
//! their URL.
//!
//! The module makes two calls: one for the document, and one for the keys. Each call is attempted
//! once, with a time limit and a size limit. It follows no redirect. It opens a new connection,
//! because a connection that is kept open would be unused for an hour.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use aws::{Call, Failure, Limits, Method, Service};
use lambda_http::http::Uri;
use lambda_http::http::uri::Scheme;

use super::IssuerError;
use super::keys::Key;
use crate::json::Value;

/// The time limit of both calls together. It is shorter than a function's timeout.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The size limit of a response: enough for dozens of keys.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// The path of the discovery document below the issuer's URL.
const DISCOVERY: &str = "/.well-known/openid-configuration";

#[derive(Debug)]
pub(super) struct Source {
    issuer: String,
    discovery: Uri,
}

/// A reason why the issuer's keys are unavailable.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("the issuer of tokens did not answer in time")]
    Timeout,
    #[error("the issuer of tokens gave no usable response: {0}")]
    Call(Failure),
    #[error("no TLS client can be built for the issuer of tokens")]
    Trust(#[from] aws::SetupError),
    #[error("the issuer of tokens answered with status {0}")]
    Status(u16),
    #[error("the issuer of tokens answered with no {0}")]
    Document(&'static str),
    #[error("the issuer of tokens failed recently, so no request is sent for a few seconds")]
    Resting,
}

impl Source {
    pub(super) fn new(issuer: &str, endpoint: &str) -> Result<Self, IssuerError> {
        let bad = || IssuerError::Url(endpoint.to_owned());
        let discovery: Uri = format!("{}{DISCOVERY}", endpoint.trim_end_matches('/')).parse().map_err(|_| bad())?;
        if is_encrypted(&discovery) || is_on_this_machine(&discovery) {
            Ok(Self { issuer: issuer.to_owned(), discovery })
        } else {
            Err(bad())
        }
    }

    pub(super) async fn keys(&self) -> Result<Vec<Arc<Key>>, FetchError> {
        tokio::time::timeout(TIMEOUT, self.fetch()).await.unwrap_or(Err(FetchError::Timeout))
    }

    async fn fetch(&self) -> Result<Vec<Arc<Key>>, FetchError> {
        let document = get(&self.discovery).await?;
        let place = self.keys_url(&document).ok_or(FetchError::Document("valid discovery document"))?;
        Key::read_set(&get(&place).await?).ok_or(FetchError::Document("set of keys"))
    }

    /// Returns the URL of the keys from a discovery document. Returns `None` if the document
    /// belongs to another issuer, or if the URL is less secure than that of the document.
    fn keys_url(&self, document: &str) -> Option<Uri> {
        let mut members = Value::parse(document).ok()?.into_members();
        let mut text = |name: &str| members.remove(name).and_then(Value::into_text);
        if text("issuer")? != self.issuer {
            return None;
        }
        let place: Uri = text("jwks_uri")?.parse().ok()?;
        // If the document was fetched over TLS, the keys must be too. Otherwise an attacker on the
        // network could replace them.
        let as_safe = is_encrypted(&place) || (!is_encrypted(&self.discovery) && is_on_this_machine(&place));
        as_safe.then_some(place)
    }
}

async fn get(place: &Uri) -> Result<String, FetchError> {
    let (scheme, authority) = (place.scheme_str().unwrap_or_default(), place.authority());
    let base = format!("{scheme}://{}", authority.map_or("", |authority| authority.as_str()));
    let path = place.path_and_query().map_or("/", |path| path.as_str());
    // The host decides which root certificates are trusted: Cognito's endpoints belong to AWS,
    // other issuers' hosts do not.
    let connector = aws::connector_to(place.host().unwrap_or_default(), is_encrypted(place))?;
    let service = Service::new(connector, &base, None).with_limits(Limits::once(TIMEOUT));
    let headers = [("accept", "application/json")];
    let call = Call { headers: &headers, max_response: MAX_ANSWER_BYTES, ..Call::new(Method::GET, path) };
    let response = service.call(&call, |_| false).await.map_err(|error| FetchError::Call(error.failure))?;
    match response.status {
        200 => String::from_utf8(response.body.into()).map_err(|_| FetchError::Document("text")),
        status => Err(FetchError::Status(status)),
    }
}

fn is_encrypted(place: &Uri) -> bool {
    place.scheme() == Some(&Scheme::HTTPS)
}

fn is_on_this_machine(place: &Uri) -> bool {
    let host = place.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    place.scheme() == Some(&Scheme::HTTP) && (host == "localhost" || address.is_ok_and(|address| address.is_loopback()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_issuer_must_use_https_or_run_on_this_machine() {
        for (endpoint, asked) in [
            ("https://issuer.example", "https://issuer.example/.well-known/openid-configuration"),
            ("https://issuer.example/", "https://issuer.example/.well-known/openid-configuration"),
            (
                "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_A1",
                "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_A1/.well-known/openid-configuration",
            ),
            (
                "http://127.0.0.1:3000/_local/issuer",
                "http://127.0.0.1:3000/_local/issuer/.well-known/openid-configuration",
            ),
            ("http://localhost:1", "http://localhost:1/.well-known/openid-configuration"),
            ("http://[::1]:1", "http://[::1]:1/.well-known/openid-configuration"),
        ] {
            assert_eq!(Source::new(endpoint, endpoint).unwrap().discovery, asked);
        }
        for endpoint in [
            "",
            "urn:bodega:local",
            "issuer.example",
            "http://issuer.example",
            "http://127.0.0.1.example",
            "http://10.0.0.1",
            "http://localhost@issuer.example",
            "ftp://127.0.0.1",
            "https://",
        ] {
            assert!(matches!(Source::new(endpoint, endpoint), Err(IssuerError::Url(_))), "{endpoint}");
        }
    }

    #[test]
    fn the_url_of_the_keys_must_be_as_secure_as_that_of_the_document() {
        let place = |endpoint: &str, issuer: &str, jwks_uri: &str| {
            let source = Source::new("https://issuer", endpoint).unwrap();
            let place = source.keys_url(&format!(r#"{{"issuer":"{issuer}","jwks_uri":"{jwks_uri}","x":1}}"#));
            place.map(|place| place.to_string())
        };
        let (safe, near) = ("https://keys.example/k", "http://127.0.0.1:9/k");
        assert_eq!(place("https://issuer", "https://issuer", safe).as_deref(), Some(safe));
        assert_eq!(place("http://127.0.0.1:1", "https://issuer", near).as_deref(), Some(near));
        assert_eq!(place("http://127.0.0.1:1", "https://issuer", safe).as_deref(), Some(safe));
        assert_eq!(place("https://issuer", "https://issuer", near), None);
        assert_eq!(place("http://127.0.0.1:1", "https://issuer", "http://keys.example/k"), None);
        assert_eq!(place("https://issuer", "https://other", safe), None);
        assert_eq!(place("https://issuer", "https://issuer/", safe), None);
        assert_eq!(place("https://issuer", "https://issuer", "keys"), None);
        let source = Source::new("https://issuer", "https://issuer").unwrap();
        for document in ["", "[]", "{}", r#"{"issuer":"https://issuer"}"#, r#"{"jwks_uri":"https://keys.example"}"#] {
            assert_eq!(source.keys_url(document), None, "{document}");
        }
    }
}
