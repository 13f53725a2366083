//! Direct access to the table for operators: items of any entity by key, and scans of the whole
//! table.
//!
//! All reads are strongly consistent, because a repair must not depend on an old state of an item.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};
use futures::future::try_join_all;
use key_schema::item::{Item, key_of};
use key_schema::key::Key;
use key_schema::request::MAX_BATCH_GET;
use table::Backoff;

use crate::error::OpsError;
use crate::pace::Pace;
use crate::progress::Progress;

/// The number of table segments that a scan reads in parallel.
const SEGMENTS: i32 = 4;
/// The maximum number of items that one page of a scan reads. With small pages the rate limit is
/// even, and the documents of a page fit into one bulk request.
const PAGE: i32 = 500;
/// The maximum number of attempts to read a page. Each attempt includes the SDK's own retries and
/// takes up to `aws::OPERATION_TIMEOUT`.
const ATTEMPTS: u32 = 24;

/// The items of a table.
#[derive(Debug, Clone)]
pub struct Items {
    client: Client,
    table: String,
}

impl Items {
    /// Creates the value from an existing client.
    #[must_use]
    pub const fn new(client: Client, table: String) -> Self {
        Self { client, table }
    }

    /// Creates the value from the environment: `TABLE_NAME` and the SDK's variables.
    ///
    /// # Errors
    /// [`OpsError::Usage`] when `TABLE_NAME` is missing or the TLS client cannot be built.
    pub async fn from_env() -> Result<Self, OpsError> {
        let table = aws::variable("TABLE_NAME")?;
        Ok(Self::new(Client::new(&aws::config().await?), table))
    }

    /// Returns the items with these keys. Keys without an item are left out.
    ///
    /// # Errors
    /// [`OpsError`].
    pub async fn get(&self, keys: &[Key]) -> Result<HashMap<Key, Item>, OpsError> {
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
                let answer = self.client.batch_get_item().request_items(&self.table, keys).send().await;
                let answer = answer.map_err(|error| failure(&error))?;
                let items = answer.responses.unwrap_or_default().into_values().flatten().map(Item::from);
                found.extend(items.filter_map(|item| Some((key_of(&item)?, item))));
                pending =
                    answer.unprocessed_keys.unwrap_or_default().into_values().flat_map(|keys| keys.keys).collect();
                if !pending.is_empty() && !backoff.wait().await {
                    return Err(OpsError::Unreachable {
                        what: "the table",
                        reason: "it leaves keys unread".to_owned(),
                    });
                }
            }
        }
        Ok(found)
    }

    /// Returns the approximate number of items. DynamoDB updates this number every six hours.
    ///
    /// # Errors
    /// [`OpsError`], including when the table does not exist.
    pub async fn estimate(&self) -> Result<Option<u64>, OpsError> {
        let answer = self.client.describe_table().table_name(&self.table).send().await;
        let table = answer.map_err(|error| failure(&error))?.table;
        Ok(table.and_then(|table| table.item_count).and_then(|count| u64::try_from(count).ok()))
    }

    /// Scans the whole table and passes the items of these entities to `take`, page by page.
    /// Several segments are scanned at once.
    ///
    /// An item that changes during the scan is passed in its state before or after the change. An
    /// item that exists during the whole scan is always passed.
    ///
    /// # Errors
    /// The first [`OpsError`] of the scan or of `take`. The scan then stops.
    pub async fn scan<F>(&self, entities: &[&str], pace: &Pace, progress: &Progress, take: F) -> Result<(), OpsError>
    where
        F: AsyncFn(Vec<Item>) -> Result<(), OpsError>,
    {
        let segments = (0..SEGMENTS).map(|segment| self.segment(segment, entities, pace, progress, &take));
        try_join_all(segments).await.map(|_| ())
    }

    async fn segment<F>(
        &self,
        segment: i32,
        entities: &[&str],
        pace: &Pace,
        progress: &Progress,
        take: &F,
    ) -> Result<(), OpsError>
    where
        F: AsyncFn(Vec<Item>) -> Result<(), OpsError>,
    {
        let mut start = None;
        // The loop ends, because every page starts after the previous one.
        loop {
            let page = self.page(segment, entities, start).await?;
            // The limit applies after the read, because only the response has the number of items.
            pace.admit(page.scanned).await;
            if !page.items.is_empty() {
                take(page.items).await?;
            }
            progress.step(page.scanned);
            match page.next {
                Some(next) => start = Some(next),
                None => return Ok(()),
            }
        }
    }

    async fn page(&self, segment: i32, entities: &[&str], start: Option<Attributes>) -> Result<Page, OpsError> {
        let names: Vec<String> = (0..entities.len()).map(|number| format!(":e{number}")).collect();
        let mut backoff = Backoff::new();
        for _ in 0..ATTEMPTS {
            let mut scan = self
                .client
                .scan()
                .table_name(&self.table)
                .consistent_read(true)
                .total_segments(SEGMENTS)
                .segment(segment)
                .limit(PAGE)
                .set_exclusive_start_key(start.clone())
                .filter_expression(format!("#entity IN ({})", names.join(", ")))
                .expression_attribute_names("#entity", "entity");
            for (name, entity) in names.iter().zip(entities) {
                scan = scan.expression_attribute_values(name, AttributeValue::S((*entity).to_owned()));
            }
            match scan.send().await.map_err(|error| failure(&error)) {
                Ok(answer) => {
                    return Ok(Page {
                        items: answer.items.unwrap_or_default().into_iter().map(Item::from).collect(),
                        scanned: usize::try_from(answer.scanned_count).unwrap_or_default(),
                        next: answer.last_evaluated_key,
                    });
                }
                // The table is throttled or does not answer.
                Err(OpsError::Unreachable { .. }) => {
                    if !backoff.wait().await {
                        backoff = Backoff::new();
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(OpsError::Unreachable { what: "the table", reason: "it stays throttled or away".to_owned() })
    }
}

type Attributes = HashMap<String, AttributeValue>;

struct Page {
    items: Vec<Item>,
    /// The number of items that the page read, including those of other entities.
    scanned: usize,
    next: Option<Attributes>,
}

fn attributes(key: &Key) -> Attributes {
    HashMap::from([
        ("PK".to_owned(), AttributeValue::S(key.pk.as_str().to_owned())),
        ("SK".to_owned(), AttributeValue::S(key.sk.as_str().to_owned())),
    ])
}

/// Converts a failed call to an error. Throttling, server errors and missing responses become
/// [`OpsError::Unreachable`]. Refusals become [`OpsError::Failed`].
fn failure<E, R>(error: &SdkError<E, R>) -> OpsError
where
    E: ProvideErrorMetadata,
{
    const LATER: [&str; 6] = [
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "ThrottlingError",
        "RequestLimitExceeded",
        "InternalServerError",
        "ServiceUnavailable",
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
