//! The items of a request, and the units that it consumes.

use serde_json::{Map, Value};

use super::partitions::Place;
use crate::table::proxy::Operation;

const WRITE_UNIT: usize = 1 << 10;

/// The key attributes of a table and of its indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// The partition key and the sort key, if there is one.
    pub key: Vec<String>,
    /// The name and the partition key of each index.
    pub indexes: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    /// Conflicts with no transaction.
    BatchWrite,
    Transaction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) kind: Kind,
    pub(super) touches: Vec<Touch>,
}

/// The use of one item, in the table or in an index.
#[derive(Debug)]
pub(super) struct Touch {
    /// The index of the action.
    pub(super) action: usize,
    /// 0 for the table, or the number of the index from 1.
    pub(super) place: usize,
    pub(super) at: Place,
    /// The item's key in the table.
    pub(super) item: String,
    pub(super) access: Access,
    pub(super) units: f64,
}

impl Touch {
    pub(super) const fn is_of_table(&self) -> bool {
        self.place == 0
    }
}

impl Request {
    /// Returns the number of actions.
    pub(super) fn actions(&self) -> usize {
        self.touches.iter().map(|touch| touch.action + 1).max().unwrap_or(1)
    }
}

impl Schema {
    pub(super) const fn indexes(&self) -> usize {
        self.indexes.len()
    }

    /// Returns the request's items. Returns `None` for requests without a key of an item, and for
    /// invalid requests, which the table itself rejects.
    pub(super) fn request(&self, operation: Operation, body: &[u8]) -> Option<Request> {
        let request: Value = std::str::from_utf8(body).ok()?.parse().ok()?;
        let (kind, touches) = match operation {
            Operation::Read if request.get("Key").is_some() => (Kind::Read, self.read(0, &request, &request)?),
            Operation::Read => (Kind::Read, vec![self.query(&request)?]),
            Operation::Write => (Kind::Write, self.write(0, &request, 1.0)?),
            Operation::BatchGet => {
                let mut touches = Vec::new();
                for (name, table) in request.get("RequestItems")?.as_object()? {
                    for key in table.get("Keys")?.as_array()? {
                        let single = serde_json::json!({"TableName": name, "Key": key});
                        touches.extend(self.read(touches.len(), &single, table)?);
                    }
                }
                (Kind::Read, touches)
            }
            Operation::BatchWrite => {
                let mut touches = Vec::new();
                for (name, writes) in request.get("RequestItems")?.as_object()? {
                    for (action, write) in writes.as_array()?.iter().enumerate() {
                        let mut single = write.as_object()?.values().next()?.clone();
                        single.as_object_mut()?.insert("TableName".to_owned(), name.as_str().into());
                        touches.extend(self.write(action, &single, 1.0)?);
                    }
                }
                (Kind::BatchWrite, touches)
            }
            Operation::Transact { actions } => {
                let mut touches = Vec::new();
                for (number, action) in request.get(actions)?.as_array()?.iter().enumerate() {
                    let (kind, action) = action.as_object()?.iter().next()?;
                    touches.extend(match kind.as_str() {
                        "Get" => self.transactional_read(number, action)?,
                        _ => self.write(number, action, 2.0)?,
                    });
                }
                (Kind::Transaction, touches)
            }
            Operation::GetRecords | Operation::DescribeInsights | Operation::Other => return None,
        };
        Some(Request { kind, touches })
    }

    fn read(&self, action: usize, request: &Value, options: &Value) -> Option<Vec<Touch>> {
        let is_strong = options.get("ConsistentRead").and_then(Value::as_bool).unwrap_or(false);
        let (at, item) = self.item(request)?;
        Some(vec![Touch { action, place: 0, at, item, access: Access::Read, units: if is_strong { 1.0 } else { 0.5 } }])
    }

    fn transactional_read(&self, action: usize, request: &Value) -> Option<Vec<Touch>> {
        let (at, item) = self.item(request)?;
        Some(vec![Touch { action, place: 0, at, item, access: Access::Read, units: 2.0 }])
    }

    fn query(&self, request: &Value) -> Option<Touch> {
        let index = request.get("IndexName").and_then(Value::as_str);
        let known = || self.indexes.iter().position(|(name, _)| Some(name.as_str()) == index);
        let (place, attribute) = match index {
            None => (0, self.key.first()?),
            Some(_) => known().and_then(|at| Some((at + 1, &self.indexes.get(at)?.1)))?,
        };
        let value = assigned(request, "KeyConditionExpression", attribute)?;
        let item = partition(request, value)?;
        let is_strong = request.get("ConsistentRead").and_then(Value::as_bool).unwrap_or(false);
        let units = if is_strong { 1.0 } else { 0.5 };
        Some(Touch { action: 0, place, at: Place::new(&item, ""), item, access: Access::Read, units })
    }

    /// Returns the uses of an item that a request writes: in the table, and in each index whose
    /// partition key the request sets.
    fn write(&self, action: usize, request: &Value, factor: f64) -> Option<Vec<Touch>> {
        let (at, item) = self.item(request)?;
        let put = request.get("Item");
        let units = put.map_or(1.0, |put| units(size(put)));
        let access = Access::Write;
        let mut touches = vec![Touch { action, place: 0, at, item: item.clone(), access, units: units * factor }];
        for (place, (_, attribute)) in (1..).zip(&self.indexes) {
            let value = match put {
                Some(put) => put.get(attribute),
                None => assigned(request, "UpdateExpression", attribute),
            };
            if let Some(at) = value.and_then(|value| Some(Place::new(&partition(request, value)?, &item))) {
                touches.push(Touch { action, place, at, item: item.clone(), access, units });
            }
        }
        Some(touches)
    }

    /// Returns the place and the key of the item in a request's `Key` or `Item`.
    fn item(&self, request: &Value) -> Option<(Place, String)> {
        let attributes = request.get("Key").or_else(|| request.get("Item"))?;
        let first = partition(request, attributes.get(self.key.first()?)?)?;
        let sort = match self.key.get(1) {
            Some(name) => text(attributes.get(name)?)?,
            None => "",
        };
        let item = format!("{first}\n{sort}");
        Some((Place::new(&first, sort), item))
    }
}

/// Returns the text of a key attribute: a text, a number or Base64.
fn text(value: &Value) -> Option<&str> {
    value.as_object()?.values().next()?.as_str()
}

/// Returns a partition key with its table.
fn partition(request: &Value, value: &Value) -> Option<String> {
    let table = request.get("TableName").and_then(Value::as_str).unwrap_or_default();
    Some(format!("{table}\n{}", text(value)?))
}

/// Returns the value that an expression compares with the attribute, or assigns to it.
fn assigned<'r>(request: &'r Value, expression: &str, attribute: &str) -> Option<&'r Value> {
    let names = request.get("ExpressionAttributeNames")?.as_object()?;
    let (name, _) = names.iter().find(|(_, named)| named.as_str() == Some(attribute))?;
    let mut words = request.get(expression)?.as_str()?.split([' ', ',']).filter(|word| !word.is_empty());
    words.find(|word| word == name)?;
    let value = words.next().filter(|word| *word == "=").and_then(|_| words.next())?;
    request.get("ExpressionAttributeValues")?.get(value)
}

#[allow(clippy::cast_precision_loss, reason = "a request has at most 16 MB")]
fn units(size: usize) -> f64 {
    size.div_ceil(WRITE_UNIT).max(1) as f64
}

/// Returns the size of an item, or of a map in an item. Source: Developer Guide, "DynamoDB item
/// sizes and formats".
fn size(attributes: &Value) -> usize {
    attributes.as_object().into_iter().flatten().map(|(name, value)| name.len() + size_of_value(value)).sum()
}

fn size_of_value(value: &Value) -> usize {
    let of_type = |(kind, value): (&String, &Value)| match (kind.as_str(), value) {
        ("N", Value::String(digits)) => digits.len().div_ceil(2) + 1,
        ("B", Value::String(text)) => text.len() * 3 / 4,
        (_, Value::String(text)) => text.len(),
        ("M", map) => 3 + map.as_object().map_or(0, Map::len) + size(map),
        ("L", Value::Array(list)) => 3 + list.iter().map(|value| 1 + size_of_value(value)).sum::<usize>(),
        (_, Value::Array(set)) => set.iter().filter_map(Value::as_str).map(str::len).sum(),
        _ => 1,
    };
    value.as_object().into_iter().flatten().map(of_type).sum()
}
