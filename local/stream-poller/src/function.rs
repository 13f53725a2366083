use std::time::SystemTime;

use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::SequenceNumber;

/// Calls a function with an event and waits for its answer.
pub trait Invoke: Send + Sync + 'static {
    /// Sends `payload`, the JSON of a DynamoDB event, and gives the function's answer. Must end: the
    /// function's own timeout bounds it.
    fn invoke(&self, payload: Bytes) -> BoxFuture<'_, Result<Bytes, FunctionError>>;
}

/// Why a call gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FunctionError {
    /// The function ran and failed, timed out or crashed. Counts as an attempt.
    #[error("the function failed: {0}")]
    Failed(String),
    /// The function could not be called, because it is throttled or not there. Is tried again
    /// without counting, until the records are too old.
    #[error("the function could not be called: {0}")]
    NotCalled(String),
}

/// Takes the batches that the poller gives up.
pub trait Destination: Send + Sync + 'static {
    /// Keeps `batch` somewhere durable. It is offered a few times if that fails.
    fn discard(&self, batch: DiscardedBatch) -> BoxFuture<'_, Result<(), DestinationError>>;
}

/// The destination could not keep a batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the on-failure destination failed: {0}")]
pub struct DestinationError(pub String);

/// Why a batch was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It failed as often as the mapping allows.
    RetryAttemptsExhausted,
    /// Its records got older than the mapping or the stream allows.
    RecordAgeExceeded,
}

/// Records that no function took.
#[derive(Debug, Clone)]
pub struct DiscardedBatch {
    /// The function that should have taken them.
    pub function: String,
    /// Why they are given up.
    pub condition: Condition,
    /// How often the function was called with them.
    pub invocations: u32,
    /// What the function said last, if it was called.
    pub error: Option<String>,
    /// The stream and the shard that they come from.
    pub stream_arn: String,
    /// See `stream_arn`.
    pub shard_id: String,
    /// The first of the records.
    pub first_sequence: SequenceNumber,
    /// The last of them.
    pub last_sequence: SequenceNumber,
    /// When the first was written.
    pub first_arrival: SystemTime,
    /// When the last was written.
    pub last_arrival: SystemTime,
    /// How many they are.
    pub size: usize,
    /// The event that the function would have got: `{"Records": […]}`.
    pub payload: Bytes,
    /// When they were given up.
    pub at: SystemTime,
}

impl DiscardedBatch {
    /// The document that Lambda puts into an S3 destination: it has the records in it, unlike the
    /// one for a queue or topic.
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

/// RFC 3339; `null` for an instant beyond its years.
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
