//! The domain events that Bodega publishes for subscribers.
//!
//! The stream's consumer publishes an event to EventBridge after the table has committed the
//! change. The event's source is [`SOURCE`]. Its detail-type is the name of its [`Kind`]. Its
//! detail is an envelope in this form:
//!
//! ```json
//! {"id": "…", "type": "OrderPlaced", "version": 1, "occurred_at": "2017-01-01T11:53:26.000Z",
//!  "sequence": 2, "correlation_id": "JKJaXmPLvHcESHA=", "data": {"…": "…"}}
//! ```
//!
//! The form of each kind and version is a JSON Schema (draft 2020-12) in the folder `schemas`, such
//! as `order-placed.v1.json`. Within a version, fields may be added, but no field may change or
//! disappear. A new version of a kind has a detail-type of its own, such as `OrderPlaced.v2`, and
//! is published beside the earlier version. Subscribers ignore unknown fields and refuse unknown
//! versions ([`DecodeError::UnknownVersion`]). Events contain no personal data except ids,
//! the lines of an order and the country of a delivery, because an erasure does not reach the
//! archives of a bus.
//!
//! # Why ids are derived
//!
//! Delivery is at least once at every step. The table's stream repeats records. The response of a
//! successful PutEvents call may be lost. EventBridge repeats deliveries to its targets. No step
//! removes duplicates. So a subscriber can recognise a repeated event only by its id, and every
//! publication of an event must have the same id.
//!
//! The id is therefore not random. It is a hash of the table, the item's key, its incarnation
//! (`born`), the `rev` of the change, and the kind of event. The id and the content come
//! from the stream record, the table's name and the stock threshold. Only the lines of a placed
//! order come from a read, and they never change. With the same settings, a consumer that derives
//! the event again gets the same bytes, as long as the order has not expired.

mod event;
mod id;
mod kinds;
mod publisher;
pub mod queue;

pub use aws::SetupError;
pub use event::{DecodeError, Event};
pub use id::{EventId, NotAnEventId, Origin};
pub use kinds::{
    CustomerTierChanged, Data, EmailVerificationRequested, Kind, MAX_LINES_BYTES, OrderPlaced, OrderStatusChanged,
    PaymentNotified, PaymentReversed, PlacedLine, PlacedPromotion, PlacedTotals, Reason, Reversal, ReviewPosted,
    StockLow,
};
pub use publisher::{EventBus, Limits, MAX_ENTRIES, MAX_REQUEST_BYTES, Outcome};

pub const SOURCE: &str = "bodega";
