use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tokio::process::{Child, ChildStdin};
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

use crate::log::Lines;
use crate::server::{Call, RuntimeApi, Work};
use crate::trace::Trace;
use crate::{FunctionError, FunctionSpec, InvokeError, Log, process};

/// Time that a process has from its start to its first request for an invocation (AWS: 10 s). If
/// the function's timeout is longer, the timeout applies instead.
const INIT_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct Job {
    pub(crate) payload: Bytes,
    pub(crate) trace: Trace,
    pub(crate) reply: oneshot::Sender<Result<Bytes, InvokeError>>,
    /// Whether to kill the process after it has received the payload.
    pub(crate) crash: bool,
}

/// One function's invocations that no environment has taken yet.
pub(crate) type Queue = Arc<Mutex<mpsc::Receiver<Job>>>;

pub(crate) struct Environment {
    pub(crate) spec: Arc<FunctionSpec>,
    pub(crate) queue: Queue,
    pub(crate) log: Log,
    pub(crate) lines: Arc<Lines>,
}

struct Runtime {
    child: Child,
    /// Standard input of the function's process. It closes when the local system ends for any
    /// reason, and then the function's process ends, too.
    _alive: Option<ChildStdin>,
    api: RuntimeApi,
}

impl Environment {
    /// Takes invocations until `stop` becomes true, then ends the process. Signals `ready` when the
    /// first process is ready or has failed to start.
    pub(crate) async fn run(self, mut stop: watch::Receiver<bool>, ready: oneshot::Sender<()>) {
        let mut slot = None;
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => {}
            () = self.work(&mut slot, ready) => {}
        }
        if let Some(mut runtime) = slot {
            process::terminate(&mut runtime.child).await;
        }
    }

    async fn work(&self, slot: &mut Option<Runtime>, ready: oneshot::Sender<()>) {
        if let Err(failure) = self.begin(slot).await {
            self.log.tell(&self.spec.name, &failure.to_string());
        }
        // If the environment was added because of load, no task waits for this signal.
        let _ = ready.send(());
        loop {
            let job = tokio::select! {
                biased;
                reason = lost(slot) => {
                    self.log.tell(&self.spec.name, &reason);
                    *slot = None;
                    continue;
                }
                job = async { self.queue.lock().await.recv().await } => job,
            };
            let Some(job) = job else { return };
            if job.reply.is_closed() {
                continue; // The caller has given up. AWS would not start the invocation either.
            }
            let request_id = uuid::Uuid::new_v4().to_string();
            let begun = match slot {
                Some(_) => Ok(()),
                None => self.begin(slot).await,
            };
            let outcome = match (begun, slot.as_mut()) {
                (Ok(()), Some(runtime)) => self.serve(runtime, &request_id, job.payload, job.trace, job.crash).await,
                (Err(failure), _) => Outcome::Lost(failure),
                (Ok(()), None) => Outcome::Lost(exited(&request_id, "Runtime is gone")),
            };
            let result = match outcome {
                Outcome::Answered(answer) => answer,
                Outcome::Lost(failure) => {
                    *slot = None;
                    Err(failure)
                }
            };
            // An error is ignored, because the caller may no longer wait for the result.
            let _ = job.reply.send(result.map_err(InvokeError::Function));
            self.settle(slot).await;
        }
    }

    /// Starts a process and waits until it requests its first invocation.
    async fn begin(&self, slot: &mut Option<Runtime>) -> Result<(), FunctionError> {
        let failed = |error: std::io::Error| {
            FunctionError::new("Runtime.InvalidEntrypoint", format!("cannot be started: {error}"))
        };
        let api = RuntimeApi::listen().await.map_err(failed)?;
        let stream = format!("{:016x}", fastrand::u64(..));
        let variables = self.spec.variables(&api.address.to_string(), &stream);
        let mut child = process::spawn(&self.spec, variables, self.log, &self.lines).map_err(failed)?;
        let alive = child.stdin.take();
        let runtime = slot.insert(Runtime { child, _alive: alive, api });

        let deadline = Instant::now() + INIT_TIMEOUT.max(self.spec.timeout);
        let ready = timeout_at(deadline, runtime.until_waiting()).await;
        let failure = match ready {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(failure)) => failure,
            Err(_) => FunctionError::new("Sandbox.Timedout", "Init timed out"),
        };
        *slot = None;
        Err(failure)
    }

    /// Hands the invocation to the runtime. Waits for its result, the end of the process, or the
    /// timeout.
    async fn serve(
        &self,
        runtime: &mut Runtime,
        request_id: &str,
        payload: Bytes,
        trace: Trace,
        crash: bool,
    ) -> Outcome {
        let timeout = self.spec.timeout;
        let deadline = Instant::now() + timeout;
        let work = Work {
            request_id: request_id.to_owned(),
            deadline_ms: (SystemTime::now() + timeout).duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis()),
            function_arn: self.spec.arn(),
            trace_id: trace.header(),
            payload,
        };
        let mut handed_over = crash.then(|| runtime.api.handed_over.subscribe());
        if runtime.api.work.send(work).await.is_err() {
            return Outcome::Lost(exited(request_id, "Runtime API is gone"));
        }
        let Runtime { child, api, .. } = runtime;
        loop {
            tokio::select! {
                // If the process ended directly after it sent a result, the result counts.
                biased;
                call = api.calls.recv() => match call {
                    Some(Call::Finished(answer)) => return Outcome::Answered(answer),
                    Some(Call::InitFailed(failure)) => return Outcome::Lost(failure),
                    Some(Call::Waiting) => {}
                    None => return Outcome::Lost(exited(request_id, "Runtime API is gone")),
                },
                () = until_handed_over(&mut handed_over) => {
                    // The kill fails only if the process has already exited. `child.wait()` below
                    // reports that.
                    let _ = child.start_kill();
                    handed_over = None;
                }
                status = child.wait() => {
                    return Outcome::Lost(exited(request_id, &process::describe(status)));
                }
                () = tokio::time::sleep_until(deadline) => {
                    let message = format!(
                        "RequestId: {request_id} Error: Task timed out after {} seconds",
                        timeout.as_secs()
                    );
                    return Outcome::Lost(FunctionError::new("Sandbox.Timedout", message));
                }
            }
        }
    }

    /// Waits, after an invocation, until the runtime requests the next invocation. Otherwise a
    /// process that is about to exit could get the next invocation.
    async fn settle(&self, slot: &mut Option<Runtime>) {
        let Some(runtime) = slot else { return };
        let deadline = Instant::now() + self.spec.timeout;
        let reason = match timeout_at(deadline, runtime.until_waiting()).await {
            Ok(Ok(())) => return,
            Ok(Err(failure)) => failure.to_string(),
            Err(_) => "Runtime did not request the next invocation".to_owned(),
        };
        self.log.tell(&self.spec.name, &reason);
        *slot = None;
    }
}

enum Outcome {
    /// The function returned a response or an error. The process keeps running.
    Answered(Result<Bytes, FunctionError>),
    /// The process has exited or must be ended.
    Lost(FunctionError),
}

impl Runtime {
    async fn until_waiting(&mut self) -> Result<(), FunctionError> {
        let Self { child, api, .. } = self;
        loop {
            tokio::select! {
                biased;
                call = api.calls.recv() => match call {
                    Some(Call::Waiting) => return Ok(()),
                    Some(Call::InitFailed(failure)) => return Err(failure),
                    Some(Call::Finished(_)) => {}
                    None => return Err(FunctionError::new("Runtime.ExitError", "Runtime API is gone")),
                },
                status = child.wait() => {
                    let message = process::describe(status);
                    return Err(FunctionError::new("Runtime.ExitError", message));
                }
            }
        }
    }
}

async fn lost(slot: &mut Option<Runtime>) -> String {
    match slot {
        Some(runtime) => process::describe(runtime.child.wait().await),
        None => std::future::pending().await,
    }
}

/// Waits until the runtime has received the invocation. Never returns for `None`.
async fn until_handed_over(handed_over: &mut Option<watch::Receiver<u64>>) {
    if let Some(changes) = handed_over
        // The wait fails only if the Runtime API has ended, which `serve` notices, too.
        && changes.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

fn exited(request_id: &str, reason: &str) -> FunctionError {
    let message = format!("RequestId: {request_id} Error: {reason}");
    FunctionError::new("Runtime.ExitError", message)
}
