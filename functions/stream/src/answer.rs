use serde::Serialize;

use crate::sequence::SequenceNumber;

/// A partial batch response that names at most one record.
///
/// Lambda delivers again from the lowest sequence number in the response, so one number is enough.
/// The whole batch counts as completed if the list is empty, *missing or null*. It counts as failed
/// if an identifier is empty, null or unknown (Lambda developer guide, "Configuring partial batch
/// response with DynamoDB and Lambda"). So this type always writes the list, and each identifier is
/// a sequence number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    batch_item_failures: Vec<ItemFailure>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ItemFailure {
    item_identifier: SequenceNumber,
}

impl Answer {
    /// Creates a response. Without `earliest`, the response says that all records are durable. With
    /// `earliest`, it says that the records before `earliest` are durable.
    #[must_use]
    pub fn from_earliest(earliest: Option<SequenceNumber>) -> Self {
        let failure = |item_identifier| ItemFailure { item_identifier };
        Self { batch_item_failures: earliest.map(failure).into_iter().collect() }
    }

    /// Returns the sequence number with which the next delivery begins, or `None` if all records
    /// are durable.
    #[must_use]
    pub fn earliest(&self) -> Option<&SequenceNumber> {
        self.batch_item_failures.first().map(|failure| &failure.item_identifier)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_response_lists_at_most_one_identifier() {
        let wire = |answer: &Answer| serde_json::to_string(answer).unwrap();
        assert_eq!(wire(&Answer::from_earliest(None)), r#"{"batchItemFailures":[]}"#);
        let failed = Answer::from_earliest(Some("0042".parse().unwrap()));
        assert_eq!(wire(&failed), r#"{"batchItemFailures":[{"itemIdentifier":"0042"}]}"#);
    }
}
