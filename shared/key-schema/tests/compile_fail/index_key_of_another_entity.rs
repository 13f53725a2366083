//! A change of a customer does not accept an index entry of an order.

use key_schema::change::Change;
use key_schema::customer::Customer;
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::lists::FIRST;
use key_schema::order::{OrderStatus, StatusIndexKey};

fn change(id: &OrderId) {
    let index_key = StatusIndexKey { status: OrderStatus::Paid, placed_at: Instant::EPOCH, id, shards: FIRST };
    let _ = Change::<Customer>::visible(Instant::EPOCH).enter(&index_key);
}

fn main() {}
