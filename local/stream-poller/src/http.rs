use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::{Page, Record, Shard, SourceError, Start, StreamSource, Swept};

const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of records in one `GetRecords` response.
const PAGE: u32 = 1000;
/// Maximum number of pages of a list of shards or streams. Each page has 100 entries.
const MAX_LIST_PAGES: usize = 100;

/// Addresses and identity for a table and its stream.
///
/// The requests have no valid signature, because emulators do not verify signatures. Emulators read
/// only the access key and the region from the header `authorization`. DynamoDB Local has separate
/// tables for each access key and region.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The table's endpoint, `http://host:port`.
    pub table_url: String,
    /// The stream's endpoint. With emulators it is the same as the table's endpoint.
    pub stream_url: String,
    pub access_key_id: String,
    pub region: String,
    /// The items that the local system has removed because they had expired.
    pub swept: Swept,
}

/// The stream of one table behind an HTTP endpoint: the embedded table or DynamoDB Local.
#[derive(Debug, Clone)]
pub struct HttpStream {
    api: Api,
    arn: String,
}

impl HttpStream {
    pub async fn of_table(endpoint: Endpoint, table: &str) -> Result<Self, SourceError> {
        let client = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .tcp_nodelay(true)
            .build()
            .map_err(|error| SourceError::Unavailable(error.to_string()))?;
        let api = Api { client, endpoint };
        let described = api.table("DescribeTable", &json!({"TableName": table})).await?;
        let arn = match described.pointer("/Table/LatestStreamArn") {
            Some(Value::String(arn)) => arn.clone(),
            _ => api.listed_stream(table).await?,
        };
        Ok(Self { api, arn })
    }
}

impl StreamSource for HttpStream {
    fn stream_arn(&self) -> &str {
        &self.arn
    }

    fn shards(&self) -> BoxFuture<'_, Result<Vec<Shard>, SourceError>> {
        Box::pin(async {
            let mut shards = Vec::new();
            let mut request = json!({"StreamArn": self.arn});
            for _ in 0..MAX_LIST_PAGES {
                let mut answer = self.api.stream("DescribeStream", &request).await?;
                let list = answer.pointer_mut("/StreamDescription/Shards");
                let Some(Value::Array(list)) = list.map(Value::take) else {
                    return Err(SourceError::Malformed("a description without shards"));
                };
                for shard in list {
                    shards.push(Shard {
                        id: text(&shard, "ShardId").ok_or(SourceError::Malformed("a shard without id"))?,
                        parent: text(&shard, "ParentShardId"),
                    });
                }
                match answer.pointer("/StreamDescription/LastEvaluatedShardId") {
                    Some(Value::String(last)) => {
                        request = json!({"StreamArn": self.arn, "ExclusiveStartShardId": last});
                    }
                    _ => break,
                }
            }
            Ok(shards)
        })
    }

    fn iterator<'a>(&'a self, shard_id: &'a str, start: Start) -> BoxFuture<'a, Result<String, SourceError>> {
        Box::pin(async move {
            let place = json!({"StreamArn": self.arn, "ShardId": shard_id});
            let how = match &start {
                Start::TrimHorizon => json!({"ShardIteratorType": "TRIM_HORIZON"}),
                Start::Latest => json!({"ShardIteratorType": "LATEST"}),
                Start::After(sequence) => json!({
                    "ShardIteratorType": "AFTER_SEQUENCE_NUMBER",
                    "SequenceNumber": sequence.as_str(),
                }),
            };
            let answer = self.api.stream("GetShardIterator", &merged(place, how)).await?;
            text(&answer, "ShardIterator").ok_or(SourceError::Malformed("no shard iterator"))
        })
    }

    fn records<'a>(&'a self, iterator: &'a str) -> BoxFuture<'a, Result<Page, SourceError>> {
        Box::pin(async move {
            let request = json!({"ShardIterator": iterator, "Limit": PAGE});
            let mut answer = self.api.stream("GetRecords", &request).await?;
            let Some(Value::Array(list)) = answer.get_mut("Records").map(Value::take) else {
                return Err(SourceError::Malformed("an answer without records"));
            };
            let record = |mut record| {
                self.api.endpoint.swept.identify(&mut record);
                Record::from_api(record, &self.arn).map(Arc::new)
            };
            let records: Result<_, _> = list.into_iter().map(record).collect();
            Ok(Page { records: records?, next: text(&answer, "NextShardIterator") })
        })
    }
}

#[derive(Debug, Clone)]
struct Api {
    client: reqwest::Client,
    endpoint: Endpoint,
}

impl Api {
    async fn table(&self, operation: &str, body: &Value) -> Result<Value, SourceError> {
        let target = format!("DynamoDB_20120810.{operation}");
        self.call(&self.endpoint.table_url, &target, body).await
    }

    async fn stream(&self, operation: &str, body: &Value) -> Result<Value, SourceError> {
        let target = format!("DynamoDBStreams_20120810.{operation}");
        self.call(&self.endpoint.stream_url, &target, body).await
    }

    /// The label of a stream is its creation time.
    async fn listed_stream(&self, table: &str) -> Result<String, SourceError> {
        let mut newest: Option<(String, String)> = None;
        let mut request = json!({"TableName": table});
        for _ in 0..MAX_LIST_PAGES {
            let answer = self.stream("ListStreams", &request).await?;
            for stream in answer.get("Streams").and_then(Value::as_array).into_iter().flatten() {
                if let (Some(label), Some(arn)) = (text(stream, "StreamLabel"), text(stream, "StreamArn")) {
                    newest = newest.max(Some((label, arn)));
                }
            }
            match text(&answer, "LastEvaluatedStreamArn") {
                Some(last) => {
                    request = json!({"TableName": table, "ExclusiveStartStreamArn": last});
                }
                None => break,
            }
        }
        newest.map(|(_, arn)| arn).ok_or_else(|| SourceError::NoStream(format!("table {table} has none")))
    }

    async fn call(&self, url: &str, target: &str, body: &Value) -> Result<Value, SourceError> {
        let now = OffsetDateTime::now_utc();
        let day = format!("{:04}{:02}{:02}", now.year(), u8::from(now.month()), now.day());
        let (hour, minute, second) = now.to_hms();
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}/{day}/{}/dynamodb/aws4_request, \
             SignedHeaders=host;x-amz-date;x-amz-target, Signature=0",
            self.endpoint.access_key_id, self.endpoint.region
        );
        let response = self
            .client
            .post(url)
            .header("content-type", "application/x-amz-json-1.0")
            .header("x-amz-target", target)
            .header("x-amz-date", format!("{day}T{hour:02}{minute:02}{second:02}Z"))
            .header("authorization", authorization)
            .body(body.to_string())
            .send()
            .await
            .map_err(unavailable)?;
        let status = response.status();
        let body = response.bytes().await.map_err(unavailable)?;
        // A page may have 1 MB, so parsing must be fast. `FromStr` is fast, because its code is in
        // serde_json, which is optimized even in a development build.
        let answer: Option<Value> = std::str::from_utf8(&body).ok().and_then(|text| text.parse().ok());
        match answer {
            Some(answer) if status.is_success() => Ok(answer),
            Some(error) if status.is_client_error() => Err(refusal(&error)),
            _ if status.is_success() => Err(SourceError::Malformed("a response that is not JSON")),
            _ => Err(SourceError::Unavailable(format!("status {status}"))),
        }
    }
}

fn refusal(error: &Value) -> SourceError {
    let kind = text(error, "__type").unwrap_or_default();
    let message = text(error, "message").or_else(|| text(error, "Message")).unwrap_or_default();
    match kind.rsplit_once('#').map_or(kind.as_str(), |(_, name)| name) {
        "ExpiredIteratorException" => SourceError::Expired,
        "TrimmedDataAccessException" => SourceError::Trimmed,
        "ResourceNotFoundException" => SourceError::NoStream(message),
        name => SourceError::Unavailable(format!("{name}: {message}")),
    }
}

fn unavailable(error: reqwest::Error) -> SourceError {
    SourceError::Unavailable(error.to_string())
}

fn text(value: &Value, member: &str) -> Option<String> {
    value.get(member)?.as_str().map(str::to_owned)
}

fn merged(mut one: Value, other: Value) -> Value {
    if let (Value::Object(one), Value::Object(other)) = (&mut one, other) {
        one.extend(other);
    }
    one
}
