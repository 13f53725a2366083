//! The backends of a running local system, as its functions reach them.

use std::collections::BTreeMap;

use aws::{Connector, SharedCredentialsProvider};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use local::System;
use ops::Items;
use search_index::{SearchClient, SearchConfig};
use serde_json::Value;
use storage::objects::ObjectStore;
use table::Table;

use crate::BenchError;

/// The backends of a running system.
pub struct Shop {
    environment: BTreeMap<String, String>,
    base: String,
    http: reqwest::Client,
    connector: Connector,
}

impl Shop {
    /// Returns the backends of a running system.
    ///
    /// # Errors
    /// [`BenchError::Wrong`] when the system does not return its environment.
    pub async fn of(system: &System) -> Result<Self, BenchError> {
        let (base, http) = (system.url(), reqwest::Client::new());
        let answer = http.get(format!("{base}/_local/environment")).send().await.map_err(BenchError::wrong)?;
        let environment = answer.json().await.map_err(BenchError::wrong)?;
        let connector = aws::connector().map_err(BenchError::wrong)?;
        Ok(Self { environment, base, http, connector })
    }

    fn variable(&self, name: &str) -> &str {
        self.environment.get(name).map(String::as_str).unwrap_or_default()
    }

    pub(crate) fn access_key(&self) -> &str {
        self.variable("AWS_ACCESS_KEY_ID")
    }

    pub(crate) fn region(&self) -> &str {
        self.variable("AWS_REGION")
    }

    pub(crate) fn table_name(&self) -> &str {
        self.variable("TABLE_NAME")
    }

    fn client(&self) -> Client {
        let key = self.access_key();
        let config = Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new(self.region().to_owned()))
            .credentials_provider(Credentials::new(key, key, None, None, "bench"))
            .endpoint_url(self.variable("AWS_ENDPOINT_URL_DYNAMODB"))
            .http_client(self.connector.clone())
            .build();
        Client::from_conf(config)
    }

    /// Returns the items of the table.
    #[must_use]
    pub fn items(&self) -> Items {
        Items::new(self.client(), self.table_name().to_owned())
    }

    pub(crate) fn table(&self) -> Table {
        Table::new(self.client(), self.table_name().to_owned())
    }

    /// Returns the archive of expired items.
    pub(crate) fn archive(&self) -> Result<ObjectStore, BenchError> {
        let key = self.access_key();
        let credentials = SharedCredentialsProvider::new(Credentials::new(key, key, None, None, "bench"));
        let (name, address) = (self.variable("ARCHIVE_BUCKET"), self.variable("AWS_ENDPOINT_URL_S3"));
        let bucket = aws::s3::Bucket::new(name, self.region(), Some(address), credentials);
        bucket.map(ObjectStore::new).map_err(BenchError::wrong)
    }

    pub(crate) fn search(&self) -> Result<SearchClient, BenchError> {
        let config = SearchConfig::new(self.variable("SEARCH_ENDPOINT"), self.variable("SEARCH_INDEX_PREFIX"))?;
        Ok(SearchClient::new(&config))
    }

    /// Returns all items of a list below `/_local`, from all its pages.
    pub(crate) async fn list(&self, name: &str) -> Result<Vec<Value>, BenchError> {
        let (mut items, mut cursor) = (Vec::new(), None::<String>);
        // The loop ends, because every page starts after the previous one.
        loop {
            let mut call = self.http.get(format!("{}/_local/{name}", self.base));
            if let Some(cursor) = &cursor {
                call = call.query(&[("cursor", cursor)]);
            }
            let mut page: Value =
                call.send().await.map_err(BenchError::wrong)?.json().await.map_err(BenchError::wrong)?;
            if let Some(Value::Array(page)) = page.get_mut("items").map(Value::take) {
                items.extend(page);
            }
            match page.get("next_cursor").and_then(Value::as_str) {
                Some(next) => cursor = Some(next.to_owned()),
                None => return Ok(items),
            }
        }
    }

    /// Waits until the stream's functions have processed every write.
    ///
    /// # Errors
    /// [`BenchError::Wrong`] when that takes longer than an hour, or when the request fails.
    pub async fn drain(&self) -> Result<(), BenchError> {
        let answer = self.http.post(format!("{}/_local/drain?timeout_s=3600", self.base)).send().await;
        let answer = answer.and_then(reqwest::Response::error_for_status).map_err(BenchError::wrong)?;
        answer.bytes().await.map(drop).map_err(BenchError::wrong)
    }
}
