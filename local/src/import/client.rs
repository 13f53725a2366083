//! The shop's public API, as the import calls it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName};
use reqwest::{Method, StatusCode};
use serde_json::Value;

/// How many times a call is made before its failure counts.
const ATTEMPTS: u32 = 6;
/// How long one call may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A client with a staff token.
#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: String,
    run: String,
    retried: AtomicU64,
}

/// An answer of the shop.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The stable code of a problem.
    pub code: Option<String>,
    /// The body; null where it is not JSON.
    pub body: Value,
}

impl Client {
    /// For the system at this address. `run` tells one run of the import from another.
    pub fn new(base: String, token: String, run: String) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder().timeout(TIMEOUT).build()?;
        Ok(Self { http, base, token, run, retried: AtomicU64::new(0) })
    }

    /// Whether anything answers there.
    pub async fn is_up(&self) -> bool {
        self.http.get(format!("{}/health", self.base)).send().await.is_ok()
    }

    /// Lets a busy table breathe before something is sent again, and counts that.
    pub async fn pause(&self) {
        self.retried.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    /// How many calls were made again.
    pub fn retried(&self) -> u64 {
        self.retried.load(Ordering::Relaxed)
    }

    /// A POST, made again after a failure that may pass. Every call of the import can be repeated: orders carry a key, and everything else says that it
    /// is there already.
    ///
    /// # Errors
    /// What the last attempt failed with.
    pub async fn post(
        &self,
        path: &str,
        content_type: &str,
        body: String,
        key: Option<&str>,
    ) -> Result<Answer, String> {
        let mut wait = Duration::from_millis(100);
        let mut last = String::new();
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                self.retried.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(wait).await;
                wait *= 2;
            }
            let mut request = self
                .http
                .request(Method::POST, format!("{}{path}", self.base))
                .header(CONTENT_TYPE, content_type)
                .header(AUTHORIZATION, format!("Bearer {}", self.token))
                .body(body.clone());
            if let Some(key) = key {
                request =
                    request.header(HeaderName::from_static("idempotency-key"), format!("import-{}-{key}", self.run));
            }
            match request.send().await {
                Ok(answer) => {
                    let status = answer.status();
                    let text = answer.text().await.unwrap_or_default();
                    let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
                    let code = body.get("code").and_then(Value::as_str).map(str::to_owned);
                    if !status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS {
                        return Ok(Answer { status, code, body });
                    }
                    last = format!("{status} {}", code.unwrap_or_default());
                }
                Err(error) => last = error.to_string(),
            }
        }
        Err(last)
    }
}
