//! The consumed units of a table and its indexes in each minute, as CloudWatch returns them.

use std::collections::BTreeMap;

use aws::CloudWatch;
use key_schema::index::INDEXES;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::OpsError;

/// The name of the table in a report. The table's indexes have their own names.
pub(super) const TABLE: &str = "table";
pub(super) const MINUTE: i64 = 60;
/// The maximum number of data points in a response (API reference, `GetMetricData`).
const MAX_DATAPOINTS: u32 = 100_800;
/// Two weeks of eight series are 161,280 points, which fit into two responses.
const MAX_PAGES: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Reads,
    Writes,
}

/// The consumption of the table or of one index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// The table or the index.
    pub place: String,
    pub kind: Kind,
    /// The consumed half units of each minute. The key is the start of the minute, in seconds since
    /// 1970. In a minute without an entry, nothing was consumed.
    pub minutes: BTreeMap<i64, u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Query {
    id: String,
    metric_stat: serde_json::Value,
    return_data: bool,
}

/// Returns the id of the query, the table or index, and the kind of each series.
fn places() -> impl Iterator<Item = (String, &'static str, Kind)> {
    let places = [TABLE].into_iter().chain(INDEXES.map(|index| index.name()));
    places.flat_map(|place| {
        let id = |kind| format!("{}_{kind}", place.to_lowercase());
        [(id("reads"), place, Kind::Reads), (id("writes"), place, Kind::Writes)]
    })
}

pub(super) fn queries(table: &str) -> Vec<Query> {
    let query = |(id, place, kind)| {
        let mut dimensions = vec![json!({"Name": "TableName", "Value": table})];
        if place != TABLE {
            dimensions.push(json!({"Name": "GlobalSecondaryIndexName", "Value": place}));
        }
        let name = match kind {
            Kind::Reads => "ConsumedReadCapacityUnits",
            Kind::Writes => "ConsumedWriteCapacityUnits",
        };
        let metric = json!({"Namespace": "AWS/DynamoDB", "MetricName": name, "Dimensions": dimensions});
        Query { id, metric_stat: json!({"Metric": metric, "Period": MINUTE, "Stat": "Sum"}), return_data: true }
    };
    places().map(query).collect()
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Request<'a> {
    metric_data_queries: &'a [Query],
    start_time: i64,
    end_time: i64,
    max_datapoints: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Response {
    metric_data_results: Vec<Points>,
    next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Points {
    id: String,
    timestamps: Vec<Time>,
    values: Vec<f64>,
}

/// A time: seconds since 1970 in the API, a text in the output of the AWS CLI.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Time {
    Seconds(f64),
    Text(String),
}

pub(super) async fn fetch(
    cloudwatch: &CloudWatch,
    table: &str,
    start_time: i64,
    end_time: i64,
) -> Result<Vec<Series>, OpsError> {
    let queries = queries(table);
    let (mut found, mut next_token) = (Found::default(), None);
    for _ in 0..MAX_PAGES {
        let (metric_data_queries, max_datapoints) = (queries.as_slice(), MAX_DATAPOINTS);
        let request = Request { metric_data_queries, start_time, end_time, max_datapoints, next_token };
        let response: Response = cloudwatch.read("GetMetricData", &request).await?;
        found.add(response.metric_data_results)?;
        next_token = response.next_token;
        if next_token.is_none() {
            return found.series();
        }
    }
    Err(OpsError::Failed("CloudWatch returned more pages than expected: use a smaller --days".to_owned()))
}

/// Reads the series from the output of `aws cloudwatch get-metric-data`.
pub fn parse(text: &str) -> Result<Vec<Series>, OpsError> {
    let usage = |error: String| OpsError::Usage(format!("the metrics: {error}"));
    let response: Response = serde_json::from_str(text).map_err(|error| usage(error.to_string()))?;
    if response.next_token.is_some() {
        return Err(usage("the file has a NextToken, so it is only the first page".to_owned()));
    }
    let mut found = Found::default();
    found.add(response.metric_data_results)?;
    found.series()
}

/// Points by the id of their query. A page continues the series of the previous page.
#[derive(Default)]
struct Found(BTreeMap<String, BTreeMap<i64, u64>>);

impl Found {
    fn add(&mut self, results: Vec<Points>) -> Result<(), OpsError> {
        for Points { id, timestamps, values } in results {
            let minutes = self.0.entry(id).or_default();
            for (time, value) in timestamps.into_iter().zip(values) {
                let second = time.seconds()?;
                *minutes.entry(second.div_euclid(MINUTE) * MINUTE).or_default() += half_units(value)?;
            }
        }
        Ok(())
    }

    fn series(mut self) -> Result<Vec<Series>, OpsError> {
        let known = places().map(|(id, place, kind)| {
            let minutes = self.0.remove(&id).unwrap_or_default();
            Series { place: place.to_owned(), kind, minutes }
        });
        let series: Vec<Series> = known.collect();
        if let Some(id) = self.0.keys().next() {
            let hint = "use the queries that --print-queries prints";
            return Err(OpsError::Usage(format!("the metrics have an unknown id {id:?}: {hint}")));
        }
        if series.iter().all(|series| series.minutes.is_empty()) {
            return Err(OpsError::Usage("the metrics have no data point".to_owned()));
        }
        Ok(series)
    }
}

impl Time {
    #[allow(clippy::cast_possible_truncation, reason = "the cast saturates")]
    fn seconds(self) -> Result<i64, OpsError> {
        match self {
            Self::Seconds(seconds) => Ok(seconds as i64),
            Self::Text(text) => {
                let wrong = || OpsError::Usage(format!("the metrics: {text:?} is not a time in UTC"));
                let utc = text.strip_suffix("+00:00").or_else(|| text.strip_suffix('Z')).ok_or_else(wrong)?;
                let whole = utc.split_once('.').map_or(utc, |(whole, _)| whole);
                let at: key_schema::instant::Instant = format!("{whole}.000Z").parse().map_err(|_| wrong())?;
                Ok(at.as_seconds())
            }
        }
    }
}

/// Returns a number of units as half units, because an eventually consistent read consumes half a
/// unit.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the value is checked")]
fn half_units(value: f64) -> Result<u64, OpsError> {
    if (0.0..1e15).contains(&value) {
        return Ok((value * 2.0).round() as u64);
    }
    Err(OpsError::Usage(format!("the metrics: {value} is not a number of units")))
}
