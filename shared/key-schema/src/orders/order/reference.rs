//! The claim that makes a reference unique.

use serde::{Deserialize, Serialize};

use super::Order;
use crate::id::{CustomerId, OrderId, OrderReference};
use crate::item::Entity;
use crate::key::{Key, KeyError, PartitionKey, SortKey};

/// A sentinel item that reserves a reference for one order.
///
/// Each customer has a separate namespace of references, and all staff share another namespace. So
/// a customer cannot block or detect the references of other callers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceClaim {
    /// The client's own number for the order.
    pub reference: OrderReference,
    pub order_id: OrderId,
    /// The customer who gave the reference, or [`None`] for staff.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub customer_id: Option<CustomerId>,
}

impl ReferenceClaim {
    /// Returns the claim on an order's reference, if the order has one.
    #[must_use]
    pub fn of(order: &Order) -> Option<Self> {
        let customer_id = order.by_customer.then(|| order.customer_id.clone());
        Some(Self { reference: order.reference.clone()?, order_id: order.id.clone(), customer_id })
    }
}

impl Entity for ReferenceClaim {
    const NAME: &'static str = "ReferenceClaim";

    fn key(&self) -> Result<Key, KeyError> {
        let pk = match &self.customer_id {
            Some(customer) => PartitionKey::of("REFERENCE", &[&self.reference, customer])?,
            None => PartitionKey::of("REFERENCE", &[&self.reference])?,
        };
        Ok(Key { pk, sk: SortKey::new("REFERENCE")? })
    }
}
