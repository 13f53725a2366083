//! What the consumer tells Lambda.

use serde::Serialize;

use crate::sequence::SequenceNumber;

/// A partial batch response that names at most one record.
///
/// Lambda delivers again from the lowest sequence number named, so one is all there is to say. It takes a batch as done when the list is empty
/// *or missing or null*, and as failed whole when an identifier is empty, null or unknown (Lambda developer guide, "Configuring partial batch response
/// with DynamoDB and Lambda"): this type can say neither by mistake.
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
    /// Every record before `earliest` is durable; all of them, if there is none.
    #[must_use]
    pub fn from_earliest(earliest: Option<SequenceNumber>) -> Self {
        let failure = |item_identifier| ItemFailure { item_identifier };
        Self { batch_item_failures: earliest.map(failure).into_iter().collect() }
    }

    /// The record to begin with next time.
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
    fn an_answer_is_a_list_of_one_identifier_or_none() {
        let wire = |answer: &Answer| serde_json::to_string(answer).unwrap();
        assert_eq!(wire(&Answer::from_earliest(None)), r#"{"batchItemFailures":[]}"#);
        let failed = Answer::from_earliest(Some("0042".parse().unwrap()));
        assert_eq!(wire(&failed), r#"{"batchItemFailures":[{"itemIdentifier":"0042"}]}"#);
    }
}
