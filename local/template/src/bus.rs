use std::time::Duration;

use event_pattern::{Dialect, Pattern};
use serde_json::Value as Json;

use crate::TemplateError;
use crate::section::Section;

/// An `AWS::Events::EventBus`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bus {
    pub logical_id: String,
    /// Physical name, which publishers use and `!Ref` returns.
    pub name: String,
}

/// An `AWS::Events::Rule`.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub logical_id: String,
    pub bus: String,
    /// Pattern of the events that the rule matches, in EventBridge's JSON.
    pub pattern: Json,
    pub targets: Vec<Target>,
    pub is_enabled: bool,
}

/// A target of a rule, with EventBridge's defaults for settings that the template omits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub id: String,
    /// ARN of a function or a queue of the template.
    pub arn: String,
    pub maximum_retries: u32,
    /// Age at which a delivery is given up.
    pub maximum_age: Duration,
    pub dead_letter: Option<String>,
}

pub(crate) fn read_bus(id: &str, name: &str, properties: &Section) -> Result<Bus, TemplateError> {
    properties.only(&["Name", "Description", "Tags"])?;
    properties.require("Name")?.text()?;
    Ok(Bus { logical_id: id.to_owned(), name: name.to_owned() })
}

/// The archive stores every event of the bus. The local system does not emulate archives.
pub(crate) fn check_archive(properties: &Section) -> Result<(), TemplateError> {
    properties.only(&["ArchiveName", "Description", "SourceArn", "RetentionDays"])?;
    properties.require("SourceArn")?.text()?;
    if let Some(days) = properties.get("RetentionDays")? {
        days.number::<u32>(0..=i32::MAX.unsigned_abs())?;
    }
    Ok(())
}

pub(crate) fn read_rule(id: &str, properties: &Section) -> Result<Rule, TemplateError> {
    properties.only(&["Name", "Description", "EventBusName", "EventPattern", "State", "Targets"])?;
    let is_enabled = match properties.get("State")? {
        None => true,
        Some(state) => match state.text()?.as_str() {
            "ENABLED" => true,
            "DISABLED" => false,
            _ => return Err(state.error("must be ENABLED or DISABLED")),
        },
    };
    let section = properties.require("EventPattern")?;
    let pattern = section.json()?;
    Pattern::new(&pattern, Dialect::EventBridge)
        .map_err(|error| section.error(format!("invalid event pattern: {error}")))?;
    let mut targets: Vec<Target> = Vec::new();
    for target in properties.require("Targets")?.items()? {
        let read = read_target(&target)?;
        if targets.iter().any(|other| other.id == read.id) {
            return Err(target.error(format!("the target {} is defined twice", read.id)));
        }
        targets.push(read);
    }
    // EventBridge allows at most five targets.
    if !(1..=5).contains(&targets.len()) {
        return Err(properties.error("a rule must have one to five targets"));
    }
    let bus = properties.require("EventBusName")?.text()?;
    Ok(Rule { logical_id: id.to_owned(), bus, pattern, targets, is_enabled })
}

fn read_target(target: &Section) -> Result<Target, TemplateError> {
    target.only(&["Id", "Arn", "RetryPolicy", "DeadLetterConfig"])?;
    let (mut maximum_retries, mut maximum_age) = (185, 86_400);
    if let Some(policy) = target.get("RetryPolicy")? {
        policy.only(&["MaximumRetryAttempts", "MaximumEventAgeInSeconds"])?;
        if let Some(retries) = policy.get("MaximumRetryAttempts")? {
            maximum_retries = retries.number::<u32>(0..=185)?;
        }
        if let Some(age) = policy.get("MaximumEventAgeInSeconds")? {
            maximum_age = age.number::<u64>(60..=86_400)?;
        }
    }
    let dead_letter = match target.get("DeadLetterConfig")? {
        Some(config) => {
            config.only(&["Arn"])?;
            Some(config.require("Arn")?.text()?)
        }
        None => None,
    };
    Ok(Target {
        id: target.require("Id")?.text()?,
        arn: target.require("Arn")?.text()?,
        maximum_retries,
        maximum_age: Duration::from_secs(maximum_age),
        dead_letter,
    })
}
