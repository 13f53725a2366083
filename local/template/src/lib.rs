//! Reads the SAM template: the table, the functions, the routes and the stream mappings that a
//! deployment would have, as typed values.
//!
//! `template.yaml` is the single source of these settings. The local system builds itself from what
//! this crate reads, and tests compare with it what code has to name as well (a route, an index, an
//! action in a policy). Intrinsic functions are evaluated as CloudFormation evaluates them, with the
//! parameters and names of a [`Deployment`]; what the crate does not know it refuses with the line
//! where it stands, because a setting that is skipped in silence is one that differs once deployed.
//!
//! ```no_run
//! let template = template::Template::read("template.yaml".as_ref())?;
//! for route in &template.routes {
//!     println!("{} {} -> {}", route.method, route.path, route.function);
//! }
//! # Ok::<(), template::TemplateError>(())
//! ```

mod deployment;
mod error;
mod events;
mod function;
mod intrinsics;
mod section;
mod table;
mod yaml;

use std::path::Path;

pub use deployment::Deployment;
pub use error::TemplateError;
pub use events::{Destination, Route, StartingPosition, StreamMapping};
pub use function::{Function, Statement};
pub use table::{Index, KeyAttributes, Projection, TableDefinition};
pub use yaml::parse as parse_yaml;

use intrinsics::Resolver;
use section::Section;

/// What a deployment of the template consists of, as far as the local system and tests need it.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// The one table.
    pub table: TableDefinition,
    /// Every function whose condition holds, in the order of the template.
    pub functions: Vec<Function>,
    /// Every route of the HTTP API, in the order of the template.
    pub routes: Vec<Route>,
    /// Every mapping of the table's stream to a function, in the order of the template.
    pub streams: Vec<StreamMapping>,
}

impl Template {
    /// Reads the template at `path` for inspection: parameters have their defaults, and one without
    /// a default stands as `${Name}` wherever it is used.
    ///
    /// # Errors
    /// When the file cannot be read, is not YAML, or is not a template that this crate understands:
    /// one message with file and line.
    pub fn read(path: &Path) -> Result<Self, TemplateError> {
        Self::load(path, &Deployment::for_inspection())
    }

    /// Reads the template at `path` as `deployment` would deploy it.
    ///
    /// # Errors
    /// As [`Template::read`], and when a parameter is used that has neither a default nor a value.
    pub fn read_for(path: &Path, deployment: &Deployment) -> Result<Self, TemplateError> {
        Self::load(path, deployment)
    }

    /// The function with the logical id `id`.
    #[must_use]
    pub fn function(&self, id: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.logical_id == id)
    }

    fn load(path: &Path, deployment: &Deployment) -> Result<Self, TemplateError> {
        let text = std::fs::read_to_string(path).map_err(|error| TemplateError::unreadable(&error));
        text.and_then(|text| Self::parse(&text, deployment)).map_err(|error| error.in_file(path))
    }

    fn parse(text: &str, deployment: &Deployment) -> Result<Self, TemplateError> {
        let document = yaml::document(text)?;
        let resolver = Resolver::new(&document, deployment)?;
        let root = Section::root(&document, &resolver);
        let resources = root.require("Resources")?;
        let globals = match root.get("Globals")? {
            Some(globals) => globals.get("Function")?,
            None => None,
        };

        let mut tables = Vec::new();
        let mut functions = Vec::new();
        let mut routes = Vec::new();
        let mut streams = Vec::new();
        for (id, resource) in resources.entries()? {
            if let Some(condition) = resource.get("Condition")?
                && !resolver.condition(&condition.text()?, condition.line())?
            {
                continue;
            }
            match resource.require("Type")?.text()?.as_str() {
                "AWS::DynamoDB::Table" => {
                    tables.push(table::read(&id, &resource.require("Properties")?)?);
                }
                "AWS::Serverless::Function" => {
                    let properties = resource.require("Properties")?;
                    functions.push(function::read(&id, &properties, globals.as_ref())?);
                    events::read(&id, &properties, &root, &mut routes, &mut streams)?;
                }
                _ => {}
            }
        }
        events::refuse_ambiguous(&routes)?;
        let routes = routes.into_iter().map(|(route, _)| route).collect();
        let mut tables = tables.into_iter();
        match (tables.next(), tables.next()) {
            (Some(table), None) => Ok(Self { table, functions, routes, streams }),
            (None, _) => Err(resources.error("there is no AWS::DynamoDB::Table")),
            (Some(_), Some(_)) => Err(resources.error("there is more than one AWS::DynamoDB::Table")),
        }
    }
}

#[cfg(test)]
mod tests;
