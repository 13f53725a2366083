//! Items, and the stream records of their changes.

use fixture::records;
use key_schema::item::{Entity, Stored};
use key_schema::order::{Order, OrderStatus};
use serde_json::Value;

pub use fixture::records::{at_rev as with_meta, image, product, retired};

/// Returns the head of an order of two lines.
pub fn order(id: &str, status: OrderStatus, rev: u64) -> Stored<Order> {
    records::order(id, status, rev, 2)
}

/// Returns the record of a change of an existing item. The old image in the record equals the new
/// image.
pub fn modify<T: Entity>(sequence: u64, new: &Stored<T>) -> Value {
    records::modify(&format!("{sequence:021}"), new, new)
}

/// Returns the record of a removal.
pub fn remove<T: Entity>(sequence: u64, old: &Stored<T>) -> Value {
    records::remove(&format!("{sequence:021}"), old)
}
