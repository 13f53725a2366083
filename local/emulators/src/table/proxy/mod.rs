pub(super) mod answer;
mod body;
mod calls;
mod capacity;
mod keys;
mod needs;
mod operation;
mod pages;
mod response;
#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use body::Halves;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::http::uri::{Authority, Scheme};
use hyper::service::service_fn;
use hyper::{Request, Response, Uri, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
pub(super) use operation::Operation;
use pages::{MAX_PAGE, Pages};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use self::calls::Recorded;
use self::capacity::Consumed;
use self::response::{changed, conflict, own, rewritten, truncated};
use super::Error;
use super::limits::{Clocked, Counts, Model, Schema};
use crate::access::{self, Access, Guard};
use crate::contributors::Throttles;
use crate::endpoint::Cut;
use crate::faults::{FaultKind, Faults};

pub use calls::{Call, CallBody, Calls};

/// DynamoDB's limit for a request and for a response.
const MAX_BODY: usize = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy)]
struct Delays {
    slow: Duration,
    /// Time after which a connection without a response is closed. It is longer than a client
    /// should wait.
    silence: Duration,
}

const DELAYS: Delays = Delays { slow: Duration::from_millis(300), silence: Duration::from_secs(10) };

type Body = Either<Incoming, Either<Full<Bytes>, Cut>>;

/// An HTTP proxy in front of a DynamoDB endpoint. It forwards requests unchanged unless a fault
/// hits them. The module `body` corrects the identity of TTL deletions in stream records. The
/// module `pages` limits pages of stream records to DynamoDB's size.
///
/// The proxy always parses requests for stream records and responses to writes. It parses other
/// bodies only if a fault or a setting requires it. It keeps the newest calls ([`Calls`]). Dropping
/// the value closes the proxy.
pub struct FaultProxy {
    url: String,
    faults: Faults,
    limits: Arc<OnceLock<Clocked>>,
    counting: Arc<OnceLock<Counting>>,
    guard: Guard,
    calls: Calls,
    // The accepting task owns the connections' tasks. Dropping this set ends all of these tasks.
    _tasks: JoinSet<()>,
}

impl FaultProxy {
    /// Opens a loopback port in front of the table at `upstream`, `http://host:port`.
    pub async fn start(upstream: &str) -> Result<Self, Error> {
        Self::with_delays(upstream, DELAYS).await
    }

    async fn with_delays(upstream: &str, delays: Delays) -> Result<Self, Error> {
        let authority = authority(upstream)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = loopback_url(listener.local_addr()?.port());
        let (faults, limits, guard) = (Faults::default(), Arc::<OnceLock<Clocked>>::default(), Guard::default());
        let (counting, calls) = (Arc::<OnceLock<Counting>>::default(), Calls::default());
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let gate = Arc::new(Gate {
            client: Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(Duration::from_secs(60))
                .build(connector),
            authority,
            faults: faults.clone(),
            limits: Arc::clone(&limits),
            counting: Arc::clone(&counting),
            guard: guard.clone(),
            calls: calls.clone(),
            delays,
            pages: Pages::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, gate));
        Ok(Self { url, faults, limits, counting, guard, calls, _tasks: tasks })
    }

    /// Returns the endpoint for the functions: `http://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Returns the newest calls of items.
    #[must_use]
    pub const fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Puts the model of DynamoDB's limits in front of the table from now on. Only the first call has
    /// an effect.
    pub fn limit(&self, schema: Schema, model: Model) {
        self.limits.get_or_init(|| Clocked::new(schema, model));
    }

    /// Starts to count throttled requests by partition key. `partition` is the name of the
    /// partition key attribute.
    ///
    /// From now on fault rules may also have a key prefix. The proxy itself answers
    /// `DescribeContributorInsights`, which no emulator supports. Only the first call has an
    /// effect.
    pub fn count_throttles(&self, partition: &str) -> Throttles {
        self.counting
            .get_or_init(|| Counting { partition: partition.to_owned(), throttles: Throttles::default() })
            .throttles
            .clone()
    }

    pub fn enforce(&self, access: Arc<Access>) {
        self.guard.set(access);
    }

    /// Returns what the model has counted ([`FaultProxy::limit`]).
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.limits.get().map(Clocked::counts).unwrap_or_default()
    }
}

pub(super) fn loopback_url(port: u16) -> String {
    format!("http://{}:{port}", Ipv4Addr::LOCALHOST)
}

fn authority(upstream: &str) -> Result<Authority, Error> {
    let refused = || Error::Upstream(upstream.to_owned());
    let uri: Uri = upstream.parse().map_err(|_| refused())?;
    match (uri.scheme_str(), uri.authority(), uri.path()) {
        (Some("http"), Some(authority), "/") => Ok(authority.clone()),
        _ => Err(refused()),
    }
}

async fn accept(listener: TcpListener, gate: Arc<Gate>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(converse(stream, Arc::clone(&gate)));
                }
                // The process may have no file descriptors left. Open connections continue, and may
                // free descriptors.
                Err(error) => {
                    tracing::warn!(%error, "the table's proxy cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn converse(stream: TcpStream, gate: Arc<Gate>) {
    // An error is ignored, because without this option the connection is only slower.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| gate.answer(request));
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// The error that makes the server close the connection without a response.
#[derive(Debug, thiserror::Error)]
#[error("a fault closes the connection")]
struct HangUp;

/// The counts of throttled requests, and the name of the partition key attribute.
struct Counting {
    partition: String,
    throttles: Throttles,
}

struct Gate {
    client: Client<HttpConnector, Full<Bytes>>,
    authority: Authority,
    faults: Faults,
    limits: Arc<OnceLock<Clocked>>,
    counting: Arc<OnceLock<Counting>>,
    guard: Guard,
    calls: Calls,
    delays: Delays,
    pages: Pages,
}

impl Gate {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Recorded<Body>>, HangUp> {
        let (head, incoming) = request.into_parts();
        let Ok(body) = Limited::new(incoming, MAX_BODY).collect().await else {
            return Ok(own(answer::too_large()).map(|body| Recorded::new(body, None)));
        };
        let (body, operation) = (body.to_bytes(), Operation::of(&head.headers));
        let mut recording = self.calls.begin(operation, &head.headers, &body);
        let mut response = self.decided(head, operation, body).await?;
        let consumed = response.extensions_mut().remove::<Consumed>();
        if let Some(recording) = &mut recording {
            recording.answered(response.status(), consumed);
        }
        Ok(response.map(|body| Recorded::new(body, recording)))
    }

    /// Checks the caller's permissions, and then answers or forwards a request.
    async fn decided(
        &self,
        head: hyper::http::request::Parts,
        operation: Operation,
        body: Bytes,
    ) -> Result<Response<Body>, HangUp> {
        let allowed =
            self.guard.check(access::caller(&head.headers), |access| needs::needs(&head.headers, &body, access));
        if let Err(denied) = allowed {
            return Ok(own(answer::forbidden(&denied)));
        }
        if let (Operation::DescribeInsights, Some(counting)) = (operation, self.counting.get()) {
            return Ok(own(answer::insights(&body, &counting.throttles)));
        }
        let keys = if self.faults.has_key_rules() { self.keys(operation, &body) } else { Vec::new() };
        let mut halves = None;
        if operation.unprocessed().is_some() && self.faults.has(FaultKind::Partial) {
            halves = Halves::of(operation, &body);
        }
        let strike = self.faults.draw_at(&keys, |kind| operation.can_suffer(kind, halves.is_some()));
        let Some(strike) = strike else {
            return Ok(match operation {
                Operation::GetRecords => self.records(head, body).await,
                _ => self.in_its_time(head, operation, body).await,
            });
        };
        match strike.kind {
            FaultKind::Throttle => {
                self.count(operation, &body, strike.key.as_deref().unwrap_or_default());
                Ok(own(answer::throttled("TableWriteKeyRangeThroughputExceeded")))
            }
            FaultKind::Error => Ok(own(answer::internal())),
            FaultKind::Conflict => {
                let partition = self.counting.get().map(|counting| counting.partition.as_str());
                Ok(own(conflict(operation, &body, &strike, partition)))
            }
            FaultKind::Reset => Err(HangUp),
            FaultKind::Slow => {
                let response = self.passed_on(head, body).await;
                tokio::time::sleep(self.delays.slow).await;
                Ok(response)
            }
            FaultKind::Timeout => {
                self.passed_on(head, body).await;
                tokio::time::sleep(self.delays.silence).await;
                Err(HangUp)
            }
            FaultKind::Truncate => truncated(self.passed_on(head, body).await).await,
            FaultKind::Partial => Ok(match halves {
                Some(halves) => self.halved(head, operation, halves).await,
                None => self.passed_on(head, body).await,
            }),
            FaultKind::TimeoutBefore | FaultKind::ErrorAfter | FaultKind::WrongSignature => {
                Ok(self.passed_on(head, body).await)
            }
        }
    }

    /// The list is empty unless the proxy counts throttled requests.
    fn keys(&self, operation: Operation, body: &[u8]) -> Vec<String> {
        self.counting.get().map(|counting| keys::partitions(operation, body, &counting.partition)).unwrap_or_default()
    }

    /// Counts a throttled request for each of its partition keys with this prefix.
    fn count(&self, operation: Operation, body: &[u8], beginning: &str) {
        let Some(counting) = self.counting.get() else { return };
        for key in self.keys(operation, body).iter().filter(|key| key.starts_with(beginning)) {
            counting.throttles.record(key);
        }
    }

    /// Forwards a request within the limits of the model, if there is one.
    async fn in_its_time(
        &self,
        head: hyper::http::request::Parts,
        operation: Operation,
        body: Bytes,
    ) -> Response<Body> {
        let Some(limits) = self.limits.get() else { return self.passed_on(head, body).await };
        let passed = limits.pass(operation, &body, self.passed_on(head, body.clone())).await;
        passed.unwrap_or_else(own)
    }

    /// Forwards a request. If it is a write, the response has the extension [`Consumed`].
    async fn passed_on(&self, head: hyper::http::request::Parts, body: Bytes) -> Response<Body> {
        let Some((body, requested)) = capacity::detailed(Operation::of(&head.headers), &body) else {
            return self.forwarded(head, body).await;
        };
        let (response, mut consumed) = (self.forwarded(head, body).await, None);
        let mut response = rewritten(response, |answer| {
            let (units, rest) = capacity::split(answer, requested)?;
            consumed = Some(units);
            Some(rest)
        })
        .await;
        if let Some(consumed) = consumed {
            response.extensions_mut().insert(consumed);
        }
        response
    }

    async fn forwarded(&self, head: hyper::http::request::Parts, body: Bytes) -> Response<Body> {
        let mut head = head;
        let mut uri = head.uri.into_parts();
        uri.scheme = Some(Scheme::HTTP);
        uri.authority = Some(self.authority.clone());
        let Ok(uri) = Uri::from_parts(uri) else {
            return own(answer::unavailable());
        };
        head.uri = uri;
        // These headers describe the original connection and body, so they are not forwarded.
        head.headers.remove(header::CONNECTION);
        head.headers.remove(header::CONTENT_LENGTH);
        head.headers.remove(header::TRANSFER_ENCODING);
        // The session token names the calling function, which the table need not know.
        head.headers.remove(access::TOKEN);
        let request = Request::from_parts(head, Full::new(body));
        match tokio::time::timeout(PATIENCE, self.client.request(request)).await {
            Ok(Ok(response)) => response.map(Either::Left),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the table behind the proxy does not answer");
                own(answer::unavailable())
            }
            Err(_) => own(answer::unavailable()),
        }
    }

    /// Returns a page of stream records of at most DynamoDB's size, with corrected identities.
    async fn records(&self, head: hyper::http::request::Parts, body: Bytes) -> Response<Body> {
        let Some(mut request) = pages::Request::read(&body) else {
            return self.passed_on(head, body).await;
        };
        let mut limit = self.pages.limit(request.wanted);
        loop {
            let response = self.passed_on(head.clone(), request.with(limit)).await;
            if !response.status().is_success() {
                return response;
            }
            let (head, body) = response.into_parts();
            // A page may be larger if it has only one record.
            let most = if limit > 1 { MAX_PAGE } else { MAX_BODY };
            match Limited::new(body, most).collect().await {
                Ok(body) => {
                    let body = body.to_bytes();
                    self.pages.fitted(limit, body.len());
                    return changed(head, body, body::with_repaired_identities);
                }
                Err(error) if limit > 1 && error.is::<LengthLimitError>() => limit = self.pages.too_many(limit),
                Err(error) => {
                    tracing::warn!(error, "the records of the stream cannot be read");
                    return own(answer::unavailable());
                }
            }
        }
    }

    async fn halved(&self, head: hyper::http::request::Parts, operation: Operation, halves: Halves) -> Response<Body> {
        let response = self.passed_on(head, halves.request.clone()).await;
        rewritten(response, |answer| halves.answer(operation, answer)).await
    }
}
