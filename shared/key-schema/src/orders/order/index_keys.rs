//! The keys of orders in the list by status and in a customer's list of shipments.

use serde_dynamo::AttributeValue;

use super::{CustomerOrder, Order, OrderStatus};
use crate::change::IndexEntry;
use crate::encoding::join;
use crate::expression::value;
use crate::id::{CustomerId, OrderId};
use crate::index::{GSI2, GSI3};
use crate::instant::Instant;
use crate::item::EncodeError;
use crate::key::{IndexKey, KeyError, PartitionKey, SortKey};
use crate::lists;
use crate::shard::Shards;

/// The key of an order in the list of its status, ordered by the instant of placement.
#[derive(Debug, Clone, Copy)]
pub struct StatusIndexKey<'a> {
    pub status: OrderStatus,
    pub placed_at: Instant,
    pub id: &'a OrderId,
    /// The number of shards with which the key is computed.
    pub shards: Shards,
}

impl<'a> StatusIndexKey<'a> {
    #[must_use]
    pub const fn of(order: &'a Order, status: OrderStatus) -> Self {
        Self { status, placed_at: order.placed_at, id: &order.id, shards: order.list_shards }
    }

    pub(super) fn key(&self) -> Result<IndexKey, KeyError> {
        Ok(IndexKey {
            index: GSI2,
            partition: status_partition(self.status, self.shards.of(self.id.as_str()))?,
            sort: SortKey::new(join(&self.placed_at.to_string(), &[self.id]))?,
        })
    }
}

impl IndexEntry for StatusIndexKey<'_> {
    type Entity = Order;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("status", value(self.status)?), lists::field(self.shards)?])
    }
}

pub(super) fn status_partition(status: OrderStatus, shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("STATUS", &[&status.as_str(), &shard])
}

/// The key of a shipped order in the list of its customer's shipments.
#[derive(Debug, Clone, Copy)]
pub struct ShipmentIndexKey<'a> {
    pub customer_id: &'a CustomerId,
    pub shipped_at: Instant,
    pub id: &'a OrderId,
}

impl ShipmentIndexKey<'_> {
    pub(super) fn key(&self) -> Result<IndexKey, KeyError> {
        Ok(IndexKey {
            index: GSI3,
            partition: shipments_partition(self.customer_id)?,
            sort: SortKey::new(join(&self.shipped_at.to_string(), &[self.id]))?,
        })
    }
}

impl IndexEntry for ShipmentIndexKey<'_> {
    type Entity = CustomerOrder;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("shipped_at", value(self.shipped_at)?)])
    }
}

pub(super) fn shipments_partition(customer: &CustomerId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("SHIPPED", &[customer])
}
