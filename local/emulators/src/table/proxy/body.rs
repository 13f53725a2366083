use bytes::Bytes;
use serde_json::{Map, Value};

use super::operation::Operation;

/// A batch that is split in two. Only the first half is processed.
#[derive(Debug, PartialEq)]
pub(super) struct Halves {
    pub(super) request: Bytes,
    /// The other half, in the form of `UnprocessedItems` or `UnprocessedKeys`.
    left: Map<String, Value>,
}

impl Halves {
    /// Returns `None` if it is not a batch of at least two entries.
    pub(super) fn of(operation: Operation, body: &[u8]) -> Option<Self> {
        let mut request: Value = serde_json::from_slice(body).ok()?;
        let tables = request.get_mut("RequestItems")?.as_object_mut()?;
        let total: usize =
            tables.values_mut().map(|entry| entries(operation, entry).map_or(0, |list| list.len())).sum();
        let mut done = total / 2;
        if done == 0 {
            return None;
        }
        let mut left = Map::new();
        for (table, entry) in tables.iter_mut() {
            // In a batch read, a table's entry has other members besides the keys. The unprocessed
            // half repeats them.
            let mut rest = entry.clone();
            let list = entries(operation, entry)?;
            let kept = done.min(list.len());
            done -= kept;
            let undone = list.split_off(kept);
            if !undone.is_empty() {
                *entries(operation, &mut rest)? = undone;
                left.insert(table.clone(), rest);
            }
        }
        tables.retain(|_, entry| entries(operation, entry).is_some_and(|list| !list.is_empty()));
        Some(Self { request: Bytes::from(request.to_string()), left })
    }

    /// Converts the response for the first half into a response for the whole batch.
    pub(super) fn answer(self, operation: Operation, answer: &[u8]) -> Option<Bytes> {
        let member = operation.unprocessed()?;
        let mut answer: Value = serde_json::from_slice(answer).ok()?;
        let unprocessed =
            answer.as_object_mut()?.entry(member).or_insert_with(|| Value::Object(Map::new())).as_object_mut()?;
        for (table, mut rest) in self.left {
            match unprocessed.get_mut(&table) {
                // The table itself may leave entries unprocessed. The response then has
                // these entries and the other half.
                Some(entry) => {
                    let rest = std::mem::take(entries(operation, &mut rest)?);
                    entries(operation, entry)?.extend(rest);
                }
                None => {
                    unprocessed.insert(table, rest);
                }
            }
        }
        Some(Bytes::from(answer.to_string()))
    }
}

fn entries(operation: Operation, entry: &mut Value) -> Option<&mut Vec<Value>> {
    match operation {
        Operation::BatchGet => entry.get_mut("Keys")?.as_array_mut(),
        _ => entry.as_array_mut(),
    }
}

pub(super) fn count_actions(actions: &str, body: &[u8]) -> Option<usize> {
    let request: Value = serde_json::from_slice(body).ok()?;
    Some(request.get(actions)?.as_array()?.len())
}

/// Corrects the identity of TTL deletions in stream records. DynamoDB names the identity's members
/// `Type` and `PrincipalId`. SDKs ignore the engine's names, which are `type` and `principalId` as
/// in Lambda's events. Returns `None` if there is nothing to correct.
pub(super) fn with_repaired_identities(answer: &[u8]) -> Option<Bytes> {
    if !contains(answer, b"\"principalId\"") {
        return None;
    }
    let mut answer: Value = serde_json::from_slice(answer).ok()?;
    for record in answer.get_mut("Records")?.as_array_mut()? {
        let Some(identity) = record.get_mut("userIdentity").and_then(Value::as_object_mut) else {
            continue;
        };
        for (wrong, right) in [("type", "Type"), ("principalId", "PrincipalId")] {
            if let Some(value) = identity.remove(wrong) {
                identity.insert(right.to_owned(), value);
            }
        }
    }
    Some(Bytes::from(answer.to_string()))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn halves(operation: Operation, request: &Value) -> Option<(Value, Value)> {
        Halves::of(operation, request.to_string().as_bytes())
            .map(|halves| (serde_json::from_slice(&halves.request).unwrap(), Value::Object(halves.left)))
    }

    #[test]
    fn half_of_a_batch_write_is_processed_and_the_rest_is_returned() {
        let request = json!({"RequestItems": {"a": [1, 2, 3], "b": [4, 5]}});
        let (done, left) = halves(Operation::BatchWrite, &request).unwrap();
        assert_eq!(done, json!({"RequestItems": {"a": [1, 2]}}));
        assert_eq!(left, json!({"a": [3], "b": [4, 5]}));
    }

    #[test]
    fn the_unprocessed_keys_of_a_batch_read_keep_its_other_parameters() {
        let request = json!({"RequestItems": {"a": {"Keys": [1, 2], "ConsistentRead": true}}});
        let (done, left) = halves(Operation::BatchGet, &request).unwrap();
        assert_eq!(done, json!({"RequestItems": {"a": {"Keys": [1], "ConsistentRead": true}}}));
        assert_eq!(left, json!({"a": {"Keys": [2], "ConsistentRead": true}}));
    }

    #[test]
    fn a_batch_of_at_most_one_entry_cannot_be_halved() {
        for request in
            [json!({"RequestItems": {"a": [1]}}), json!({"RequestItems": {}}), json!({"RequestItems": 5}), json!([])]
        {
            assert_eq!(halves(Operation::BatchWrite, &request), None);
        }
        assert_eq!(Halves::of(Operation::BatchWrite, b"{"), None);
    }

    #[test]
    fn entries_that_the_table_left_unprocessed_stay_unprocessed() {
        let request = json!({"RequestItems": {"a": [1, 2, 3, 4]}}).to_string();
        let halves = Halves::of(Operation::BatchWrite, request.as_bytes()).unwrap();
        let answer = halves.answer(Operation::BatchWrite, br#"{"UnprocessedItems":{"a":[2]}}"#).unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer, json!({"UnprocessedItems": {"a": [2, 3, 4]}}));
    }

    #[test]
    fn the_identity_of_a_ttl_deletion_has_the_member_names_of_the_api() {
        let answer = json!({"Records": [
            {"eventName": "REMOVE", "userIdentity": {"type": "Service", "principalId": "p"}},
            {"eventName": "REMOVE"},
        ]});
        let repaired = with_repaired_identities(answer.to_string().as_bytes()).unwrap();
        let repaired: Value = serde_json::from_slice(&repaired).unwrap();
        assert_eq!(
            repaired,
            json!({"Records": [
                {"eventName": "REMOVE", "userIdentity": {"Type": "Service", "PrincipalId": "p"}},
                {"eventName": "REMOVE"},
            ]})
        );
        assert_eq!(with_repaired_identities(br#"{"Records":[]}"#), None);
    }
}
