//! A table with one item of each kind, which judges what it is asked: what DynamoDB would refuse as malformed, whatever lies in the table, must never be asked.
//!
//! The rules are those of the API reference (`Limits`, and the page of each operation). A request that breaks one ends the program, which is how a fuzzer finds it. The items
//! are those that `key-schema` keeps as they were stored (`tests/suite/golden`). Writes change nothing here, so that every input begins with the same.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use key_schema::item::{Item, MAX_ITEM_BYTES, size};
use key_schema::key::{Index, MAX_PARTITION_KEY_BYTES, MAX_SORT_KEY_BYTES};
use serde_json::{Value, json};
use table::Table;

/// The most bytes of an expression.
const MAX_EXPRESSION_BYTES: usize = 4096;
/// The most actions of a transaction, and keys of a batch that is read.
const MAX_ACTIONS: usize = 100;
/// The most writes of a batch.
const MAX_BATCH_WRITES: usize = 25;
/// The most digits of a number.
const MAX_DIGITS: usize = 38;
/// The most levels of lists and maps in one another.
const MAX_DEPTH: usize = 32;

/// The table's end of the wire.
#[derive(Debug, Clone)]
pub struct Sample {
    items: Arc<Vec<Value>>,
    /// Whether the conditions of writes hold.
    holds: Arc<AtomicBool>,
}

impl Sample {
    /// The table, and the switch of its conditions.
    #[must_use]
    pub fn table() -> (Table, Self) {
        let sample = Self { items: Arc::new(golden()), holds: Arc::new(AtomicBool::new(true)) };
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-central-1"))
            .credentials_provider(Credentials::new("key", "secret", None, None, "fuzz"))
            .endpoint_url("http://table.example")
            .http_client(sample.clone())
            .build();
        (Table::new(Client::from_conf(config), "bodega".to_owned()), sample)
    }

    /// Says whether the conditions of the writes that follow hold.
    pub fn hold(&self, holds: bool) {
        self.holds.store(holds, Ordering::Relaxed);
    }

    fn answer(&self, operation: &str, body: &Value) -> (u16, Value) {
        match operation {
            "GetItem" => {
                let found = self.find(&key(&body["Key"]));
                (200, found.map_or_else(|| json!({}), |item| json!({"Item": item})))
            }
            "BatchGetItem" => {
                let mut keys = BTreeSet::new();
                let mut found = serde_json::Map::new();
                for (table, request) in object(&body["RequestItems"]) {
                    for wanted in array(&request["Keys"]) {
                        assert!(keys.insert(key(wanted)), "a batch reads a key twice: {body}");
                    }
                    let items: Vec<&Value> = keys.iter().filter_map(|key| self.find(key)).collect();
                    found.insert(table.clone(), json!(items));
                }
                assert!((1..=MAX_ACTIONS).contains(&keys.len()), "a batch of {} keys", keys.len());
                (200, json!({"Responses": found, "UnprocessedKeys": {}}))
            }
            "Query" => {
                let items = self.query(body);
                (200, json!({"Count": items.len(), "ScannedCount": items.len(), "Items": items}))
            }
            "BatchWriteItem" => {
                let mut keys = BTreeSet::new();
                for write in object(&body["RequestItems"]).values().flat_map(array) {
                    let target = if write["PutRequest"].is_null() {
                        key(&write["DeleteRequest"]["Key"])
                    } else {
                        item(&write["PutRequest"]["Item"])
                    };
                    assert!(keys.insert(target), "a batch writes a key twice: {body}");
                }
                assert!((1..=MAX_BATCH_WRITES).contains(&keys.len()), "a batch of {} writes", keys.len());
                (200, json!({"UnprocessedItems": {}}))
            }
            "PutItem" | "UpdateItem" | "DeleteItem" => {
                let there = self.find(&write(body));
                let wanted = body["ReturnValues"].as_str().is_some_and(|wanted| wanted != "NONE");
                // What is updated comes back whole; where nothing is, the write is refused.
                let refused = !self.holds.load(Ordering::Relaxed) || (wanted && there.is_none());
                match there {
                    _ if refused && !body["ConditionExpression"].is_null() => {
                        (400, refusal("ConditionalCheckFailedException", there))
                    }
                    Some(item) if wanted => (200, json!({"Attributes": item})),
                    _ => (200, json!({})),
                }
            }
            "TransactWriteItems" => self.transact(body),
            other => panic!("nothing here should ask for {other}: {body}"),
        }
    }

    fn transact(&self, body: &Value) -> (u16, Value) {
        let token = text(&body["ClientRequestToken"]);
        assert!((1..=36).contains(&token.len()), "a token of {} bytes", token.len());
        let actions: Vec<&Value> =
            array(&body["TransactItems"]).iter().flat_map(|action| object(action).values()).collect();
        assert!((1..=MAX_ACTIONS).contains(&actions.len()), "a transaction of {} actions", actions.len());
        let mut keys = BTreeSet::new();
        let targets: Vec<(String, String)> = actions.iter().map(|action| write(action)).collect();
        for target in &targets {
            assert!(keys.insert(target), "a transaction has two actions on one item: {body}");
        }
        let conditional = |action: &&Value| !action["ConditionExpression"].is_null();
        if self.holds.load(Ordering::Relaxed) || !actions.iter().any(conditional) {
            return (200, json!({}));
        }
        let reasons = actions.iter().zip(targets).map(|(action, target)| match conditional(action) {
            true => json!({"Code": "ConditionalCheckFailed", "Item": self.find(&target)}),
            false => json!({"Code": "None"}),
        });
        let mut refused = refusal("TransactionCanceledException", None);
        refused["CancellationReasons"] = reasons.collect();
        (400, refused)
    }

    fn find(&self, key: &(String, String)) -> Option<&Value> {
        self.items.iter().find(|item| item["PK"]["S"] == key.0 && item["SK"]["S"] == key.1)
    }

    /// The items of one partition, of the table or of an index, in order.
    fn query(&self, body: &Value) -> Vec<&Value> {
        let (partition, bounds) = query(body);
        let index =
            body["IndexName"].as_str().and_then(|name| Index::ALL.into_iter().find(|index| index.name() == name));
        let (pk, sk) = index.map_or(("PK", "SK"), |index| (index.partition_attribute(), index.sort_attribute()));
        let sort = |item: &Value| item[sk]["S"].as_str().unwrap_or_default().to_owned();
        let mut found: Vec<&Value> = self.items.iter().filter(|item| item[pk]["S"] == partition).collect();
        found.retain(|item| bounds.as_ref().is_none_or(|bounds| bounds.contains(&sort(item))));
        found.sort_by_key(|item| sort(item));
        if body["ScanIndexForward"] == false {
            found.reverse();
        }
        found.truncate(body["Limit"].as_u64().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX));
        found
    }
}

impl HttpConnector for Sample {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let operation =
            request.headers().get("x-amz-target").and_then(|target| target.rsplit('.').next()).unwrap_or_default();
        let body = request.body().bytes().unwrap_or_default();
        let body: Value = serde_json::from_slice(body).expect("the SDK writes JSON");
        let (status, answer) = self.answer(operation, &body);
        let mut response = HttpResponse::new(status.try_into().expect("a status"), SdkBody::from(answer.to_string()));
        response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
        HttpConnectorFuture::ready(Ok(response))
    }
}

impl HttpClient for Sample {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

fn refusal(name: &str, item: Option<&Value>) -> Value {
    let mut refusal =
        json!({"__type": format!("com.amazonaws.dynamodb.v20120810#{name}"), "message": "as this table was told"});
    if let Some(item) = item {
        refusal["Item"] = item.clone();
    }
    refusal
}

/// One item of each kind, as it is stored.
#[must_use]
pub fn golden() -> Vec<Value> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/key-schema/tests/suite/golden");
    let mut paths: Vec<_> = std::fs::read_dir(folder).expect(folder).map(|entry| entry.expect(folder).path()).collect();
    paths.sort();
    // Of several variants of an item the first, which has the entity's own name; what is no entity has another beginning.
    let whole = paths.iter().filter(|path| {
        path.file_stem()
            .and_then(|name| name.to_str())
            .is_some_and(|name| !name.contains('-') && name.starts_with(char::is_uppercase))
    });
    let item = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("a file that is listed");
        let (_, json) = text.split_once("---\n{").expect("a snapshot of an item");
        serde_json::from_str(&format!("{{{json}")).expect("an item is JSON")
    };
    whole.map(item).collect()
}

/// One action: its item within the limits, its expressions in order. What it is done to.
fn write(action: &Value) -> (String, String) {
    let target = if action["Item"].is_null() { key(&action["Key"]) } else { item(&action["Item"]) };
    expressions(action, &["UpdateExpression", "ConditionExpression"]);
    target
}

/// The partition that a query reads, and the sort keys that it asks for.
fn query(body: &Value) -> (String, Option<RangeInclusive<String>>) {
    expressions(body, &["KeyConditionExpression"]);
    assert!(body["Limit"].as_i64().is_some_and(|limit| limit >= 1), "{body}");
    let bound = |name: &str| body["ExpressionAttributeValues"][name]["S"].as_str().map(str::to_owned);
    let partition = bound(":pk").unwrap_or_default();
    assert!((1..=MAX_PARTITION_KEY_BYTES).contains(&partition.len()), "{body}");
    let bounds = bound(":low").zip(bound(":high"));
    if let Some((low, high)) = &bounds {
        assert!(!low.is_empty() && low <= high, "BETWEEN takes no bounds that are the wrong way round: {body}");
    }
    (partition, bounds.map(|(low, high)| low..=high))
}

/// Every name and value that an expression has is given, and each that is given is used.
fn expressions(request: &Value, members: &[&str]) {
    let mut used = BTreeSet::new();
    for expression in members.iter().filter_map(|member| request[*member].as_str()) {
        assert!((1..=MAX_EXPRESSION_BYTES).contains(&expression.len()), "an expression of {} bytes", expression.len());
        let mut rest = expression;
        while let Some(at) = rest.find(['#', ':']) {
            let end = rest[at + 1..]
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .map_or(rest.len(), |length| at + 1 + length);
            used.insert(rest[at..end].to_owned());
            rest = &rest[end..];
        }
    }
    let given = |member: &str| -> BTreeSet<String> {
        request[member].as_object().into_iter().flat_map(|all| all.keys().cloned()).collect()
    };
    let (names, values) = (given("ExpressionAttributeNames"), given("ExpressionAttributeValues"));
    assert_eq!(used, names.union(&values).cloned().collect(), "{request}");
    for value in request["ExpressionAttributeValues"].as_object().into_iter().flat_map(|all| all.values()) {
        value_is_sound(value, 0);
    }
}

/// An item's key, once all of the item is found to be within the limits.
///
/// # Panics
/// When DynamoDB would refuse it.
pub fn item(value: &Value) -> (String, String) {
    for attribute in object(value).values() {
        value_is_sound(attribute, 0);
    }
    for index in Index::ALL {
        for (attribute, limit) in
            [(index.partition_attribute(), MAX_PARTITION_KEY_BYTES), (index.sort_attribute(), MAX_SORT_KEY_BYTES)]
        {
            if !value[attribute].is_null() {
                part(&value[attribute], limit);
            }
        }
    }
    let whole: Item = serde_json::from_value(value.clone()).expect("an item");
    assert!(size(&whole) <= MAX_ITEM_BYTES, "an item of {} bytes", size(&whole));
    (part(&value["PK"], MAX_PARTITION_KEY_BYTES), part(&value["SK"], MAX_SORT_KEY_BYTES))
}

fn key(value: &Value) -> (String, String) {
    assert_eq!(object(value).len(), 2, "{value}");
    (part(&value["PK"], MAX_PARTITION_KEY_BYTES), part(&value["SK"], MAX_SORT_KEY_BYTES))
}

fn part(value: &Value, limit: usize) -> String {
    let text = text(&value["S"]);
    assert!((1..=limit).contains(&text.len()), "a key of {} bytes", text.len());
    text.to_owned()
}

/// A typed value that DynamoDB takes: no empty set, no number beyond its digits and its magnitude, not too deep.
fn value_is_sound(value: &Value, depth: usize) {
    assert!(depth <= MAX_DEPTH, "too deep");
    let (kind, content) = object(value).iter().next().expect("a typed value");
    match kind.as_str() {
        "N" => number_is_sound(text(content)),
        "L" => array(content).iter().for_each(|value| value_is_sound(value, depth + 1)),
        "M" => object(content).values().for_each(|value| value_is_sound(value, depth + 1)),
        "SS" | "NS" | "BS" => {
            let members: BTreeSet<&str> = array(content).iter().map(text).collect();
            assert!(
                !members.is_empty() && members.len() == array(content).len(),
                "a set is empty, or has a member twice: {value}"
            );
            if kind == "NS" {
                members.into_iter().for_each(number_is_sound);
            }
        }
        "S" | "B" | "BOOL" | "NULL" => {}
        other => panic!("no type {other}: {value}"),
    }
}

fn number_is_sound(number: &str) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let significant = digits.trim_start_matches('0').trim_end_matches('0').len();
    assert!(!digits.is_empty() && significant <= MAX_DIGITS, "DynamoDB takes no number {number}");
    assert!(
        exponent.parse::<i32>().is_ok_and(|exponent| (-130..=125).contains(&exponent)),
        "DynamoDB takes no number {number}"
    );
}

fn object(value: &Value) -> &serde_json::Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}"))
}

fn array(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("no array: {value}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}
