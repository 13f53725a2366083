//! A proxy in front of a search engine, for one function. Calls to a local engine are not signed,
//! so the port of the proxy identifies the calling function.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::http::uri::{Authority, Scheme};
use hyper::http::{HeaderValue, request::Parts};
use hyper::{Request, StatusCode, Uri, header};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde_json::json;

use crate::access::{Access, Denied, Need};
use crate::endpoint::{Answer, BrokenOff, Endpoint, HangUp, Service, plain};
use crate::faults::{FaultKind, Faults};

/// Maximum size of a response. It is OpenSearch's maximum size of a request.
const MAX_ANSWER: usize = 100 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// A port to a search engine for one function. It refuses calls for which the function lacks the
/// permission. Dropping the value closes the port.
pub struct SearchGate(Endpoint);

impl SearchGate {
    /// Opens a loopback port in front of the engine at `upstream`, in the form `http://host:port`.
    /// `arn` is the ARN by which permissions name the engine.
    pub async fn start(upstream: &str, arn: &str, function: &str, access: Arc<Access>) -> io::Result<Self> {
        let uri: Uri = upstream.parse().map_err(io::Error::other)?;
        let (Some("http"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(io::Error::other(format!("{upstream} is no http address")));
        };
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(60))
            .build(connector);
        let (authority, arn, function) = (authority.clone(), arn.to_owned(), function.to_owned());
        // The engine injects the faults, so the gate has none.
        let endpoint = Endpoint::start(Arc::new(Gate { client, authority, arn, function }), Faults::default()).await?;
        endpoint.enforce(access);
        Ok(Self(endpoint))
    }

    /// Returns the endpoint for the function: `http://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> &str {
        self.0.url()
    }
}

struct Gate {
    client: Client<HttpConnector, Full<Bytes>>,
    authority: Authority,
    arn: String,
    function: String,
}

impl Service for Gate {
    async fn answer(&self, request: Request<Bytes>) -> Answer {
        let (head, body) = request.into_parts();
        match tokio::time::timeout(PATIENCE, self.passed_on(head, body)).await {
            Ok(Some(answer)) => answer,
            // The engine closed its connection or did not respond in time. The gate then closes the
            // function's connection.
            _ => {
                let mut answer = plain(StatusCode::BAD_GATEWAY);
                answer.extensions_mut().insert(HangUp);
                answer
            }
        }
    }

    fn refusal(&self, _: FaultKind, _: &Request<Bytes>) -> Option<Answer> {
        None
    }

    fn caller<'r>(&'r self, _: &'r Request<Bytes>) -> Option<Cow<'r, str>> {
        Some(Cow::Borrowed(&self.function))
    }

    fn needs(&self, request: &Request<Bytes>, _: &Access) -> Vec<Need> {
        let mut method = request.method().as_str().to_ascii_lowercase();
        if let Some(first) = method.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        vec![Need::new(format!("es:ESHttp{method}"), format!("{}{}", self.arn, request.uri().path()))]
    }

    fn forbidden(&self, denied: &Denied) -> Answer {
        let mut answer = plain(StatusCode::FORBIDDEN);
        answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *answer.body_mut() = Bytes::from(json!({"Message": denied.to_string()}).to_string()).into();
        answer
    }
}

impl Gate {
    /// Forwards a request. Returns `None` if the engine closes the connection without a response.
    async fn passed_on(&self, mut head: Parts, body: Bytes) -> Option<Answer> {
        let mut uri = head.uri.into_parts();
        uri.scheme = Some(Scheme::HTTP);
        uri.authority = Some(self.authority.clone());
        head.uri = Uri::from_parts(uri).ok()?;
        // These headers describe the original connection and body, so they are not forwarded.
        for name in [header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::HOST] {
            head.headers.remove(name);
        }
        let request = Request::from_parts(head, Full::new(body));
        let (mut head, body) = self.client.request(request).await.ok()?.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await;
        for name in [header::CONNECTION, header::TRANSFER_ENCODING] {
            head.headers.remove(name);
        }
        let body = body.map(|body| body.to_bytes()).unwrap_or_else(|_| {
            head.extensions.insert(BrokenOff);
            Bytes::new()
        });
        Some(Answer::from_parts(head, Full::new(body)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use serde_json::Value;

    use super::super::{Fault, SearchServer};
    use super::*;
    use crate::access::Rule;

    #[tokio::test]
    async fn an_allowed_call_reaches_the_engine_and_a_refused_call_does_not() {
        let engine = SearchServer::start(None).await.unwrap();
        let allowed = |action: &str, resource: &str| Rule {
            sid: None,
            allow: true,
            action: action.to_owned(),
            resource: resource.to_owned(),
        };
        let rules = vec![allowed("es:ESHttpGet", "arn:x/_cluster/*"), allowed("es:ESHttpPut", "arn:x/shop-*")];
        let access = Arc::new(Access::new("r", "a", [("F".to_owned(), rules)]));
        let gate = SearchGate::start(engine.url(), "arn:x", "F", Arc::clone(&access)).await.unwrap();
        let http = reqwest::Client::new();
        let get = |path: &str| http.get(format!("{}{path}", gate.url())).send();

        let health: Value = get("/_cluster/health?pretty").await.unwrap().json().await.unwrap();
        assert_eq!(health["status"], "green");
        let made = http.put(format!("{}/shop-v1", gate.url())).json(&json!({})).send().await.unwrap();
        assert_eq!(
            (made.status(), made.json::<Value>().await.unwrap()["index"].clone()),
            (StatusCode::OK, json!("shop-v1"))
        );
        let refused = get("/shop-v1").await.unwrap();
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
        let body: Value = refused.json().await.unwrap();
        assert!(body["Message"].as_str().unwrap().contains("es:ESHttpGet on resource: arn:x/shop-v1 "), "{body}");
        let report = access.report().remove(0);
        assert_eq!(report.grants.iter().map(|grant| grant.used).collect::<Vec<_>>(), [1, 1]);

        // The engine closes the connection, and then the gate must do so, too.
        engine.faults().add(Fault { kind: FaultKind::Reset, rate: 1.0, count: Some(1), seed: 0 }).unwrap();
        assert!(get("/_cluster/health").await.is_err());
        assert!(SearchGate::start("https://x", "arn:x", "F", access).await.is_err());
    }
}
