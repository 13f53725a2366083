//! A batch of the queue, and what its messages ask for.

use bus::{Data, DecodeError, Event, OrderPlaced, OrderStatusChanged};
use key_schema::id::OrderId;
use key_schema::order::OrderStatus;
use serde::Deserialize;
use serde_json::Value;
use telemetry::correlation;

/// What SQS hands to the function.
#[derive(Debug, Clone, Deserialize)]
pub struct Batch {
    /// The messages.
    #[serde(rename = "Records")]
    pub records: Vec<Message>,
}

/// One message. Without an id it could not be named in the answer, so the whole invocation fails.
#[derive(Debug, Clone, Deserialize)]
pub struct Message {
    /// What it is named by.
    #[serde(rename = "messageId")]
    pub id: String,
    /// An event of the bus as EventBridge hands it to a queue, JSON text.
    #[serde(default)]
    pub body: String,
}

/// What happens to an order in the warehouse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It is paid and waits for a picking station.
    Wait(OrderId),
    /// It is shipped or cancelled, and wants no station any more.
    Leave(OrderId),
    /// Nothing.
    Nothing,
}

/// Why a message is none.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// It holds no event of a bus. What it holds is not quoted.
    #[error("the message holds no event of the bus")]
    Body(#[source] serde_json::Error),
    /// The event is none that this program knows.
    #[error(transparent)]
    Event(#[from] DecodeError),
}

impl Message {
    /// What it asks for.
    ///
    /// # Errors
    /// [`MessageError`] when it cannot be read; then neither can its repetitions.
    pub fn step(&self) -> Result<Step, MessageError> {
        Ok(Step::of(self.event()?.data))
    }

    /// The id of the request that the event is a consequence of, if it says so: for the log, and for what is written.
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
    /// What an event means for the warehouse.
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

/// Whether an order in this status waits for a station or has one.
const fn is_in_work(status: OrderStatus) -> bool {
    matches!(status, OrderStatus::Paid | OrderStatus::Picking)
}
