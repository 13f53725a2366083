//! Reads a function's events: routes of the HTTP API, and schedules. The template defines mappings
//! of streams and queues as separate resources.

use std::collections::HashMap;
use std::fmt;

use crate::section::Section;
use crate::{Template, TemplateError, schedule};

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Method, in upper case.
    pub method: String,
    /// Path with its parameters in braces: `/v1/customers/{id}`.
    pub path: String,
    pub function: String,
    /// Name of the route's authorizer. `None` if the route is public.
    pub authorizer: Option<String>,
}

impl Route {
    /// Returns the route key in API Gateway's events: `GET /v1/customers/{id}`.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
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
            refused @ ("DynamoDB" | "SQS") => {
                return Err(kind.error(format!(
                    "an event of type {refused} lets the function's role reach every stream or queue of the account; \
                     write an AWS::Lambda::EventSourceMapping, and a statement for the stream or queue that it reads"
                )));
            }
            "Schedule" => template.schedules.push(schedule::read(function, &name, &settings)?),
            other => return Err(kind.error(format!("events of type {other} are not supported"))),
        }
    }
    Ok(())
}

/// Rejects two routes that differ only in the names of their parameters.
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

/// Returns the properties of the HTTP API that the route belongs to.
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
