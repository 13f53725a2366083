//! The proxy in front of a table.

mod answer;
mod body;
mod keys;
mod needs;
mod operation;
mod pages;
#[cfg(test)]
mod tests;
mod underway;

use std::net::Ipv4Addr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::http::{HeaderMap, uri::Authority, uri::Scheme};
use hyper::service::service_fn;
use hyper::{Request, Response, Uri, header};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::Error;
use crate::access::{self, Access, Guard};
use crate::contributors::Throttles;
use crate::cut::{Cut, cut};
use crate::faults::{FaultKind, Faults, Strike};
use body::Halves;
use operation::Operation;
use pages::{MAX_PAGE, Pages};
pub use underway::TransactionTime;
use underway::{Found, Underway};

/// DynamoDB's limit on a request and on an answer.
const MAX_BODY: usize = 16 << 20;
/// How long a table may take to answer before the proxy gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the faults last that are made of waiting.
#[derive(Debug, Clone, Copy)]
struct Delays {
    /// Before a slow answer.
    slow: Duration,
    /// Before a connection is closed whose answer never comes: longer than a client should wait.
    silence: Duration,
}

const DELAYS: Delays = Delays { slow: Duration::from_millis(300), silence: Duration::from_secs(10) };

type Body = Either<Incoming, Either<Full<Bytes>, Cut>>;

/// An HTTP proxy in front of a DynamoDB endpoint, which passes requests on unchanged unless a fault
/// strikes them, and mends the identity of TTL deletions in stream records (see the module `body`).
///
/// Bodies are only parsed where a fault needs it. Dropping the value closes it.
pub struct FaultProxy {
    url: String,
    faults: Faults,
    underway: Arc<Underway>,
    counting: Arc<OnceLock<Counting>>,
    guard: Guard,
    // Holds the task that accepts, which holds those of the connections: dropping ends them all.
    _tasks: JoinSet<()>,
}

impl FaultProxy {
    /// Opens a loopback port in front of the table at `upstream`, `http://host:port`.
    ///
    /// # Errors
    /// [`Error::Upstream`] when that is no plain HTTP address, [`Error::Serve`] without a port.
    pub async fn start(upstream: &str) -> Result<Self, Error> {
        Self::with_delays(upstream, DELAYS).await
    }

    async fn with_delays(upstream: &str, delays: Delays) -> Result<Self, Error> {
        let authority = authority(upstream)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = loopback_url(listener.local_addr()?.port());
        let (faults, underway, guard) = (Faults::default(), Arc::<Underway>::default(), Guard::default());
        let counting = Arc::<OnceLock<Counting>>::default();
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let gate = Arc::new(Gate {
            client: Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(Duration::from_secs(60))
                .build(connector),
            authority,
            faults: faults.clone(),
            underway: Arc::clone(&underway),
            counting: Arc::clone(&counting),
            guard: guard.clone(),
            delays,
            pages: Pages::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, gate));
        Ok(Self { url, faults, underway, counting, guard, _tasks: tasks })
    }

    /// The endpoint to give to the functions: `http://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The faults in force, to add to and to clear.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Lets transactions take time from now on, in which nobody else writes their items: such a write, alone or in another transaction, is
    /// refused as a conflict. The items of a `BatchWriteItem` are not looked at.
    pub fn let_transactions_take(&self, time: TransactionTime) {
        self.underway.set(time);
    }

    /// From now on requests that this proxy refuses as throttled are counted by partition key, which is the attribute of this name, and faults can be
    /// aimed at keys. `DescribeContributorInsights`, which no emulator knows, is answered here. The first setting stays.
    pub fn count_throttles(&self, partition: &str) -> Throttles {
        self.counting
            .get_or_init(|| Counting { partition: partition.to_owned(), throttles: Throttles::default() })
            .throttles
            .clone()
    }

    /// From now on functions are refused what they may not do.
    pub fn enforce(&self, access: Arc<Access>) {
        self.guard.set(access);
    }

    /// How many requests met a transaction that took its time.
    #[must_use]
    pub fn meetings(&self) -> u64 {
        self.underway.met()
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
                // Out of file descriptors, say: what is open goes on, and may free some.
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
    // A socket without the option is slower, not wrong.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| gate.answer(request));
    // An error is the client going away, or the proxy hanging up on purpose.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Makes the server close the connection instead of answering.
#[derive(Debug, thiserror::Error)]
#[error("hung up on purpose")]
struct HangUp;

/// What is counted, and by which attribute.
struct Counting {
    partition: String,
    throttles: Throttles,
}

struct Gate {
    client: Client<HttpConnector, Full<Bytes>>,
    authority: Authority,
    faults: Faults,
    underway: Arc<Underway>,
    counting: Arc<OnceLock<Counting>>,
    guard: Guard,
    delays: Delays,
    pages: Pages,
}

impl Gate {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, HangUp> {
        let (head, incoming) = request.into_parts();
        let Ok(body) = Limited::new(incoming, MAX_BODY).collect().await else {
            return Ok(own(answer::too_large()));
        };
        let body = body.to_bytes();
        let allowed =
            self.guard.check(access::caller(&head.headers), |access| needs::needs(&head.headers, &body, access));
        if let Err(denied) = allowed {
            return Ok(own(answer::forbidden(&denied)));
        }
        let operation = Operation::of(&head.headers);
        if let (Operation::DescribeInsights, Some(counting)) = (operation, self.counting.get()) {
            return Ok(own(answer::insights(&body, &counting.throttles)));
        }
        let keys = if self.faults.are_aimed() { self.keys(operation, &body) } else { Vec::new() };
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
                Ok(own(answer::throttled()))
            }
            FaultKind::Error => Ok(own(answer::internal())),
            FaultKind::Conflict => Ok(own(conflict(operation, &body, &strike))),
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
        }
    }

    /// The partitions of the table that a request is about, as far as anybody asks.
    fn keys(&self, operation: Operation, body: &[u8]) -> Vec<String> {
        self.counting.get().map(|counting| keys::partitions(operation, body, &counting.partition)).unwrap_or_default()
    }

    /// Counts a throttled request for each of its partitions that the fault is aimed at.
    fn count(&self, operation: Operation, body: &[u8], beginning: &str) {
        let Some(counting) = self.counting.get() else { return };
        for key in self.keys(operation, body).iter().filter(|key| key.starts_with(beginning)) {
            counting.throttles.record(key);
        }
    }

    /// Passed on, a transaction for as long as one takes, and if nobody else is there.
    async fn in_its_time(
        &self,
        head: hyper::http::request::Parts,
        operation: Operation,
        body: Bytes,
    ) -> Response<Body> {
        match self.underway.enter(operation, &body) {
            Found::Free => self.passed_on(head, body).await,
            Found::Met { actions, culprit } => own(match operation {
                Operation::Transact { .. } => answer::cancelled(actions, culprit),
                _ => answer::conflict(),
            }),
            Found::Taken(hold, time) => {
                tokio::time::sleep(time).await;
                let response = self.passed_on(head, body).await;
                drop(hold);
                response
            }
        }
    }

    async fn passed_on(&self, head: hyper::http::request::Parts, body: Bytes) -> Response<Body> {
        let mut head = head;
        let mut uri = head.uri.into_parts();
        uri.scheme = Some(Scheme::HTTP);
        uri.authority = Some(self.authority.clone());
        let Ok(uri) = Uri::from_parts(uri) else {
            return own(answer::unavailable());
        };
        head.uri = uri;
        // These two speak of the connection and of the body as it came.
        head.headers.remove(header::CONNECTION);
        head.headers.remove(header::CONTENT_LENGTH);
        head.headers.remove(header::TRANSFER_ENCODING);
        // Meant for this proxy alone.
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

    /// A page of stream records, cut as DynamoDB cuts them and mended.
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
            // A single record is given however large it is.
            let most = if limit > 1 { MAX_PAGE } else { MAX_BODY };
            match Limited::new(body, most).collect().await {
                Ok(body) => {
                    let body = body.to_bytes();
                    self.pages.fitted(limit, body.len());
                    return changed(head, body, body::mended_records);
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

fn conflict(operation: Operation, body: &[u8], strike: &Strike) -> Response<Full<Bytes>> {
    let Operation::Transact { actions } = operation else {
        return answer::conflict();
    };
    // A body that cannot be read gets one reason; the client has bigger troubles.
    let actions = body::count_actions(actions, body).unwrap_or(1).max(1);
    let culprit = usize::try_from(strike.chance).unwrap_or_default() % actions;
    answer::cancelled(actions, culprit)
}

/// A successful answer with its body replaced by what `change` makes of it, if anything.
async fn rewritten(response: Response<Body>, change: impl FnOnce(&[u8]) -> Option<Bytes>) -> Response<Body> {
    if !response.status().is_success() {
        return response;
    }
    let (head, body) = response.into_parts();
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(body) => changed(head, body.to_bytes(), change),
        Err(_) => own(answer::unavailable()),
    }
}

fn changed(
    mut head: hyper::http::response::Parts,
    body: Bytes,
    change: impl FnOnce(&[u8]) -> Option<Bytes>,
) -> Response<Body> {
    let body = match change(&body) {
        Some(changed) => {
            forget_sums(&mut head.headers);
            changed
        }
        None => body,
    };
    Response::from_parts(head, Either::Right(Either::Left(Full::new(body))))
}

/// The headers that describe the body's bytes.
fn forget_sums(headers: &mut HeaderMap) {
    headers.remove(header::CONTENT_LENGTH);
    headers.remove("x-amz-crc32");
}

fn own(response: Response<Full<Bytes>>) -> Response<Body> {
    response.map(|body| Either::Right(Either::Left(body)))
}

/// Half of an answer; none of one that has no halves.
async fn truncated(response: Response<Body>) -> Result<Response<Body>, HangUp> {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MAX_BODY).collect().await.map_err(|_| HangUp)?.to_bytes();
    let half = cut(Response::from_parts(head, ()), &body).ok_or(HangUp)?;
    Ok(half.map(|body| Either::Right(Either::Right(body))))
}
