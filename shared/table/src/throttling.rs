//! The reasons for which DynamoDB throttles requests, as log lines that are also metrics.
//!
//! Source: API reference, `ThrottlingReason`. A reason such as `TableWriteKeyRangeThroughputExceeded`
//! says whether the table or an index, a whole table or a partition, and an account's or a table's own
//! limit throttles the request.

use serde::Deserialize;
use telemetry::emf::{Line, Unit};

/// A reason has fewer characters. Anything else is not one of DynamoDB's names.
const MAX_REASON: usize = 64;
const MAX_RESOURCE: usize = 512;
/// A response has one reason for each resource that throttles it.
const MAX_REASONS: usize = 10;

#[derive(Deserialize)]
struct Throttled {
    #[serde(rename = "ThrottlingReasons", default)]
    reasons: Vec<Reason>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Reason {
    reason: String,
    #[serde(default)]
    resource: Option<String>,
}

/// Counts a throttled request by the reasons in its response. Without reasons, the error's code counts.
pub(crate) fn report(code: &str, body: &[u8]) {
    let reasons = reasons(body);
    for Reason { reason, resource } in &reasons {
        count(reason, resource.as_deref());
    }
    if reasons.is_empty() {
        count(code, None);
    }
}

fn reasons(body: &[u8]) -> Vec<Reason> {
    let throttled = serde_json::from_slice::<Throttled>(body).map_or(Vec::new(), |throttled| throttled.reasons);
    let is_name = |reason: &Reason| {
        let name = reason.reason.as_bytes();
        !name.is_empty() && name.len() <= MAX_REASON && name.iter().all(u8::is_ascii_alphanumeric)
    };
    let is_arn =
        |resource: &String| resource.len() <= MAX_RESOURCE && resource.bytes().all(|byte| byte.is_ascii_graphic());
    let named = throttled.into_iter().filter(is_name).take(MAX_REASONS);
    named.map(|reason| Reason { resource: reason.resource.filter(is_arn), ..reason }).collect()
}

/// Counts a throttled request. `resource` is the name of the table or index.
pub(crate) fn count(reason: &str, resource: Option<&str>) {
    Line::default()
        .dimension("Stage", telemetry::stage())
        .dimension("Reason", reason)
        .metric("ThrottledCalls", Unit::Count, 1.0)
        .property("resource", resource)
        .print();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reasons_of_a_throttled_request_are_read_and_other_text_is_not() {
        let body = r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
            "message":"Throughput exceeds the current capacity of your table or index.",
            "ThrottlingReasons":[
                {"reason":"TableWriteKeyRangeThroughputExceeded",
                    "resource":"arn:aws:dynamodb:us-east-1:123456789012:table/shop"},
                {"reason":"IndexWriteAccountLimitExceeded"},
                {"reason":"not a name"}]}"#;
        let reason = |reason: &str, resource: Option<&str>| Reason {
            reason: reason.to_owned(),
            resource: resource.map(ToOwned::to_owned),
        };
        let arn = "arn:aws:dynamodb:us-east-1:123456789012:table/shop";
        assert_eq!(
            reasons(body.as_bytes()),
            [reason("TableWriteKeyRangeThroughputExceeded", Some(arn)), reason("IndexWriteAccountLimitExceeded", None)]
        );
        for body in ["", "{}", r#"{"ThrottlingReasons":null}"#, "<html>"] {
            assert_eq!(reasons(body.as_bytes()), []);
        }
    }
}
