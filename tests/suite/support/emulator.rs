//! The Lambda Runtime Interface Emulator of AWS, which runs a function's own program.

use std::collections::HashMap;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use runtime_api::{FunctionError, FunctionSpec, Functions, InvokeError};
use serde_json::Value as Json;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::{Instant, interval, timeout, timeout_at};

/// The maximum wait until an emulator listens.
const START: Duration = Duration::from_secs(20);
/// An attempt fails if another process takes the port.
const ATTEMPTS: usize = 3;
/// The path for invocations. For every function, it contains the literal name `function`.
const INVOCATIONS: &str = "2015-03-31/functions/function/invocations";

/// The running emulators, one for each invoked function. Each passes the local system's environment
/// variables to its function.
///
/// Dropping the value kills the emulators, and their functions end with them.
pub struct Emulators {
    program: PathBuf,
    /// The inner lock serializes the invocations of an emulator, because it takes only one at a
    /// time.
    running: Mutex<HashMap<String, Arc<Mutex<Option<Emulator>>>>>,
}

struct Emulator {
    url: String,
    _process: Child,
}

impl Emulators {
    /// Reads the emulator's path from `BODEGA_RIE`. Returns `None` if the variable is empty or not
    /// set.
    ///
    /// Emulators need the functions' own programs. The local program would exit at once, because
    /// the emulator gives it no standard input.
    pub fn from_environment() -> Option<Self> {
        let program = std::env::var_os("BODEGA_RIE").filter(|program| !program.is_empty())?;
        assert!(std::env::var_os("BODEGA_BOOTSTRAPS").is_some(), "BODEGA_RIE requires BODEGA_BOOTSTRAPS");
        Some(Self { program: program.into(), running: Mutex::default() })
    }

    /// Invokes the function `name`, like [`Functions::invoke`].
    pub async fn invoke(
        &self,
        functions: &Functions,
        name: &str,
        payload: String,
        deadline: Instant,
    ) -> Result<Bytes, InvokeError> {
        let spec = functions.spec(name).ok_or_else(|| InvokeError::UnknownFunction(name.to_owned()))?;
        let emulator = Arc::clone(self.running.lock().await.entry(name.to_owned()).or_default());
        let mut emulator = timeout_at(deadline, emulator.lock()).await.map_err(|_| InvokeError::Deadline)?;
        let running = match emulator.take() {
            Some(running) => running,
            None => Emulator::start(&self.program, spec).await,
        };
        let answer = timeout_at(deadline, running.post(payload)).await.map_err(|_| InvokeError::Deadline)?;
        // An emulator is not used again after a timeout, because it is still busy, and a second
        // invocation would end the first one.
        *emulator = Some(running);
        answer.map_err(InvokeError::Function)
    }
}

impl Emulator {
    async fn start(program: &Path, spec: &FunctionSpec) -> Self {
        for _ in 0..ATTEMPTS {
            let (address, runtime_api) = (free_address(), free_address());
            let mut process = spawn(program, spec, address, runtime_api);
            if listens(&mut process, address).await {
                return Self { url: format!("http://{address}/{INVOCATIONS}"), _process: process };
            }
        }
        panic!("no emulator starts for {}: see {}", spec.name, log(&spec.name).display());
    }

    /// Sends an invocation. The emulator responds with 200 even if the function fails. The body
    /// then has `errorType` and `errorMessage`.
    async fn post(&self, payload: String) -> Result<Bytes, FunctionError> {
        let answer = reqwest::Client::new().post(&self.url).body(payload).send().await.unwrap();
        let status = answer.status();
        let body = answer.bytes().await.unwrap();
        let json: Json = serde_json::from_slice(&body).unwrap_or_default();
        if let (Some(kind), Some(message)) = (json["errorType"].as_str(), json["errorMessage"].as_str()) {
            return Err(FunctionError { error_type: kind.to_owned(), message: message.to_owned() });
        }
        // If the function runs out of time, for example, the body is not JSON or the status is an
        // error.
        if json.is_null() && &body[..] != b"null" || !status.is_success() {
            let message = format!("{status}: {}", String::from_utf8_lossy(&body));
            return Err(FunctionError { error_type: "Emulator".to_owned(), message });
        }
        Ok(body)
    }
}

fn spawn(program: &Path, spec: &FunctionSpec, address: SocketAddr, runtime_api: SocketAddr) -> Child {
    let log = File::create(log(&spec.name)).unwrap();
    let mut command = Command::new(program);
    command
        .args(["--log-level", "error", "--runtime-interface-emulator-address", &address.to_string()])
        .args(["--runtime-api-address", &runtime_api.to_string()])
        .arg(&spec.program)
        .args(&spec.args)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("AWS_LAMBDA_FUNCTION_NAME", &spec.name)
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", spec.memory_mb.to_string())
        .env("AWS_LAMBDA_FUNCTION_TIMEOUT", spec.timeout.as_secs().to_string())
        .env("AWS_LAMBDA_LOG_FORMAT", "JSON")
        .env("_HANDLER", &spec.handler)
        .envs(&spec.environment)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .kill_on_drop(true);
    command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display()))
}

fn log(function: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("emulator-{function}.log"))
}

fn free_address() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

/// Returns `false` if the process ends first or if the wait exceeds [`START`].
async fn listens(process: &mut Child, address: SocketAddr) -> bool {
    let mut tries = interval(Duration::from_millis(20));
    let connected = async {
        while TcpStream::connect(address).await.is_err() {
            tries.tick().await;
        }
    };
    tokio::select! {
        biased;
        _ = process.wait() => false,
        connected = timeout(START, connected) => connected.is_ok(),
    }
}
