//! Residences of customers: lists of the customers of a country or of a city.
//!
//! All the lists are in one sparse index of the profiles. The key of the index is the hierarchy of
//! country and city. The country is in the partition key, sharded by customer, because there are
//! customers in few countries. The city starts the sort key. So each country and each city has one
//! list. A write that changes a profile's residence also moves the profile between the lists.

use crate::index::GSI3;
use std::str::FromStr;

use item_model::prelude::*;
use serde::Deserialize;
use serde_dynamo::AttributeValue;

use crate::change::{Change, IndexEntry};
use crate::customer::{Customer, Location};
use crate::encoding::{encode, join, split};
use crate::expression::value;
use crate::id::{CustomerId, IdError, check};
use crate::item::{DecodeError, EncodeError, Entity as _, FromItem, Item, decode, entity_name};
use crate::key::{IndexKey, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::product::segment;
use crate::request::{Query, Range};
use crate::shard::Shards;

/// The shards of each country's list of customers.
pub const LOCATION_SHARDS: Shards = Shards(4);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Residence<'a> {
    pub(crate) place: &'a Location,
    pub(crate) id: &'a CustomerId,
}

impl Residence<'_> {
    pub(crate) fn key(&self) -> Result<IndexKey, KeyError> {
        Ok(IndexKey {
            index: GSI3,
            partition: location_partition(&self.place.country, LOCATION_SHARDS.of(self.id.as_str()))?,
            sort: SortKey::new(join(&encode(&self.place.city), &[self.id]))?,
        })
    }
}

impl IndexEntry for Residence<'_> {
    type Entity = Customer;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("place", value(self.place)?)])
    }
}

fn location_partition(country: &str, shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("PLACE", &[&country, &shard])
}

/// Sets a customer's residence and the customer's key in the lists, or removes both if `place` is
/// [`None`]. A customer without a residence is in no list.
pub fn settle(
    change: Change<Customer>,
    id: &CustomerId,
    place: Option<&Location>,
) -> Result<Change<Customer>, EncodeError> {
    match place {
        Some(place) => change.enter(&Residence { place, id }),
        None => change.leave(GSI3).set("place", None::<Location>),
    }
}

/// A country, or a city in it, whose customers are listed. A URL encodes the names in the same way
/// as a category path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivingIn {
    country: String,
    city: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LivingInError {
    /// The text is not 1 or 2 names joined by `~`.
    #[error(
        "must be a country, or a country and a city joined by `~`, with every byte other than A-Z, a-z, 0-9 and - \
         written as _HH (hexadecimal)"
    )]
    Form,
    /// A name is invalid ([`check`]).
    #[error("each name {0}")]
    Name(#[from] IdError),
}

impl FromStr for LivingIn {
    type Err = LivingInError;

    fn from_str(text: &str) -> Result<Self, LivingInError> {
        let mut names = segment::decode(text).ok_or(LivingInError::Form)?.into_iter();
        let (Some(country), city, None) = (names.next(), names.next(), names.next()) else {
            return Err(LivingInError::Form);
        };
        for name in [&country].into_iter().chain(&city) {
            check(name)?;
        }
        Ok(Self { country, city })
    }
}

impl LivingIn {
    #[must_use]
    pub fn to_segment(&self) -> String {
        let names: Vec<String> = [&self.country].into_iter().chain(&self.city).cloned().collect();
        segment::encode(&names)
    }
}

impl Location {
    #[must_use]
    pub fn to_segment(&self) -> String {
        segment::encode(&[self.country.clone(), self.city.clone()])
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resident {
    pub id: CustomerId,
    /// The country and city, read from the index key.
    pub place: Location,
}

#[derive(Deserialize)]
struct Identified {
    id: CustomerId,
}

impl FromItem for Resident {
    fn from_item(item: Item) -> Result<Self, DecodeError> {
        let found = entity_name(&item)?;
        if found != Customer::NAME {
            return Err(DecodeError::OtherEntity { expected: Customer::NAME, found: found.to_owned() });
        }
        let part = |attribute: &str, position: usize| match item.get(attribute) {
            Some(AttributeValue::S(key)) => split(key)?.into_iter().nth(position),
            _ => None,
        };
        let country = part(GSI3.partition_attribute(), 1);
        let city = part(GSI3.sort_attribute(), 0);
        let (Some(country), Some(city)) = (country, city) else {
            return Err(DecodeError::malformed(Customer::NAME, &item, "it has no place"));
        };
        let Identified { id } = decode(Customer::NAME, item)?;
        Ok(Self { id, place: Location { country, city } })
    }
}

patterns! {
    OF_LOCATION {
        id: "customers.of-place",
        purpose: "List the customers of a country or a city",
        request: ShardedQuery on GSI3,
        key: "GSI3PK = PLACE#<country>#<shard>, GSI3SK = <city>#<id>, or under <city>#",
        returns: "ids, in the order of city and id",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
}

/// Lists the customers of a country or a city, in the order of city and id.
pub fn of_location(place: &LivingIn) -> Result<Query<Resident>, KeyError> {
    let shards =
        LOCATION_SHARDS.all().map(|shard| location_partition(&place.country, shard)).collect::<Result<_, _>>()?;
    let range = place.city.as_ref().map_or(Range::All, |city| Range::under(&encode(city)));
    Ok(Query::sharded(&OF_LOCATION, shards, range))
}
