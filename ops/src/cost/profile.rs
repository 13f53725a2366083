use std::collections::BTreeMap;

use serde::Deserialize;

use super::measured::Measured;
use crate::error::OpsError;

/// A commented profile, which `--example-profile` prints.
pub const EXAMPLE: &str = include_str!("example.toml");

/// The maximum number of requests a month to all routes together: 38,000 a second.
pub const MAX_REQUESTS: u64 = 100_000_000_000;
/// An operation may cost a thousand times as much as a request to a route.
const MAX_OPERATIONS: u64 = 10_000_000_000;
/// The longest duration of an invocation: Lambda's limit.
const MAX_DURATION_MS: u64 = 900_000;
const MAX_RESPONSE_BYTES: u64 = 6 * 1024 * 1024;
/// The maximum amount of stored data of one kind, in MB: a petabyte.
const MAX_MB: u64 = 1 << 30;
/// The hours of a month in AWS's price examples.
const HOURS: u64 = 730;
/// The maximum number of items of an operation, as in one transaction.
const MAX_ITEMS: usize = 100;
/// DynamoDB's largest item.
const MAX_ITEM_BYTES: u64 = 400 * 1024;

/// The traffic of a month, and the assumptions of its bill.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    #[serde(default = "region")]
    pub region: String,
    #[serde(default = "hours")]
    pub hours_per_month: u64,
    /// Whether the bill contains the stack of template.yaml. If not, the bill contains only the
    /// operations.
    #[serde(default = "yes")]
    pub stack: bool,
    /// The duration of an invocation for a request, unless the route has its own duration.
    #[serde(default = "duration")]
    pub duration_ms: u64,
    /// The duration of an invocation of a stream consumer or subscriber, which a request causes.
    #[serde(default = "later_duration")]
    pub later_duration_ms: u64,
    /// The size of a response, unless the route has its own size.
    #[serde(default = "response")]
    pub response_bytes: u64,
    #[serde(default)]
    pub routes: BTreeMap<String, Traffic>,
    /// Requests that match no route. API Gateway bills them, too.
    #[serde(default)]
    pub unmatched: u64,
    #[serde(default)]
    pub operations: Vec<Operation>,
    #[serde(default)]
    pub storage: Storage,
    #[serde(default)]
    pub media: Media,
    /// Parameters of template.yaml.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    #[serde(default)]
    pub capacity: Capacity,
}

/// The requests of a route: a number per month, or a table.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "expected a number of requests a month, or a table with per_month, per_day or per_hour")]
pub enum Traffic {
    /// Requests a month.
    Month(u64),
    Detailed(Detail),
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Detail {
    pub per_month: Option<u64>,
    pub per_day: Option<u64>,
    pub per_hour: Option<u64>,
    pub duration_ms: Option<u64>,
    pub response_bytes: Option<u64>,
}

/// A request to the table that no route makes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    pub name: String,
    pub per_month: Option<u64>,
    pub per_day: Option<u64>,
    pub per_hour: Option<u64>,
    #[serde(default)]
    pub write_bytes: Vec<u64>,
    /// The size of each item or range that is read.
    #[serde(default)]
    pub read_bytes: Vec<u64>,
    /// Whether the request is a transaction, which costs twice as much.
    #[serde(default)]
    pub transactional: bool,
    /// Whether reads are strongly consistent.
    #[serde(default)]
    pub strong: bool,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Storage {
    /// The table with its indexes.
    pub table_mb: u64,
    /// The points of metrics of past months.
    pub metrics_mb: u64,
    /// Pictures and long texts.
    pub media_mb: u64,
    pub archive_mb: u64,
}

/// Requests to the bucket of pictures.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Media {
    /// Uploads a month.
    pub uploads: u64,
    /// Reads a month.
    pub reads: u64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Capacity {
    pub target_percent: u64,
}

impl Default for Capacity {
    fn default() -> Self {
        Self { target_percent: 70 }
    }
}

fn region() -> String {
    "us-east-1".to_owned()
}

const fn hours() -> u64 {
    HOURS
}

const fn yes() -> bool {
    true
}

const fn duration() -> u64 {
    20
}

const fn later_duration() -> u64 {
    50
}

const fn response() -> u64 {
    2_000
}

impl Profile {
    /// Returns a profile without requests. Its bill is the bill of a stack without traffic.
    pub fn idle() -> Result<Self, OpsError> {
        Self::parse("")
    }

    pub fn parse(text: &str) -> Result<Self, OpsError> {
        let profile: Self = toml::from_str(text).map_err(|error| OpsError::Usage(format!("the profile: {error}")))?;
        profile.check()?;
        Ok(profile)
    }

    /// Checks the bounds of all values, so that no amount overflows.
    pub(crate) fn check(&self) -> Result<(), OpsError> {
        let known = Measured::get()?;
        within("hours_per_month", self.hours_per_month, 1, 744)?;
        within("duration_ms", self.duration_ms, 1, MAX_DURATION_MS)?;
        within("later_duration_ms", self.later_duration_ms, 1, MAX_DURATION_MS)?;
        within("response_bytes", self.response_bytes, 0, MAX_RESPONSE_BYTES)?;
        within("unmatched", self.unmatched, 0, MAX_REQUESTS)?;
        within("capacity.target_percent", self.capacity.target_percent, 1, 100)?;
        for (name, megabytes) in [
            ("storage.table_mb", self.storage.table_mb),
            ("storage.metrics_mb", self.storage.metrics_mb),
            ("storage.media_mb", self.storage.media_mb),
            ("storage.archive_mb", self.storage.archive_mb),
        ] {
            within(name, megabytes, 0, MAX_MB)?;
        }
        within("media.uploads", self.media.uploads, 0, MAX_REQUESTS)?;
        within("media.reads", self.media.reads, 0, MAX_REQUESTS)?;
        let (mut requests, mut operations) = (self.unmatched, 0_u64);
        for (route, traffic) in &self.routes {
            if known.route(route).is_none_or(super::measured::Route::is_scheduled) {
                return Err(OpsError::Usage(format!("there is no route {route:?}{}", known.near(route))));
            }
            let detail = traffic.detail();
            let times = self.per_month(route, [detail.per_month, detail.per_day, detail.per_hour])?;
            requests = requests.saturating_add(times);
            within(route, detail.duration_ms.unwrap_or(1), 1, MAX_DURATION_MS)?;
            within(route, detail.response_bytes.unwrap_or_default(), 0, MAX_RESPONSE_BYTES)?;
        }
        for operation in &self.operations {
            let Operation { name, per_month, per_day, per_hour, .. } = operation;
            operations = operations.saturating_add(self.per_month(name, [*per_month, *per_day, *per_hour])?);
            if operation.write_bytes.len().max(operation.read_bytes.len()) > MAX_ITEMS {
                return Err(OpsError::Usage(format!("{name:?}: a request has at most {MAX_ITEMS} items")));
            }
            for bytes in operation.write_bytes.iter().chain(&operation.read_bytes) {
                within(name, *bytes, 1, MAX_ITEM_BYTES)?;
            }
        }
        within("the requests a month of all routes", requests, 0, MAX_REQUESTS)?;
        within("the requests a month of all operations", operations, 0, MAX_OPERATIONS)
    }

    /// Returns the requests of a month. `rates` has the requests per month, per day and per hour.
    /// Exactly one of the three must be given.
    pub(crate) fn per_month(&self, name: &str, rates: [Option<u64>; 3]) -> Result<u64, OpsError> {
        let hours = self.hours_per_month;
        let requests = match rates {
            [Some(month), None, None] => Some(month),
            [None, Some(day), None] => day.checked_mul(hours).map(|hourly| hourly.saturating_add(12) / 24),
            [None, None, Some(hour)] => hour.checked_mul(hours),
            _ => {
                return Err(OpsError::Usage(format!("{name:?} needs one of per_month, per_day and per_hour")));
            }
        };
        let requests = requests.unwrap_or(u64::MAX);
        within(name, requests, 0, MAX_REQUESTS)?;
        Ok(requests)
    }
}

impl Traffic {
    #[must_use]
    pub fn detail(self) -> Detail {
        match self {
            Self::Month(requests) => Detail { per_month: Some(requests), ..Detail::default() },
            Self::Detailed(detail) => detail,
        }
    }
}

fn within(name: &str, value: u64, low: u64, high: u64) -> Result<(), OpsError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(OpsError::Usage(format!("{name}: {value} must be between {low} and {high}")))
}
