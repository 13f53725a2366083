use std::borrow::Cow;
use std::io;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::http::HeaderValue;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::access::{self, Access, Denied, Guard, Need};
use crate::faults::{FaultKind, Faults};

/// Maximum size of a request body in bytes. A larger request gets status 413.
const MAX_BODY: usize = 64 << 20;
const SLOW: Duration = Duration::from_millis(300);
/// Time after which the `timeout` fault closes a connection without a response.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

pub(crate) type Answer = Response<Full<Bytes>>;

pub(crate) trait Service: Send + Sync + 'static {
    fn answer(&self, request: Request<Bytes>) -> impl Future<Output = Answer> + Send;

    /// Returns `None` if the fault cannot hit this request.
    fn refusal(&self, kind: FaultKind, request: &Request<Bytes>) -> Option<Answer>;

    fn caller<'r>(&'r self, request: &'r Request<Bytes>) -> Option<Cow<'r, str>> {
        access::caller(request.headers()).map(Cow::Borrowed)
    }

    fn needs(&self, request: &Request<Bytes>, access: &Access) -> Vec<Need>;

    /// Returns the service's error response to a caller that lacks a permission.
    fn forbidden(&self, denied: &Denied) -> Answer;
}

/// Extension of a response: closes the connection without sending the response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HangUp;

/// Extension of a response: closes the connection after the response's head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BrokenOff;

/// A listening port with its faults and permissions. Dropping the value closes the port and its
/// connections.
pub struct Endpoint {
    url: String,
    faults: Faults,
    guard: Guard,
    // The accepting task owns the connections' tasks. Dropping this set ends all of these tasks.
    _tasks: JoinSet<()>,
}

impl Endpoint {
    pub(crate) async fn start<S: Service>(service: Arc<S>, faults: Faults) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let guard = Guard::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, service, faults.clone(), guard.clone()));
        Ok(Self { url, faults, guard, _tasks: tasks })
    }

    /// Returns the endpoint for the functions: `http://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the fault rules of the calls, which the caller may change.
    #[must_use]
    pub const fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Makes the endpoint refuse calls for which a function lacks the permission.
    pub fn enforce(&self, access: Arc<Access>) {
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
    // An error is ignored, because without this option the connection is only slower.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| answer(request, service.as_ref(), &faults, &guard));
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Responds to one request, unless a fault prevents it. An error closes the connection.
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
    // The service itself handles partial failures, because they concern entries of a request. It
    // also handles the kinds of payments.
    let possible = |kind| match kind {
        FaultKind::Reset | FaultKind::Timeout | FaultKind::Slow | FaultKind::Truncate => true,
        FaultKind::Throttle | FaultKind::Error | FaultKind::Conflict => service.refusal(kind, &request).is_some(),
        FaultKind::Partial | FaultKind::TimeoutBefore | FaultKind::ErrorAfter | FaultKind::WrongSignature => false,
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

/// Returns half of a response. A response that cannot be halved closes the connection.
async fn truncated(answer: Answer) -> io::Result<Response<Either<Full<Bytes>, Cut>>> {
    let (head, body) = answer.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let half = cut(Response::from_parts(head, ()), &body).ok_or(io::ErrorKind::ConnectionReset)?;
    Ok(half.map(Either::Right))
}

pub(crate) fn plain(status: StatusCode) -> Answer {
    let mut answer = Answer::default();
    *answer.status_mut() = status;
    answer
}

pub(crate) fn json_answer(media_type: &'static str, status: StatusCode, body: &Value) -> Answer {
    let mut answer = plain(status);
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    *answer.body_mut() = Bytes::from(body.to_string()).into();
    answer
}

/// The first half of a body. The server closes the connection after this half.
#[derive(Debug)]
pub(crate) struct Cut {
    half: Option<Bytes>,
    is_sent: bool,
}

/// Returns the response with half of its body, and headers that announce the whole body. Returns
/// `None` for a body that cannot be halved.
pub(crate) fn cut<B>(answer: Response<B>, body: &Bytes) -> Option<Response<Cut>> {
    let half = body.len().checked_div(2).filter(|half| *half > 0)?;
    let (mut head, _) = answer.into_parts();
    head.headers.remove(header::TRANSFER_ENCODING);
    head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    Some(Response::from_parts(head, Cut::after(body.slice(..half))))
}

impl Cut {
    /// Creates a body of these bytes, after which the connection closes.
    pub(crate) const fn after(half: Bytes) -> Self {
        Self { half: Some(half), is_sent: false }
    }
}

impl Body for Cut {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(half) = self.half.take() {
            return Poll::Ready(Some(Ok(Frame::data(half))));
        }
        // The server sends the buffered bytes only when the body is pending, so the body is pending
        // once.
        if !std::mem::replace(&mut self.is_sent, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())))
    }
}
