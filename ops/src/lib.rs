//! The operations tool: what operators do with a running shop.
//!
//! It stands on the crates that the functions stand on and reads the same environment variables, so what a command writes is
//! what a function would have written. Every command may be stopped at any time and given again: none has a state of its own, each works on what
//! is still to be done.
//!
//! Only this tool reads the whole table ([`items`]): the functions have neither the need nor the permission.
//!
//! Summaries go to standard output, as text or with `--json`; progress bars to standard error, if that is a terminal. Exit status 0: done;
//! 1: something is wrong or left to do, the summary says what; 2: the command cannot be meant so; 3: table, engine or bucket cannot be reached.

pub mod archive;
pub mod cli;
pub mod error;
pub mod items;
mod local;
pub mod orders;
pub mod outcome;
pub mod pace;
pub mod progress;
pub mod redrive;
pub mod search;

pub use error::OpsError;
pub use items::Items;
pub use outcome::Outcome;
pub use pace::Pace;
