//! What the endpoints have in common: a loopback port, connections, faults.

use std::borrow::Cow;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::access::{self, Access, Denied, Guard, Need};
use crate::cut::{Cut, cut};
use crate::faults::{FaultKind, Faults};

/// More than any request that a service behind an endpoint takes.
const MAX_BODY: usize = 64 << 20;
/// How late a slow answer is.
const SLOW: Duration = Duration::from_millis(300);
/// When a connection without an answer is closed.
const SILENCE: Duration = Duration::from_secs(10);
/// How long the endpoint waits before it accepts again after it could not.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

pub(crate) type Answer = Response<Full<Bytes>>;

/// What answers behind an endpoint.
pub(crate) trait Service: Send + Sync + 'static {
    /// Does what a request asks for.
    fn answer(&self, request: Request<Bytes>) -> impl Future<Output = Answer> + Send;

    /// The refusal of a request that a throttle, an error or a conflict strikes, in the service's words; `None` where that cannot happen
    /// to it.
    fn refusal(&self, kind: FaultKind, request: &Request<Bytes>) -> Option<Answer>;

    /// Whose call it is, where it says so.
    fn caller<'r>(&'r self, request: &'r Request<Bytes>) -> Option<Cow<'r, str>> {
        access::caller(request.headers()).map(Cow::Borrowed)
    }

    /// What a request needs to be allowed.
    fn needs(&self, request: &Request<Bytes>, access: &Access) -> Vec<Need>;

    /// The refusal of a request that its caller may not make, in the service's words.
    fn forbidden(&self, denied: &Denied) -> Answer;
}

/// Asks for the connection to be closed in place of the answer that carries it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HangUp;

/// Asks for the connection to be closed behind the head of the answer that carries it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BrokenOff;

/// A port that is closed, with its connections, when the value is dropped.
pub(crate) struct Endpoint {
    url: String,
    guard: Guard,
    // Holds the task that accepts, which holds those of the connections: dropping ends them all.
    _tasks: JoinSet<()>,
}

impl Endpoint {
    /// Opens a loopback port.
    pub(crate) async fn start<S: Service>(service: Arc<S>, faults: Faults) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let guard = Guard::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, service, faults, guard.clone()));
        Ok(Self { url, guard, _tasks: tasks })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// From now on functions are refused what they may not do.
    pub(crate) fn enforce(&self, access: Arc<Access>) {
        self.guard.set(access);
    }
}

async fn accept<S: Service>(listener: TcpListener, service: Arc<S>, faults: Faults, guard: Guard) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(converse(stream, Arc::clone(&service), faults.clone(), guard.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn converse<S: Service>(stream: TcpStream, service: Arc<S>, faults: Faults, guard: Guard) {
    // A socket without the option is slower, not wrong.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| answer(request, service.as_ref(), &faults, &guard));
    // An error is a client that went away, or a fault that closed the connection.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Answers one request, or does not, if a fault strikes it. An error closes the connection.
async fn answer<S: Service>(
    request: Request<Incoming>,
    service: &S,
    faults: &Faults,
    guard: &Guard,
) -> io::Result<Response<Either<Full<Bytes>, Cut>>> {
    let whole = |answer: Answer| Ok(answer.map(Either::Left));
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
        return whole(plain(StatusCode::PAYLOAD_TOO_LARGE));
    };
    let request = Request::from_parts(head, body.to_bytes());
    if let Err(denied) = guard.check(service.caller(&request).as_deref(), |access| service.needs(&request, access)) {
        return whole(service.forbidden(&denied));
    }
    // A partial failure is the service's own: it strikes entries, not requests.
    let possible = |kind| match kind {
        FaultKind::Reset | FaultKind::Timeout | FaultKind::Slow | FaultKind::Truncate => true,
        FaultKind::Throttle | FaultKind::Error | FaultKind::Conflict => service.refusal(kind, &request).is_some(),
        FaultKind::Partial => false,
    };
    let strike = faults.draw(possible).map(|strike| strike.kind);
    if strike == Some(FaultKind::Reset) {
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    if let Some(refusal) = strike.and_then(|kind| service.refusal(kind, &request)) {
        return whole(refusal);
    }
    let answer = service.answer(request).await;
    if answer.extensions().get::<HangUp>().is_some() {
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    match strike {
        Some(FaultKind::Timeout) => {
            sleep(SILENCE).await;
            Err(io::ErrorKind::TimedOut.into())
        }
        Some(FaultKind::Slow) => {
            sleep(SLOW).await;
            whole(answer)
        }
        Some(FaultKind::Truncate) => truncated(answer).await,
        _ if answer.extensions().get::<BrokenOff>().is_some() => {
            Ok(answer.map(|_| Either::Right(Cut::after(Bytes::new()))))
        }
        _ => whole(answer),
    }
}

/// Half of an answer; none of one that has no halves.
async fn truncated(answer: Answer) -> io::Result<Response<Either<Full<Bytes>, Cut>>> {
    let (head, body) = answer.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let half = cut(Response::from_parts(head, ()), &body).ok_or(io::ErrorKind::ConnectionReset)?;
    Ok(half.map(Either::Right))
}

/// An answer without a body.
pub(crate) fn plain(status: StatusCode) -> Answer {
    let mut answer = Answer::default();
    *answer.status_mut() = status;
    answer
}
