use hyper::HeaderMap;

use crate::faults::FaultKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::table) enum Operation {
    /// Reads one item or a range, or executes a statement.
    Read,
    Write,
    BatchGet,
    BatchWrite,
    /// A read or write transaction. `actions` is the request member that lists its actions.
    Transact {
        actions: &'static str,
    },
    GetRecords,
    DescribeInsights,
    /// An operation on tables, streams or tags. No fault hits it.
    Other,
}

impl Operation {
    /// Reads the operation from the header `x-amz-target`, which requests to tables and requests to
    /// streams have.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        headers.get("x-amz-target").and_then(|value| value.to_str().ok()).map_or(Self::Other, Self::named)
    }

    /// Reads the operation from its target, such as `DynamoDB_20120810.GetItem`.
    pub(in crate::table) fn named(target: &str) -> Self {
        match target.split_once('.') {
            Some(("DynamoDB_20120810", name)) => match name {
                "GetItem" | "Query" | "Scan" | "ExecuteStatement" | "BatchExecuteStatement" | "ExecuteTransaction" => {
                    Self::Read
                }
                "PutItem" | "UpdateItem" | "DeleteItem" => Self::Write,
                "BatchGetItem" => Self::BatchGet,
                "BatchWriteItem" => Self::BatchWrite,
                "TransactGetItems" | "TransactWriteItems" => Self::Transact { actions: "TransactItems" },
                "DescribeContributorInsights" => Self::DescribeInsights,
                _ => Self::Other,
            },
            Some(("DynamoDBStreams_20120810", "GetRecords")) => Self::GetRecords,
            _ => Self::Other,
        }
    }

    /// Returns whether the operation reads or writes items.
    pub(super) const fn is_on_items(self) -> bool {
        !matches!(self, Self::GetRecords | Self::DescribeInsights | Self::Other)
    }

    /// `divisible` says whether the request is a batch that the proxy can split.
    pub(super) fn can_suffer(self, kind: FaultKind, divisible: bool) -> bool {
        match kind {
            FaultKind::Partial => divisible,
            FaultKind::Conflict => matches!(self, Self::Write | Self::Transact { .. }),
            FaultKind::Throttle
            | FaultKind::Error
            | FaultKind::Timeout
            | FaultKind::Slow
            | FaultKind::Reset
            | FaultKind::Truncate => self.is_on_items(),
            FaultKind::TimeoutBefore | FaultKind::ErrorAfter | FaultKind::WrongSignature => false,
        }
    }

    /// Returns the member of a batch's response that lists unprocessed entries.
    pub(super) fn unprocessed(self) -> Option<&'static str> {
        match self {
            Self::BatchGet => Some("UnprocessedKeys"),
            Self::BatchWrite => Some("UnprocessedItems"),
            _ => None,
        }
    }
}
