//! Executes the requests that a schema crate makes.
//!
//! This crate has no entity code. A request is a value that names its access pattern. The crate
//! sends the request, retries it within a time budget, measures it, and decodes the result into the
//! request's type. A refused condition is not an error, because only the caller knows the meaning
//! of the refusal.

mod batch;
mod budget;
mod error;
mod merge;
mod meter;
mod periods;
mod read;
mod refusal;
mod retry;
mod throttling;
mod write;

use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;

pub use aws::{OPERATION_TIMEOUT, SetupError};
pub use batch::Batch;
pub use budget::Budget;
pub use error::TableError;
pub use meter::{Measured, Meter};
pub use periods::{MISSING_FOR, Periods};
pub use read::Page;
pub use refusal::{Refusal, Refusals};
pub use retry::{Backoff, Pressure, retry_on_conflict};
pub use write::Attempt;

/// The first part of the name of the CloudWatch rule that finds a table's most throttled partition
/// keys. The table's name and the rule's creation time follow. Source: Developer Guide, "CloudWatch
/// contributor insights for DynamoDB: How it works".
const THROTTLES_RULE: &str = "DynamoDBContributorInsights-PKT-";

/// The table: its client and the meter of consumed capacity. Clones share both.
#[derive(Debug, Clone)]
pub struct Table {
    client: Client,
    /// The same client without retries, for writes that must not be sent twice.
    once: Client,
    name: String,
    meter: Arc<Meter>,
    pressure: Arc<Pressure>,
    /// Whether this is the table of a period ([`Periods`]).
    is_of_period: bool,
}

impl Table {
    /// Creates the table's client from the environment: `TABLE_NAME` and the SDK's own variables
    /// (region, credentials, endpoint).
    pub async fn from_env() -> Result<Self, SetupError> {
        let name = aws::variable("TABLE_NAME")?;
        Ok(Self::new(Client::new(&aws::config().await?), name))
    }

    #[must_use]
    pub fn new(client: Client, name: String) -> Self {
        let once = client.config().to_builder().retry_config(RetryConfig::disabled()).build();
        Self {
            once: Client::from_conf(once),
            client,
            name,
            meter: Arc::default(),
            pressure: Arc::default(),
            is_of_period: false,
        }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the `StreamViewType` of the table's stream, or `None` without a stream.
    pub async fn stream_view(&self) -> Result<Option<String>, TableError> {
        let described = self.client.describe_table().table_name(&self.name).send().await;
        let table = described.map_err(|error| error::classify(&error))?.table;
        let stream = table.and_then(|table| table.stream_specification).filter(|stream| stream.stream_enabled);
        Ok(stream.and_then(|stream| stream.stream_view_type).map(|view| view.as_str().to_owned()))
    }

    /// Returns the CloudWatch rule that finds the table's most throttled partition keys. Returns
    /// `None` if Contributor Insights is not enabled, or has not created the rule yet.
    pub async fn throttles_rule(&self) -> Result<Option<String>, TableError> {
        let described = self.client.describe_contributor_insights().table_name(&self.name).send().await;
        let rules = described.map_err(|error| error::classify(&error))?.contributor_insights_rule_list;
        Ok(rules.unwrap_or_default().into_iter().find(|rule| rule.starts_with(THROTTLES_RULE)))
    }

    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    #[must_use]
    pub fn pressure(&self) -> &Pressure {
        &self.pressure
    }
}
