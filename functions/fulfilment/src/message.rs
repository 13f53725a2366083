use bus::queue::{Message, MessageError};
use bus::{Data, OrderPlaced, OrderStatusChanged};
use key_schema::id::OrderId;
use key_schema::order::OrderStatus;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The order is paid and waits for a picking station.
    Wait(OrderId),
    /// The order is shipped or cancelled, and needs no station any more.
    Leave(OrderId),
    /// The event needs no step.
    Nothing,
}

impl Step {
    /// Returns the step in a message.
    ///
    /// # Errors
    /// [`MessageError`] if the message cannot be read.
    pub fn in_message(message: &Message) -> Result<Self, MessageError> {
        Ok(Self::of(message.event()?.data))
    }

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
