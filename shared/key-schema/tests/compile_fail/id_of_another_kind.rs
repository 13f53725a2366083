//! An order's id does not name a customer.

use key_schema::customer;
use key_schema::id::OrderId;

fn read(id: &OrderId) {
    let _ = customer::get(id);
}

fn main() {}
