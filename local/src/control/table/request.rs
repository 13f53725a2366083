//! Reads the keys of a request to the table.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use template::{KeyAttributes, TableDefinition};

/// What a request does with an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Read,
    Written,
    Deleted,
    Checked,
}

impl Change {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Written => "written",
            Self::Deleted => "deleted",
            Self::Checked => "checked",
        }
    }
}

/// The sort keys that a request selects in a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SortKeys {
    One(String),
    /// The whole partition.
    All,
    Between(String, String),
    /// A condition that none of Bodega's requests has.
    Other,
}

/// A place that a request names: an item, or a range of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) partition: String,
    pub(super) sort: SortKeys,
    pub(super) change: Change,
    /// The item's entity, if the request contains the whole item.
    pub(super) entity: Option<String>,
}

/// A request, reduced to the parts that tell its access pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) operation: String,
    pub(super) index: Option<String>,
    pub(super) is_strong: bool,
    pub(super) is_backward: bool,
    pub(super) places: Vec<Place>,
}

/// The key attributes of the table and of its indexes.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    pub(super) table: KeyAttributes,
    pub(super) indexes: BTreeMap<String, KeyAttributes>,
}

impl Keys {
    pub(super) fn of(table: &TableDefinition) -> Self {
        let indexes = table.indexes.iter().map(|index| (index.name.clone(), index.key.clone())).collect();
        Self { table: table.key.clone(), indexes }
    }

    /// Returns the key attributes of an index, or of the table if there is no index.
    pub(super) fn on(&self, index: Option<&str>) -> Option<&KeyAttributes> {
        index.map_or(Some(&self.table), |index| self.indexes.get(index))
    }
}

/// Reads a request. An invalid part of a request names no place.
pub(super) fn read(operation: &str, body: &Json, keys: &Keys) -> Request {
    let index = body.get("IndexName").and_then(Json::as_str).map(str::to_owned);
    let is_true = |member: Option<&Json>| member.and_then(Json::as_bool).unwrap_or_default();
    let mut is_strong = is_true(body.get("ConsistentRead"));
    let tables = || body.get("RequestItems").and_then(Json::as_object).into_iter().flat_map(|tables| tables.values());
    let places = match operation {
        "GetItem" => item(body, Change::Read, keys).into_iter().collect(),
        "PutItem" | "UpdateItem" => item(body, Change::Written, keys).into_iter().collect(),
        "DeleteItem" => item(body, Change::Deleted, keys).into_iter().collect(),
        "Query" => range(body, keys.on(index.as_deref())).into_iter().collect(),
        "BatchGetItem" => {
            is_strong |= tables().any(|table| is_true(table.get("ConsistentRead")));
            let keys_of = tables().filter_map(|table| table.get("Keys")?.as_array()).flatten();
            keys_of.filter_map(|key| place(key, Change::Read, keys)).collect()
        }
        "BatchWriteItem" => {
            let writes = tables().filter_map(Json::as_array).flatten().filter_map(Json::as_object).flatten();
            writes.filter_map(|(kind, write)| item(write, change(kind), keys)).collect()
        }
        "TransactWriteItems" | "TransactGetItems" => {
            let actions = body.get("TransactItems").and_then(Json::as_array).into_iter().flatten();
            let actions = actions.filter_map(Json::as_object).flatten();
            actions.filter_map(|(kind, action)| item(action, change(kind), keys)).collect()
        }
        _ => Vec::new(),
    };
    let is_backward = body.get("ScanIndexForward").and_then(Json::as_bool) == Some(false);
    Request { operation: operation.to_owned(), index, is_strong, is_backward, places }
}

fn change(kind: &str) -> Change {
    match kind {
        "Get" => Change::Read,
        "Delete" | "DeleteRequest" => Change::Deleted,
        "ConditionCheck" => Change::Checked,
        _ => Change::Written,
    }
}

fn item(action: &Json, change: Change, keys: &Keys) -> Option<Place> {
    let mut place = place(action.get("Key").or_else(|| action.get("Item"))?, change, keys)?;
    place.entity = action.get("Item").and_then(|item| text(item, "entity")).map(str::to_owned);
    Some(place)
}

fn place(item: &Json, change: Change, keys: &Keys) -> Option<Place> {
    let part = |name: &str| text(item, name).map(str::to_owned);
    let sort = SortKeys::One(part(&keys.table.sort)?);
    Some(Place { partition: part(&keys.table.partition)?, sort, change, entity: None })
}

/// Returns an attribute that is a string.
pub(super) fn text<'i>(item: &'i Json, name: &str) -> Option<&'i str> {
    item.get(name)?.get("S")?.as_str()
}

/// Reads the key condition of a query.
fn range(body: &Json, key: Option<&KeyAttributes>) -> Option<Place> {
    let key = key?;
    let condition = body.get("KeyConditionExpression")?.as_str()?.replace(['(', ')', ','], " ");
    let words: Vec<&str> = condition.split_whitespace().collect();
    let named = |word: &str, name: &str| {
        let real = body.get("ExpressionAttributeNames").and_then(|names| names.get(word)?.as_str());
        real.unwrap_or(word) == name
    };
    let value = |word: Option<&&str>| text(body.get("ExpressionAttributeValues")?, word?).map(str::to_owned);
    let at = |name: &str| words.iter().position(|word| named(word, name));
    let after = |start: usize, distance: usize| words.get(start + distance);
    let partition = value(after(at(&key.partition)?, 2))?;
    let sort = match at(&key.sort) {
        None => SortKeys::All,
        Some(start) => match after(start, 1).copied() {
            Some("=") => value(after(start, 2)).map_or(SortKeys::Other, SortKeys::One),
            Some(word) if word.eq_ignore_ascii_case("between") => value(after(start, 2))
                .zip(value(after(start, 4)))
                .map_or(SortKeys::Other, |(low, high)| SortKeys::Between(low, high)),
            Some(word) if word.starts_with(':') => value(Some(&word)).map_or(SortKeys::Other, |beginning| {
                let end = format!("{beginning}\u{10FFFF}");
                SortKeys::Between(beginning, end)
            }),
            _ => SortKeys::Other,
        },
    };
    Some(Place { partition, sort, change: Change::Read, entity: None })
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    pub(in super::super) fn keys() -> Keys {
        let pair = |name: &str| KeyAttributes { partition: format!("{name}PK"), sort: format!("{name}SK") };
        let indexes = ["GSI1", "GSI2", "GSI3"].map(|name| (name.to_owned(), pair(name)));
        Keys { table: pair(""), indexes: indexes.into() }
    }

    #[test]
    fn a_query_names_a_partition_and_a_range() {
        let one = SortKeys::One("b".to_owned());
        let between = SortKeys::Between("b".to_owned(), "c".to_owned());
        let beginning = SortKeys::Between("b".to_owned(), "b\u{10FFFF}".to_owned());
        for (condition, sort) in [
            ("#pk = :pk", SortKeys::All),
            ("#pk = :pk AND #sk BETWEEN :low AND :high", between.clone()),
            ("(#sk between :low and :high) AND (#pk = :pk)", between),
            ("GSI1PK = :pk AND GSI1SK = :low", one),
            ("#pk = :pk AND begins_with(#sk, :low)", beginning),
            ("#pk = :pk AND #sk >= :low", SortKeys::Other),
        ] {
            let body = json!({
                "IndexName": "GSI1", "KeyConditionExpression": condition, "ScanIndexForward": false,
                "ExpressionAttributeNames": {"#pk": "GSI1PK", "#sk": "GSI1SK"},
                "ExpressionAttributeValues": {":pk": {"S": "a"}, ":low": {"S": "b"}, ":high": {"S": "c"}},
            });
            let request = read("Query", &body, &keys());
            assert_eq!((request.index.as_deref(), request.is_backward), (Some("GSI1"), true));
            let place = Place { partition: "a".to_owned(), sort, change: Change::Read, entity: None };
            assert_eq!(request.places, [place], "{condition}");
        }
    }

    #[test]
    fn a_transaction_names_each_item_with_its_change() {
        let key = |sort: &str| json!({"PK": {"S": "a"}, "SK": {"S": sort}});
        let mut put = key("1");
        put.as_object_mut().unwrap().insert("entity".to_owned(), json!({"S": "Cart"}));
        let body = json!({"TransactItems": [
            {"Put": {"Item": put}}, {"Update": {"Key": key("2")}}, {"Delete": {"Key": key("3")}},
            {"ConditionCheck": {"Key": key("4")}},
        ]});
        let places = read("TransactWriteItems", &body, &keys()).places;
        let changes: Vec<_> = places.iter().map(|place| place.change.as_str()).collect();
        assert_eq!(changes, ["written", "written", "deleted", "checked"]);
        assert_eq!(places.first().unwrap().entity.as_deref(), Some("Cart"));
    }
}
