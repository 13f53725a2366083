//! `/_local/faults`: makes a backend or a function fail.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use emulators::faults::{Fault, FaultKind, Faults};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use telemetry::crash::{Plan, PlanError};

use super::Control;
use super::answer::Problem;

const FUNCTION: &str = "function:";

/// The body of a request, such as
/// `{"target":"table","kind":"throttle","rate":0.3,"count":10,"seed":1}`.
///
/// `rate` is the share of requests or invocations that are hit. For a crash point it is the share
/// of passes through the point. `count` is the maximum number of hits. The same `seed` selects the
/// same hits. `key` restricts a fault of the table to items whose partition key has this prefix,
/// such as `COUNTER#product:1#`. The `kind` `clock` sets the clock of a function's processes
/// forward or back by the number in `seconds`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    target: String,
    kind: String,
    #[serde(default = "always")]
    rate: f64,
    count: Option<u32>,
    #[serde(default)]
    seed: u64,
    /// The fault hits only requests for items whose partition key has this prefix. Without a
    /// prefix, the fault can hit every request.
    key: Option<String>,
    /// The crash point at which the function crashes. Without a point, the function crashes when it
    /// has received its event.
    point: Option<String>,
    /// Seconds by which a function's clock is set forward or back.
    seconds: Option<i64>,
}

fn always() -> f64 {
    1.0
}

/// Lists the active faults by target, each with its number of hits.
pub(super) async fn list(State(control): State<Arc<Control>>) -> Json<Value> {
    let mut all = serde_json::Map::new();
    for (name, faults) in backends(&control) {
        all.insert(name.to_owned(), faults.map(|faults| json!(faults.counts())).unwrap_or_else(|| json!([])));
    }
    for name in control.functions.names() {
        let Some(faults) = control.functions.faults(name) else { continue };
        let counts = faults.counts().into_iter().map(|(fault, fired)| {
            let rule =
                json!({"kind": kind_name(fault.kind), "rate": fault.rate, "count": fault.count, "seed": fault.seed});
            json!({"fault": rule, "fired": fired})
        });
        let points = control.crash_points.armed(name).into_iter().map(|(point, plan)| {
            let rule = json!({
                "kind": "crash", "point": point, "rate": plan.rate, "count": plan.count, "seed": plan.seed,
            });
            json!({"fault": rule, "fired": plan.struck, "passes": plan.passes})
        });
        let entries: Vec<Value> = counts.chain(points).collect();
        if !entries.is_empty() {
            all.insert(format!("{FUNCTION}{name}"), entries.into());
        }
    }
    Json(all.into())
}

pub(super) async fn add(
    State(control): State<Arc<Control>>,
    request: Result<Json<Request>, JsonRejection>,
) -> Result<StatusCode, Problem> {
    let Json(request) = request.map_err(|error| Problem::bad_request(error.body_text()))?;
    match request.target.strip_prefix(FUNCTION) {
        Some(name) => add_to_function(&control, name, &request)?,
        None => add_to_backend(&control, &request)?,
    }
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn clear(State(control): State<Arc<Control>>) -> Result<StatusCode, Problem> {
    for faults in backends(&control).into_iter().filter_map(|(_, faults)| faults) {
        faults.clear();
    }
    for name in control.functions.names() {
        if let Some(faults) = control.functions.faults(name) {
            faults.clear();
        }
        control.crash_points.disarm(name).map_err(|error| Problem::failed(&error))?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// An external search engine has no fault rules.
fn backends(control: &Control) -> [(&'static str, Option<&Faults>); 8] {
    let backends = &control.backends;
    [
        ("table", Some(backends.proxy.faults())),
        ("search", backends.search.as_ref().map(|search| search.faults())),
        ("bus", Some(backends.events.faults())),
        ("store", Some(backends.objects.faults())),
        ("mail", Some(backends.mail.faults())),
        ("payments", Some(backends.payments.faults())),
        ("cloudwatch", Some(backends.insights.faults())),
        ("secrets", Some(backends.secrets.faults())),
    ]
}

fn add_to_backend(control: &Control, request: &Request) -> Result<(), Problem> {
    let targets = backends(control);
    let Some((_, faults)) = targets.iter().find(|(name, _)| *name == request.target) else {
        let names: Vec<&str> = targets.iter().map(|(name, _)| *name).collect();
        let message =
            format!("{} is not a target; the targets are {} and {FUNCTION}<name>", request.target, names.join(", "));
        return Err(Problem::bad_request(message));
    };
    if request.point.is_some() {
        return Err(Problem::bad_request("point is only valid with a function as target"));
    }
    if request.seconds.is_some() {
        return Err(Problem::bad_request("seconds is only valid with a function as target"));
    }
    if request.key.is_some() && request.target != "table" {
        return Err(Problem::bad_request("key is only valid with the target table"));
    }
    let kind = serde_json::from_value(request.kind.as_str().into())
        .map_err(|error| Problem::bad_request(format!("kind: {error}")))?;
    if matches!(kind, FaultKind::TimeoutBefore | FaultKind::ErrorAfter | FaultKind::WrongSignature)
        && request.target != "payments"
    {
        return Err(Problem::bad_request(format!("kind {} is only valid with the target payments", request.kind)));
    }
    let Some(faults) = faults else {
        return Err(Problem::not_here("this system has an external search engine, which supports no faults"));
    };
    let fault = Fault { kind, rate: request.rate, count: request.count, seed: request.seed };
    let added = match &request.key {
        Some(beginning) => faults.add_to_keys(fault, beginning),
        None => faults.add(fault),
    };
    added.map_err(|error| Problem::bad_request(error.to_string()))
}

fn add_to_function(control: &Control, name: &str, request: &Request) -> Result<(), Problem> {
    let Some(faults) = control.functions.faults(name) else {
        let names = control.functions.names().join(", ");
        return Err(Problem::bad_request(format!("{name} is not a function; the functions are {names}")));
    };
    if request.key.is_some() {
        return Err(Problem::bad_request("key is only valid with the target table"));
    }
    let (rate, count, seed) = (request.rate, request.count, request.seed);
    match (request.kind == CLOCK, request.seconds) {
        (true, Some(seconds)) => {
            return control.crash_points.step_clock(name, seconds).map_err(|error| Problem::failed(&error));
        }
        (true, None) => return Err(Problem::bad_request("seconds must be given with the kind clock")),
        (false, Some(_)) => return Err(Problem::bad_request("seconds is only valid with the kind clock")),
        (false, None) => {}
    }
    if let Some(point) = &request.point {
        if request.kind != "crash" {
            return Err(Problem::bad_request("point is only valid with the kind crash"));
        }
        let plan = Plan { rate, count, seed, passes: 0, struck: 0 };
        return control.crash_points.arm(name, point, &plan).map_err(|error| match error {
            PlanError::Io(error) => Problem::failed(&error),
            error => Problem::bad_request(error.to_string()),
        });
    }
    let Some((_, kind)) = KINDS.into_iter().find(|(name, _)| *name == request.kind) else {
        let kinds = KINDS.map(|(name, _)| name).join(", ");
        let message = format!("{} is not a kind for a function; the kinds are {kinds} and {CLOCK}", request.kind);
        return Err(Problem::bad_request(message));
    };
    let added = faults.add(runtime_api::Fault { kind, rate, count, seed });
    added.map_err(|error| Problem::bad_request(error.to_string()))
}

/// The kind of fault that makes a function's clock wrong.
const CLOCK: &str = "clock";

const KINDS: [(&str, runtime_api::FaultKind); 5] = [
    ("crash", runtime_api::FaultKind::Crash),
    ("error", runtime_api::FaultKind::Error),
    ("slow", runtime_api::FaultKind::Slow),
    ("throttle", runtime_api::FaultKind::Throttle),
    ("timeout", runtime_api::FaultKind::Timeout),
];

fn kind_name(kind: runtime_api::FaultKind) -> &'static str {
    KINDS.into_iter().find(|(_, known)| *known == kind).map_or("", |(name, _)| name)
}
