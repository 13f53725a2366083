//! The domain events: what happened in the shop, for whoever wants to know.
//!
//! An event is published to EventBridge by the stream's consumer, after the change that it tells of was committed. Its source is [`SOURCE`], its
//! detail-type the name of its [`Kind`], its detail this envelope:
//!
//! ```json
//! {"id": "…", "type": "OrderPlaced", "version": 1, "occurred_at": "2017-01-01T11:53:26.000Z", "correlation_id": "JKJaXmPLvHcESHA=", "data": {"…": "…"}}
//! ```
//!
//! The form of each kind and version is a JSON Schema (draft 2020-12) in `schemas/<kind>.v<version>.json`. Within a version a field may
//! be added and none may change or go: subscribers pass over what they do not know, and refuse a version that they do not
//! know ([`DecodeError::UnknownVersion`]). Events hold ids and nothing else about a person, because a bus has archives that no erasure reaches.
//!
//! # Why ids are derived
//!
//! Delivery is at least once on the whole way: the table's stream repeats records, PutEvents may succeed without its answer arriving, EventBridge repeats to its
//! targets, and none of them has a deduplication of its own. A subscriber can therefore recognise a repetition only by the event's id, and only
//! if every attempt to publish an event gives it the same one. So the id is no random number but a hash of what the event is about: the table, the item's key, its
//! incarnation (`born`), the `rev` at which it changed, and the kind of event. All of it, like the rest of the event, comes from the stream record alone:
//! whoever derives the event again, at any time and in any order, gets the same bytes.

mod event;
mod id;
mod kinds;
mod publisher;

pub use aws::SetupError;
pub use event::{DecodeError, Event};
pub use id::{EventId, NotAnEventId, Origin};
pub use kinds::{CustomerTierChanged, Data, Kind, OrderPlaced, OrderStatusChanged, ReviewPosted, StockLow};
pub use publisher::{EventBus, Limits, MAX_ENTRIES, MAX_REQUEST_BYTES, Outcome};

/// The source of every event.
pub const SOURCE: &str = "bodega";
