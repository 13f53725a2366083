use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

const MOST: usize = 10_000;

/// The items that the local system removed because they had expired.
///
/// When DynamoDB removes an expired item, the stream record names DynamoDB as the caller. DynamoDB
/// Local removes expired items late, so the local system deletes them with ordinary requests. The
/// stream records of these deletions name no caller, so the poller adds DynamoDB as the caller.
#[derive(Debug, Clone, Default)]
pub struct Swept(Arc<Mutex<Vec<Value>>>);

impl Swept {
    /// When there are too many items, the oldest item is forgotten.
    pub fn note(&self, item: Value) {
        let mut items = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if items.len() == MOST {
            items.remove(0);
        }
        items.push(item);
    }

    /// Adds DynamoDB as the caller if the record describes the removal of a remembered item. The
    /// old image must equal that item, because a later item can have the same key.
    pub(crate) fn identify(&self, record: &mut Value) {
        if record.get("eventName").is_none_or(|name| name != "REMOVE") || record.get("userIdentity").is_some() {
            return;
        }
        let items = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !record.pointer("/dynamodb/OldImage").is_some_and(|image| items.contains(image)) {
            return;
        }
        if let Some(record) = record.as_object_mut() {
            let identity = json!({ "Type": "Service", "PrincipalId": "dynamodb.amazonaws.com" });
            record.insert("userIdentity".to_owned(), identity);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_removal_of_a_swept_item_names_the_service() {
        let (swept, item) = (Swept::default(), json!({ "PK": { "S": "a" }, "rev": { "N": "2" } }));
        swept.note(item.clone());
        let identity = |name: &str, image: &Value| {
            let mut record = json!({ "eventName": name, "dynamodb": { "OldImage": image } });
            swept.identify(&mut record);
            record.get("userIdentity").cloned()
        };
        let service = json!({ "Type": "Service", "PrincipalId": "dynamodb.amazonaws.com" });
        assert_eq!(identity("REMOVE", &item), Some(service));
        assert_eq!(identity("MODIFY", &item), None);
        assert_eq!(identity("REMOVE", &json!({ "PK": { "S": "a" }, "rev": { "N": "3" } })), None);
    }
}
