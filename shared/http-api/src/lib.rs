//! The HTTP layer of the functions: routes, identity, bodies, problems, ETags, idempotency keys and
//! pages.
//!
//! A function has a set of routes, and a state that it builds once:
//!
//! ```
//! use http_api::{Measured, Problem, Request, Response, Routes};
//!
//! struct App;
//! impl Measured for App {}
//!
//! pub fn routes() -> Routes<App> {
//!     Routes::new().on("GET /v1/things/{id}", |app, request| Box::pin(get(app, request)))
//! }
//!
//! async fn get(_: &App, request: &Request<'_>) -> Result<Response, Problem> {
//!     request.signed_in()?;
//!     let id: key_schema::id::ProductId = request.path("id")?;
//!     Ok(Response::ok(&serde_json::json!({ "id": id })).etag(1))
//! }
//! ```
//!
//! The crate uses `lambda_runtime` and the types that `lambda_http` exports, but not the adapter of
//! `lambda_http`. That adapter panics on some events that a client can cause (see the `event`
//! module). This crate responds to every event.

pub mod address;
pub mod body;
pub mod caching;
mod code;
mod conditions;
mod content;
pub mod contract;
mod event;
mod failure;
pub mod fields;
#[cfg(test)]
mod hostile;
pub mod identity;
pub mod json;
#[cfg(feature = "table")]
mod list;
#[cfg(feature = "table")]
pub mod maintenance;
mod observe;
#[cfg(feature = "table")]
mod once;
mod page;
mod problem;
mod reason;
mod request;
mod response;
mod routes;
pub mod sample;
#[cfg(feature = "table")]
mod services;
#[cfg(feature = "table")]
mod settings;
#[cfg(feature = "table")]
mod sign_ins;
mod trail;
pub mod url;
pub mod view;

// The macros of `contract` name this crate.
extern crate self as http_api;

use std::pin::Pin;
use std::time::{Duration, Instant, SystemTime};

use lambda_runtime::LambdaEvent;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub use crate::body::{FieldPatch, Invalid, Object};
#[cfg(feature = "table")]
pub use crate::conditions::change_version;
pub use crate::conditions::{MAX_IDEMPOTENCY_KEY, Precondition};
pub use crate::content::{BODY_LIMIT, MAX_BODY_BYTES};
pub use crate::identity::{Caller, Owner, SignedIn, Staff};
#[cfg(feature = "table")]
pub use crate::list::List;
pub use crate::observe::{Measured, PatternCost};
#[cfg(feature = "table")]
pub use crate::once::Once;
pub use crate::page::{DEFAULT_LIMIT, Keys, MAX_LIMIT, MAX_PAGE_BYTES, PageRequest};
pub use crate::problem::{Cause, Code, FieldError, Problem};
pub use crate::reason::Reason;
pub use crate::request::Request;
use crate::response::Reply;
pub use crate::response::Response;
#[cfg(feature = "table")]
pub use crate::routes::Checks;
pub use crate::routes::{Handler, Has, ResponseFuture, Route, Routes, Seal, Speak};
#[cfg(feature = "table")]
pub use crate::services::{SHARED_PATTERNS, Services, Webhooks};
#[cfg(feature = "table")]
pub use crate::settings::{MAX_AGE as SETTINGS_MAX_AGE, SettingsCache};
#[cfg(feature = "table")]
pub use crate::sign_ins::{MAX_AGE as SIGN_IN_MAX_AGE, SignIns};
pub use lambda_http::http::StatusCode;
pub use lambda_runtime::{Context, Error};

/// The part of an invocation's time that is reserved for the response to a timeout.
const DEADLINE_MARGIN: Duration = Duration::from_millis(300);

/// Handles an event that is no request. The result is that of the invocation.
pub type Hear<S> =
    for<'a> fn(&'a S, &'a str, &'a Context) -> Pin<Box<dyn Future<Output = Result<Value, Error>> + Send + 'a>>;

/// The result of an invocation.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Reply(Reply),
    Heard(Value),
}

/// Serves the function's events one after the other, until the environment ends. Prints a log line
/// with the metrics for each event, and a second line for a throttled request.
pub async fn run<S: Measured>(routes: Routes<S>, app: S) -> Result<(), Error> {
    serve(routes, app, None).await
}

/// Serves requests as [`run`] does, and lets `hear` handle all other events.
pub async fn run_and_hear<S: Measured>(routes: Routes<S>, app: S, hear: Hear<S>) -> Result<(), Error> {
    serve(routes, app, Some(hear)).await
}

async fn serve<S: Measured>(routes: Routes<S>, app: S, hear: Option<Hear<S>>) -> Result<(), Error> {
    let (routes, app) = (&routes, &app);
    lambda_runtime::run(lambda_runtime::service_fn(move |event: LambdaEvent<Payload>| async move {
        let started = Instant::now();
        let context = &event.context;
        let text = event.payload.0.as_deref().map(RawValue::get);
        if let (Some(hear), Some(text)) = (hear, text)
            && event::Event::parse(text).is_none()
        {
            return hear(app, text, context).await.map(Answer::Heard);
        }
        let served = routes.serve(app, text, &context.request_id, time_left(context.deadline())).await;
        let trace = context.xray_trace_id.as_deref();
        observe::line(&served, started.elapsed(), &app.take(), &context.request_id, trace).print();
        if let Some(line) = observe::throttled(&served) {
            line.print();
        }
        Ok(Answer::Reply(served.reply))
    }))
    .await
}

/// Returns the handler's time limit, which is a little shorter than Lambda's time limit. After the
/// limit the client gets a problem with a code rather than Lambda's error. The interrupted work
/// may or may not have taken effect.
fn time_left(deadline: SystemTime) -> Duration {
    telemetry::time_left(deadline).saturating_sub(DEADLINE_MARGIN)
}

/// The text of an event with any content. Deserializing it never fails. If it failed, the runtime
/// would report a function error, and the client would see a 500 without an explanation.
struct Payload(Option<Box<RawValue>>);

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Box::<RawValue>::deserialize(deserializer).ok()))
    }
}
