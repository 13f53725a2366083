//! Runs functions as AWS Lambda does: in separate processes behind a Lambda Runtime API.
//!
//! An execution environment is one process, and one HTTP listener with the [Runtime
//! API](https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html) for this process. It
//! handles one invocation at a time. When all environments of a function are busy, [`Functions`]
//! starts another environment, up to the function's limit. At the limit, invocations wait in a
//! queue.
//!
//! So the local system can run the deployed binaries, with the API and the timeouts that they have
//! in Lambda. As in Lambda, only successive invocations of one environment share memory.
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
mod trace;

pub use error::{FunctionError, InvokeError};
pub use faults::{Fault, FaultKind, Faults, RateError};
pub use functions::Functions;
pub use log::{Line, Log};
pub use spec::FunctionSpec;
pub use trace::Trace;

/// Maximum size in bytes of an invocation's payload and of its response. AWS allows 6 MB, and 100
/// bytes for the envelope of the response.
pub const MAX_PAYLOAD: usize = 6 * 1024 * 1024 + 100;
