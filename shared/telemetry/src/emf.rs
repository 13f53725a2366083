//! CloudWatch's embedded metric format: a log line that is also a set of metrics.
//!
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

use crate::correlation::{self, Ids};

/// The CloudWatch namespace of all of Bodega's metrics.
pub const NAMESPACE: &str = "Bodega";

/// The unit of a metric. Each variant has CloudWatch's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Unit {
    Count,
    Milliseconds,
    Bytes,
}

/// One log line: dimensions that group the metrics, the metrics, and properties that are only
/// logged.
///
/// CloudWatch bills each distinct set of dimension values as a separate metric. Dimension values
/// must come from a short list, such as route keys. Everything else is a property.
#[derive(Debug, Clone, Default)]
pub struct Line {
    dimensions: Vec<&'static str>,
    metrics: Vec<(&'static str, Unit)>,
    members: Vec<(&'static str, Value)>,
}

impl Line {
    /// Creates a line with two dimensions. `Function` is the name that [`crate::init`] got. `Stage`
    /// is the deployment's name in the environment variable `STAGE`.
    #[must_use]
    pub fn new() -> Self {
        Self::default().dimension("Function", crate::function()).dimension("Stage", crate::stage())
    }

    /// Adds a dimension. An empty value is left out, because CloudWatch refuses it. CloudWatch also
    /// refuses more than 30 dimensions.
    #[must_use]
    pub fn dimension(mut self, name: &'static str, value: &str) -> Self {
        if !value.is_empty() {
            self.dimensions.push(name);
            return self.property(name, value);
        }
        self
    }

    /// Adds a metric. Values that JSON cannot express (NaN, infinite) are left out.
    #[must_use]
    pub fn metric(mut self, name: &'static str, unit: Unit, value: f64) -> Self {
        if value.is_finite() {
            self.metrics.push((name, unit));
            return self.property(name, value);
        }
        self
    }

    /// Adds a value that is only logged. It must not contain bodies, tokens, query values or
    /// personal data.
    #[must_use]
    pub fn property(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        let value = value.into();
        match self.members.iter_mut().find(|(known, _)| *known == name) {
            Some(member) => member.1 = value,
            None => self.members.push((name, value)),
        }
        self
    }

    /// Adds the id of the invocation's trace, if there is one. With it, operators find the
    /// invocation in X-Ray.
    #[must_use]
    pub fn trace(self, header: Option<&str>) -> Self {
        match header.and_then(correlation::trace_id) {
            Some(id) => self.property("xray_trace_id", id),
            None => self,
        }
    }

    /// Adds the ids of the requests that caused the work.
    #[must_use]
    pub fn causes(self, ids: &Ids) -> Self {
        self.property("correlation_ids", ids.named()).property("correlation_id_count", ids.count())
    }

    /// Returns the line as JSON without a line break, for metrics measured at `at`.
    #[must_use]
    pub fn to_json(&self, at: SystemTime) -> String {
        let millis = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let measured = Measured { line: self, millis: u64::try_from(millis).unwrap_or(u64::MAX) };
        // Text and finite numbers always serialize.
        serde_json::to_string(&measured).unwrap_or_default()
    }

    pub fn print(&self) {
        let mut line = self.to_json(SystemTime::now());
        line.push('\n');
        // The line is written with one call, so that lines of concurrent writers do not mix. An
        // error is ignored, because a request must not fail when standard output is closed.
        let _ = std::io::stdout().lock().write_all(line.as_bytes());
    }
}

/// A line with its time. It is serialized member by member, which is fast. That matters because
/// every request prints a line.
struct Measured<'l> {
    line: &'l Line,
    millis: u64,
}

impl Serialize for Measured<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Line { dimensions, metrics, members } = self.line;
        let metrics = metrics.iter().map(|(name, unit)| Metric { name, unit: *unit }).collect();
        let directives = [Directive { namespace: NAMESPACE, dimensions: [dimensions], metrics }];
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("_aws", &Metadata { timestamp: self.millis, directives })?;
        for (name, value) in members {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[derive(serde::Serialize)]
#[serde(rename_all = "PascalCase")]
struct Metadata<'l> {
    timestamp: u64,
    #[serde(rename = "CloudWatchMetrics")]
    directives: [Directive<'l>; 1],
}

#[derive(serde::Serialize)]
#[serde(rename_all = "PascalCase")]
struct Directive<'l> {
    namespace: &'static str,
    dimensions: [&'l [&'static str]; 1],
    metrics: Vec<Metric>,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "PascalCase")]
struct Metric {
    name: &'static str,
    unit: Unit,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_declares_its_metrics_and_has_their_values_and_its_properties_at_the_root() {
        let line = Line::default()
            .dimension("Route", "GET /v1/orders/{id}")
            .metric("Latency", Unit::Milliseconds, 1.5)
            .metric("ReadCapacity", Unit::Count, 0.5)
            .property("status", 200)
            .to_json(UNIX_EPOCH + Duration::from_millis(1_700_000_000_123));
        assert!(!line.contains('\n'));
        let line: Value = serde_json::from_str(&line).unwrap_or_default();
        assert_eq!(
            line,
            json!({
                "_aws": {"Timestamp": 1_700_000_000_123_u64, "CloudWatchMetrics": [{
                    "Namespace": "Bodega", "Dimensions": [["Route"]],
                    "Metrics": [{"Name": "Latency", "Unit": "Milliseconds"}, {"Name": "ReadCapacity", "Unit": "Count"}],
                }]},
                "Route": "GET /v1/orders/{id}", "Latency": 1.5, "ReadCapacity": 0.5, "status": 200,
            })
        );
    }

    #[test]
    fn values_that_cloudwatch_refuses_are_left_out() {
        let line = Line::default().dimension("Route", "").metric("Latency", Unit::Milliseconds, f64::NAN);
        let line: Value = serde_json::from_str(&line.to_json(UNIX_EPOCH)).unwrap_or_default();
        assert_eq!(line["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([[]]));
        assert_eq!(line["_aws"]["CloudWatchMetrics"][0]["Metrics"], json!([]));
        assert!(line.get("Latency").is_none());
    }

    #[test]
    fn a_line_break_in_a_property_does_not_break_the_line() {
        assert!(!Line::default().property("note", "a\nb").to_json(UNIX_EPOCH).contains('\n'));
    }
}
