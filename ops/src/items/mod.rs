//! Direct access to the table for operators: items of any entity by key, and scans of the whole
//! table.
//!
//! All reads are strongly consistent, because a repair must not depend on an old state of an item.

mod repair;
mod walk;

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::{AttributeValue, ConsumedCapacity, KeysAndAttributes, ReturnConsumedCapacity};
use key_schema::item::{Item, key_of};
use key_schema::key::Key;
use key_schema::request::MAX_BATCH_GET;
use table::{Backoff, Table};

pub use repair::{Check, Repair, RepairWrite, Repaired, set, sets};
pub use walk::Walk;

use crate::error::OpsError;
use crate::pace::Pace;

/// Each attempt includes the SDK's own retries and takes up to `aws::OPERATION_TIMEOUT`.
const ATTEMPTS: u32 = 24;

#[derive(Debug, Clone)]
pub struct Items {
    client: Client,
    table: String,
}

impl Items {
    #[must_use]
    pub const fn new(client: Client, table: String) -> Self {
        Self { client, table }
    }

    /// Creates the value from the environment: `TABLE_NAME` and the SDK's variables.
    pub async fn from_env() -> Result<Self, OpsError> {
        let table = aws::variable("TABLE_NAME")?;
        Ok(Self::new(Client::new(&aws::config().await?), table))
    }

    /// Returns the [`Table`], which executes access patterns on the same table.
    #[must_use]
    pub fn table(&self) -> Table {
        Table::new(self.client.clone(), self.table.clone())
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.table
    }

    /// Returns the items with these keys. Keys without an item are left out.
    pub async fn get(&self, keys: &[Key]) -> Result<HashMap<Key, Item>, OpsError> {
        self.get_within(keys, &Pace::new(None)).await
    }

    /// Like [`Items::get`], within a limit of capacity units.
    pub async fn get_within(&self, keys: &[Key], units: &Pace) -> Result<HashMap<Key, Item>, OpsError> {
        let mut distinct: Vec<&Key> = keys.iter().collect();
        distinct.sort_unstable();
        distinct.dedup();
        let mut found = HashMap::with_capacity(distinct.len());
        for keys in distinct.chunks(MAX_BATCH_GET) {
            let mut pending: Vec<HashMap<String, AttributeValue>> = keys.iter().map(|key| attributes(key)).collect();
            let mut backoff = Backoff::new();
            while !pending.is_empty() {
                let keys = KeysAndAttributes::builder().set_keys(Some(std::mem::take(&mut pending)));
                let keys = keys.consistent_read(true).build().map_err(OpsError::failed)?;
                let answer = persist(async || {
                    let get = self.client.batch_get_item().request_items(&self.table, keys.clone());
                    let get = get.return_consumed_capacity(ReturnConsumedCapacity::Total);
                    get.send().await.map_err(|error| failure(&error))
                });
                let answer = answer.await?;
                units.admit(consumed(answer.consumed_capacity())).await;
                let items = answer.responses.unwrap_or_default().into_values().flatten().map(Item::from);
                found.extend(items.filter_map(|item| Some((key_of(&item)?, item))));
                pending =
                    answer.unprocessed_keys.unwrap_or_default().into_values().flat_map(|keys| keys.keys).collect();
                if !pending.is_empty() && !backoff.wait().await {
                    return Err(OpsError::Unreachable {
                        what: "the table",
                        reason: "it did not return all requested items".to_owned(),
                    });
                }
            }
        }
        Ok(found)
    }

    /// Returns the names of the CloudWatch rules that count the requests for each key of the table
    /// or an index.
    pub async fn insight_rules(&self, index: Option<&str>) -> Result<Vec<String>, OpsError> {
        let answer = persist(async || {
            let describe = self.client.describe_contributor_insights().table_name(&self.table);
            let describe = describe.set_index_name(index.map(str::to_owned));
            describe.send().await.map_err(|error| failure(&error))
        });
        Ok(answer.await?.contributor_insights_rule_list.unwrap_or_default())
    }

    /// Returns the approximate number of items, or `None` if the response takes too long. DynamoDB
    /// updates this number every six hours.
    ///
    /// # Errors
    /// [`OpsError`], including when the table does not exist.
    pub async fn estimate(&self) -> Result<Option<u64>, OpsError> {
        let answer = self.client.describe_table().table_name(&self.table).send().await;
        // Only the progress bar needs the number. The local system counts the items for each
        // request, which takes seconds for a large table.
        if matches!(answer, Err(SdkError::TimeoutError(_))) {
            return Ok(None);
        }
        let table = answer.map_err(|error| failure(&error))?.table;
        Ok(table.and_then(|table| table.item_count).and_then(|count| u64::try_from(count).ok()))
    }
}

type Attributes = HashMap<String, AttributeValue>;

fn attributes(key: &Key) -> Attributes {
    HashMap::from([
        ("PK".to_owned(), AttributeValue::S(key.pk.as_str().to_owned())),
        ("SK".to_owned(), AttributeValue::S(key.sk.as_str().to_owned())),
    ])
}

/// Returns the capacity units that a call consumed, rounded up.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "units are positive and small")]
fn consumed<'a>(capacity: impl IntoIterator<Item = &'a ConsumedCapacity>) -> usize {
    let units: f64 = capacity.into_iter().filter_map(ConsumedCapacity::capacity_units).sum();
    units.ceil() as usize
}

/// Repeats a call while the table is throttled or does not answer, with a wait after each attempt.
async fn persist<T>(mut call: impl AsyncFnMut() -> Result<T, OpsError>) -> Result<T, OpsError> {
    let mut backoff = Backoff::new();
    for _ in 0..ATTEMPTS {
        match call().await {
            Err(OpsError::Unreachable { .. }) => {
                if !backoff.wait().await {
                    backoff = Backoff::new();
                }
            }
            answer => return answer,
        }
    }
    Err(OpsError::Unreachable { what: "the table", reason: "it throttles requests or does not answer".to_owned() })
}

/// Throttling, server errors and missing responses become [`OpsError::Unreachable`]. Refusals
/// become [`OpsError::Failed`].
pub(crate) fn failure<E, R>(error: &SdkError<E, R>) -> OpsError
where
    E: ProvideErrorMetadata,
{
    const LATER: [&str; 8] = [
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "ThrottlingError",
        "RequestLimitExceeded",
        "InternalServerError",
        "ServiceUnavailable",
        // The table is being changed, or too many tables are being changed at once.
        "ResourceInUseException",
        "LimitExceededException",
    ];
    let unreachable = |reason: &str| OpsError::Unreachable { what: "the table", reason: reason.to_owned() };
    match error {
        SdkError::ServiceError(service) => {
            let code = service.err().code().unwrap_or("unknown");
            if LATER.contains(&code) {
                return unreachable(code);
            }
            OpsError::Failed(format!("the table refused: {code}: {}", service.err().message().unwrap_or_default()))
        }
        SdkError::ConstructionFailure(_) => OpsError::Failed("the request could not be built".to_owned()),
        SdkError::TimeoutError(_) => unreachable("timeout"),
        SdkError::DispatchFailure(_) => unreachable("no connection"),
        _ => unreachable("broken answer"),
    }
}
