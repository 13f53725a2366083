use serde::Deserialize;

use crate::error::SearchError;
use crate::transport::is_transient;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BulkOutcome {
    Applied,
    /// The index already contains a newer write of the document. No further action is needed.
    Stale,
    /// The engine was throttling, failing or unreachable. The operation can be sent again later.
    Retryable {
        /// The reason, for operators. It contains no data of the document.
        reason: String,
    },
    /// The engine refuses the operation. It would also refuse a retry.
    Rejected {
        status: u16,
        /// The engine's explanation. It may quote a value of the document.
        reason: String,
    },
}

impl BulkOutcome {
    /// Returns whether the index now contains this write or a newer one.
    pub fn is_durable(&self) -> bool {
        matches!(self, Self::Applied | Self::Stale)
    }

    /// Returns whether the write failed because its target, an index or an alias, does not exist.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self, Self::Rejected { status: 404, .. })
    }

    /// Combines the outcomes of an operation that was sent to several indices. The worst one
    /// counts:
    ///
    /// - `Retryable` outranks all others, because an index may still accept the operation. No
    ///   result is final before the outcome of every index is known.
    /// - `Rejected` comes next, even if another index has the document. After a rebuild, searches
    ///   may read the index that refused it.
    /// - If all outcomes are durable, the result is `Applied` if any index applied the operation,
    ///   and `Stale` otherwise.
    /// - If there was no index to write to, the result is `Rejected`.
    pub(crate) fn of_all(outcomes: impl IntoIterator<Item = Self>) -> Self {
        let none = Self::Rejected { status: 404, reason: "there is no index to write to".to_owned() };
        outcomes.into_iter().max_by_key(Self::rank).unwrap_or(none)
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Stale => 0,
            Self::Applied => 1,
            Self::Rejected { .. } => 2,
            Self::Retryable { .. } => 3,
        }
    }
}

/// Returns the outcomes in the response to a request of `expected` operations, in the order of the
/// operations.
pub(crate) fn outcomes(answer: &[u8], expected: usize) -> Result<Vec<BulkOutcome>, SearchError> {
    let answer: BulkAnswer = serde_json::from_slice(answer).map_err(|error| SearchError::Answer(error.to_string()))?;
    if answer.items.len() != expected {
        let got = answer.items.len();
        return Err(SearchError::Answer(format!("{got} outcomes for {expected} operations")));
    }
    Ok(answer.items.into_iter().map(|item| item.index.into()).collect())
}

#[derive(Deserialize)]
struct BulkAnswer {
    items: Vec<BulkItem>,
}

#[derive(Deserialize)]
struct BulkItem {
    #[serde(alias = "delete")]
    index: ItemResult,
}

#[derive(Deserialize)]
struct ItemResult {
    status: u16,
    error: Option<ItemError>,
}

#[derive(Deserialize)]
struct ItemError {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    reason: String,
}

impl From<ItemResult> for BulkOutcome {
    fn from(item: ItemResult) -> Self {
        let status = item.status;
        let (quoted, kind) = match item.error {
            Some(error) => (format!("{}: {}", error.kind, error.reason), error.kind),
            None => (format!("status {status}"), format!("status {status}")),
        };
        match status {
            200..=299 => Self::Applied,
            409 => Self::Stale,
            // An engine without capacity may quote the request in its reason, so only the error's
            // type is kept.
            status if is_transient(status) || status >= 500 => Self::Retryable { reason: kind },
            status => Self::Rejected { status, reason: quoted },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn each_status_of_an_item_has_its_outcome() {
        let item = |status: u16| {
            let error = if status < 300 { String::new() } else { r#","error":{"type":"t","reason":"r"}"#.to_owned() };
            format!(r#"{{"index":{{"_id":"1","status":{status}{error}}}}}"#)
        };
        let statuses = [200, 201, 409, 429, 500, 503, 400, 404];
        let items: Vec<_> = statuses.into_iter().map(item).collect();
        let answer = format!(r#"{{"took":1,"errors":true,"items":[{}]}}"#, items.join(","));
        let retryable = BulkOutcome::Retryable { reason: "t".to_owned() };
        let rejected = |status| BulkOutcome::Rejected { status, reason: "t: r".to_owned() };
        assert_eq!(
            outcomes(answer.as_bytes(), statuses.len()).unwrap(),
            [
                BulkOutcome::Applied,
                BulkOutcome::Applied,
                BulkOutcome::Stale,
                retryable.clone(),
                retryable.clone(),
                retryable,
                rejected(400),
                rejected(404),
            ]
        );
    }

    #[test]
    fn an_answer_with_too_few_outcomes_is_an_error() {
        assert!(outcomes(br#"{"items":[]}"#, 1).is_err());
        assert!(outcomes(b"<html>", 1).is_err());
    }

    #[test]
    fn the_worst_outcome_of_an_operation_counts() {
        use BulkOutcome::{Applied, Stale};
        let retryable = BulkOutcome::Retryable { reason: String::new() };
        let rejected = BulkOutcome::Rejected { status: 400, reason: String::new() };
        for (outcomes, worst) in [
            ([Applied, Applied], Applied),
            ([Stale, Stale], Stale),
            ([Applied, Stale], Applied),
            ([Applied, rejected.clone()], rejected.clone()),
            ([rejected.clone(), Stale], rejected.clone()),
            ([rejected, retryable.clone()], retryable.clone()),
            ([Applied, retryable.clone()], retryable),
        ] {
            assert_eq!(BulkOutcome::of_all(outcomes.clone()), worst, "{outcomes:?}");
        }
        assert!(BulkOutcome::of_all([]).is_lost());
    }
}
