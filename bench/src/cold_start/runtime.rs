//! A Lambda Runtime API for one process. It records the time of each request.

use std::net::SocketAddr;
use std::time::Instant;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use crate::BenchError;

#[derive(Debug)]
pub(super) enum Step {
    /// The process requests an invocation. The API delivers the invocation when the measurement
    /// sends a signal through this sender.
    Next(Instant, tokio::sync::oneshot::Sender<()>),
    Answered(Instant, Bytes),
    /// The process reported that it failed to start or to handle the invocation.
    Failed(Bytes),
}

pub(super) struct RuntimeApi {
    pub address: SocketAddr,
    pub steps: UnboundedReceiver<Step>,
    server: JoinHandle<()>,
}

#[derive(Clone)]
struct Shared {
    event: Bytes,
    steps: UnboundedSender<Step>,
}

impl RuntimeApi {
    pub async fn start(event: String) -> Result<Self, BenchError> {
        let (sender, steps) = unbounded_channel();
        let shared = Shared { event: event.into(), steps: sender };
        let routes = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(answered))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(failed))
            .route("/2018-06-01/runtime/init/error", post(failed))
            .with_state(shared);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let server = tokio::spawn(async move {
            // The server runs until the measurement ends, so its result does not matter.
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { address, steps, server })
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn next(State(shared): State<Shared>) -> Response {
    let (go_on, signal) = tokio::sync::oneshot::channel();
    let _ = shared.steps.send(Step::Next(Instant::now(), go_on));
    // After the last measured invocation, the measurement sends no signal.
    if signal.await.is_err() {
        std::future::pending::<()>().await;
    }
    let deadline =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_millis() + 10_000;
    let headers = [
        ("lambda-runtime-aws-request-id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd".to_owned()),
        ("lambda-runtime-deadline-ms", deadline.to_string()),
        ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:123456789012:function:measured".to_owned()),
        ("lambda-runtime-trace-id", "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=0".to_owned()),
        (CONTENT_TYPE.as_str(), "application/json".to_owned()),
    ];
    (headers, shared.event.clone()).into_response()
}

async fn answered(State(shared): State<Shared>, body: Bytes) -> impl IntoResponse {
    let _ = shared.steps.send(Step::Answered(Instant::now(), body));
    axum::http::StatusCode::ACCEPTED
}

async fn failed(State(shared): State<Shared>, body: Bytes) -> impl IntoResponse {
    let _ = shared.steps.send(Step::Failed(body));
    axum::http::StatusCode::ACCEPTED
}
