//! The addresses of an order, as they were when it was placed, and the name and the email address of
//! a guest.
//!
//! They are personal data, so they are one item in the customer's partition. The erasure
//! of a customer reads these items with one Query and deletes them. The order itself keeps only
//! country and city ([`Destination`]), which appear in lists and in the results of searches.

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use super::Order;
use crate::address::{Country, PostalAddress};
use crate::customer;
use crate::expression::Condition;
use crate::id::{CustomerId, OrderId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, SortKey};
use crate::pattern::Consistency;
use crate::request::{BatchWrite, BatchWriteAction, Get, Guarded, Query, Range};
use crate::text::Email;

/// The country and city to which an order is sent. An order keeps them after its customer was
/// erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    pub country: Country,
    pub city: String,
}

impl From<&PostalAddress> for Destination {
    fn from(address: &PostalAddress) -> Self {
        Self { country: address.country.clone(), city: address.city.clone() }
    }
}

/// The guest who placed an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guest {
    pub email: Email,
    pub name: String,
}

entity! {
    OrderAddresses = "OrderAddresses" {
        fixed {
            order_id: OrderId,
            customer_id: CustomerId,
            #[serde(skip_serializing_if = "Option::is_none", default)]
            shipping_address: Option<PostalAddress>,
            /// The address on the invoice, if it is not the shipping address.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            billing_address: Option<PostalAddress>,
            /// The guest, until a customer claims the order.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            guest: Option<Guest>,
            /// The time to live of a retired order's addresses.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            expires_at: Option<Instant>,
        }
        mutable {}
    }
}

impl Entity for OrderAddresses {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        addresses_key(&self.customer_id, &self.order_id)
    }

    fn expires(&self) -> Option<Instant> {
        self.expires_at
    }
}

/// Returns the key. It sorts after the questions, so the ranges of other items in the customer's
/// partition do not contain it.
pub(crate) fn addresses_key(customer: &CustomerId, order: &OrderId) -> Result<Key, KeyError> {
    Ok(Key { pk: customer::partition(customer)?, sk: SortKey::of("SHIPTO", &[order])? })
}

patterns! {
    READ {
        id: "orders.addresses",
        purpose: "Read the addresses of an order",
        request: GetItem,
        key: "PK = CUSTOMER#<customer>, SK = SHIPTO#<order>",
        returns: "the addresses, unless the customer was erased",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    OF_CUSTOMER {
        id: "orders.addresses-of-customer",
        purpose: "Find the addresses of a customer's orders, for an erasure or a copy of the data",
        request: Query,
        key: "PK = CUSTOMER#<customer>, SK under SHIPTO#",
        returns: "the remaining addresses",
        consistency: Consistency::Strong("no later step finds missed addresses"),
        callers: "owner",
    }
    ERASE {
        id: "orders.erase-addresses",
        purpose: "Remove the addresses of an erased customer's orders",
        request: BatchWriteItem,
        key: "PK = CUSTOMER#<customer>, SK = SHIPTO#<order>",
        requires: "no condition",
        callers: "owner",
    }
}

pub fn get(order: &Order) -> Result<Get<Stored<OrderAddresses>>, KeyError> {
    Ok(Get::new(&READ, addresses_key(&order.customer_id, &order.id)?))
}

pub fn of_customer(customer: &CustomerId) -> Result<Query<Stored<OrderAddresses>>, KeyError> {
    Ok(Query::new(&OF_CUSTOMER, customer::partition(customer)?, Range::under("SHIPTO")))
}

pub fn erase<'a>(addresses: impl IntoIterator<Item = &'a OrderAddresses>) -> Result<BatchWrite, KeyError> {
    let keys = addresses.into_iter().map(Entity::key).map(|key| key.map(BatchWriteAction::Delete));
    Ok(BatchWrite::new(&ERASE, keys.collect::<Result<_, _>>()?))
}

/// Writes the addresses, as an action of the transaction that makes the order visible.
pub fn add(addresses: &Stored<OrderAddresses>) -> Result<Guarded, EncodeError> {
    Guarded::put(addresses, Condition::NotExists)
}
