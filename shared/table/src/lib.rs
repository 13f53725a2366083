//! How the table is reached: one executor for the requests that `key-schema` describes.
//!
//! There is no entity code here. A request arrives as data with its access pattern, is sent, retried inside a budget, and measured; what comes
//! back is decoded into the type that the request names. A refused condition is told apart from a failure: the caller knows what it
//! means, this crate does not.

mod batch;
mod client;
mod error;
mod meter;
mod read;
mod retry;
mod write;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;

pub use client::{OPERATION_TIMEOUT, SetupError};
pub use error::{Refusal, TableError, TransactError, WriteError};
pub use meter::{Measured, Meter};
pub use read::Page;
pub use retry::Backoff;

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
        let name = std::env::var("TABLE_NAME").map_err(|_| SetupError::NoTableName)?;
        Ok(Self::new(client::from_env().await?, name))
    }

    /// Over a client that is already built.
    #[must_use]
    pub fn new(client: Client, name: String) -> Self {
        let once = client.config().to_builder().retry_config(RetryConfig::disabled()).build();
        Self { once: Client::from_conf(once), client, name, meter: Meter::default() }
    }

    /// What the requests since the last look have consumed.
    #[must_use]
    pub const fn meter(&self) -> &Meter {
        &self.meter
    }
}
