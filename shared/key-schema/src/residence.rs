//! Where customers live: the list of a country's customers, and of a city's.
//!
//! The list is a sparse index over the profiles themselves. Country, then city, is a hierarchy in the index key: the country is in its partition,
//! sharded by the customer, because a shop has customers in few countries; the city leads its sort key. So both prefixes are one list each, and a
//! move from one place to another is part of the write that changes the profile.

use std::str::FromStr;

use serde::Deserialize;
use serde_dynamo::AttributeValue;

use crate::change::{Change, IndexEntry};
use crate::customer::{Customer, Place};
use crate::encoding::{encode, join, split};
use crate::expression::value;
use crate::id::{CustomerId, IdError, check};
use crate::item::{DecodeError, EncodeError, Entity as _, FromItem, Item, decode, entity_name};
use crate::key::{Index, IndexKey, KeyError, PartitionKey, SortKey};
use crate::pattern::{Consistency, patterns};
use crate::product::segment;
use crate::request::{Query, Range};
use crate::shard::Shards;

/// The shards of each country's list of customers.
pub const PLACE_SHARDS: Shards = Shards(4);

/// A customer's place in the list of those who live in a country, and in a city of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Residence<'a> {
    /// Where.
    pub(crate) place: &'a Place,
    /// Who.
    pub(crate) id: &'a CustomerId,
}

impl Residence<'_> {
    pub(crate) fn key(&self) -> Result<IndexKey, KeyError> {
        Ok(IndexKey {
            index: Index::Gsi3,
            partition: place_partition(&self.place.country, PLACE_SHARDS.of(self.id.as_str()))?,
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

fn place_partition(country: &str, shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("PLACE", &[&country, &shard])
}

/// Says where a customer lives, or that nobody knows: the place and what the list of that place is made of, in one. Who lives nowhere is in no
/// list.
///
/// # Errors
/// [`EncodeError`] when the names make the key too long.
pub fn settle(
    change: Change<Customer>,
    id: &CustomerId,
    place: Option<&Place>,
) -> Result<Change<Customer>, EncodeError> {
    match place {
        Some(place) => change.enter(&Residence { place, id }),
        None => change.leave(Index::Gsi3).set("place", None::<Place>),
    }
}

/// A country, or a city of one, in which customers live. In a URL its names are written as those of a category path are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivingIn {
    country: String,
    city: Option<String>,
}

/// The text is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LivingInError {
    /// Not names joined by `~`, or none, or more than two.
    #[error(
        "must be a country, or a country and a city joined by `~`, with every byte outside A-Z a-z 0-9 - written _HH"
    )]
    Form,
    /// A name breaks the rule of ids.
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
    /// The place as one segment of a URL.
    #[must_use]
    pub fn to_segment(&self) -> String {
        let names: Vec<String> = [&self.country].into_iter().chain(&self.city).cloned().collect();
        segment::encode(&names)
    }
}

impl Place {
    /// The place as one segment of a URL.
    #[must_use]
    pub fn to_segment(&self) -> String {
        segment::encode(&[self.country.clone(), self.city.clone()])
    }
}

/// A customer as the index of places shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resident {
    /// Who.
    pub id: CustomerId,
    /// Where, as the key in the index says it.
    pub place: Place,
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
        let country = part(Index::Gsi3.partition_attribute(), 1);
        let city = part(Index::Gsi3.sort_attribute(), 0);
        let (Some(country), Some(city)) = (country, city) else {
            return Err(DecodeError::malformed(Customer::NAME, "it lies in no place"));
        };
        let Identified { id } = decode(Customer::NAME, item)?;
        Ok(Self { id, place: Place { country, city } })
    }
}

patterns! {
    OF_PLACE = "customers.of-place": ShardedQuery on Gsi3, "GSI3PK = PLACE#<country>#<shard>, GSI3SK = <city>#<id>, or under <city>#" => "ids by city", Consistency::Eventual, "staff", "List the customers of a country or a city", ["GET /v1/places/{path}/customers"];
}

/// The customers who live in a place, by city and id.
///
/// # Errors
/// [`KeyError`].
pub fn of_place(place: &LivingIn) -> Result<Query<Resident>, KeyError> {
    let shards = PLACE_SHARDS.all().map(|shard| place_partition(&place.country, shard)).collect::<Result<_, _>>()?;
    let range = place.city.as_ref().map_or(Range::All, |city| Range::under(&encode(city)));
    Ok(Query::sharded(&OF_PLACE, shards, range))
}
