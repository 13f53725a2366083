//! Messages of an SQS queue to which a rule of the bus sends events, and the response to them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use telemetry::correlation;

use crate::{DecodeError, Event};

/// The event from SQS.
#[derive(Debug, Clone, Deserialize)]
pub struct Batch {
    #[serde(rename = "Records")]
    pub records: Vec<Message>,
}

/// The event of a function that also has a schedule: the event from SQS, or EventBridge's scheduled event,
/// which has no records. A batch that cannot be read fails as a whole, because an empty response would
/// delete its messages.
#[derive(Debug, Clone, Deserialize)]
pub struct Input {
    #[serde(rename = "Records")]
    pub records: Option<Vec<Message>>,
}

/// A message. Without a message id the whole invocation fails, because the response cannot name the
/// message.
#[derive(Debug, Clone, Deserialize)]
pub struct Message {
    /// The id that the response names.
    #[serde(rename = "messageId")]
    pub id: String,
    /// An event of the bus in EventBridge's form, as JSON text.
    #[serde(default)]
    pub body: String,
}

#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The message holds no event of the bus. The error does not quote the message.
    #[error("the message holds no event of the bus")]
    Body(#[source] serde_json::Error),
    /// This program does not know the event.
    #[error(transparent)]
    Event(#[from] DecodeError),
}

impl Message {
    /// Returns the event in the message.
    ///
    /// # Errors
    /// [`MessageError`] if the message cannot be read. A redelivery of such a message fails in
    /// the same way.
    pub fn event(&self) -> Result<Event, MessageError> {
        #[derive(Deserialize)]
        struct Delivery {
            detail: Value,
        }
        let Delivery { detail } = serde_json::from_str(&self.body).map_err(MessageError::Body)?;
        Ok(Event::from_detail(&detail)?)
    }

    /// Returns whether the event comes from a replay of the bus's archive.
    #[must_use]
    pub fn is_replayed(&self) -> bool {
        #[derive(Deserialize)]
        struct Delivery {
            #[serde(rename = "replay-name", default)]
            replay: Option<String>,
        }
        serde_json::from_str::<Delivery>(&self.body).is_ok_and(|delivery| delivery.replay.is_some())
    }

    /// Returns the id of the request that caused the event, if the event has a valid correlation
    /// id. The log entries and the written items contain this id.
    #[must_use]
    pub fn cause(&self) -> Option<String> {
        self.event().ok()?.correlation_id.filter(|id| correlation::id(id).is_some())
    }
}

/// The response to the queue: the ids of the messages that must be delivered again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Answer {
    #[serde(rename = "batchItemFailures")]
    failures: Vec<Failure>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Failure {
    #[serde(rename = "itemIdentifier")]
    id: String,
}

impl Answer {
    pub fn naming(ids: impl IntoIterator<Item = String>) -> Self {
        Self { failures: ids.into_iter().map(|id| Failure { id }).collect() }
    }

    /// Returns the ids of the messages that must be delivered again.
    #[must_use]
    pub fn failed(&self) -> Vec<&str> {
        self.failures.iter().map(|failure| failure.id.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_cannot_be_read_is_no_scheduled_event() {
        let read = |text: &str| serde_json::from_str::<Input>(text).map(|input| input.records.map(|all| all.len()));
        assert!(matches!(read(r#"{"detail-type": "Scheduled Event", "detail": {}}"#), Ok(None)));
        assert!(matches!(read(r#"{"Records": [{"messageId": "1", "body": "{}"}]}"#), Ok(Some(1))));
        assert!(read(r#"{"Records": [{"body": "{}"}]}"#).is_err(), "no response can name the message");
    }
}
