//! A function that takes a customer's id does not accept an order's id.

use key_schema::customer;
use key_schema::id::OrderId;

fn read(id: &OrderId) {
    let _ = customer::get(id);
}

fn main() {}
