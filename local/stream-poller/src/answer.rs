//! Reads a function's response to a batch, if the mapping has `ReportBatchItemFailures`.
//!
//! The rules are those of the Lambda developer guide, "Configuring partial batch response with
//! DynamoDB and Lambda". The guide does not mention a response that is not an object, or an
//! identifier that is not in the batch. In both cases, this module treats the whole batch as
//! failed, because a repeated record is better than a lost record.

use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// The records before this index are processed. The poller must retry the other records.
    DoneBefore(usize),
    Failed,
}

/// Reads a response. `index_of` maps the sequence number of a record to its index in the batch.
pub(crate) fn read(answer: &[u8], index_of: impl Fn(&str) -> Option<usize>) -> Outcome {
    if answer.iter().all(u8::is_ascii_whitespace) {
        return Outcome::Done;
    }
    match serde_json::from_slice(answer) {
        Ok(Value::Null) => Outcome::Done,
        Ok(Value::Object(answer)) => match answer.get("batchItemFailures") {
            None | Some(Value::Null) => Outcome::Done,
            Some(Value::Array(failures)) => first_failure(failures, index_of),
            Some(_) => Outcome::Failed,
        },
        Ok(_) | Err(_) => Outcome::Failed,
    }
}

fn first_failure(failures: &[Value], index_of: impl Fn(&str) -> Option<usize>) -> Outcome {
    let mut first = None;
    for failure in failures {
        let index = failure.get("itemIdentifier").and_then(Value::as_str).and_then(&index_of);
        match index {
            Some(index) => first = Some(first.map_or(index, |first: usize| first.min(index))),
            None => return Outcome::Failed,
        }
    }
    first.map_or(Outcome::Done, Outcome::DoneBefore)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_by_the_rules_of_the_guide() {
        let batch = ["100", "101", "102"];
        let index_of = |id: &str| batch.iter().position(|sequence| *sequence == id);
        for (answer, expected) in [
            ("", Outcome::Done),
            ("null", Outcome::Done),
            ("{}", Outcome::Done),
            (r#"{"batchItemFailures":null}"#, Outcome::Done),
            (r#"{"batchItemFailures":[]}"#, Outcome::Done),
            (r#"{"batchItemFailures":[{"itemIdentifier":"101"}]}"#, Outcome::DoneBefore(1)),
            (r#"{"batchItemFailures":[{"itemIdentifier":"102"},{"itemIdentifier":"100"}]}"#, Outcome::DoneBefore(0)),
            (r#"{"batchItemFailures":[{"itemIdentifier":""}]}"#, Outcome::Failed),
            (r#"{"batchItemFailures":[{"itemIdentifier":null}]}"#, Outcome::Failed),
            (r#"{"batchItemFailures":[{"itemIdentifer":"101"}]}"#, Outcome::Failed),
            (r#"{"batchItemFailures":[{"itemIdentifier":"101"},{"itemIdentifier":"999"}]}"#, Outcome::Failed),
            (r#"{"batchItemFailures":"101"}"#, Outcome::Failed),
            (r#"{"batchItemFailures":[null]}"#, Outcome::Failed),
            (r#""ok""#, Outcome::Failed),
            ("not json", Outcome::Failed),
        ] {
            assert_eq!(read(answer.as_bytes(), index_of), expected, "{answer}");
        }
    }
}
