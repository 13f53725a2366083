//! The parts of a deployment that the bill needs, from `template.yaml` itself.

use std::collections::BTreeMap;

use template::{Billed, Deployment, Template};

use crate::error::OpsError;

const TEMPLATE: &str = include_str!("../../../template.yaml");
/// Values of the parameters without a default. They do not change the bill.
const REQUIRED: [(&str, &str); 4] = [
    ("MailFrom", "shop@example.com"),
    ("MailIdentity", "example.com"),
    ("CursorKeysSecret", "-"),
    ("EmailCodeKeysSecret", "-"),
];
pub(crate) const ARCHITECTURE: &str = "Architecture";

#[derive(Debug, Clone)]
pub struct Stack {
    /// The memory of each function in MiB, by logical id.
    pub functions: BTreeMap<String, u32>,
    /// The parts that cost money even if no request uses them.
    pub billed: Billed,
    pub polled_queues: u64,
    pub architecture: String,
    pub is_provisioned: bool,
    /// Whether each month of metrics has its own table. The tables of past months then have the
    /// table class for infrequent access.
    pub has_monthly_metrics: bool,
    pub is_traced: bool,
}

impl Stack {
    /// Reads the template as a deployment with these parameters.
    ///
    /// # Errors
    /// A usage error for an unknown parameter or a value that the template refuses.
    pub fn read(region: &str, parameters: &BTreeMap<String, String>) -> Result<Self, OpsError> {
        let mut deployment = Deployment::new(region, "000000000000");
        for (name, value) in REQUIRED {
            deployment = deployment.parameter(name, value);
        }
        for (name, value) in parameters {
            deployment = deployment.parameter(name, value);
        }
        let read = Template::parse_for(TEMPLATE, &deployment);
        let template =
            read.map_err(|error| OpsError::Usage(format!("template.yaml with these parameters: {error}")))?;
        let architecture = parameters.get(ARCHITECTURE).map_or("arm64", String::as_str);
        Ok(Self {
            functions: template.functions.iter().map(|one| (one.logical_id.clone(), one.memory_mb)).collect(),
            polled_queues: template.queue_mappings.len() as u64,
            is_traced: template.functions.iter().any(|one| one.tracing.as_deref() == Some("Active")),
            is_provisioned: parameters.get("CapacityMode").is_some_and(|mode| mode == "provisioned"),
            has_monthly_metrics: parameters.get("MetricsTables").is_some_and(|tables| tables == "monthly"),
            architecture: architecture.to_owned(),
            billed: template.billed,
        })
    }
}

pub(crate) fn parameter_names() -> Result<Vec<String>, OpsError> {
    let section = TEMPLATE.split_once("\nParameters:\n").map(|(_, rest)| rest);
    let lines = section.unwrap_or_default().lines().take_while(|line| line.is_empty() || line.starts_with([' ', '#']));
    let name = |line: &str| {
        let name = line.strip_prefix("  ")?.strip_suffix(':')?;
        name.bytes().all(|byte| byte.is_ascii_alphanumeric()).then(|| name.to_owned())
    };
    let names: Vec<String> = lines.filter_map(name).collect();
    if names.is_empty() { Err(OpsError::Failed("template.yaml has no parameters".to_owned())) } else { Ok(names) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_stack_without_search_has_fewer_functions_and_alarms() {
        let none = BTreeMap::from([("SearchService".to_owned(), "none".to_owned())]);
        let (with, without) =
            (Stack::read("us-east-1", &BTreeMap::new()).unwrap(), Stack::read("us-east-1", &none).unwrap());
        assert!(with.billed.search.is_some() && without.billed.search.is_none());
        assert!(with.functions.contains_key("StreamSearch") && !without.functions.contains_key("StreamSearch"));
        assert!(with.billed.alarm_metrics > without.billed.alarm_metrics && without.billed.alarm_metrics > 50);
        assert!(with.is_traced && with.billed.point_in_time_recovery);
        assert_eq!((with.billed.insights_rules, with.billed.dashboards, with.polled_queues), (8, 1, 2));
        assert_eq!(with.functions.get("Catalog"), Some(&1024));
    }

    #[test]
    fn a_parameter_that_the_template_refuses_is_a_usage_error() {
        for (name, value, part) in [
            ("Nothing", "1", "Nothing"),
            ("SearchService", "solr", "SearchService"),
            ("SearchInstances", "-1", "SearchInstances"),
            ("SearchStorageGb", "99999999999", "VolumeSize"),
        ] {
            let given = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            let read = Stack::read("us-east-1", &given);
            assert!(matches!(&read, Err(OpsError::Usage(text)) if text.contains(part)), "{name}={value}: {read:?}");
        }
    }
}
