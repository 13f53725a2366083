//! Finds the handler of a request.
//!
//! The gateway has already matched the path: its `routeKey` names the route, and its
//! `pathParameters` are decoded. So this module usually only looks up the route. Sources without a
//! gateway (`cargo lambda watch`, a function URL) send the route key `$default`. This module
//! matches the path itself only for requests from these sources. Like the gateway, it prefers the
//! more specific route.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use lambda_http::aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use lambda_http::http::StatusCode;
use telemetry::correlation;
use tracing::{Instrument as _, error, info_span, warn};

use crate::caching::Caching;
use crate::event::{Event, Pairs};
use crate::problem::{Code, Problem};
use crate::request::{Request, request_id};
use crate::response::{Reply, Response};
use crate::trail::StaffWrite;
use crate::url;

/// The time limit of a request that a test serves without a gateway. The limit is much longer than
/// the few seconds that a request takes, because a busy machine must not fail a test.
const TEST_TIME: Duration = Duration::from_secs(10 * 60);

/// The route key of a request that came without a gateway.
pub(crate) const DEFAULT: &str = "$default";

/// A handler's result. It is boxed, so that all handlers have one type.
pub type ResponseFuture<'a> = Pin<Box<dyn Future<Output = Result<Response, Problem>> + Send + 'a>>;

/// A handler. It takes the function's state and the request.
pub type Handler<S> = for<'a> fn(&'a S, &'a Request<'a>) -> ResponseFuture<'a>;

pub struct Routes<S> {
    routes: Vec<Route<S>>,
    /// Completes the responses of a protocol's routes that are not public.
    seal: Option<Seal<S>>,
    #[cfg(feature = "table")]
    checks: Option<Lookup<S>>,
}

/// Writes an error as a protocol wants it: the status, and the body as JSON.
pub type Speak = fn(&Problem) -> (StatusCode, String);

/// Completes a response, for example with a signature. The body stays as it is.
pub type Seal<S> = for<'a> fn(&'a S, &'a Request<'a>, Response) -> ResponseFuture<'a>;

/// The parts of a function's state that are needed to check a request before its handler runs.
#[cfg(feature = "table")]
#[derive(Debug, Clone, Copy)]
pub struct Checks<'a> {
    pub table: &'a table::Table,
    /// Tells whether a caller's session has ended.
    pub sign_ins: &'a crate::sign_ins::SignIns,
    /// Tells whether the shop is in maintenance.
    pub settings: &'a crate::settings::SettingsCache,
}

#[cfg(feature = "table")]
type Lookup<S> = for<'a> fn(&'a S) -> Checks<'a>;

/// A route of a function whose state is `S`.
#[derive(Clone, Copy)]
pub struct Route<S> {
    key: &'static str,
    handler: Handler<S>,
    /// Whether a write is served in maintenance, too.
    #[cfg_attr(not(feature = "table"), allow(dead_code, reason = "only the check of the settings reads it"))]
    always: bool,
    /// Whether the response is the same for every caller, so that caches may store it.
    public: bool,
    /// Writes the errors of a protocol's route. Other routes have `application/problem+json`.
    speak: Option<Speak>,
}

/// A state that has a part of the type `T`. A handler takes only the part that it needs.
pub trait Has<T> {
    fn part(&self) -> &T;
}

impl<T> Has<T> for T {
    fn part(&self) -> &T {
        self
    }
}

impl<S> Route<S> {
    #[must_use]
    pub const fn new(key: &'static str, handler: Handler<S>) -> Self {
        Self { key, handler, always: false, public: false, speak: None }
    }

    /// Serves the route's writes in maintenance, too.
    #[must_use]
    pub const fn always(self) -> Self {
        Self { always: true, ..self }
    }

    /// Lets this function write the route's errors.
    #[must_use]
    pub const fn speaking(self, speak: Speak) -> Self {
        Self { speak: Some(speak), ..self }
    }

    /// Lets caches store the response. It must not depend on the caller.
    #[must_use]
    pub const fn public(self) -> Self {
        Self { public: true, ..self }
    }
}

impl<S> fmt::Debug for Route<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key)
    }
}

/// A response with its values for the log.
#[derive(Debug)]
pub(crate) struct Served {
    pub reply: Reply,
    pub route: &'static str,
    pub request_id: String,
    pub code: Option<Code>,
    /// The staff member and the target, if the request is a write by staff.
    pub act: Option<StaffWrite>,
}

impl<S> Routes<S> {
    #[must_use]
    pub const fn new() -> Self {
        Self {
            routes: Vec::new(),
            seal: None,
            #[cfg(feature = "table")]
            checks: None,
        }
    }

    /// Adds two checks, which run before the handler. They refuse tokens whose session has ended,
    /// and writes while the shop is in maintenance.
    #[cfg(feature = "table")]
    #[must_use]
    pub fn checking(self, checks: Lookup<S>) -> Self {
        Self { checks: Some(checks), ..self }
    }

    /// Lets this function complete the responses of a protocol's routes that are not public.
    #[must_use]
    pub fn sealing(self, seal: Seal<S>) -> Self {
        Self { seal: Some(seal), ..self }
    }

    #[cfg(feature = "table")]
    async fn check(&self, app: &S, request: &Request<'_>, is_refusable: bool) -> Result<(), Problem> {
        let Some(checks) = self.checks else { return Ok(()) };
        let Checks { table, sign_ins, settings } = checks(app);
        sign_ins.check(table, request.caller()).await?;
        if is_refusable {
            crate::maintenance::refuse(&settings.current(table).await?.0)?;
        }
        Ok(())
    }

    /// Gives a problem of contention the Retry-After that follows from the measured waits.
    fn paced(&self, app: &S, problem: Problem, took: Duration) -> Problem {
        #[cfg(feature = "table")]
        if let Some(checks) = self.checks
            && problem.code() == Code::Throttled
            && !problem.has_retry_after()
        {
            return problem.retry_after(checks(app).table.pressure().gave_up(took));
        }
        let _ = (app, took);
        problem
    }

    #[must_use]
    pub fn with(mut self, route: Route<S>) -> Self {
        self.routes.push(route);
        self
    }

    /// Adds a route. The key is method and path as
    /// in the template: `GET /v1/orders/{id}`.
    #[must_use]
    pub fn on(self, key: &'static str, handler: Handler<S>) -> Self {
        self.with(Route::new(key, handler))
    }

    /// Adds a GET route whose response is the same for every caller ([`crate::caching`]).
    #[must_use]
    pub fn public(self, key: &'static str, handler: Handler<S>) -> Self {
        self.with(Route::new(key, handler).public())
    }

    /// Adds a route as [`Routes::on`] does. Its writes are served in maintenance, too.
    #[must_use]
    pub fn on_always(self, key: &'static str, handler: Handler<S>) -> Self {
        self.with(Route::new(key, handler).always())
    }

    /// Returns the keys of all routes, so that a test can compare them with the template.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.routes.iter().map(|route| route.key)
    }

    /// Returns the keys of the public GET routes.
    pub fn public_keys(&self) -> impl Iterator<Item = &'static str> {
        self.routes.iter().filter(|route| route.public).map(|route| route.key)
    }

    /// Returns how long caches may keep the response of a public route.
    async fn caching(&self, app: &S, route: &Route<S>) -> Option<Caching> {
        if !route.public {
            return None;
        }
        #[cfg(feature = "table")]
        if let Some(checks) = self.checks {
            let Checks { table, settings, .. } = checks(app);
            let known = settings.current(table).await;
            return Some(known.map_or_else(|_| Caching::default(), |(known, _)| Caching::of(&known.values)));
        }
        let _ = app;
        Some(Caching::default())
    }

    /// Serves one event like the deployed function, but without the log line. Tests call it.
    pub async fn answer(&self, app: &S, event: ApiGatewayV2httpRequest) -> ApiGatewayV2httpResponse {
        let event = serde_json::to_string(&event).ok();
        self.serve(app, event.as_deref(), "", TEST_TIME).await.reply.into()
    }

    /// Serves one event from text to text, as the runtime does. Tests with malformed events call
    /// it.
    pub async fn answer_text(&self, app: &S, event: &str) -> Result<String, serde_json::Error> {
        serde_json::to_string(&self.serve(app, Some(event), "", TEST_TIME).await.reply)
    }

    /// Serves an event. `event` is its text, or `None` if the text could not be read. Every event
    /// gets a response.
    pub(crate) async fn serve(&self, app: &S, event: Option<&str>, runtime_id: &str, time: Duration) -> Served {
        let Some(mut event) = event.and_then(Event::parse) else {
            let problem = Problem::new(
                Code::MalformedRequest,
                "The event is not a request of an HTTP API with payload format 2.0.",
            );
            return Served::problem(&problem, "unknown", request_id("", runtime_id), None);
        };
        let id = request_id(&event.request_id, runtime_id);
        let (route, path) = match self.find(&mut event) {
            Ok(found) => found,
            Err(problem) => return Served::problem(&problem, "unknown", id, None),
        };
        let request = Request::new(event, route.key, path, id, time);
        let (act, started) = (StaffWrite::of(&request), tokio::time::Instant::now());
        let span = info_span!("request", request_id = request.id(), route = route.key);
        async {
            // Only reads have query parameters, and only the handler knows their names. A read
            // changes nothing, so its unknown parameters are refused after its handler has run. A
            // write is refused before its handler runs if it has any query parameter.
            let reads = route.key.starts_with("GET ");
            let work = async {
                #[cfg(feature = "table")]
                self.check(app, &request, !reads && !route.always).await?;
                if !reads {
                    request.refuse_unread_parameters()?;
                }
                let response = (route.handler)(app, &request).await?;
                if reads {
                    request.refuse_unread_parameters()?;
                }
                let response = match self.seal.filter(|_| route.speak.is_some() && !route.public) {
                    Some(seal) => seal(app, &request, response).await?,
                    None => response,
                };
                Ok((response, self.caching(app, route).await))
            };
            let work = correlation::caused_by(request.cause(), work);
            let answer = match tokio::time::timeout(time, work).await {
                Ok(Ok((response, caching))) => response.into_reply(&request, caching),
                Ok(Err(problem)) => Err(self.paced(app, problem, started.elapsed())),
                Err(late) => Err(Problem::unavailable(late)),
            };
            match answer {
                Ok(reply) => Served { reply, route: route.key, request_id: request.id().to_owned(), code: None, act },
                Err(problem) => {
                    let id = request.id().to_owned();
                    Served { act, ..Served::problem(&problem, route.key, id, route.speak) }
                }
            }
        }
        .instrument(span)
        .await
    }

    fn find<'e>(&self, event: &mut Event<'e>) -> Result<(&Route<S>, Pairs<'e>), Problem> {
        let missing = || Problem::new(Code::NotFound, "There is no such route.");
        if event.route_key != DEFAULT {
            let route = self.routes.iter().find(|route| route.key == event.route_key).ok_or_else(missing)?;
            return Ok((route, std::mem::take(&mut event.path_parameters)));
        }
        let path =
            segments(&event.raw_path).ok_or_else(|| Problem::new(Code::MalformedRequest, "The path is not UTF-8."))?;
        let matching = self.routes.iter().filter_map(|route| {
            let (method, template) = route.key.split_once(' ')?;
            let parameters = bind(template, &path).filter(|_| method == event.method)?;
            Some((route, parameters))
        });
        // Of two matching routes, the more specific route has a literal segment where they first
        // differ.
        let best = matching.max_by_key(|(route, _)| literals(route.key));
        best.ok_or_else(missing)
    }
}

impl<S> Default for Routes<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> fmt::Debug for Routes<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.keys()).finish()
    }
}

impl Served {
    fn problem(problem: &Problem, route: &'static str, request_id: String, speak: Option<Speak>) -> Self {
        let (code, cause) = (problem.code().name(), problem.causes());
        if problem.status().is_server_error() {
            error!(code, cause, "the request failed");
        } else if cause.is_some() {
            warn!(code, cause, "the request was refused");
        }
        let reply = Reply::problem(problem, &request_id, speak);
        Self { reply, route, request_id, code: Some(problem.code()), act: None }
    }
}

/// Returns the segments of a path, each decoded once, or `None` when one is not UTF-8.
fn segments(path: &str) -> Option<Vec<String>> {
    let decode = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8().ok().map(Into::into);
    path.split('/').map(decode).collect()
}

/// Returns the values that an actual path has for the parameters of a route's path. Returns `None`
/// if the paths do not match.
fn bind(template: &str, path: &[String]) -> Option<Pairs<'static>> {
    if template.split('/').count() != path.len() {
        return None;
    }
    let mut parameters = Pairs::new();
    for (expected, given) in template.split('/').zip(path) {
        match url::parameter(expected) {
            // As in the gateway, a parameter has at least one character.
            Some(_) if given.is_empty() => return None,
            Some(name) => parameters.push((name.to_owned().into(), given.clone().into())),
            None if expected != given => return None,
            None => {}
        }
    }
    Some(parameters)
}

fn literals(key: &str) -> Vec<bool> {
    key.split('/').map(|segment| url::parameter(segment).is_none()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(template: &str, path: &str) -> Option<Vec<(String, String)>> {
        let parameters = bind(template, &segments(path)?)?;
        Some(parameters.into_iter().map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    #[test]
    fn a_path_is_decoded_once_and_segment_by_segment() {
        assert_eq!(bound("/v1/x/{id}", "/v1/x/a%2Fb%2525"), Some(vec![("id".to_owned(), "a/b%25".to_owned())]));
        assert_eq!(bound("/v1/x/{id}/y", "/v1/x/1/y"), Some(vec![("id".to_owned(), "1".to_owned())]));
        for other in ["/v1/x", "/v1/x/", "/v1/x/1/", "/v1/x/1/2", "/V1/x/1", "//v1/x/1", "/v1/x/%ff", ""] {
            assert_eq!(bound("/v1/x/{id}", other), None, "{other}");
        }
    }

    #[test]
    fn a_literal_segment_is_more_specific_than_a_parameter() {
        assert!(literals("POST /v1/products/import") > literals("POST /v1/products/{id}"));
        assert!(literals("GET /v1/a/{x}/c") < literals("GET /v1/a/b/{x}"));
    }

    #[tokio::test]
    async fn a_handlers_correlation_id_is_the_valid_id_of_its_request_or_none() {
        let routes = Routes::new().on("GET /v1/x", |(), _| {
            Box::pin(async { Ok(Response::ok(&correlation::cause().as_deref().unwrap_or("nobody"))) })
        });
        let of = |id: &str| {
            format!(r#"{{"routeKey":"GET /v1/x","requestContext":{{"requestId":"{id}","http":{{"method":"GET"}}}}}}"#)
        };
        for (id, named, cause) in
            [("JKJaXmPLvHcESHA=", "JKJaXmPLvHcESHA=", "JKJaXmPLvHcESHA="), ("two words", "unknown", "nobody")]
        {
            let served = routes.serve(&(), Some(&of(id)), "", Duration::from_secs(1)).await;
            assert_eq!(served.reply.headers.get("x-request-id").map(String::as_str), Some(named));
            assert_eq!(served.reply.body, Some(format!("\"{cause}\"")));
        }
        assert_eq!(correlation::cause(), None);
    }
}
