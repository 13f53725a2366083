use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use local::System;
use reqwest::redirect::Policy;
use serde_json::Value as Json;

/// The maximum number of repetitions after a 503.
const RETRIES: u32 = 20;

static HTTP: LazyLock<reqwest::Client> =
    LazyLock::new(|| reqwest::Client::builder().redirect(Policy::none()).build().unwrap());

/// Returns the HTTP client that all tests share. It follows no redirection.
pub fn http() -> &'static reqwest::Client {
    &HTTP
}

#[derive(Debug, Clone)]
pub struct Call {
    method: String,
    path: String,
    caller: Caller,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

#[derive(Debug, Clone)]
enum Caller {
    Anonymous,
    Customer(String),
    CustomerWithEmail(String, String),
    Staff(String),
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    /// The headers by name, in lower case. A header that comes more than once has its last value.
    pub headers: BTreeMap<String, String>,
    /// The body as JSON. Null if there is no body or if it is not JSON.
    pub body: Json,
    pub raw: Vec<u8>,
}

impl Call {
    /// Makes a request without a token. `path` must be percent-encoded and include the query.
    pub fn new(method: &str, path: &str) -> Self {
        Self { method: method.into(), path: path.into(), caller: Caller::Anonymous, headers: Vec::new(), body: None }
    }

    pub fn customer(mut self, id: &str) -> Self {
        self.caller = Caller::Customer(id.to_owned());
        self
    }

    /// Adds the token of a customer with a verified email address.
    pub fn customer_with_email(mut self, id: &str, email: &str) -> Self {
        self.caller = Caller::CustomerWithEmail(id.to_owned(), email.to_owned());
        self
    }

    /// Adds a staff token. Its user id is `staff`.
    pub fn staff(self) -> Self {
        self.staff_as("staff")
    }

    /// Adds the staff token of a customer.
    pub fn staff_as(mut self, id: &str) -> Self {
        self.caller = Caller::Staff(id.to_owned());
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn json(self, body: &Json) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sends the request like a client that retries after a 503, at most [`RETRIES`] times. A
    /// loaded machine can answer 503 to any request. The request needs an idempotency key or a
    /// precondition, so that a repetition does not take effect twice.
    pub async fn settled(self, system: &System) -> Answer {
        for retry in 1..=RETRIES {
            let answer = self.clone().send(system).await;
            if answer.status != 503 {
                return answer;
            }
            tokio::time::sleep(retry * Duration::from_millis(50)).await;
        }
        self.send(system).await
    }

    pub async fn send(self, system: &System) -> Answer {
        let url = format!("{}{}", system.url(), self.path);
        let mut request = http().request(self.method.parse().unwrap(), url);
        request = match &self.caller {
            Caller::Anonymous => request,
            Caller::Customer(id) => request.bearer_auth(system.token(id, &[])),
            Caller::CustomerWithEmail(id, email) => request.bearer_auth(system.token_with_email(id, email)),
            Caller::Staff(id) => request.bearer_auth(system.token(id, &["staff".to_owned()])),
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
    /// Returns the response if it has this status, and panics otherwise.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.raw));
        self
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the `code` of a problem, or an empty text for any other response.
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    pub fn pointers(&self) -> Vec<&str> {
        let errors = self.body.get("errors").and_then(Json::as_array);
        errors.into_iter().flatten().filter_map(|error| error["pointer"].as_str()).collect()
    }
}
