//! Response bodies that several functions share.

use std::collections::BTreeMap;

use key_schema::customer::{Address, Customer, Place, Tier};
use key_schema::id::{AddressName, CustomerId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::text::{Email, Username};
use serde::Serialize;

/// A customer, as clients see it.
#[derive(Debug, Serialize)]
pub struct CustomerView<'a> {
    id: &'a CustomerId,
    email: &'a Email,
    email_verified: bool,
    username: &'a Username,
    name: &'a str,
    tier: Tier,
    place: Option<&'a Place>,
    addresses: &'a BTreeMap<AddressName, Address>,
    version: u64,
    created_at: Instant,
    updated_at: Instant,
}

impl<'a> From<&'a Stored<Customer>> for CustomerView<'a> {
    fn from(customer: &'a Stored<Customer>) -> Self {
        Self {
            id: &customer.id,
            email: &customer.email,
            email_verified: customer.email_verified,
            username: &customer.username,
            name: &customer.name,
            tier: customer.tier,
            place: customer.place.as_ref(),
            addresses: &customer.addresses,
            version: customer.meta.version,
            created_at: customer.meta.created_at,
            updated_at: customer.meta.updated_at,
        }
    }
}
