//! The local system: everything that template.yaml describes, on one machine, with nothing to install.
//!
//! [`System::start`] creates the table, runs every function as processes of its own behind a Lambda
//! Runtime API, feeds them from the table's stream and from the event bus, invokes them on schedule, and
//! serves the routes of the template. The functions are the deployed code; only the addresses that they find in their environment differ.
//! A function may do here what its policies in the template allow, and nothing else: every call of one to the table, the bus, the buckets, the mail
//! service or the search engine, and every read of the stream or a queue in its name, is checked and counted (`GET /_local/grants`), and refused as AWS
//! refuses it. Pages of other origins may call the gateway as the template's `CorsConfiguration` says.
//! `bodega`, the program of this crate, is a thin command line around it ([`cli`]), and starts itself
//! again as each function ([`functions`]).
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
mod docs;
mod dynamodb;
pub mod functions;
mod gateway;
mod grants;
pub mod import;
mod issuer;
mod mappings;
mod options;
mod schedules;
mod streams;
mod subscribers;
mod system;
pub mod token;

pub use options::Options;
pub use runtime_api::Log;
pub use system::{StartError, System};
