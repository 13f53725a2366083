use hyper::HeaderMap;

use crate::faults::FaultKind;

/// What a request asks of DynamoDB, as far as faults and mending tell operations apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// Reads one item, a range or a statement.
    Read,
    /// Writes one item.
    Write,
    BatchGet,
    BatchWrite,
    /// Reads or writes as one transaction: the list of its actions has this name.
    Transact {
        actions: &'static str,
    },
    /// Reads records of the stream.
    GetRecords,
    /// Asks which keys are counted by which rules.
    DescribeInsights,
    /// Tables, streams, tags: never fails.
    Other,
}

impl Operation {
    /// From the header that names it in both of DynamoDB's protocols.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let target =
            headers.get("x-amz-target").and_then(|value| value.to_str().ok()).and_then(|target| target.split_once('.'));
        match target {
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

    /// Whether `kind` can happen to it, a batch being `divisible` or not.
    pub(super) fn can_suffer(self, kind: FaultKind, divisible: bool) -> bool {
        match kind {
            FaultKind::Partial => divisible,
            FaultKind::Conflict => matches!(self, Self::Write | Self::Transact { .. }),
            FaultKind::Throttle
            | FaultKind::Error
            | FaultKind::Timeout
            | FaultKind::Slow
            | FaultKind::Reset
            | FaultKind::Truncate => !matches!(self, Self::GetRecords | Self::DescribeInsights | Self::Other),
        }
    }

    /// The member of a batch's answer that lists what was left undone.
    pub(super) fn unprocessed(self) -> Option<&'static str> {
        match self {
            Self::BatchGet => Some("UnprocessedKeys"),
            Self::BatchWrite => Some("UnprocessedItems"),
            _ => None,
        }
    }
}
