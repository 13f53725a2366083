use std::io;
use std::ops::Deref;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::{HeaderMap, Method, Request, StatusCode, header};
use time::OffsetDateTime;
use tokio::runtime::Handle;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};

use super::books::{Books, Cause};
use super::calls::Call;
use super::idempotency::{Keys, in_use};
use super::webhooks::{Event, Webhooks};
use super::wire::{Form, Refusal, Reply};
use super::{MAX_EVENTS, MAX_REQUEST};
use crate::access::{Access, Denied, Need};
use crate::endpoint::{Answer, Endpoint, HangUp, SILENCE, Service, plain};
use crate::faults::{FaultKind, Faults};
use crate::log::Log;

const KEY: &str = "idempotency-key";
const FORM: &str = "application/x-www-form-urlencoded";
/// The first version with `latest_charge`.
const OLDEST_VERSION: &str = "2022-11-15";

#[derive(Debug, Clone)]
pub struct Settings {
    /// The accepted API keys. If there are none, each key that begins with `sk_test_` or `rk_test_`
    /// is accepted.
    pub api_keys: Vec<String>,
    /// Seed of the ids.
    pub seed: u64,
    /// Time after which the search finds a change.
    pub search_lag: Duration,
    /// Unix time at which the clock stands still until it is advanced. `None` means the system's
    /// clock.
    pub stopped_at: Option<i64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { api_keys: Vec::new(), seed: fastrand::u64(..), search_lag: Duration::from_secs(60), stopped_at: None }
    }
}

/// An in-process payment provider that responds as Stripe does. Dropping the value ends the server.
pub struct PaymentServer {
    endpoint: Endpoint,
    pub(super) provider: Arc<Provider>,
}

/// While this value lives, POST requests stay in progress, with their idempotency keys in use.
pub struct Hold {
    _gate: OwnedRwLockWriteGuard<()>,
}

impl PaymentServer {
    /// Opens a loopback port and serves there. Needs a Tokio runtime.
    pub async fn start(settings: Settings) -> io::Result<Self> {
        let faults = Faults::default();
        let provider = Arc::new(Provider {
            books: Mutex::new(Books::new(settings.seed)),
            keys: Mutex::default(),
            events: Log::new(MAX_EVENTS),
            webhooks: Webhooks::default(),
            gate: Arc::default(),
            faults: faults.clone(),
            passed: AtomicI64::new(0),
            api_keys: Mutex::new(settings.api_keys),
            search_lag: seconds(settings.search_lag),
            stopped_at: settings.stopped_at,
            runtime: Handle::current(),
        });
        Ok(Self { endpoint: Endpoint::start(Arc::new(Api(Arc::clone(&provider))), faults).await?, provider })
    }

    /// Keeps the following POST requests in progress until the value is dropped.
    pub async fn hold(&self) -> Hold {
        Hold { _gate: Arc::clone(&self.provider.gate).write_owned().await }
    }

    /// Returns the number of idempotency keys whose requests are in progress.
    #[must_use]
    pub fn keys_in_use(&self) -> usize {
        lock(&self.provider.keys).in_use()
    }

    /// Replaces the accepted API keys.
    pub fn set_api_keys(&self, keys: Vec<String>) {
        *lock(&self.provider.api_keys) = keys;
    }
}

impl Deref for PaymentServer {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}

pub(super) struct Provider {
    books: Mutex<Books>,
    keys: Mutex<Keys>,
    pub(super) events: Log<Event>,
    pub(super) webhooks: Webhooks,
    gate: Arc<RwLock<()>>,
    faults: Faults,
    /// Seconds by which the clock was advanced.
    pub(super) passed: AtomicI64,
    api_keys: Mutex<Vec<String>>,
    search_lag: i64,
    stopped_at: Option<i64>,
    runtime: Handle,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

struct Api(Arc<Provider>);

impl Service for Api {
    /// A task of its own processes the request, because a server continues when its client has
    /// given up.
    async fn answer(&self, request: Request<Bytes>) -> Answer {
        let provider = Arc::clone(&self.0);
        let task = tokio::spawn(async move { provider.answer(&request).await });
        task.await.unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR))
    }

    /// `Error` is not among these faults, because its response is stored.
    fn refusal(&self, kind: FaultKind, request: &Request<Bytes>) -> Option<Answer> {
        let key = request.headers().get(KEY).filter(|_| request.method() == Method::POST);
        let refusal = match kind {
            FaultKind::Throttle => {
                let message = "Request rate limit exceeded.";
                let refusal = Refusal::invalid(message).code("rate_limit").retry(true);
                refusal.status(StatusCode::TOO_MANY_REQUESTS)
            }
            FaultKind::Conflict => in_use(key?.to_str().ok()?),
            _ => return None,
        };
        Some(Reply::from(Err(refusal)).answer(&self.0.request_id()))
    }

    fn needs(&self, _: &Request<Bytes>, _: &Access) -> Vec<Need> {
        Vec::new()
    }

    /// AWS's permissions do not apply to Stripe.
    fn forbidden(&self, _: &Denied) -> Answer {
        plain(StatusCode::FORBIDDEN)
    }
}

impl Provider {
    async fn answer(self: Arc<Self>, request: &Request<Bytes>) -> Answer {
        let id = self.request_id();
        if self.faults.draw(|kind| kind == FaultKind::TimeoutBefore).is_some() {
            tokio::time::sleep(SILENCE).await;
            let mut answer = plain(StatusCode::REQUEST_TIMEOUT);
            answer.extensions_mut().insert(HangUp);
            return answer;
        }
        self.reply(request, &id).await.unwrap_or_else(|refusal| Reply::from(Err(refusal))).answer(&id)
    }

    async fn reply(self: &Arc<Self>, request: &Request<Bytes>, id: &str) -> Result<Reply, Refusal> {
        self.authenticate(request.headers())?;
        check_version(request.headers())?;
        let (path, form) = (request.uri().path(), parameters(request)?);
        let call = Call::read(request.method(), path, form.clone())?;
        let mut cause = Cause { request_id: Some(id.to_owned()), key: None };
        if request.method() != Method::POST {
            return Ok(self.execute(call, cause, false));
        }
        let Some(key) = request.headers().get(KEY) else {
            let _open = self.gate.read().await;
            return Ok(self.execute(call, cause, true));
        };
        let key = key.to_str().map_err(|_| Refusal::invalid("Invalid Idempotency-Key."))?;
        if let Some(stored) = lock(&self.keys).begin(key, path, &form, self.now())? {
            return Ok(stored);
        }
        cause.key = Some(key.to_owned());
        let _open = self.gate.read().await;
        let reply = self.execute(call, cause, true);
        lock(&self.keys).finish(key, &reply);
        Ok(reply)
    }

    fn execute(self: &Arc<Self>, call: Call, cause: Cause, is_post: bool) -> Reply {
        let possible = |kind| kind == FaultKind::Error || (is_post && kind == FaultKind::ErrorAfter);
        let strike = self.faults.draw(possible).map(|strike| strike.kind);
        if strike == Some(FaultKind::Error) {
            return Reply::from(Err(Refusal::internal()));
        }
        let result = self.run(cause, |books| books.execute(call, self.search_lag));
        Reply::from(if strike.is_some() { Err(Refusal::internal()) } else { result })
    }

    /// Changes the books at the present time, and publishes the events of the change.
    pub(super) fn run<T>(self: &Arc<Self>, cause: Cause, act: impl FnOnce(&mut Books) -> T) -> T {
        let mut books = lock(&self.books);
        (books.desk.now, books.desk.cause) = (self.now(), Cause::default());
        books.expire();
        books.desk.cause = cause;
        let result = act(&mut books);
        let events = std::mem::take(&mut books.desk.outbox);
        events.iter().for_each(|event| self.events.push(event.clone()));
        if self.webhooks.lock().add(events, MAX_EVENTS) {
            let provider = Arc::clone(self);
            self.runtime.spawn(async move { provider.deliver_pending().await });
        }
        result
    }

    /// Delivers the pending events. Events that the endpoint did not accept wait for the next time.
    /// Returns the number of accepted deliveries.
    pub(super) async fn deliver_pending(&self) -> usize {
        let events = self.webhooks.lock().take();
        let mut accepted = 0;
        for event in events {
            if self.deliver(&event).await {
                accepted += 1;
                continue;
            }
            let pending = &mut self.webhooks.lock().pending;
            if pending.iter().all(|waiting| waiting.id != event.id) {
                pending.push_back(event);
            }
        }
        accepted
    }

    pub(super) async fn deliver(&self, event: &Event) -> bool {
        let Some(endpoint) = self.webhooks.lock().endpoint.clone() else { return false };
        let is_wrong = self.faults.draw(|kind| kind == FaultKind::WrongSignature).is_some();
        endpoint.send(endpoint.delivery(event, self.now(), is_wrong)).await
    }

    pub(super) fn now(&self) -> i64 {
        let start = self.stopped_at.unwrap_or_else(|| OffsetDateTime::now_utc().unix_timestamp());
        start.saturating_add(self.passed.load(Ordering::SeqCst))
    }

    fn request_id(&self) -> String {
        lock(&self.books).desk.id("req_")
    }

    /// <https://docs.stripe.com/api/authentication>: a bearer token, or the user of Basic.
    fn authenticate(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let unauthorized = |message| Refusal::invalid(message).status(StatusCode::UNAUTHORIZED);
        let Some(key) = api_key(headers) else {
            return Err(unauthorized(
                "You did not provide an API key. You need to provide your API key in the Authorization header, using \
                Bearer auth (e.g. 'Authorization: Bearer YOUR_SECRET_KEY').",
            ));
        };
        let known = lock(&self.api_keys);
        let is_known = match known.is_empty() {
            true => key.starts_with("sk_test_") || key.starts_with("rk_test_"),
            false => known.contains(&key),
        };
        if is_known { Ok(()) } else { Err(unauthorized("Invalid API Key provided.")) }
    }
}

fn api_key(headers: &HeaderMap) -> Option<String> {
    let (scheme, value) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(value.trim().to_owned());
    }
    let decoded = STANDARD.decode(value.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let text = String::from_utf8(decoded).ok()?;
    text.split(':').next().map(str::to_owned)
}

/// <https://docs.stripe.com/api/versioning>
fn check_version(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(version) = headers.get("stripe-version") else { return Ok(()) };
    let text = version.to_str().unwrap_or_default();
    let date = text.split('.').next().unwrap_or_default();
    let is_date = date.len() == OLDEST_VERSION.len() && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if is_date && date >= OLDEST_VERSION {
        return Ok(());
    }
    Err(Refusal::invalid(format!("Invalid Stripe API version: {text}. This emulator starts at {OLDEST_VERSION}.")))
}

fn parameters(request: &Request<Bytes>) -> Result<Form, Refusal> {
    let (query, body) = (request.uri().query().unwrap_or_default(), request.body());
    if query.len() + body.len() > MAX_REQUEST {
        let message = format!("The request is larger than {MAX_REQUEST} bytes.");
        return Err(Refusal::invalid(message).status(StatusCode::PAYLOAD_TOO_LARGE));
    }
    let media_type = request.headers().get(header::CONTENT_TYPE).and_then(|media_type| media_type.to_str().ok());
    if !body.is_empty() && !media_type.is_some_and(|media_type| media_type.starts_with(FORM)) {
        return Err(Refusal::invalid(format!("Invalid request (check that your POST content type is {FORM}).")));
    }
    Form::read(&[query.as_bytes(), body].join(&b'&'))
}
