use std::collections::HashMap;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::environment::{Environment, Job, Queue};
use crate::faults::{FaultKind, Faults};
use crate::log::{Line, Lines};
use crate::trace::Trace;
use crate::{FunctionError, FunctionSpec, InvokeError, Log, MAX_PAYLOAD};

/// Maximum number of queued invocations of one function. When it is reached, callers wait.
const QUEUE: usize = 1024;
/// Delay of an invocation that [`FaultKind::Slow`] hits.
const SLOW: Duration = Duration::from_millis(300);

/// A set of running functions. [`Functions::shutdown`] ends their processes in an orderly way.
/// Dropping the value kills them.
pub struct Functions {
    pools: HashMap<String, Pool>,
    environments: StdMutex<JoinSet<()>>,
    stop: watch::Sender<bool>,
    log: Log,
    lines: Arc<Lines>,
}

struct Pool {
    spec: Arc<FunctionSpec>,
    jobs: mpsc::Sender<Job>,
    queue: Queue,
    load: Arc<StdMutex<Load>>,
    faults: Faults,
}

#[derive(Default)]
struct Load {
    invocations: usize,
    environments: usize,
}

impl Functions {
    /// Starts one execution environment of each function and returns when all of them are ready. If
    /// an environment fails to start, the log shows the error. As in Lambda, the function's next
    /// invocation then starts the environment again.
    pub async fn start(specs: Vec<FunctionSpec>, log: Log) -> Self {
        let mut pools = HashMap::with_capacity(specs.len());
        for spec in specs {
            let (jobs, queue) = mpsc::channel(QUEUE);
            let pool = Pool {
                spec: Arc::new(spec),
                jobs,
                queue: Arc::new(Mutex::new(queue)),
                load: Arc::default(),
                faults: Faults::default(),
            };
            pools.insert(pool.spec.name.clone(), pool);
        }
        let (environments, stop) = (StdMutex::new(JoinSet::new()), watch::Sender::new(false));
        let functions = Self { pools, environments, stop, log, lines: Arc::default() };
        let mut warm = Vec::with_capacity(functions.pools.len());
        for pool in functions.pools.values() {
            lock(&pool.load).environments += 1;
            warm.push(functions.add_environment(pool));
        }
        for ready in warm {
            // The signal is missing only if the environment was stopped.
            let _ = ready.await;
        }
        functions
    }

    /// Invokes the function `name` and returns its response.
    ///
    /// The wait until `deadline` includes the wait for a free environment. The function's own
    /// timeout starts when the function receives the payload.
    ///
    /// # Errors
    /// [`InvokeError`]. After [`InvokeError::Deadline`] the function may still be running.
    pub async fn invoke(&self, name: &str, payload: Bytes, deadline: Instant) -> Result<Bytes, InvokeError> {
        self.invoke_in(Trace::begin(), name, payload, deadline).await
    }

    /// Works like [`Functions::invoke`], in a trace that the caller knows.
    ///
    /// # Errors
    /// [`InvokeError`].
    pub async fn invoke_in(
        &self,
        trace: Trace,
        name: &str,
        payload: Bytes,
        deadline: Instant,
    ) -> Result<Bytes, InvokeError> {
        let Some(pool) = self.pools.get(name) else {
            return Err(InvokeError::UnknownFunction(name.to_owned()));
        };
        if payload.len() > MAX_PAYLOAD {
            return Err(InvokeError::PayloadTooLarge(payload.len()));
        }
        let strike = pool.faults.draw();
        match strike {
            Some(FaultKind::Throttle) => return Err(InvokeError::Throttled),
            Some(FaultKind::Error) => {
                return Err(FunctionError::new("Injected.Error", "this fault was injected").into());
            }
            Some(FaultKind::Timeout) => {
                let message = format!("Error: Task timed out after {} seconds", pool.spec.timeout.as_secs());
                return Err(FunctionError::new("Sandbox.Timedout", message).into());
            }
            Some(FaultKind::Slow) => sleep_until(deadline.min(Instant::now() + SLOW)).await,
            Some(FaultKind::Crash) | None => {}
        }
        let _counted = self.count(pool);
        let (reply, answer) = oneshot::channel();
        let job = Job { payload, trace, reply, crash: strike == Some(FaultKind::Crash) };
        let mut stop = self.stop.subscribe();
        let work = async {
            let sent = pool.jobs.send(job).await;
            sent.map_err(|_| InvokeError::Stopped)?;
            answer.await.map_err(|_| InvokeError::Stopped)?
        };
        let work = async {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => Err(InvokeError::Stopped),
                answer = work => answer,
            }
        };
        timeout_at(deadline, work).await.map_err(|_| InvokeError::Deadline)?
    }

    /// Returns the fault rules of the function `name`, or `None` if there is no such function.
    #[must_use]
    pub fn faults(&self, name: &str) -> Option<&Faults> {
        self.pools.get(name).map(|pool| &pool.faults)
    }

    /// Returns the program, environment and limits of the function `name`, or `None` if there is no
    /// such function. With them, the caller can start the program without [`Functions`].
    #[must_use]
    pub fn spec(&self, name: &str) -> Option<&FunctionSpec> {
        self.pools.get(name).map(|pool| &*pool.spec)
    }

    /// Returns the newest lines that the functions have written, at most `limit`, oldest first.
    ///
    /// `function` selects one function, and `None` selects all. Lines without the text `containing`
    /// are left out. Old lines have been dropped, and a very new line may not have been read yet.
    #[must_use]
    pub fn lines(&self, function: Option<&str>, containing: &str, limit: usize) -> Vec<Line> {
        let of = |line: &Line| function.is_none_or(|name| line.function == name);
        self.lines.find(|line| of(line) && line.text.contains(containing), limit)
    }

    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.pools.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// Ends every process. A process that does not exit on request within 3 s is killed. Waiting
    /// and running invocations fail with [`InvokeError::Stopped`].
    pub async fn shutdown(&self) {
        self.stop.send_replace(true);
        let mut environments = std::mem::take(&mut *lock(&self.environments));
        while environments.join_next().await.is_some() {}
    }

    /// Counts an invocation. If the invocation would have to wait, starts another environment.
    fn count(&self, pool: &Pool) -> Counted {
        let mut load = lock(&pool.load);
        load.invocations += 1;
        if load.invocations > load.environments
            && load.environments < pool.spec.max_environments
            && !*self.stop.borrow()
        {
            load.environments += 1;
            self.add_environment(pool);
        }
        Counted(Arc::clone(&pool.load))
    }

    fn add_environment(&self, pool: &Pool) -> oneshot::Receiver<()> {
        let (ready, waiter) = oneshot::channel();
        let (spec, queue, lines) = (Arc::clone(&pool.spec), Arc::clone(&pool.queue), Arc::clone(&self.lines));
        let environment = Environment { spec, queue, log: self.log, lines };
        let stop = self.stop.subscribe();
        lock(&self.environments).spawn(environment.run(stop, ready));
        waiter
    }
}

/// Counts one invocation until the value is dropped.
struct Counted(Arc<StdMutex<Load>>);

impl Drop for Counted {
    fn drop(&mut self) {
        let mut load = lock(&self.0);
        load.invocations = load.invocations.saturating_sub(1);
    }
}

/// Locks a mutex, even after a panic of another holder. The values are consistent after every
/// statement.
fn lock<T>(mutex: &StdMutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
