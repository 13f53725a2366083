use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use super::cluster::Cluster;
use super::problem::Problem;
use super::routes::{Engine, router};
use super::{Error, FaultKind, Faults};
use crate::endpoint::cut;

const SLOW: Duration = Duration::from_millis(300);

/// Time after which the `timeout` fault closes a connection without a response.
const TIMEOUT: Duration = Duration::from_secs(10);

const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An in-process search engine that responds as OpenSearch does. Dropping the value ends the
/// server.
pub struct SearchServer {
    url: String,
    faults: Faults,
    server: AbortHandle,
}

impl SearchServer {
    /// Opens a loopback port and serves there. The documents are in memory. If a folder is given,
    /// they survive a restart.
    ///
    /// Needs a Tokio runtime. Blocks while it reads the folder: 100,000 documents take some
    /// seconds.
    pub async fn start(data_dir: Option<&Path>) -> Result<Self, Error> {
        let cluster = Arc::new(Cluster::open(data_dir)?);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let faults = Faults::default();
        let engine = Engine { cluster, faults: faults.clone() };
        let server = tokio::spawn(serve(listener, router(engine), faults.clone())).abort_handle();
        Ok(Self { url, faults, server })
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
}

impl Drop for SearchServer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Accepts connections until the task is aborted, which also ends the connections.
async fn serve(listener: TcpListener, router: Router, faults: Faults) {
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
        };
        let (router, faults) = (router.clone(), faults.clone());
        connections.spawn(async move {
            let service = service_fn(move |request| answer(request, router.clone(), faults.clone()));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Responds to one request, unless a fault prevents it. An error closes the connection.
async fn answer(request: Request<Incoming>, router: Router, faults: Faults) -> io::Result<Response> {
    let possible = |kind| {
        use FaultKind::{Error, Reset, Slow, Throttle, Timeout, Truncate};
        matches!(kind, Throttle | Error | Timeout | Slow | Reset | Truncate)
    };
    let strike = faults.draw(possible).map(|strike| strike.kind);
    match strike {
        Some(FaultKind::Throttle) => return Ok(Problem::throttled().into_response()),
        Some(FaultKind::Error) => return Ok(Problem::unavailable().into_response()),
        Some(FaultKind::Reset) => return Err(io::ErrorKind::ConnectionReset.into()),
        _ => {}
    }
    let service = TowerToHyperService::new(router);
    let Ok(response) = service.call(request.map(Body::new)).await;
    match strike {
        Some(FaultKind::Timeout) => {
            sleep(TIMEOUT).await;
            Err(io::ErrorKind::TimedOut.into())
        }
        Some(FaultKind::Slow) => {
            sleep(SLOW).await;
            Ok(response)
        }
        Some(FaultKind::Truncate) => {
            let (head, body) = response.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            let half = cut(Response::from_parts(head, Body::empty()), &body).ok_or(io::ErrorKind::ConnectionReset)?;
            Ok(half.map(Body::new))
        }
        _ => Ok(response),
    }
}
