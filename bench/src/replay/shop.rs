use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws::{Connector, SharedCredentialsProvider};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use key_schema::entity::AnyEntity;
use key_schema::item::FromItem as _;
use local::System;
use ops::progress::Progress;
use ops::verify::{MAX_TOTALS, Verified, VerifyOptions};
use ops::{Items, Pace};
use search_index::{SearchClient, SearchConfig};
use serde_json::Value;
use storage::objects::ObjectStore;
use table::Table;

use crate::BenchError;

pub struct Shop {
    environment: BTreeMap<String, String>,
    base: String,
    http: reqwest::Client,
    connector: Connector,
}

impl Shop {
    pub async fn of(system: &System) -> Result<Self, BenchError> {
        let (base, http) = (system.url(), reqwest::Client::new());
        let answer = http.get(format!("{base}/_local/environment")).send().await?;
        let environment = answer.json().await?;
        let connector = aws::connector()?;
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

    #[must_use]
    pub fn items(&self) -> Items {
        Items::new(self.client(), self.table_name().to_owned())
    }

    pub(crate) fn table(&self) -> Table {
        Table::new(self.client(), self.table_name().to_owned())
    }

    pub(crate) fn archive(&self) -> Result<ObjectStore, BenchError> {
        let key = self.access_key();
        let credentials = SharedCredentialsProvider::new(Credentials::new(key, key, None, None, "bench"));
        let (name, address) = (self.variable("ARCHIVE_BUCKET"), self.variable("AWS_ENDPOINT_URL_S3"));
        let bucket = aws::s3::Bucket::new(name, self.region(), Some(address), credentials);
        bucket.map(ObjectStore::new).map_err(BenchError::from)
    }

    pub(crate) fn search(&self) -> Result<SearchClient, BenchError> {
        let config = SearchConfig::new(self.variable("SEARCH_ENDPOINT"), self.variable("SEARCH_INDEX_PREFIX"))?;
        Ok(SearchClient::new(&config))
    }

    /// Calls a `/_local` route. Returns the body of the response, even if its status is an error.
    pub(crate) async fn local(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, BenchError> {
        let request = self.http.request(method.parse()?, format!("{}{path}", self.base));
        let request = body.into_iter().fold(request, |request, body| request.json(body));
        Ok(request.send().await?.json().await.unwrap_or_default())
    }

    /// Returns all items of a list below `/_local`, from all its pages.
    pub(crate) async fn list(&self, name: &str) -> Result<Vec<Value>, BenchError> {
        let (mut items, mut query) = (Vec::new(), String::new());
        // The loop ends, because every page starts after the previous one.
        loop {
            let mut page = self.local("GET", &format!("/_local/{name}{query}"), None).await?;
            match page.get_mut("items").map(Value::take) {
                Some(Value::Array(page)) => items.extend(page),
                _ => return Err(wrong!("/_local/{name} is not a list: {page}")),
            }
            match page.get("next_cursor").and_then(Value::as_str) {
                Some(next) => query = format!("?cursor={next}"),
                None => return Ok(items),
            }
        }
    }

    pub async fn read(&self, entities: &[&str], enter: impl FnMut(AnyEntity)) -> Result<(), BenchError> {
        let enter = Mutex::new(enter);
        let (items, pace, bar) = (self.items(), Pace::new(None), Progress::hidden());
        let scan = items.scan(entities, &pace, &bar, async |items| {
            let mut enter = enter.lock().unwrap_or_else(PoisonError::into_inner);
            for item in items {
                enter(AnyEntity::from_item(item)?);
            }
            Ok(())
        });
        Ok(scan.await.map(drop)?)
    }

    /// Waits until the consumers have processed every write.
    ///
    /// # Errors
    /// [`BenchError`] when that takes longer than an hour, or when the request fails.
    pub async fn drain(&self) -> Result<(), BenchError> {
        let drained = self.http.post(format!("{}/_local/drain?timeout_s=3600", self.base)).send().await?;
        Ok(drained.error_for_status()?.bytes().await.map(drop)?)
    }

    /// Runs `ops verify` over the table, after the consumers have processed every write.
    pub async fn verify(&self) -> Result<Verified, BenchError> {
        self.drain().await?;
        let options = VerifyOptions {
            fix: false,
            entities: Vec::new(),
            segments: 4,
            max_read_units: None,
            limit: 100,
            settle: Duration::from_secs(5),
            max_totals: MAX_TOTALS,
        };
        ops::verify::verify(&self.items(), &options).await.map_err(|error| wrong!("ops verify: {error}"))
    }
}
