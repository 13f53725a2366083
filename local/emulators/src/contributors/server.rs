use std::io;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use hyper::{Request, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::throttles::{Throttled, Throttles};
use crate::access::{Access, Denied, Need};
use crate::endpoint::{Answer, Endpoint, Service, json_answer};
use crate::faults::{FaultKind, Faults};

const TARGET: &str = "GraniteServiceVersion20100801.GetInsightRuleReport";
const RULES: &str = "DynamoDBContributorInsights-PKT-";
/// Number of contributors in a response if the request does not limit it.
const CONTRIBUTORS: usize = 10;
const MAX_CONTRIBUTORS: usize = 100;

const MEDIA_TYPE: &str = "application/x-amz-json-1.0";

/// An in-process CloudWatch that answers `GetInsightRuleReport` for throttled keys. Dropping the
/// value ends the server.
pub struct InsightServer {
    endpoint: Endpoint,
}

impl InsightServer {
    /// Opens a loopback port and serves the reports there. Needs a Tokio runtime.
    pub async fn start(throttles: Throttles) -> io::Result<Self> {
        Ok(Self { endpoint: Endpoint::start(Arc::new(Insights(throttles)), Faults::default()).await? })
    }
}

impl Deref for InsightServer {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}

struct Insights(Throttles);

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ReportRequest {
    rule_name: String,
    start_time: f64,
    end_time: f64,
    period: i64,
    max_contributor_count: Option<usize>,
}

impl Service for Insights {
    async fn answer(&self, request: Request<Bytes>) -> Answer {
        if request.headers().get("x-amz-target").and_then(|target| target.to_str().ok()) != Some(TARGET) {
            return error(
                StatusCode::BAD_REQUEST,
                "UnknownOperationException",
                "only GetInsightRuleReport is supported",
            );
        }
        let invalid = |message: &str| error(StatusCode::BAD_REQUEST, "InvalidParameterValueException", message);
        let asked: ReportRequest = match serde_json::from_slice(request.body()) {
            Ok(asked) => asked,
            Err(reason) => return invalid(&reason.to_string()),
        };
        let most = asked.max_contributor_count.unwrap_or(CONTRIBUTORS);
        if asked.period != 60 || !(1..=MAX_CONTRIBUTORS).contains(&most) || asked.start_time >= asked.end_time {
            return invalid("Period must be 60, MaxContributorCount from 1 to 100, and EndTime after StartTime");
        }
        // Any table name is valid, because the counted requests are all for one table.
        let table = asked.rule_name.strip_prefix(RULES).and_then(|rest| rest.rsplit_once('-')).map(|(table, _)| table);
        if table.is_none_or(|table| self.0.rule(table) != asked.rule_name) {
            return error(StatusCode::NOT_FOUND, "ResourceNotFoundException", "There is no such rule.");
        }
        json_answer(
            MEDIA_TYPE,
            StatusCode::OK,
            &report(&self.0.most(asked.start_time as i64, asked.end_time.ceil() as i64, most)),
        )
    }

    fn refusal(&self, kind: FaultKind, _: &Request<Bytes>) -> Option<Answer> {
        match kind {
            FaultKind::Throttle => Some(error(StatusCode::BAD_REQUEST, "ThrottlingException", "Rate exceeded")),
            FaultKind::Error => Some(error(StatusCode::INTERNAL_SERVER_ERROR, "InternalServiceFault", "")),
            _ => None,
        }
    }

    fn needs(&self, request: &Request<Bytes>, access: &Access) -> Vec<Need> {
        let asked = serde_json::from_slice::<ReportRequest>(request.body()).ok();
        let rule = asked.map_or_else(|| "*".to_owned(), |asked| asked.rule_name);
        vec![Need::new("cloudwatch:GetInsightRuleReport", access.arn("cloudwatch", &format!("insight-rule/{rule}")))]
    }

    fn forbidden(&self, denied: &Denied) -> Answer {
        error(StatusCode::FORBIDDEN, "AccessDeniedException", &denied.to_string())
    }
}

/// Returns the report in the form of the API reference. Times are seconds since 1970.
fn report(found: &[Throttled]) -> Value {
    let contributor = |throttled: &Throttled| {
        let points = throttled.minutes.iter();
        json!({
            "Keys": [throttled.key],
            "ApproximateAggregateValue": throttled.total(),
            "Datapoints": points
                .map(|(minute, count)| json!({"Timestamp": minute, "ApproximateValue": count}))
                .collect::<Vec<_>>(),
        })
    };
    json!({
        "KeyLabels": ["PartitionKey"],
        "AggregationStatistic": "Sum",
        "AggregateValue": found.iter().map(Throttled::total).sum::<u64>(),
        "ApproximateUniqueCount": found.len(),
        "Contributors": found.iter().map(contributor).collect::<Vec<_>>(),
    })
}

fn error(status: StatusCode, code: &str, message: &str) -> Answer {
    json_answer(
        MEDIA_TYPE,
        status,
        &json!({"__type": format!("com.amazonaws.cloudwatch.v2010_08_01#{code}"), "message": message}),
    )
}
