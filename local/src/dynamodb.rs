use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};
use stream_poller::Swept;
use template::TableDefinition;

pub const REGION: &str = "us-east-1";

/// Maximum size of a response in bytes: DynamoDB's limit.
const MAX_ANSWER: usize = 16 << 20;
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of times that `ensure_table` checks the table's status, and the pause between two
/// checks. All pauses together last 30 s.
const STATUS_CHECKS: u32 = 150;
const STATUS_CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// DynamoDB does not remove items that expired more than this number of seconds ago:
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-before-you-start.html>.
const FIVE_YEARS: u64 = 5 * 365 * 24 * 60 * 60;

/// A client of a DynamoDB that checks no signatures: the embedded table or DynamoDB Local.
#[derive(Debug, Clone)]
pub struct DynamoDb {
    http: reqwest::Client,
    endpoint: String,
    access_key: String,
}

#[derive(Debug, thiserror::Error)]
pub enum DynamoDbError {
    /// The endpoint does not respond, or its response is not DynamoDB's.
    #[error("DynamoDB at {endpoint} cannot be reached: {reason}")]
    Unreachable {
        /// Address of the endpoint.
        endpoint: String,
        /// The cause.
        reason: String,
    },
    #[error("DynamoDB refused {operation}: {kind}: {message}")]
    Refused {
        /// Name of the operation.
        operation: &'static str,
        /// Name of the exception.
        kind: String,
        /// Message of the exception.
        message: String,
    },
    /// A table of this name exists, but its definition differs from the definition in the template.
    #[error("the table {table} differs from the table of the template in its {part}")]
    OtherTable {
        /// Name of the table.
        table: String,
        /// The part of the definition that differs.
        part: &'static str,
    },
    #[error("the table {0} does not become active")]
    NotActive(String),
}

impl DynamoDb {
    /// DynamoDB Local keeps a separate database for each access key.
    pub fn new(endpoint: &str, access_key: &str) -> Result<Self, DynamoDbError> {
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        match reqwest::Client::builder().timeout(CALL_TIMEOUT).build() {
            Ok(http) => Ok(Self { http, endpoint, access_key: access_key.to_owned() }),
            Err(error) => Err(DynamoDbError::Unreachable { endpoint, reason: error.to_string() }),
        }
    }

    /// Creates the template's table. If the table exists, checks that its definition is the same.
    pub async fn ensure_table(&self, definition: &TableDefinition, name: &str) -> Result<(), DynamoDbError> {
        let wanted = definition.create_table_request(name);
        match self.call("DescribeTable", &json!({"TableName": name})).await {
            Ok(found) => return same_table(name, &wanted, &found),
            Err(DynamoDbError::Refused { kind, .. }) if kind == "ResourceNotFoundException" => {}
            Err(error) => return Err(error),
        }
        self.call("CreateTable", &wanted).await?;
        self.wait_until_active(name).await?;
        if let Some(request) = definition.time_to_live_request(name) {
            self.call("UpdateTimeToLive", &request).await?;
        }
        Ok(())
    }

    pub async fn delete_table(&self, name: &str) -> Result<(), DynamoDbError> {
        let request = json!({"TableName": name});
        self.call("DeleteTable", &request).await.map(drop)
    }

    /// Deletes the expired items of a table, and returns their number. It keeps an item whose
    /// expiry time has changed since this call read the item. Like DynamoDB, it keeps items that
    /// expired more than five years ago.
    pub async fn sweep(&self, definition: &TableDefinition, name: &str, swept: &Swept) -> Result<u64, DynamoDbError> {
        let (Some(ttl), key) = (&definition.ttl_attribute, &definition.key) else { return Ok(0) };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut request = json!({
            "TableName": name,
            "ConsistentRead": true,
            "FilterExpression": "#ttl BETWEEN :oldest AND :now",
            "ExpressionAttributeNames": { "#ttl": ttl },
            "ExpressionAttributeValues": {
                ":oldest": { "N": now.saturating_sub(FIVE_YEARS).to_string() }, ":now": { "N": now.to_string() },
            },
        });
        let mut removed = 0;
        loop {
            let mut page = self.call("Scan", &request).await?;
            for item in page.get_mut("Items").and_then(Json::as_array_mut).map(std::mem::take).unwrap_or_default() {
                let part = |name: &String| item.get(name).cloned().unwrap_or_default();
                let delete = json!({
                    "TableName": name,
                    "Key": { &key.partition: part(&key.partition), &key.sort: part(&key.sort) },
                    "ConditionExpression": "#ttl = :ttl",
                    "ExpressionAttributeNames": { "#ttl": ttl },
                    "ExpressionAttributeValues": { ":ttl": part(ttl) },
                });
                swept.note(item);
                match self.call("DeleteItem", &delete).await {
                    Ok(_) => removed += 1,
                    Err(DynamoDbError::Refused { kind, .. }) if kind == "ConditionalCheckFailedException" => {}
                    Err(error) => return Err(error),
                }
            }
            match page.get_mut("LastEvaluatedKey").map(Json::take) {
                None | Some(Json::Null) => return Ok(removed),
                Some(last) => {
                    _ = request.as_object_mut().map(|request| request.insert("ExclusiveStartKey".into(), last))
                }
            }
        }
    }

    async fn wait_until_active(&self, name: &str) -> Result<(), DynamoDbError> {
        for _ in 0..STATUS_CHECKS {
            let table = self.call("DescribeTable", &json!({"TableName": name})).await?;
            if table.pointer("/Table/TableStatus") == Some(&json!("ACTIVE")) {
                return Ok(());
            }
            tokio::time::sleep(STATUS_CHECK_INTERVAL).await;
        }
        Err(DynamoDbError::NotActive(name.to_owned()))
    }

    /// Sends a request and returns the status and the body of the response.
    ///
    /// # Errors
    /// [`DynamoDbError::Unreachable`], also for a response of more than 16 MB.
    pub async fn ask(&self, operation: &'static str, body: &Json) -> Result<(u16, Json), DynamoDbError> {
        let unreachable = |error: reqwest::Error| DynamoDbError::Unreachable {
            endpoint: self.endpoint.clone(),
            reason: innermost(&error),
        };
        // These services verify no signature, but DynamoDB Local reads the access key and the
        // region from this header.
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}/20260101/{REGION}/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
            self.access_key
        );
        let answer = self
            .http
            .post(&self.endpoint)
            .header("content-type", "application/x-amz-json-1.0")
            .header("x-amz-target", format!("DynamoDB_20120810.{operation}"))
            .header("x-amz-date", "20260101T000000Z")
            .header("authorization", authorization)
            .body(body.to_string())
            .send()
            .await
            .map_err(unreachable)?;
        let (status, mut answer, mut text) = (answer.status().as_u16(), answer, Vec::new());
        let unreadable =
            |reason: &str| DynamoDbError::Unreachable { endpoint: self.endpoint.clone(), reason: reason.to_owned() };
        while let Some(part) = answer.chunk().await.map_err(unreachable)? {
            text.extend_from_slice(&part);
            if text.len() > MAX_ANSWER {
                return Err(unreadable("the response has more than 16 MB"));
            }
        }
        // The parser of `str` is in serde_json, which is optimized even in a development build.
        let json = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
        json.map(|json| (status, json)).ok_or_else(|| unreadable("the response is not JSON"))
    }

    async fn call(&self, operation: &'static str, body: &Json) -> Result<Json, DynamoDbError> {
        let (status, json) = self.ask(operation, body).await?;
        if (200..300).contains(&status) {
            return Ok(json);
        }
        let text = |key: &str| json.get(key).and_then(Json::as_str).unwrap_or_default();
        let kind = text("__type");
        Err(DynamoDbError::Refused {
            operation,
            kind: kind.rsplit('#').next().unwrap_or(kind).to_owned(),
            message: format!("{}{}", text("message"), text("Message")),
        })
    }
}

/// Compares the table with the template, because an older template may have created the table.
fn same_table(name: &str, wanted: &Json, found: &Json) -> Result<(), DynamoDbError> {
    let table = found.get("Table").unwrap_or(found);
    for part in ["KeySchema", "AttributeDefinitions", "GlobalSecondaryIndexes"] {
        if normal(part, wanted.get(part)) != normal(part, table.get(part)) {
            return Err(DynamoDbError::OtherTable { table: name.to_owned(), part });
        }
    }
    Ok(())
}

/// Returns the entries of one part of a table's definition, by name. They have only those fields
/// that a `CreateTable` request has.
fn normal(part: &str, value: Option<&Json>) -> BTreeMap<String, Json> {
    let name = if part == "GlobalSecondaryIndexes" { "IndexName" } else { "AttributeName" };
    let mut entries = BTreeMap::new();
    for entry in value.and_then(Json::as_array).into_iter().flatten() {
        let key = entry.get(name).and_then(Json::as_str).unwrap_or_default();
        let mut projection = entry.get("Projection").cloned().unwrap_or_default();
        if let Some(Json::Array(names)) = projection.get_mut("NonKeyAttributes") {
            names.sort_by_key(Json::to_string);
        }
        let type_or_role = entry.get("AttributeType").or(entry.get("KeyType"));
        entries.insert(key.to_owned(), json!([type_or_role, entry.get("KeySchema"), projection]));
    }
    entries
}

/// Returns the innermost cause, which reqwest's own message does not contain.
fn innermost(error: &reqwest::Error) -> String {
    let mut source: &dyn std::error::Error = error;
    while let Some(next) = source.source() {
        source = next;
    }
    source.to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use emulators::table::EmbeddedTable;
    use template::Template;

    use super::*;

    fn definition() -> TableDefinition {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
        Template::read(&path).unwrap().table
    }

    #[tokio::test]
    async fn a_table_is_created_once_and_recognised_afterwards() {
        let engine = EmbeddedTable::start(None).unwrap();
        let dynamodb = DynamoDb::new(engine.url(), "local").unwrap();
        let definition = definition();
        dynamodb.ensure_table(&definition, "shop").await.unwrap();
        dynamodb.ensure_table(&definition, "shop").await.unwrap();

        let mut other = definition.clone();
        other.indexes.pop();
        let error = dynamodb.ensure_table(&other, "shop").await.unwrap_err();
        assert!(matches!(error, DynamoDbError::OtherTable { .. }), "{error}");
        dynamodb.delete_table("shop").await.unwrap();
        dynamodb.ensure_table(&definition, "shop").await.unwrap();
    }

    #[tokio::test]
    async fn the_error_names_an_endpoint_that_does_not_answer() {
        let dynamodb = DynamoDb::new("http://127.0.0.1:1", "local").unwrap();
        let error = dynamodb.ensure_table(&definition(), "shop").await.unwrap_err();
        assert!(error.to_string().contains("http://127.0.0.1:1"), "{error}");
    }
}
