use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};

pub(crate) fn object(item: &HashMap<String, AttributeValue>) -> Value {
    json!(item.iter().map(|(name, value)| (name.as_str(), plain(value))).collect::<HashMap<_, _>>())
}

fn plain(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!(text),
        AttributeValue::N(number) => number.parse::<i64>().map_or(Value::Null, Value::from),
        AttributeValue::Bool(flag) => json!(flag),
        AttributeValue::M(map) => object(map),
        AttributeValue::L(list) => json!(list.iter().map(plain).collect::<Vec<_>>()),
        _ => Value::Null,
    }
}
