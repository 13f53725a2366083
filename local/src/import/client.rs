use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, LOCATION};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;
use tokio::sync::Notify;

const ATTEMPTS: u32 = 6;
/// Error code that a call gets while another request is placing the same order. Placing an order
/// of many lines takes several transactions.
const IN_PROGRESS: &str = "idempotency_in_progress";
const PAUSE: Duration = Duration::from_secs(5);
/// Maximum number of these pauses for one call. Together they last 150 s. If the other request has
/// crashed, the janitor undoes the order. The janitor runs every minute, and skips orders younger
/// than a minute.
const PAUSES: u32 = 30;
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: String,
    run: String,
    retried: AtomicU64,
    unauthorized: Notify,
    gone: Notify,
}

#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub code: Option<String>,
    /// The body. Null if it is not JSON.
    pub body: Value,
    /// The path of the resource that was created, or that exists already.
    pub location: Option<String>,
}

impl Answer {
    /// Returns whether another request is still processing the same order.
    fn is_in_progress(&self) -> bool {
        self.status == StatusCode::CONFLICT && self.code.as_deref() == Some(IN_PROGRESS)
    }

    /// Returns whether the system is overloaded or has a temporary failure.
    fn is_busy(&self) -> bool {
        self.status.is_server_error() || self.status == StatusCode::TOO_MANY_REQUESTS
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.status, self.code.as_deref().unwrap_or_default())
    }
}

impl Client {
    /// Creates a client for the system at this address. `run` is the id of this run of the import.
    pub fn new(base: String, token: String, run: String) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder().timeout(TIMEOUT).build()?;
        Ok(Self {
            http,
            base,
            token,
            run,
            retried: AtomicU64::new(0),
            unauthorized: Notify::new(),
            gone: Notify::new(),
        })
    }

    pub async fn is_up(&self) -> bool {
        self.http.get(format!("{}/health", self.base)).send().await.is_ok()
    }

    /// Waits before a retry, so that a busy table can recover. Counts the retry.
    pub async fn pause(&self) {
        self.retried.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    pub fn retried(&self) -> u64 {
        self.retried.load(Ordering::Relaxed)
    }

    /// Waits until the system has rejected the token. Then no later call can succeed.
    pub async fn unauthorized(&self) {
        self.unauthorized.notified().await;
    }

    /// Waits until the system no longer accepts connections. Then no later call can succeed.
    pub async fn gone(&self) {
        self.gone.notified().await;
    }

    /// Sends a POST request, and retries temporary failures.
    ///
    /// All calls of the import are safe to repeat. Orders have an idempotency key, and for other
    /// resources the API reports that they already exist. If the system rejects the token, or accepts
    /// no connections any more, this call never returns. [`Self::unauthorized`] or [`Self::gone`] then
    /// returns.
    pub async fn post(
        &self,
        path: &str,
        content_type: &str,
        body: String,
        key: Option<&str>,
    ) -> Result<Answer, String> {
        self.authorized(|| self.send(path, content_type, &body, key)).await
    }

    /// Sends a request with these headers and this JSON document, and retries temporary failures like
    /// [`Self::post`].
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Option<&Value>,
    ) -> Result<Answer, String> {
        self.authorized(|| {
            let mut request = self.request(method.clone(), path);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            if let Some(body) = body {
                request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
            }
            self.answer(request)
        })
        .await
    }

    /// Uploads a file to a signed URL, and retries temporary failures.
    pub async fn upload(&self, url: &str, content_type: &str, file: &'static [u8]) -> Result<Answer, String> {
        self.persist(|| self.answer(self.http.put(url).header(CONTENT_TYPE, content_type).body(file))).await
    }

    /// Sends a GET request, and retries temporary failures like [`Self::post`].
    pub async fn get(&self, path: &str) -> Result<Answer, String> {
        self.authorized(|| self.answer(self.request(Method::GET, path))).await
    }

    async fn authorized(&self, send: impl AsyncFn() -> Result<Answer, String>) -> Result<Answer, String> {
        match self.persist(send).await {
            Ok(Answer { status: StatusCode::UNAUTHORIZED, .. }) => {
                self.unauthorized.notify_one();
                std::future::pending().await
            }
            Err(_) if !self.is_up().await => {
                self.gone.notify_one();
                std::future::pending().await
            }
            other => other,
        }
    }

    /// Gives up after the maximum number of attempts or pauses.
    async fn persist(&self, send: impl AsyncFn() -> Result<Answer, String>) -> Result<Answer, String> {
        let (mut attempts, mut wait, mut pauses) = (1, Duration::from_millis(100), 0);
        loop {
            let error = match send().await {
                Ok(answer) if answer.is_in_progress() => {
                    if pauses == PAUSES {
                        return Err(answer.to_string());
                    }
                    pauses += 1;
                    self.retried.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                Ok(answer) if !answer.is_busy() => return Ok(answer),
                Ok(answer) => answer.to_string(),
                Err(error) => error,
            };
            if attempts == ATTEMPTS {
                return Err(error);
            }
            attempts += 1;
            self.retried.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
    }

    async fn send(&self, path: &str, content_type: &str, body: &str, key: Option<&str>) -> Result<Answer, String> {
        let mut request = self.request(Method::POST, path).header(CONTENT_TYPE, content_type).body(body.to_owned());
        if let Some(key) = key {
            request = request.header(HeaderName::from_static("idempotency-key"), format!("import-{}-{key}", self.run));
        }
        self.answer(request).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        request.header(AUTHORIZATION, format!("Bearer {}", self.token))
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Answer, String> {
        let answer = request.send().await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let location = answer.headers().get(LOCATION).and_then(|path| path.to_str().ok()).map(str::to_owned);
        let text = answer.text().await.unwrap_or_default();
        let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        let code = body.get("code").and_then(Value::as_str).map(str::to_owned);
        Ok(Answer { status, code, body, location })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::VecDeque;
    use std::sync::Mutex;

    use tokio::time::Instant;

    use super::*;

    fn answer(status: u16, code: &str) -> Result<Answer, String> {
        let status = StatusCode::from_u16(status).unwrap();
        Ok(Answer { status, code: Some(code.to_owned()), body: Value::Null, location: None })
    }

    /// Returns the result of a call that gets these responses, its duration in seconds and the
    /// number of retries.
    async fn outcome(answers: impl IntoIterator<Item = Result<Answer, String>>) -> (Result<String, String>, u64, u64) {
        let answers: Mutex<VecDeque<_>> = Mutex::new(answers.into_iter().collect());
        let client = Client::new(String::new(), String::new(), String::new()).unwrap();
        let begun = Instant::now();
        let outcome = client.persist(async || answers.lock().unwrap().pop_front().unwrap()).await;
        assert!(answers.lock().unwrap().is_empty(), "the client has not read every response");
        (outcome.map(|answer| answer.to_string()), begun.elapsed().as_secs(), client.retried())
    }

    #[tokio::test(start_paused = true)]
    async fn while_another_request_places_the_order_a_call_is_retried_until_the_janitor_has_run() {
        let in_progress = || answer(409, IN_PROGRESS);
        let waited = (0..30).map(|_| in_progress()).chain([answer(201, "")]);
        assert_eq!(outcome(waited).await, (Ok("201 Created ".to_owned()), 150, 30));
        let for_ever = (0..31).map(|_| in_progress());
        assert_eq!(outcome(for_ever).await, (Err("409 Conflict idempotency_in_progress".to_owned()), 150, 30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_for_another_request_does_not_count_as_an_attempt() {
        let mixed = [answer(409, IN_PROGRESS), Err("reset".to_owned())].into_iter();
        let mixed = mixed.chain((0..4).map(|_| answer(503, "throttled"))).chain([answer(201, "")]);
        assert_eq!(outcome(mixed).await, (Ok("201 Created ".to_owned()), 8, 6));
        let busy = (0..6).map(|_| answer(429, "throttled"));
        assert_eq!(outcome(busy).await, (Err("429 Too Many Requests throttled".to_owned()), 3, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_not_retried() {
        let refused = outcome([answer(409, "insufficient_stock")]).await;
        assert_eq!(refused, (Ok("409 Conflict insufficient_stock".to_owned()), 0, 0));
    }

    /// The calls that run at the same time must not report the same failure once for each row.
    #[tokio::test]
    async fn a_system_that_has_stopped_ends_the_import_instead_of_every_call() {
        // No other test gets this port, so nobody listens there.
        let client = Client::new("http://127.0.0.1:1".to_owned(), String::new(), String::new()).unwrap();
        let calls = futures::future::join(client.get("/v1/products/a"), client.get("/v1/products/b"));
        let is_gone = tokio::select! {
            _ = calls => false,
            () = client.gone() => true,
        };
        assert!(is_gone);
    }
}
