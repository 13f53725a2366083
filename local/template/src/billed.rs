use crate::TemplateError;
use crate::section::Section;

/// The parts of a deployment that are billed by the hour, by the month or by their number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Billed {
    /// An alarm over several metrics costs as much as one alarm for each metric.
    pub alarm_metrics: u64,
    pub dashboards: u64,
    /// Number of rules of Contributor Insights. The table and each index have two rules each, if
    /// the feature is enabled for them.
    pub insights_rules: u64,
    pub point_in_time_recovery: bool,
    /// Maximum number of days for which a log group keeps lines.
    pub log_retention_days: u64,
    /// Days for which the archive of the event bus keeps events.
    pub event_retention_days: u64,
    /// The domain of the search engine, unless the engine is outside the stack.
    pub search: Option<SearchDomain>,
}

/// An `AWS::OpenSearchService::Domain`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchDomain {
    /// Instance type, e.g. `t3.small.search`.
    pub instance_type: String,
    pub instances: u64,
    /// Size of the disk of each node, in GB.
    pub storage_gb: u64,
}

/// Counts a resource if it costs money even when no request uses it.
pub(crate) fn read(kind: &str, resource: &Section, billed: &mut Billed) -> Result<(), TemplateError> {
    let properties = resource.get("Properties")?;
    let Some(properties) = properties else { return Ok(()) };
    match kind {
        "AWS::CloudWatch::Dashboard" => billed.dashboards += 1,
        "AWS::CloudWatch::Alarm" => billed.alarm_metrics += alarm_metrics(&properties)?,
        "AWS::DynamoDB::Table" => {
            let indexes = match properties.get("GlobalSecondaryIndexes")? {
                Some(indexes) => indexes.items()?,
                None => Vec::new(),
            };
            for place in indexes.iter().chain([&properties]) {
                if is_on(place, "ContributorInsightsSpecification", "Enabled")? {
                    billed.insights_rules += 2;
                }
            }
            billed.point_in_time_recovery =
                is_on(&properties, "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled")?;
        }
        "AWS::Logs::LogGroup" => {
            if let Some(days) = properties.get("RetentionInDays")? {
                billed.log_retention_days = billed.log_retention_days.max(days.number::<u64>(1..=3653)?);
            }
        }
        "AWS::Events::Archive" => {
            if let Some(days) = properties.get("RetentionDays")? {
                billed.event_retention_days = days.number::<u64>(0..=36_500)?;
            }
        }
        "AWS::OpenSearchService::Domain" => {
            let cluster = properties.require("ClusterConfig")?;
            billed.search = Some(SearchDomain {
                instance_type: cluster.require("InstanceType")?.text()?,
                instances: cluster.require("InstanceCount")?.number::<u64>(1..=80)?,
                storage_gb: properties.require("EBSOptions")?.require("VolumeSize")?.number::<u64>(1..=1_000_000)?,
            });
        }
        _ => {}
    }
    Ok(())
}

/// Returns the number of metrics of an alarm: 1, or the number of its `MetricStat`s.
fn alarm_metrics(properties: &Section) -> Result<u64, TemplateError> {
    let Some(metrics) = properties.get("Metrics")? else { return Ok(1) };
    let mut count = 0;
    for metric in metrics.items()? {
        count += u64::from(metric.get("MetricStat")?.is_some());
    }
    Ok(count)
}

fn is_on(section: &Section, specification: &str, key: &str) -> Result<bool, TemplateError> {
    match section.get(specification)? {
        Some(specification) => specification.require(key)?.flag(),
        None => Ok(false),
    }
}
