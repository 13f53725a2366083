//! The list of customers whose erasure has begun and is not finished. The janitor finishes these
//! erasures.

use item_model::prelude::*;
use serde_dynamo::AttributeValue;

use super::{Customer, CustomerSummary, ERASING};
use crate::change::IndexEntry;
use crate::encoding::join;
use crate::expression::value;
use crate::id::CustomerId;
use crate::index::GSI1;
use crate::instant::Instant;
use crate::item::EncodeError;
use crate::key::{IndexKey, KeyError, PartitionKey, SortKey};
use crate::request::{Query, Range};
use crate::shard::Shards;

pub const ERASING_SHARDS: Shards = Shards(4);

/// The key of a customer in the list, which begins with the oldest erasure.
#[derive(Debug, Clone, Copy)]
pub struct ErasingIndexKey<'a> {
    /// When the erasure began.
    pub since: Instant,
    pub id: &'a CustomerId,
}

impl ErasingIndexKey<'_> {
    pub(super) fn key(&self) -> Result<IndexKey, KeyError> {
        Ok(IndexKey {
            index: GSI1,
            partition: shard(ERASING_SHARDS.of(self.id.as_str()))?,
            sort: SortKey::new(join(&self.since.to_string(), &[self.id]))?,
        })
    }
}

impl IndexEntry for ErasingIndexKey<'_> {
    type Entity = Customer;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("erasing_since", value(self.since)?)])
    }
}

fn shard(shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("ERASING", &[&shard])
}

/// Lists the customers whose erasure began at `before` or earlier and is not finished.
pub fn erasing(before: Instant) -> Result<Query<CustomerSummary>, KeyError> {
    let shards = ERASING_SHARDS.all().map(shard).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&ERASING, shards, Range::Between(Instant::MIN.to_string(), format!("{before}$"))))
}
