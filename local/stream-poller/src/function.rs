use std::time::SystemTime;

use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::SequenceNumber;

/// Calls a function with an event and waits for its response.
pub trait Invoke: Send + Sync + 'static {
    /// Sends `payload`, the JSON of a DynamoDB event, and returns the function's response. The call
    /// must always return. The function's timeout ensures this.
    fn invoke(&self, payload: Bytes) -> BoxFuture<'_, Result<Bytes, FunctionError>>;
}

/// The role of a function. To read the stream for the function, Lambda assumes the role.
pub trait Role: Send + Sync + 'static {
    /// Checks that the role allows this call of the stream.
    ///
    /// # Errors
    /// The reason, in AWS's wording.
    fn check(&self, call: StreamCall) -> Result<(), String>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamCall {
    DescribeStream,
    /// Returns an iterator, which is a position in a shard.
    GetShardIterator,
    GetRecords,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FunctionError {
    /// The function ran and failed, timed out or crashed. This counts as an attempt.
    #[error("the function failed: {0}")]
    Failed(String),
    /// The function could not be called, because it is throttled or does not exist. The poller
    /// retries until the records are too old, and does not count these attempts.
    #[error("the function could not be called: {0}")]
    NotCalled(String),
}

/// Stores the batches that the poller gives up.
pub trait Destination: Send + Sync + 'static {
    /// Stores `batch` durably. If that fails, the poller retries a few times.
    fn discard(&self, batch: DiscardedBatch) -> BoxFuture<'_, Result<(), DestinationError>>;
}

/// The destination could not store a batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the on-failure destination failed: {0}")]
pub struct DestinationError(pub String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The batch failed more often than the mapping allows.
    RetryAttemptsExhausted,
    /// The records are older than the mapping or the stream allows.
    RecordAgeExceeded,
}

#[derive(Debug, Clone)]
pub struct DiscardedBatch {
    pub function: String,
    pub condition: Condition,
    /// Number of calls of the function that included the first of these records.
    pub invocations: u32,
    /// The function's last error, if it was called.
    pub error: Option<String>,
    pub stream_arn: String,
    pub shard_id: String,
    pub first_sequence: SequenceNumber,
    pub last_sequence: SequenceNumber,
    pub first_arrival: SystemTime,
    pub last_arrival: SystemTime,
    pub size: usize,
    /// The event that the function would have received: `{"Records": […]}`.
    pub payload: Bytes,
    pub at: SystemTime,
}

impl DiscardedBatch {
    /// Unlike the document for a queue or a topic, it contains the records.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let condition = match self.condition {
            Condition::RetryAttemptsExhausted => "RetryAttemptsExhausted",
            Condition::RecordAgeExceeded => "RecordAgeExceeded",
        };
        json!({
            "requestContext": {
                "functionArn": self.function,
                "condition": condition,
                "approximateInvokeCount": self.invocations,
            },
            "responseContext": {
                "statusCode": 200,
                "executedVersion": "$LATEST",
                "functionError": self.error,
            },
            "version": "1.0",
            "timestamp": instant(self.at),
            "DDBStreamBatchInfo": {
                "shardId": self.shard_id,
                "startSequenceNumber": self.first_sequence.as_str(),
                "endSequenceNumber": self.last_sequence.as_str(),
                "approximateArrivalOfFirstRecord": instant(self.first_arrival),
                "approximateArrivalOfLastRecord": instant(self.last_arrival),
                "batchSize": self.size,
                "streamArn": self.stream_arn,
            },
            "payload": String::from_utf8_lossy(&self.payload),
        })
    }
}

/// Formats an instant as RFC 3339. Returns `None` for a year that RFC 3339 does not allow.
fn instant(time: SystemTime) -> Option<String> {
    OffsetDateTime::from(time).format(&Rfc3339).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_discarded_batch_is_written_as_lambda_writes_it() {
        let second = |s| SystemTime::UNIX_EPOCH + Duration::from_secs(s);
        let batch = DiscardedBatch {
            function: "StreamEvents".to_owned(),
            condition: Condition::RetryAttemptsExhausted,
            invocations: 3,
            error: Some("Unhandled".to_owned()),
            stream_arn: "arn:stream".to_owned(),
            shard_id: "shard-1".to_owned(),
            first_sequence: "100".into(),
            last_sequence: "105".into(),
            first_arrival: second(1_700_000_000),
            last_arrival: second(1_700_000_001),
            size: 2,
            payload: Bytes::from_static(b"{\"Records\":[]}"),
            at: second(1_700_000_060),
        };
        assert_eq!(
            batch.to_json(),
            json!({
                "requestContext": {
                    "functionArn": "StreamEvents",
                    "condition": "RetryAttemptsExhausted",
                    "approximateInvokeCount": 3,
                },
                "responseContext": {
                    "statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled",
                },
                "version": "1.0",
                "timestamp": "2023-11-14T22:14:20Z",
                "DDBStreamBatchInfo": {
                    "shardId": "shard-1",
                    "startSequenceNumber": "100",
                    "endSequenceNumber": "105",
                    "approximateArrivalOfFirstRecord": "2023-11-14T22:13:20Z",
                    "approximateArrivalOfLastRecord": "2023-11-14T22:13:21Z",
                    "batchSize": 2,
                    "streamArn": "arn:stream",
                },
                "payload": "{\"Records\":[]}",
            })
        );
    }
}
