//! What the endpoints have in common: a loopback port, connections, faults.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

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
}

/// A port that is closed, with its connections, when the value is dropped.
pub(crate) struct Endpoint {
    url: String,
    // Holds the task that accepts, which holds those of the connections: dropping ends them all.
    _tasks: JoinSet<()>,
}

impl Endpoint {
    /// Opens a loopback port.
    pub(crate) async fn start<S: Service>(service: Arc<S>, faults: Faults) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, service, faults));
        Ok(Self { url, _tasks: tasks })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

async fn accept<S: Service>(listener: TcpListener, service: Arc<S>, faults: Faults) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(converse(stream, Arc::clone(&service), faults.clone()));
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

async fn converse<S: Service>(stream: TcpStream, service: Arc<S>, faults: Faults) {
    // A socket without the option is slower, not wrong.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| answer(request, service.as_ref(), &faults));
    // An error is a client that went away, or a fault that closed the connection.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Answers one request, or does not, if a fault strikes it. An error closes the connection.
async fn answer<S: Service>(request: Request<Incoming>, service: &S, faults: &Faults) -> io::Result<Answer> {
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
        return Ok(plain(StatusCode::PAYLOAD_TOO_LARGE));
    };
    let request = Request::from_parts(head, body.to_bytes());
    // A partial failure is the service's own: it strikes entries, not requests.
    let possible = |kind| match kind {
        FaultKind::Reset | FaultKind::Timeout | FaultKind::Slow => true,
        FaultKind::Throttle | FaultKind::Error | FaultKind::Conflict => service.refusal(kind, &request).is_some(),
        FaultKind::Partial => false,
    };
    let strike = faults.draw(possible).map(|strike| strike.kind);
    if strike == Some(FaultKind::Reset) {
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    if let Some(refusal) = strike.and_then(|kind| service.refusal(kind, &request)) {
        return Ok(refusal);
    }
    let answer = service.answer(request).await;
    match strike {
        Some(FaultKind::Timeout) => {
            sleep(SILENCE).await;
            Err(io::ErrorKind::TimedOut.into())
        }
        Some(FaultKind::Slow) => {
            sleep(SLOW).await;
            Ok(answer)
        }
        _ => Ok(answer),
    }
}

/// An answer without a body.
pub(crate) fn plain(status: StatusCode) -> Answer {
    let mut answer = Answer::default();
    *answer.status_mut() = status;
    answer
}
