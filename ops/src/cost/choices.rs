//! The difference that each choice makes to a bill. A choice is a value of a parameter of the
//! template, or the removal of a part of the template.

use std::collections::BTreeMap;

use serde::Serialize;

use super::bill::{Bill, Line, Service, bill};
use super::money::Nano;
use super::prices::Prices;
use super::profile::Profile;
use super::stack::Stack;
use crate::error::OpsError;

/// Parameters, each with a value to compare with the profile's value.
const PARAMETERS: [(&str, &str); 11] = [
    ("CapacityMode", "provisioned"),
    ("MetricsTables", "monthly"),
    ("SearchService", "none"),
    ("SearchService", "es"),
    ("SearchInstances", "3"),
    ("SearchStorageGb", "20"),
    ("FoldStreamConsumers", "true"),
    ("Architecture", "x86_64"),
    ("LogRetentionDays", "1"),
    ("LogRetentionDays", "365"),
    ("EventRetentionDays", "365"),
];

/// A function that returns whether a line of the bill belongs to a part of the stack.
type IsPart = fn(&Line) -> bool;

/// Parts of the stack that no parameter turns off, each with a function that selects its lines.
const PARTS: [(&str, IsPart); 6] = [
    ("without alarms", |line| line.item == "metrics in alarms"),
    ("without Contributor Insights", |line| line.item == "rules of Contributor Insights"),
    ("without the dashboard", |line| line.item == "dashboards"),
    ("without point-in-time recovery", |line| line.item == "GB of recovery"),
    ("without traces", |line| line.service == Service::XRay),
    ("without the archive of events", |line| line.item.contains("archive") && line.service == Service::EventBridge),
];

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// A parameter with its value, or a part of the template.
    pub choice: String,
    /// The difference in the bill of a month. A negative difference saves money.
    #[serde(rename = "nano_dollars")]
    pub difference: Nano,
}

pub(crate) fn choices(profile: &Profile, present: &Bill, prices: &Prices) -> Result<Vec<Choice>, OpsError> {
    let mut choices = Vec::new();
    for (name, value) in PARAMETERS {
        let mut parameters: BTreeMap<String, String> = profile.parameters.clone();
        parameters.insert(name.to_owned(), value.to_owned());
        let other = Profile { parameters, ..profile.clone() };
        // The template may refuse a value in combination with the given parameters.
        let Ok(stack) = Stack::read(&prices.region, &other.parameters) else { continue };
        let difference = bill(&other, &stack, prices)?.total() - present.total();
        choices.push(Choice { choice: format!("{name}={value}"), difference });
    }
    for (part, is_part) in PARTS {
        choices.push(Choice { choice: part.to_owned(), difference: -present.sum(is_part) });
    }
    choices.retain(|choice| choice.difference != Nano::default());
    Ok(choices)
}
