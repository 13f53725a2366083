//! The requests that create, change and delete the table of a month. Each of them may be repeated.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, SseSpecification, SseStatus,
    TableClass, TableDescription, TableStatus, Tag, TimeToLiveSpecification, TimeToLiveStatus,
};
use tokio::time::sleep;

use crate::error::OpsError;
use crate::items::failure;

const TIME_TO_LIVE: &str = "ttl";
/// The maximum number of checks of a table's status, and the pause between two checks.
const CHECKS: u32 = 90;
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The maximum number of pages of tags. A table has at most 50 tags.
const MAX_PAGES_OF_TAGS: usize = 10;
/// The prefix of tags that only AWS may set.
const TAGS_OF_AWS: &str = "aws:";

#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    /// Whether the table has other keys, an index or a stream.
    pub(super) is_foreign: bool,
    pub(super) is_infrequent: bool,
    pub(super) expires_items: bool,
}

/// The tables of months beside a main table.
#[derive(Debug, Clone)]
pub struct MonthTables {
    client: Client,
    main: String,
}

impl MonthTables {
    #[must_use]
    pub const fn new(client: Client, main: String) -> Self {
        Self { client, main }
    }

    /// Creates the value from the environment: `TABLE_NAME` and the SDK's variables.
    pub async fn from_env() -> Result<Self, OpsError> {
        let main = aws::variable("TABLE_NAME")?;
        Ok(Self::new(Client::new(&aws::config().await?), main))
    }

    pub(super) fn main(&self) -> &str {
        &self.main
    }

    /// Returns a table, or `None` if it does not exist or is being deleted.
    pub(super) async fn find(&self, name: &str) -> Result<Option<Found>, OpsError> {
        let Some(table) = self.describe(name).await? else { return Ok(None) };
        if table.table_status == Some(TableStatus::Deleting) {
            return Ok(None);
        }
        let class = table.table_class_summary.as_ref().and_then(|summary| summary.table_class.as_ref());
        let is_infrequent = class == Some(&TableClass::StandardInfrequentAccess);
        let is_foreign = is_foreign(&table);
        let expires_items = !is_foreign && self.expires_items(name).await?;
        Ok(Some(Found { is_foreign, is_infrequent, expires_items }))
    }

    /// Creates an on-demand table with the limits, the encryption and the tags of the main table.
    /// Its time to live and its deletion protection are on. It has no point-in-time recovery.
    pub(super) async fn create(&self, name: &str) -> Result<(), OpsError> {
        let main = self.describe(&self.main).await?;
        let main = main.ok_or_else(|| OpsError::Failed(format!("the table {} does not exist", self.main)))?;
        let tags = match &main.table_arn {
            Some(arn) => self.tags(arn).await?,
            None => Vec::new(),
        };
        let mut create = self
            .client
            .create_table()
            .table_name(name)
            .billing_mode(BillingMode::PayPerRequest)
            .set_on_demand_throughput(main.on_demand_throughput.clone())
            .set_sse_specification(encryption(&main))
            .set_tags((!tags.is_empty()).then_some(tags))
            .deletion_protection_enabled(true);
        for (attribute, kind) in KEYS {
            let of_text = AttributeDefinition::builder().attribute_type(ScalarAttributeType::S);
            let of_key = KeySchemaElement::builder().attribute_name(attribute).key_type(kind);
            create = create
                .attribute_definitions(of_text.attribute_name(attribute).build().map_err(invalid)?)
                .key_schema(of_key.build().map_err(invalid)?);
        }
        match create.send().await {
            // Another run or a lost attempt of this run has created the table.
            Err(error) if error.code() == Some("ResourceInUseException") => {}
            created => drop(created.map_err(|error| failure(&error))?),
        }
        self.expire_items(name).await
    }

    /// Turns the time to live of a table on, unless it is on.
    pub(super) async fn expire_items(&self, name: &str) -> Result<(), OpsError> {
        self.settle(name).await?;
        if self.expires_items(name).await? {
            return Ok(());
        }
        let on = TimeToLiveSpecification::builder().attribute_name(TIME_TO_LIVE).enabled(true).build();
        let update = self.client.update_time_to_live().table_name(name);
        let updated = update.time_to_live_specification(on.map_err(invalid)?).send().await;
        updated.map(drop).map_err(|error| failure(&error))
    }

    /// Gives a table the class for infrequent access.
    pub(super) async fn access_infrequently(&self, name: &str) -> Result<(), OpsError> {
        self.settle(name).await?;
        let update = self.client.update_table().table_name(name).table_class(TableClass::StandardInfrequentAccess);
        update.send().await.map(drop).map_err(|error| failure(&error))
    }

    /// Removes a table's deletion protection, and then deletes the table.
    pub(super) async fn delete(&self, name: &str) -> Result<(), OpsError> {
        let Some(table) = self.describe(name).await? else { return Ok(()) };
        if table.deletion_protection_enabled == Some(true) {
            let update = self.client.update_table().table_name(name).deletion_protection_enabled(false);
            update.send().await.map_err(|error| failure(&error))?;
            self.settle(name).await?;
        }
        match self.client.delete_table().table_name(name).send().await {
            Err(error) if error.code() == Some("ResourceNotFoundException") => Ok(()),
            deleted => deleted.map(drop).map_err(|error| failure(&error)),
        }
    }

    async fn describe(&self, name: &str) -> Result<Option<TableDescription>, OpsError> {
        match self.client.describe_table().table_name(name).send().await {
            Err(error) if error.code() == Some("ResourceNotFoundException") => Ok(None),
            described => Ok(described.map_err(|error| failure(&error))?.table),
        }
    }

    /// Waits until DynamoDB has created or changed a table.
    async fn settle(&self, name: &str) -> Result<(), OpsError> {
        for _ in 0..CHECKS {
            // Right after its creation, a table may be unknown.
            match self.describe(name).await? {
                Some(table) if table.table_status == Some(TableStatus::Active) => return Ok(()),
                _ => sleep(CHECK_INTERVAL).await,
            }
        }
        let reason = format!("{name} does not become active, so repeat the command later");
        Err(OpsError::Unreachable { what: "the table of a month", reason })
    }

    async fn expires_items(&self, name: &str) -> Result<bool, OpsError> {
        let described = self.client.describe_time_to_live().table_name(name).send().await;
        let described = described.map_err(|error| failure(&error))?.time_to_live_description;
        let status = described.and_then(|expiry| expiry.time_to_live_status);
        Ok(matches!(status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)))
    }

    /// Returns the tags of a table, without those that only AWS may set.
    async fn tags(&self, arn: &str) -> Result<Vec<Tag>, OpsError> {
        let (mut tags, mut next) = (Vec::new(), None);
        for _ in 0..MAX_PAGES_OF_TAGS {
            let page = self.client.list_tags_of_resource().resource_arn(arn).set_next_token(next).send().await;
            let page = page.map_err(|error| failure(&error))?;
            tags.extend(page.tags.unwrap_or_default());
            next = page.next_token;
            if next.is_none() {
                break;
            }
        }
        tags.retain(|tag| !tag.key().starts_with(TAGS_OF_AWS));
        Ok(tags)
    }
}

/// The key attributes of the table of a month, which are those of the main table.
const KEYS: [(&str, KeyType); 2] = [("PK", KeyType::Hash), ("SK", KeyType::Range)];

fn is_foreign(table: &TableDescription) -> bool {
    let keys = table.key_schema.iter().flatten();
    let is_same = keys.map(|key| (key.attribute_name(), key.key_type.clone())).eq(KEYS);
    let has_stream = table.stream_specification.as_ref().is_some_and(|stream| stream.stream_enabled);
    !is_same
        || has_stream
        || !table.global_secondary_indexes().is_empty()
        || !table.local_secondary_indexes().is_empty()
}

/// Returns the encryption of the main table, unless it uses the key of DynamoDB itself.
fn encryption(main: &TableDescription) -> Option<SseSpecification> {
    let described = main.sse_description.as_ref().filter(|sse| sse.status == Some(SseStatus::Enabled))?;
    let specification = SseSpecification::builder().enabled(true).set_sse_type(described.sse_type.clone());
    Some(specification.set_kms_master_key_id(described.kms_master_key_arn.clone()).build())
}

fn invalid(error: BuildError) -> OpsError {
    OpsError::failed(error)
}
