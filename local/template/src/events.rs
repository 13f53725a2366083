//! What invokes a function: routes of the HTTP API, mappings of the table's stream and of queues, schedules.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use event_pattern::{Dialect, Pattern};
use serde_json::Value as Json;

use crate::section::Section;
use crate::{Template, TemplateError, schedule, storage};

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/// A route of the HTTP API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Upper-case method.
    pub method: String,
    /// Path with its parameters in braces: `/v1/customers/{id}`.
    pub path: String,
    /// Logical id of the function that answers.
    pub function: String,
    /// Name of the authorizer that a call must pass; `None` when the route is public.
    pub authorizer: Option<String>,
}

impl Route {
    /// What API Gateway calls it in an event: `GET /v1/customers/{id}`.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// A Lambda event source mapping from the table's stream to a function, with Lambda's defaults where
/// the template is silent.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamMapping {
    /// Logical id of the function.
    pub function: String,
    /// Name of the event in the function's `Events`.
    pub event: String,
    /// Where a mapping that has no checkpoint begins.
    pub starting_position: StartingPosition,
    /// Most records of one invocation.
    pub batch_size: u32,
    /// Longest wait for a batch to fill.
    pub batching_window: Duration,
    /// Most invocations at once for one shard, in order within an item's key.
    pub parallelization_factor: u32,
    /// Whether a failed batch is halved before it is tried again.
    pub bisect_on_error: bool,
    /// Age from which a record is given up on; `None` for never.
    pub maximum_record_age: Option<Duration>,
    /// How often a failed batch is tried again; `None` for as long as its records live.
    pub maximum_retries: Option<u32>,
    /// Whether the function's answer names the record from which on to try again.
    pub report_batch_item_failures: bool,
    /// A record is passed on when one of these patterns takes it; all are when there is none.
    pub filters: Vec<Json>,
    /// Where records go that are given up on.
    pub on_failure: Option<Destination>,
}

/// Where a new mapping begins to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartingPosition {
    /// With the oldest record that the stream still has.
    TrimHorizon,
    /// With what is written from now on.
    Latest,
}

/// Where records or events go that are given up on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// `S3`, `SQS` or `SNS`.
    pub kind: String,
    /// ARN of the bucket, queue or topic.
    pub arn: String,
}

impl fmt::Display for Route {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.method, self.path)
    }
}

pub(crate) fn read(
    function: &str,
    properties: &Section,
    root: &Section,
    routes: &mut Vec<(Route, usize)>,
    template: &mut Template,
) -> Result<(), TemplateError> {
    let Some(events) = properties.get("Events")? else {
        return Ok(());
    };
    for (name, event) in events.entries()? {
        event.only(&["Type", "Properties"])?;
        let kind = event.require("Type")?;
        let settings = event.require("Properties")?;
        match kind.text()?.as_str() {
            "HttpApi" => {
                routes.push((read_route(function, &settings, root)?, settings.line()));
            }
            "DynamoDB" => template.streams.push(read_stream(function, &name, &settings)?),
            "SQS" => template.queue_mappings.push(storage::read_mapping(function, &name, &settings)?),
            "Schedule" => template.schedules.push(schedule::read(function, &name, &settings)?),
            other => return Err(kind.error(format!("events of type {other} are not known here"))),
        }
    }
    Ok(())
}

/// Two routes that differ only in the names of their parameters cannot be told apart.
pub(crate) fn refuse_ambiguous(routes: &[(Route, usize)]) -> Result<(), TemplateError> {
    let mut seen: HashMap<String, &Route> = HashMap::new();
    for (route, line) in routes {
        let shape: Vec<&str> =
            route.path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part }).collect();
        if let Some(other) = seen.insert(format!("{} {}", route.method, shape.join("/")), route) {
            let message = format!("{route} is also a route of {}", other.function);
            return Err(TemplateError::at(*line, &route.function, message));
        }
    }
    Ok(())
}

fn read_route(function: &str, settings: &Section, root: &Section) -> Result<Route, TemplateError> {
    settings.only(&["ApiId", "Method", "Path", "Auth"])?;
    let method = settings.require("Method")?;
    let name = method.text()?.to_ascii_uppercase();
    if !METHODS.contains(&name.as_str()) {
        return Err(method.error(format!("{name} is not a method")));
    }
    let path = settings.require("Path")?;
    let text = path.text()?;
    let well_formed = |part: &str| {
        let parameter = part.strip_prefix('{').and_then(|inner| inner.strip_suffix('}'));
        match parameter {
            Some(inner) => !inner.is_empty() && inner.chars().all(|c| c.is_ascii_alphanumeric()),
            None => !part.is_empty() && !part.contains(['{', '}']),
        }
    };
    let mut parts = text.split('/');
    if parts.next() != Some("") || !parts.all(well_formed) {
        return Err(path.error(format!("{text} is not a path of literal segments and {{parameters}}")));
    }
    let api = api(&settings.require("ApiId")?, root)?;
    Ok(Route { method: name, path: text, function: function.to_owned(), authorizer: authorizer(settings, &api)? })
}

/// The one HTTP API that the route belongs to.
fn api<'a>(id: &Section, root: &Section<'a>) -> Result<Section<'a>, TemplateError> {
    for (_, resource) in root.require("Resources")?.entries()? {
        if resource.require("Type")?.text()? == "AWS::Serverless::HttpApi" {
            return resource.require("Properties");
        }
    }
    Err(id.error("there is no AWS::Serverless::HttpApi"))
}

fn authorizer(settings: &Section, api: &Section) -> Result<Option<String>, TemplateError> {
    let known = api.get("Auth")?;
    let own = match settings.get("Auth")? {
        Some(auth) => {
            auth.only(&["Authorizer"])?;
            Some(auth.require("Authorizer")?)
        }
        None => None,
    };
    let chosen = match (own, &known) {
        (Some(own), _) => Some(own),
        (None, Some(auth)) => auth.get("DefaultAuthorizer")?,
        (None, None) => None,
    };
    let Some(chosen) = chosen else {
        return Ok(None);
    };
    let name = chosen.text()?;
    if name == "NONE" {
        return Ok(None);
    }
    let exists = match &known {
        Some(auth) => match auth.get("Authorizers")? {
            Some(all) => all.get(&name)?.is_some(),
            None => false,
        },
        None => false,
    };
    if exists { Ok(Some(name)) } else { Err(chosen.error(format!("the API has no authorizer {name}"))) }
}

/// The limits are those of the `CreateEventSourceMapping` call.
fn read_stream(function: &str, event: &str, settings: &Section) -> Result<StreamMapping, TemplateError> {
    settings.only(&[
        "Stream",
        "StartingPosition",
        "BatchSize",
        "MaximumBatchingWindowInSeconds",
        "ParallelizationFactor",
        "BisectBatchOnFunctionError",
        "MaximumRecordAgeInSeconds",
        "MaximumRetryAttempts",
        "FunctionResponseTypes",
        "FilterCriteria",
        "DestinationConfig",
    ])?;
    settings.require("Stream")?.text()?;
    let position = settings.require("StartingPosition")?;
    let starting_position = match position.text()?.as_str() {
        "TRIM_HORIZON" => StartingPosition::TrimHorizon,
        "LATEST" => StartingPosition::Latest,
        other => return Err(position.error(format!("{other} is no position of a table's stream"))),
    };
    let number = |key: &str, range, default: i64| match settings.get(key)? {
        Some(section) => section.number::<i64>(range),
        None => Ok(default),
    };
    let age = number("MaximumRecordAgeInSeconds", -1..=604_800, -1)?;
    let retries = number("MaximumRetryAttempts", -1..=10_000, -1)?;
    let window = number("MaximumBatchingWindowInSeconds", 0..=300, 0)?;
    let bisect = settings.get("BisectBatchOnFunctionError")?;
    Ok(StreamMapping {
        function: function.to_owned(),
        event: event.to_owned(),
        starting_position,
        batch_size: narrow(number("BatchSize", 1..=10_000, 100)?),
        batching_window: Duration::from_secs(window.unsigned_abs()),
        parallelization_factor: narrow(number("ParallelizationFactor", 1..=10, 1)?),
        bisect_on_error: bisect.map(|flag| flag.flag()).transpose()?.unwrap_or(false),
        maximum_record_age: u64::try_from(age).ok().map(Duration::from_secs),
        maximum_retries: u32::try_from(retries).ok(),
        report_batch_item_failures: read_response_types(settings)?,
        filters: read_filters(settings)?,
        on_failure: read_destination(settings)?,
    })
}

/// The range that the number was checked against fits.
fn narrow(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn read_filters(settings: &Section) -> Result<Vec<Json>, TemplateError> {
    let Some(criteria) = settings.get("FilterCriteria")? else {
        return Ok(Vec::new());
    };
    let mut filters = Vec::new();
    for filter in criteria.require("Filters")?.items()? {
        let pattern = filter.require("Pattern")?;
        let json = match serde_json::from_str::<Json>(&pattern.text()?) {
            Ok(json) if json.is_object() => json,
            Ok(_) => return Err(pattern.error("a pattern must be a JSON object")),
            Err(error) => return Err(pattern.error(format!("the pattern is not JSON: {error}"))),
        };
        Pattern::new(&json, Dialect::Lambda).map_err(|error| pattern.error(format!("no filter pattern: {error}")))?;
        filters.push(json);
    }
    Ok(filters)
}

/// Whether the function's answers name what failed.
pub(crate) fn read_response_types(settings: &Section) -> Result<bool, TemplateError> {
    let Some(types) = settings.get("FunctionResponseTypes")? else {
        return Ok(false);
    };
    let types = types.items()?;
    match types.iter().find_map(|kind| match kind.text() {
        Ok(name) if name == "ReportBatchItemFailures" => None,
        Ok(_) => Some(kind.error("only ReportBatchItemFailures is known")),
        Err(error) => Some(error),
    }) {
        Some(error) => Err(error),
        None => Ok(!types.is_empty()),
    }
}

/// The destination of what is given up, of a stream mapping or an asynchronous invocation.
pub(crate) fn read_destination(settings: &Section) -> Result<Option<Destination>, TemplateError> {
    let Some(config) = settings.get("DestinationConfig")? else {
        return Ok(None);
    };
    let target = config.require("OnFailure")?;
    let kind = target.require("Type")?;
    let name = kind.text()?;
    if !["S3", "SQS", "SNS"].contains(&name.as_str()) {
        return Err(kind.error(format!("{name} is no destination of failed records")));
    }
    Ok(Some(Destination { kind: name, arn: target.require("Destination")?.text()? }))
}
