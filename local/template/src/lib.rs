//! Reads the SAM template into typed values.
//!
//! The values are the table, the functions, the routes, the schedules, and the mappings of streams
//! and queues. They also include the event bus, its rules, the queues and the buckets.
//!
//! `template.yaml` is the single source of these settings. The local system builds itself from
//! them. Tests compare them with the routes, indexes and actions in the code.
//!
//! The crate evaluates intrinsic functions as CloudFormation does, with the parameters and names of
//! a [`Deployment`]. It rejects unknown settings of events, mappings, buses, queues and policies
//! with an error that contains the line. If it ignored them, the local system could differ from a
//! deployment.
//!
//! ```no_run
//! let template = template::Template::read("template.yaml".as_ref())?;
//! for route in &template.routes {
//!     println!("{} {} -> {}", route.method, route.path, route.function);
//! }
//! # Ok::<(), template::TemplateError>(())
//! ```

mod billed;
mod bus;
mod cors;
mod deployment;
mod error;
mod events;
mod function;
mod intrinsics;
mod mapping;
pub mod near;
mod schedule;
mod section;
mod storage;
mod table;
mod yaml;

use std::path::Path;

pub use billed::{Billed, SearchDomain};
pub use bus::{Bus, Rule, Target};
pub use cors::{Cors, Origins};
pub use deployment::Deployment;
pub use error::TemplateError;
pub use events::Route;
pub use function::{Asynchronous, Authorizer, Destination, Function, Statement};
pub use mapping::{QueueMapping, StartingPosition, StreamMapping};
pub use schedule::Schedule;
pub use storage::{Bucket, BucketCors, Queue, Redrive};
pub use table::{Index, KeyAttributes, Projection, TableDefinition};
pub use yaml::parse as parse_yaml;

use intrinsics::Resolver;
use section::Section;

/// The parts of a deployed template that the local system and tests need.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    pub table: TableDefinition,
    /// Every function whose condition is true or missing, in the order of the template.
    pub functions: Vec<Function>,
    /// Every route of the HTTP API, in the order of the template.
    pub routes: Vec<Route>,
    pub authorizers: Vec<Authorizer>,
    pub cors: Option<Cors>,
    /// Every mapping of the table's stream to a function, in the order of the template.
    pub streams: Vec<StreamMapping>,
    /// Every event bus, in the order of the template.
    pub buses: Vec<Bus>,
    /// Every rule of a bus, in the order of the template.
    pub rules: Vec<Rule>,
    /// Every queue, in the order of the template.
    pub queues: Vec<Queue>,
    /// Every mapping of a queue to a function, in the order of the template.
    pub queue_mappings: Vec<QueueMapping>,
    /// Every schedule, in the order of the template.
    pub schedules: Vec<Schedule>,
    /// Every bucket, in the order of the template.
    pub buckets: Vec<Bucket>,
    pub billed: Billed,
}

impl Template {
    /// Reads the template at `path` for inspection. Parameters have their defaults. A parameter
    /// without a default becomes the text `${Name}`.
    ///
    /// # Errors
    /// If the file cannot be read, is not YAML, or is not a template that this crate understands.
    /// The message is one line with the file and the line number.
    pub fn read(path: &Path) -> Result<Self, TemplateError> {
        Self::load(path, &Deployment::for_inspection())
    }

    /// Reads the template at `path` with the values of `deployment`.
    ///
    /// # Errors
    /// As [`Template::read`]. Also if a parameter in use has neither a default nor a value.
    pub fn read_for(path: &Path, deployment: &Deployment) -> Result<Self, TemplateError> {
        Self::load(path, deployment)
    }

    /// Reads the text of a template for inspection, like [`Template::read`].
    ///
    /// # Errors
    /// As [`Template::read`], without the file's name in the message.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Self::parse_for(text, &Deployment::for_inspection())
    }

    #[must_use]
    pub fn function(&self, id: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.logical_id == id)
    }

    fn load(path: &Path, deployment: &Deployment) -> Result<Self, TemplateError> {
        let text = std::fs::read_to_string(path).map_err(|error| TemplateError::unreadable(&error));
        text.and_then(|text| Self::parse_for(&text, deployment)).map_err(|error| error.in_file(path))
    }

    /// Reads the text of a template with the values of `deployment`.
    ///
    /// # Errors
    /// As [`Template::read_for`], without the file's name in the message.
    pub fn parse_for(text: &str, deployment: &Deployment) -> Result<Self, TemplateError> {
        let document = yaml::document(text)?;
        let resolver = Resolver::new(&document, deployment)?;
        resolver.keep_rules(&document)?;
        let root = Section::root(&document, &resolver);
        let resources = root.require("Resources")?;
        let globals = match root.get("Globals")? {
            Some(globals) => globals.get("Function")?,
            None => None,
        };

        let (mut routes, mut mappings) = (Vec::new(), Vec::new());
        let (table_id, table) = the_table(&resources, &resolver)?;
        let mut template = Self {
            table,
            functions: Vec::new(),
            routes: Vec::new(),
            authorizers: Vec::new(),
            cors: None,
            streams: Vec::new(),
            buses: Vec::new(),
            rules: Vec::new(),
            queues: Vec::new(),
            queue_mappings: Vec::new(),
            schedules: Vec::new(),
            buckets: Vec::new(),
            billed: Billed::default(),
        };
        for (id, resource) in resources.entries()? {
            if !is_wanted(&resource, &resolver)? {
                continue;
            }
            let arn = || resolver.attribute(&id, "Arn", resource.line());
            let name = resolver.physical_name(&id);
            let kind = resource.require("Type")?.text()?;
            billed::read(&kind, &resource, &mut template.billed)?;
            match kind.as_str() {
                "AWS::Serverless::Function" => {
                    let properties = resource.require("Properties")?;
                    template.functions.push(function::read(&id, arn()?, &properties, globals.as_ref())?);
                    events::read(&id, &properties, &root, &mut routes, &mut template)?;
                }
                "AWS::Serverless::HttpApi" => {
                    let properties = resource.require("Properties")?;
                    template.authorizers = function::read_authorizers(&properties)?;
                    template.cors = cors::read(&properties)?;
                }
                "AWS::Lambda::EventSourceMapping" => mappings.push((id, resource.require("Properties")?)),
                "AWS::Events::EventBus" => {
                    template.buses.push(bus::read_bus(&id, name, &resource.require("Properties")?)?);
                }
                "AWS::Events::Archive" => bus::check_archive(&resource.require("Properties")?)?,
                "AWS::Events::Rule" => template.rules.push(bus::read_rule(&id, &resource.require("Properties")?)?),
                "AWS::SQS::Queue" => {
                    template.queues.push(storage::read_queue(&id, arn()?, resource.get("Properties")?.as_ref())?);
                }
                "AWS::S3::Bucket" => {
                    let cors = storage::read_bucket_cors(resource.get("Properties")?.as_ref())?;
                    template.buckets.push(Bucket { logical_id: id.clone(), name: name.to_owned(), arn: arn()?, cors });
                }
                _ => {}
            }
        }
        for (id, settings) in mappings {
            let stream = resolver.attribute(&table_id, "StreamArn", settings.line())?;
            mapping::read(&id, &settings, &stream, &mut template)?;
        }
        events::refuse_ambiguous(&routes)?;
        template.routes = routes.into_iter().map(|(route, _)| route).collect();
        template.check_references(&resources)?;
        Ok(template)
    }

    /// Rejects a rule, queue or function that refers to a resource that is not in this template.
    fn check_references(&self, resources: &Section) -> Result<(), TemplateError> {
        let is_queue = |arn: &str| self.queues.iter().any(|queue| queue.arn == arn);
        let is_function = |arn: &str| self.functions.iter().any(|function| function.arn == arn);
        let at = |id: &str, message: String| match resources.require(id) {
            Ok(section) => Err(section.error(message)),
            Err(error) => Err(error),
        };
        for rule in &self.rules {
            // Every account has the default bus, to which AWS services send their events. So a rule
            // may use it although the template does not define it.
            if rule.bus != "default" && !self.buses.iter().any(|bus| bus.name == rule.bus) {
                return at(&rule.logical_id, format!("there is no bus {}", rule.bus));
            }
            for target in &rule.targets {
                if !is_queue(&target.arn) && !is_function(&target.arn) {
                    return at(&rule.logical_id, format!("{} is no function or queue of this template", target.arn));
                }
            }
        }
        let dead_letters = self.rules.iter().flat_map(|rule| {
            rule.targets.iter().filter_map(move |target| Some((&rule.logical_id, target.dead_letter.as_ref()?)))
        });
        let redrives = self.queues.iter().filter_map(|queue| Some((&queue.logical_id, &queue.redrive.as_ref()?.arn)));
        let failures = self.functions.iter().filter_map(|function| {
            let destination = function.asynchronous.on_failure.as_ref()?;
            (destination.kind == "SQS").then_some((&function.logical_id, &destination.arn))
        });
        for (id, arn) in dead_letters.chain(redrives).chain(failures) {
            if !is_queue(arn) {
                return at(id, format!("{arn} is no queue of this template"));
            }
        }
        Ok(())
    }
}

/// Returns whether the resource's condition is true or missing.
fn is_wanted(resource: &Section, resolver: &Resolver) -> Result<bool, TemplateError> {
    match resource.get("Condition")? {
        Some(condition) => resolver.condition(&condition.text()?, condition.line()),
        None => Ok(true),
    }
}

fn the_table(resources: &Section, resolver: &Resolver) -> Result<(String, TableDefinition), TemplateError> {
    let mut tables = Vec::new();
    for (id, resource) in resources.entries()? {
        if is_wanted(&resource, resolver)? && resource.require("Type")?.text()? == "AWS::DynamoDB::Table" {
            let table = table::read(&id, &resource.require("Properties")?)?;
            tables.push((id, table));
        }
    }
    let mut tables = tables.into_iter();
    match (tables.next(), tables.next()) {
        (Some(table), None) => Ok(table),
        (None, _) => Err(resources.error("there is no AWS::DynamoDB::Table")),
        (Some(_), Some(_)) => Err(resources.error("there is more than one AWS::DynamoDB::Table")),
    }
}

#[cfg(test)]
mod tests;
