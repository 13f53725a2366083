use bus::{Data, DecodeError, Event, OrderPlaced, OrderStatusChanged};
use key_schema::id::OrderId;
use key_schema::order::OrderStatus;
use serde::Deserialize;
use serde_json::Value;
use telemetry::correlation;

/// The event from SQS.
#[derive(Debug, Clone, Deserialize)]
pub struct Batch {
    #[serde(rename = "Records")]
    pub records: Vec<Message>,
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The order is paid and waits for a picking station.
    Wait(OrderId),
    /// The order is shipped or cancelled, and needs no station any more.
    Leave(OrderId),
    /// The event needs no step.
    Nothing,
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
    /// Returns the step in the message.
    ///
    /// # Errors
    /// [`MessageError`] if the message cannot be read. A redelivery of such a message fails in
    /// the same way.
    pub fn step(&self) -> Result<Step, MessageError> {
        Ok(Step::of(self.event()?.data))
    }

    /// Returns the id of the request that caused the event, if the event has a valid correlation
    /// id. The log entries and the written items contain this id.
    #[must_use]
    pub fn cause(&self) -> Option<String> {
        self.event().ok()?.correlation_id.filter(|id| correlation::id(id).is_some())
    }

    fn event(&self) -> Result<Event, MessageError> {
        #[derive(Deserialize)]
        struct Delivery {
            detail: Value,
        }
        let Delivery { detail } = serde_json::from_str(&self.body).map_err(MessageError::Body)?;
        Ok(Event::from_detail(&detail)?)
    }
}

impl Step {
    /// Returns the step that follows from an event.
    #[must_use]
    pub fn of(data: Data) -> Self {
        match data {
            Data::OrderPlaced(OrderPlaced { order_id, status, .. }) if is_in_work(status) => Self::Wait(order_id),
            Data::OrderStatusChanged(OrderStatusChanged { order_id, from, to, .. }) => {
                match (is_in_work(from), is_in_work(to)) {
                    (false, true) => Self::Wait(order_id),
                    (true, false) => Self::Leave(order_id),
                    (false, false) | (true, true) => Self::Nothing,
                }
            }
            _ => Self::Nothing,
        }
    }
}

/// Returns whether an order in this status waits for a station or has a station.
const fn is_in_work(status: OrderStatus) -> bool {
    matches!(status, OrderStatus::Paid | OrderStatus::Picking)
}
