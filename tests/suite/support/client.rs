//! A client of the system's HTTP API.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use local::System;
use serde_json::Value as Json;

static HTTP: LazyLock<reqwest::Client> = LazyLock::new(reqwest::Client::new);

/// The client that all tests share.
pub fn http() -> &'static reqwest::Client {
    &HTTP
}

/// A request in the making.
#[derive(Debug, Clone)]
pub struct Call {
    method: String,
    path: String,
    caller: Caller,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

/// Whose token a request carries.
#[derive(Debug, Clone)]
enum Caller {
    Anonymous,
    Customer(String),
    Staff,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// By name in lower case; of a header that comes more than once the last.
    pub headers: BTreeMap<String, String>,
    /// The body; null if there is none, or none that is JSON.
    pub body: Json,
    /// The body as it came.
    pub raw: Vec<u8>,
}

impl Call {
    /// A request without a token; the path as it stands in the URL, with its query.
    pub fn new(method: &str, path: &str) -> Self {
        Self { method: method.into(), path: path.into(), caller: Caller::Anonymous, headers: Vec::new(), body: None }
    }

    /// With a customer's token.
    pub fn customer(mut self, id: &str) -> Self {
        self.caller = Caller::Customer(id.to_owned());
        self
    }

    /// With a token of a member of staff, whose id is `staff`.
    pub fn staff(mut self) -> Self {
        self.caller = Caller::Staff;
        self
    }

    /// With a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a JSON body.
    pub fn json(self, body: &Json) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }

    /// With a body as it stands.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sends it.
    pub async fn send(self, system: &System) -> Answer {
        let url = format!("{}{}", system.url(), self.path);
        let mut request = http().request(self.method.parse().unwrap(), url);
        request = match &self.caller {
            Caller::Anonymous => request,
            Caller::Customer(id) => request.bearer_auth(system.token(id, &[])),
            Caller::Staff => request.bearer_auth(system.token("staff", &["staff".to_owned()])),
        };
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(body) = self.body {
            request = request.body(body);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = |value: &reqwest::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = answer.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        let raw = answer.bytes().await.unwrap().to_vec();
        let body = serde_json::from_slice(&raw).unwrap_or_default();
        Answer { status, headers, body, raw }
    }
}

impl Answer {
    /// The answer itself, if it has this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.raw));
        self
    }

    /// Whether it was done.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The stable code of a problem; empty for anything else.
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    /// The pointers of a problem's errors.
    pub fn pointers(&self) -> Vec<&str> {
        let errors = self.body.get("errors").and_then(Json::as_array);
        errors.into_iter().flatten().filter_map(|error| error["pointer"].as_str()).collect()
    }
}
