//! Runs functions as AWS Lambda does: in separate processes behind a Lambda Runtime API.
//!
//! An execution environment is one process and one HTTP listener that serves the process the
//! [Runtime API](https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html). It handles one
//! invocation at a time. When all environments of a function are busy, [`Functions`] starts
//! another, up to the function's limit. At the limit, invocations wait in a queue.
//!
//! The local system therefore runs the deployed binary. The binary uses the same API and has the
//! same timeout. Only invocations that one environment handles in succession share memory.
//!
//! When a process dies, its invocation fails with `Runtime.ExitError`, and the next invocation
//! starts a new process. [`Functions::shutdown`] ends all processes. A process also ends when its
//! Runtime API closes.

mod environment;
mod error;
mod faults;
mod functions;
mod log;
mod process;
mod server;
mod spec;

pub use error::{FunctionError, InvokeError};
pub use faults::{Fault, FaultKind, Faults, RateError};
pub use functions::Functions;
pub use log::{Line, Log};
pub use spec::FunctionSpec;

/// Maximum size in bytes of an invocation's payload and of its response. AWS allows 6 MB, and 100
/// bytes for the response's envelope.
pub const MAX_PAYLOAD: usize = 6 * 1024 * 1024 + 100;
