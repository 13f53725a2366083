use serde_json::Value;

use super::operation::Operation;

/// The list is empty for a query of an index, and for an invalid request.
pub(super) fn partitions(operation: Operation, body: &[u8], attribute: &str) -> Vec<String> {
    let Ok(request) = serde_json::from_slice::<Value>(body) else { return Vec::new() };
    let tables =
        || request.get("RequestItems").and_then(Value::as_object).into_iter().flat_map(|tables| tables.values());
    let mut found: Vec<String> = match operation {
        Operation::Read => of_item(&request, attribute).or_else(|| of_query(&request, attribute)).into_iter().collect(),
        Operation::Write => of_item(&request, attribute).into_iter().collect(),
        Operation::BatchGet => {
            let keys = tables().filter_map(|table| table.get("Keys")?.as_array()).flatten();
            keys.filter_map(|key| text(key, attribute)).collect()
        }
        Operation::BatchWrite => {
            let writes = tables().filter_map(Value::as_array).flatten().filter_map(Value::as_object);
            writes.flat_map(|write| write.values()).filter_map(|write| of_item(write, attribute)).collect()
        }
        Operation::Transact { actions } => {
            let actions = request.get(actions).and_then(Value::as_array).into_iter().flatten();
            let actions = actions.filter_map(Value::as_object).flat_map(|action| action.values());
            actions.filter_map(|action| of_item(action, attribute)).collect()
        }
        Operation::GetRecords | Operation::DescribeInsights | Operation::Other => Vec::new(),
    };
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the position of the first action of a transaction whose partition key has this prefix.
pub(super) fn position(actions: &str, body: &[u8], attribute: &str, beginning: &str) -> Option<usize> {
    let request = serde_json::from_slice::<Value>(body).ok()?;
    let actions = request.get(actions)?.as_array()?;
    actions.iter().position(|action| {
        let partition = action.as_object().and_then(|action| of_item(action.values().next()?, attribute));
        partition.is_some_and(|partition| partition.starts_with(beginning))
    })
}

fn of_item(request: &Value, attribute: &str) -> Option<String> {
    text(request.get("Key").or_else(|| request.get("Item"))?, attribute)
}

/// Returns the key of a query of the table itself. Its key condition contains `#name = :value`.
fn of_query(request: &Value, attribute: &str) -> Option<String> {
    if request.get("IndexName").is_some() {
        return None;
    }
    let names = request.get("ExpressionAttributeNames")?.as_object()?;
    let (name, _) = names.iter().find(|(_, named)| named.as_str() == Some(attribute))?;
    let condition = request.get("KeyConditionExpression")?.as_str()?;
    let mut words = condition.split_whitespace().skip_while(|word| word != name);
    let value = words.nth(2)?;
    Some(request.get("ExpressionAttributeValues")?.get(value)?.get("S")?.as_str()?.to_owned())
}

fn text(attributes: &Value, attribute: &str) -> Option<String> {
    Some(attributes.get(attribute)?.get("S")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use serde_json::json;

    use super::*;

    fn of(operation: Operation, request: &Value) -> Vec<String> {
        partitions(operation, request.to_string().as_bytes(), "PK")
    }

    #[test]
    fn every_kind_of_request_names_its_partitions() {
        let key = |pk: &str| json!({"PK": {"S": pk}, "SK": {"S": "x"}});
        let query = json!({"TableName": "t", "KeyConditionExpression": "#pk = :pk AND #sk BETWEEN :low AND :high",
            "ExpressionAttributeNames": {"#pk": "PK", "#sk": "SK"},
            "ExpressionAttributeValues": {":pk": {"S": "A"}, ":low": {"S": "B"}, ":high": {"S": "C"}}});
        let mut indexed = query.clone();
        indexed["IndexName"] = json!("GSI1");
        let transact = Operation::Transact { actions: "TransactItems" };
        for (operation, request, expected) in [
            (Operation::Read, json!({"Key": key("A")}), vec!["A"]),
            (Operation::Read, query, vec!["A"]),
            (Operation::Read, indexed, vec![]),
            (Operation::Write, json!({"Item": key("A")}), vec!["A"]),
            (Operation::Write, json!({"Key": key("A")}), vec!["A"]),
            (
                Operation::BatchGet,
                json!({"RequestItems": {"t": {"Keys": [key("B"), key("A"), key("B")]}}}),
                vec!["A", "B"],
            ),
            (
                Operation::BatchWrite,
                json!({"RequestItems": {
                    "t": [{"PutRequest": {"Item": key("A")}}, {"DeleteRequest": {"Key": key("B")}}],
                }}),
                vec!["A", "B"],
            ),
            (
                transact,
                json!({"TransactItems": [
                    {"Update": {"Key": key("A")}}, {"Put": {"Item": key("B")}},
                    {"ConditionCheck": {"Key": key("A")}},
                ]}),
                vec!["A", "B"],
            ),
            (Operation::Other, json!({"Key": key("A")}), vec![]),
            (Operation::Write, json!({"Key": {"PK": {"N": "1"}}}), vec![]),
        ] {
            assert_eq!(of(operation, &request), expected, "{request}");
        }
        assert!(partitions(Operation::Write, b"{", "PK").is_empty());
    }
}
