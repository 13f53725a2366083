use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinHandle;

use crate::{FunctionError, MAX_PAYLOAD};

/// An invocation in the form that the runtime receives.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) request_id: String,
    pub(crate) deadline_ms: u128,
    pub(crate) function_arn: String,
    pub(crate) trace_id: String,
    pub(crate) payload: Bytes,
}

#[derive(Debug)]
pub(crate) enum Call {
    Waiting,
    Finished(Result<Bytes, FunctionError>),
    /// The runtime could not initialize, and will exit.
    InitFailed(FunctionError),
}

/// The listener, and those ends of its channels that the environment uses. Dropping the value
/// closes the listener and every open call.
pub(crate) struct RuntimeApi {
    pub(crate) address: SocketAddr,
    pub(crate) work: mpsc::Sender<Work>,
    pub(crate) calls: mpsc::Receiver<Call>,
    pub(crate) handed_over: watch::Sender<u64>,
    server: JoinHandle<()>,
}

struct Shared {
    work: Mutex<mpsc::Receiver<Work>>,
    calls: mpsc::Sender<Call>,
    /// Request id of the invocation in progress.
    current: StdMutex<Option<String>>,
    handed_over: watch::Sender<u64>,
}

impl RuntimeApi {
    pub(crate) async fn listen() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (work, receiver) = mpsc::channel(1);
        let (sender, calls) = mpsc::channel(4);
        let handed_over = watch::Sender::new(0);
        let shared = Arc::new(Shared {
            work: Mutex::new(receiver),
            calls: sender,
            current: StdMutex::new(None),
            handed_over: handed_over.clone(),
        });
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
            .route("/2018-06-01/runtime/init/error", post(init_error))
            .with_state(shared);
        let server = tokio::spawn(async move {
            // `axum::serve` returns only when the task is aborted.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, work, calls, handed_over, server })
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Shared {
    /// Finishes the invocation in progress if it has this id. Returns whether it has this id.
    fn finish(&self, id: &str) -> bool {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let matches = current.as_deref() == Some(id);
        if matches {
            *current = None;
        }
        matches
    }

    async fn tell(&self, call: Call) -> Response {
        match self.calls.send(call).await {
            Ok(()) => (StatusCode::ACCEPTED, json!({"status": "OK"}).to_string()).into_response(),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

/// Responds with the next invocation. Waits for it without a limit.
async fn next(State(shared): State<Arc<Shared>>) -> Response {
    if shared.calls.send(Call::Waiting).await.is_err() {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let Some(work) = shared.work.lock().await.recv().await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    *shared.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(work.request_id.clone());
    shared.handed_over.send_modify(|count| *count += 1);
    let answer = Response::builder()
        .header("content-type", "application/json")
        .header("lambda-runtime-aws-request-id", work.request_id)
        .header("lambda-runtime-deadline-ms", work.deadline_ms.to_string())
        .header("lambda-runtime-invoked-function-arn", work.function_arn)
        .header("lambda-runtime-trace-id", work.trace_id)
        .body(Body::from(work.payload));
    answer.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

async fn response(State(shared): State<Arc<Shared>>, Path(id): Path<String>, request: Request) -> Response {
    if !shared.finish(&id) {
        return invalid_request_id();
    }
    let Ok(body) = to_bytes(request.into_body(), MAX_PAYLOAD).await else {
        let message = format!("Response payload size exceeded maximum allowed payload size ({MAX_PAYLOAD} bytes).");
        let failure = FunctionError::new("Function.ResponseSizeTooLarge", message);
        shared.tell(Call::Finished(Err(failure))).await;
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    shared.tell(Call::Finished(Ok(body))).await
}

async fn error(State(shared): State<Arc<Shared>>, Path(id): Path<String>, request: Request) -> Response {
    if !shared.finish(&id) {
        return invalid_request_id();
    }
    let failure = read_failure(request).await;
    shared.tell(Call::Finished(Err(failure))).await
}

async fn init_error(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let failure = read_failure(request).await;
    shared.tell(Call::InitFailed(failure)).await
}

async fn read_failure(request: Request) -> FunctionError {
    let body = to_bytes(request.into_body(), MAX_PAYLOAD).await.unwrap_or_default();
    FunctionError::from_runtime(&body)
}

/// Returns the response for an invocation that has timed out or never existed.
fn invalid_request_id() -> Response {
    let body = json!({"errorType": "InvalidRequestID", "errorMessage": "Invalid request ID"});
    (StatusCode::BAD_REQUEST, body.to_string()).into_response()
}
