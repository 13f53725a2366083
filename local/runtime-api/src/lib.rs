//! Runs functions as Lambda runs them: each in processes of its own, behind a Lambda Runtime API.
//!
//! An execution environment is one process and one HTTP listener that speaks the
//! [Runtime API](https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html) to it. It handles one
//! invocation at a time. When every environment of a function is busy another is started, up to the
//! function's bound; beyond that invocations wait their turn. What runs is therefore what is deployed:
//! the same binary asks the same API for its work, is stopped at the same timeout, and whatever it
//! keeps in memory is shared only between the invocations that one environment handles in a row.
//!
//! A process that dies answers its invocation with `Runtime.ExitError`, and the next invocation starts
//! it again. Processes end with [`Functions::shutdown`], or as soon as their Runtime API is gone.

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

/// Most bytes of an invocation's payload and of its answer (AWS: 6 MB, and 100 bytes for the answer's
/// envelope).
pub const MAX_PAYLOAD: usize = 6 * 1024 * 1024 + 100;
