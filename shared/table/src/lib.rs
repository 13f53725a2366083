//! How the table is reached: one executor for the requests that `key-schema` describes.
//!
//! There is no entity code here. A request arrives as data with its access pattern, is sent, retried inside a budget, and measured; what comes
//! back is decoded into the type that the request names. A refused condition is told apart from a failure: the caller knows what it
//! means, this crate does not.

mod batch;
mod error;
mod merge;
mod meter;
mod read;
mod retry;
mod write;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;

pub use aws::{OPERATION_TIMEOUT, SetupError};
pub use error::{Refusal, TableError, TransactError, WriteError};
pub use meter::{Measured, Meter};
pub use read::Page;
pub use retry::Backoff;
pub use write::Attempt;

/// How the name begins of the rule that DynamoDB makes for a table's most throttled partition keys (Developer Guide, "CloudWatch contributor insights
/// for DynamoDB: How it works"). What follows are the table's name and when the rule was made.
const THROTTLES_RULE: &str = "DynamoDBContributorInsights-PKT-";

/// The table, with the client that reaches it and the meter of what that costs.
#[derive(Debug)]
pub struct Table {
    client: Client,
    /// The same, without retries of its own: for writes that must not be sent twice.
    once: Client,
    name: String,
    meter: Meter,
}

impl Table {
    /// From the environment: `TABLE_NAME` and the SDK's own variables (region, credentials, endpoint).
    ///
    /// # Errors
    /// [`SetupError`] when `TABLE_NAME` is missing or the TLS client cannot be built.
    pub async fn from_env() -> Result<Self, SetupError> {
        let name = aws::variable("TABLE_NAME")?;
        Ok(Self::new(Client::new(&aws::config().await?), name))
    }

    /// Over a client that is already built.
    #[must_use]
    pub fn new(client: Client, name: String) -> Self {
        let once = client.config().to_builder().retry_config(RetryConfig::disabled()).build();
        Self { once: Client::from_conf(once), client, name, meter: Meter::default() }
    }

    /// The table's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the records of the table's stream show (`StreamViewType`); `None` without a stream.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn stream_view(&self) -> Result<Option<String>, TableError> {
        let described = self.client.describe_table().table_name(&self.name).send().await;
        let table = described.map_err(|error| error::classify(&error))?.table;
        let stream = table.and_then(|table| table.stream_specification).filter(|stream| stream.stream_enabled);
        Ok(stream.and_then(|stream| stream.stream_view_type).map(|view| view.as_str().to_owned()))
    }

    /// The rule of CloudWatch that counts which partition keys of the table are throttled most; `None` where Contributor Insights is not enabled, or not
    /// yet.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn throttles_rule(&self) -> Result<Option<String>, TableError> {
        let described = self.client.describe_contributor_insights().table_name(&self.name).send().await;
        let rules = described.map_err(|error| error::classify(&error))?.contributor_insights_rule_list;
        Ok(rules.unwrap_or_default().into_iter().find(|rule| rule.starts_with(THROTTLES_RULE)))
    }

    /// What the requests since the last look have consumed.
    #[must_use]
    pub const fn meter(&self) -> &Meter {
        &self.meter
    }
}
