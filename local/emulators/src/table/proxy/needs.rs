use std::collections::{BTreeMap, BTreeSet};

use hyper::HeaderMap;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::access::{Access, Need};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Named {
    table_name: Option<String>,
    resource_arn: Option<String>,
    index_name: Option<String>,
    request_items: Option<BTreeMap<String, IgnoredAny>>,
    transact_items: Option<Vec<BTreeMap<String, Action>>>,
    tags: Option<Vec<IgnoredAny>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Action {
    table_name: String,
}

/// A transaction needs the permissions of its actions, and a new table with tags also
/// `TagResource`. A call that cannot be parsed needs the permission for its operation on `*`, which
/// no function has.
pub(super) fn needs(headers: &HeaderMap, body: &[u8], access: &Access) -> Vec<Need> {
    let target = headers.get("x-amz-target").and_then(|value| value.to_str().ok());
    let operation = target.and_then(|target| target.split_once('.')).map_or("Unknown", |(_, operation)| operation);
    let everything = || vec![Need::new(format!("dynamodb:{operation}"), "*".to_owned())];
    let Ok(named) = serde_json::from_slice::<Named>(body) else { return everything() };
    let table = |name: &str| match name.starts_with("arn:") {
        true => name.to_owned(),
        false => access.arn("dynamodb", &format!("table/{name}")),
    };
    let needs: BTreeSet<(&str, String)> = match &named {
        Named { transact_items: Some(items), .. } => {
            let actions = items.iter().flatten();
            actions.map(|(kind, action)| (transacted(kind), table(&action.table_name))).collect()
        }
        Named { request_items: Some(tables), .. } => tables.keys().map(|name| (operation, table(name))).collect(),
        Named { table_name: Some(name), index_name: Some(index), .. } => {
            [(operation, format!("{}/index/{index}", table(name)))].into()
        }
        Named { table_name: Some(name), tags: Some(_), .. } => {
            [(operation, table(name)), ("TagResource", table(name))].into()
        }
        Named { table_name: Some(name), .. } => [(operation, table(name))].into(),
        // The embedded table's ARNs contain another region, so only the table's name counts.
        Named { resource_arn: Some(arn), .. } => {
            [(operation, table(arn.split_once(":table/").map_or(arn, |(_, name)| name)))].into()
        }
        _ => return everything(),
    };
    needs.into_iter().map(|(operation, resource)| Need::new(format!("dynamodb:{operation}"), resource)).collect()
}

fn transacted(action: &str) -> &str {
    match action {
        "Put" => "PutItem",
        "Update" => "UpdateItem",
        "Delete" => "DeleteItem",
        "ConditionCheck" => "ConditionCheckItem",
        "Get" => "GetItem",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use hyper::header::HeaderValue;
    use serde_json::{Value, json};

    use super::*;

    fn of(operation: &str, body: &Value) -> Vec<String> {
        let mut headers = HeaderMap::new();
        headers.insert("x-amz-target", HeaderValue::try_from(format!("DynamoDB_20120810.{operation}")).unwrap());
        let needs = needs(&headers, body.to_string().as_bytes(), &Access::new("r", "a", []));
        needs.into_iter().map(|need| format!("{} {}", need.action, need.resource)).collect()
    }

    #[test]
    fn a_call_needs_the_permission_for_its_operation_on_each_resource_that_it_names() {
        let table = "arn:aws:dynamodb:r:a:table/t";
        for (operation, body, expected) in [
            ("GetItem", json!({"TableName": "t", "Key": {}}), vec![format!("dynamodb:GetItem {table}")]),
            ("DescribeTable", json!({"TableName": "t"}), vec![format!("dynamodb:DescribeTable {table}")]),
            ("GetItem", json!({"TableName": table}), vec![format!("dynamodb:GetItem {table}")]),
            ("Query", json!({"TableName": "t"}), vec![format!("dynamodb:Query {table}")]),
            ("Query", json!({"TableName": "t", "IndexName": "I"}), vec![format!("dynamodb:Query {table}/index/I")]),
            (
                "BatchWriteItem",
                json!({"RequestItems": {"t": [], "u": []}}),
                vec![
                    format!("dynamodb:BatchWriteItem {table}"),
                    "dynamodb:BatchWriteItem arn:aws:dynamodb:r:a:table/u".into(),
                ],
            ),
            (
                "TransactWriteItems",
                json!({"TransactItems": [
                    {"Update": {"TableName": "t"}}, {"Put": {"TableName": "t"}}, {"Update": {"TableName": "t"}},
                    {"ConditionCheck": {"TableName": "t"}}, {"Delete": {"TableName": "t"}},
                ]}),
                ["ConditionCheckItem", "DeleteItem", "PutItem", "UpdateItem"]
                    .map(|action| format!("dynamodb:{action} {table}"))
                    .to_vec(),
            ),
            (
                "TransactGetItems",
                json!({"TransactItems": [{"Get": {"TableName": "t"}}]}),
                vec![format!("dynamodb:GetItem {table}")],
            ),
            (
                "CreateTable",
                json!({"TableName": "t", "Tags": [{"Key": "k", "Value": "v"}]}),
                vec![format!("dynamodb:CreateTable {table}"), format!("dynamodb:TagResource {table}")],
            ),
            (
                "ListTagsOfResource",
                json!({"ResourceArn": "arn:aws:dynamodb:other:a:table/t"}),
                vec![format!("dynamodb:ListTagsOfResource {table}")],
            ),
            ("ListTables", json!({}), vec!["dynamodb:ListTables *".to_owned()]),
            ("PutItem", json!([]), vec!["dynamodb:PutItem *".to_owned()]),
        ] {
            assert_eq!(of(operation, &body), expected, "{operation} {body}");
        }
    }
}
