//! Runs all of template.yaml on one machine, with nothing to install.
//!
//! [`System::start`] creates the table and runs every function in separate processes behind a
//! Lambda Runtime API. It feeds the functions from the table's stream and the event bus, invokes
//! them on schedule, and serves the template's routes. The functions are the deployed code. Only
//! the addresses in their environment differ.
//!
//! A function may do only what its policies in the template allow. The system checks and counts a
//! function's requests to the table, the bus, the buckets, the mail service, the search engine and
//! CloudWatch. For a function that consumes a stream or a queue, the system reads the records or
//! messages with the function's role. It checks and counts these reads too. `GET /_local/grants`
//! returns the counts. A refused request gets AWS's error response.
//!
//! Web pages may call the gateway if the template's `CorsConfiguration` allows their origin.
//!
//! `bodega`, the program of this crate, is a thin command line around the system ([`cli`]). The
//! processes of the functions run the same program ([`functions`]).
//!
//! ```text
//!  client ─▶ gateway ─▶ functions ─▶ fault proxy ─▶ table ─┐
//!             routes,    one process   (or DynamoDB Local)  │ stream
//!             tokens     each          ┌────────────────────┘
//!                          ▲           ▼
//!                          ├─────── poller          search engine (or OpenSearch)
//!                          └─────── subscribers ◀── event bus     buckets     mail
//! ```

mod backends;
mod built_in;
pub mod cli;
mod control;
mod crash;
mod demo;
mod docs;
mod doctor;
mod dynamodb;
pub mod functions;
pub mod gateway;
mod grants;
pub mod import;
mod mappings;
mod options;
mod schedules;
mod site;
mod streams;
mod subscribers;
mod system;
pub mod token;

pub use options::Options;
pub use runtime_api::Log;
pub use system::{StartError, System};
