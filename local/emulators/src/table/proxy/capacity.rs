//! Makes the table report the units that a write consumes in each index.
//!
//! The functions request only the total. So the proxy requests the units of each index, records
//! them, and returns to the caller the report that it requested.

use bytes::Bytes;
use serde_json::Value;

use super::operation::Operation;

const MEMBER: &str = "\"ReturnConsumedCapacity\"";
const TOTAL: &str = "\"ReturnConsumedCapacity\":\"TOTAL\"";
const INDEXES: &str = "\"ReturnConsumedCapacity\":\"INDEXES\"";

/// The `ConsumedCapacity` of a write, as an extension of its response.
#[derive(Debug, Clone)]
pub(super) struct Consumed(pub(super) Bytes);

/// The report that the caller requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requested {
    Nothing,
    Total,
}

/// Returns a write's request for the units of each index, and what the caller requested. Returns
/// `None` if the request stays as it is.
pub(super) fn detailed(operation: Operation, body: &Bytes) -> Option<(Bytes, Requested)> {
    if !matches!(operation, Operation::Write | Operation::BatchWrite | Operation::Transact { .. }) {
        return None;
    }
    let text = std::str::from_utf8(body).ok()?;
    // In a text of JSON, quotes are escaped. So these words are a member and never part of a value.
    if let Some((before, after)) = text.split_once(TOTAL) {
        return Some((Bytes::from([before, INDEXES, after].concat()), Requested::Total));
    }
    let rest = text.strip_prefix('{').filter(|rest| rest.starts_with('"') && !rest.contains(MEMBER))?;
    Some((Bytes::from(["{", INDEXES, ",", rest].concat()), Requested::Nothing))
}

/// Returns the units that a response reports, and the response that the caller requested.
pub(super) fn split(answer: &[u8], requested: Requested) -> Option<(Consumed, Bytes)> {
    // The parser of `str` is in serde_json, which is optimized even in a development build.
    let mut answer: Value = std::str::from_utf8(answer).ok()?.parse().ok()?;
    let members = answer.as_object_mut()?;
    let consumed = members.get("ConsumedCapacity")?.to_string();
    match requested {
        Requested::Nothing => drop(members.remove("ConsumedCapacity")),
        Requested::Total => {
            let report = members.get_mut("ConsumedCapacity")?;
            match report {
                Value::Array(tables) => tables.iter_mut().for_each(keep_total),
                table => keep_total(table),
            }
        }
    }
    Some((Consumed(consumed.into()), Bytes::from(answer.to_string())))
}

fn keep_total(table: &mut Value) {
    if let Some(members) = table.as_object_mut() {
        members.retain(|_, member| !member.is_object());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn asked(operation: Operation, body: &str) -> Option<(String, Requested)> {
        let asked = detailed(operation, &Bytes::from(body.to_owned()));
        asked.map(|(body, requested)| (String::from_utf8(body.to_vec()).unwrap(), requested))
    }

    #[test]
    fn only_a_write_is_made_to_report_the_units_of_each_index() {
        let (write, total) = (Operation::Write, r#"{"a":1,"ReturnConsumedCapacity":"TOTAL"}"#);
        let indexes = r#"{"a":1,"ReturnConsumedCapacity":"INDEXES"}"#;
        assert_eq!(asked(write, total), Some((indexes.to_owned(), Requested::Total)));
        let added = r#"{"ReturnConsumedCapacity":"INDEXES","a":1}"#;
        assert_eq!(asked(write, r#"{"a":1}"#), Some((added.to_owned(), Requested::Nothing)));
        assert_eq!(asked(Operation::Read, total), None);
        for own in [indexes, r#"{"ReturnConsumedCapacity": "NONE","a":1}"#, "{}", "[]", ""] {
            assert_eq!(asked(write, own), None, "{own}");
        }
    }

    #[test]
    fn the_caller_gets_the_report_that_it_requested() {
        let detail = json!({"TableName": "t", "CapacityUnits": 3.0, "Table": {"CapacityUnits": 1.0},
            "GlobalSecondaryIndexes": {"GSI1": {"CapacityUnits": 2.0}}});
        let total = json!({"TableName": "t", "CapacityUnits": 3.0});
        for (report, reduced) in [(detail.clone(), total.clone()), (json!([detail]), json!([total]))] {
            let answer = json!({"Attributes": {"a": {"S": "b"}}, "ConsumedCapacity": report}).to_string();
            let (Consumed(consumed), rest) = split(answer.as_bytes(), Requested::Total).unwrap();
            assert_eq!(serde_json::from_slice::<Value>(&consumed).unwrap(), report);
            let expected = json!({"Attributes": {"a": {"S": "b"}}, "ConsumedCapacity": reduced});
            assert_eq!(serde_json::from_slice::<Value>(&rest).unwrap(), expected);
            let (_, rest) = split(answer.as_bytes(), Requested::Nothing).unwrap();
            let expected = json!({"Attributes": {"a": {"S": "b"}}});
            assert_eq!(serde_json::from_slice::<Value>(&rest).unwrap(), expected);
        }
        assert!(split(b"{}", Requested::Total).is_none());
    }
}
