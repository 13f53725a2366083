//! A table as template.yaml defines it. The benchmark writes its items directly, without a
//! function.

use std::path::Path;

use aws::Connector;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use emulators::table::EmbeddedTable;
use http_api::{Keys, Services, SettingsCache};
use key_schema::code::CodeKeys;
use key_schema::cursor::Cursors;
use key_schema::item::Item;
use key_schema::settings::Known;
use table::Table;
use template::Template;

use crate::BenchError;

pub(crate) const NAME: &str = "measured";
/// A key for cursors and codes: any 32 bytes.
pub(crate) const CURSOR_KEYS: &str = "bench:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const BATCH: usize = 5_000;

/// A table in memory. Dropping the value removes the table.
pub(crate) struct LoadedTable {
    embedded: EmbeddedTable,
    connector: Connector,
}

impl LoadedTable {
    pub async fn create() -> Result<Self, BenchError> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
        let definition = Template::read(&path)?.table.create_table_request(NAME);
        let embedded = EmbeddedTable::start(None)?;
        let answer = reqwest::Client::new()
            .post(embedded.url())
            .header("x-amz-target", "DynamoDB_20120810.CreateTable")
            .header("content-type", "application/x-amz-json-1.0")
            .header(
                "authorization",
                "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/dynamodb/aws4_request, \
                SignedHeaders=host, Signature=0",
            )
            .header("x-amz-date", "20260101T000000Z")
            .body(definition.to_string())
            .send()
            .await?;
        if !answer.status().is_success() {
            return Err(wrong!("CreateTable: {}", answer.status()));
        }
        Ok(Self { embedded, connector: aws::connector()? })
    }

    pub fn url(&self) -> &str {
        self.embedded.url()
    }

    fn client(&self) -> Client {
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("bench", "bench", None, None, "bench"))
            .endpoint_url(self.embedded.url())
            .http_client(self.connector.clone())
            .build();
        Client::from_conf(config)
    }

    pub fn services(&self) -> Result<Services, BenchError> {
        let cursors = Keys::known(Cursors::new(CURSOR_KEYS)?);
        let codes = Some(Keys::known(CodeKeys::new(CURSOR_KEYS)?));
        // The settings never expire, so that every write takes the same requests.
        let settings = SettingsCache::unchanging(Known::default());
        Ok(Services { settings, codes, ..Services::new(Table::new(self.client(), NAME.to_owned()), cursors) })
    }

    /// Other tasks may run between two batches.
    pub async fn load(&self, items: impl Iterator<Item = Result<Item, BenchError>>) -> Result<(), BenchError> {
        let mut items = items.map(|item| serde_json::to_value(item?).map_err(BenchError::from));
        loop {
            let batch = items.by_ref().take(BATCH).collect::<Result<Vec<_>, _>>()?;
            if batch.is_empty() {
                return Ok(());
            }
            self.embedded.import(NAME, batch)?;
            tokio::task::yield_now().await;
        }
    }
}
