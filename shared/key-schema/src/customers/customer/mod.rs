//! Customers: profiles, unique names, and lists by tier.
//!
//! The partition `CUSTOMER#<id>` holds, in this byte order, `CUSTOMER#INVITATIONS`, `DOCUMENT#…`,
//! `FOLLOWS#…`, `LIKE#…`, `OPEN`, `ORDER#<order id>`, `PROFILE`, `QUESTION#<complement of
//! time>#<id>`, `SHIPTO#<order id>` and `VERIFICATION`. Order ids grow with time, question keys
//! shrink with time, and the profile is between them. So one Query backward from `PROFILE` reads
//! the profile and the newest orders. One Query forward from `PROFILE` reads the profile and the
//! newest questions. No other item may sort between `ORDER#` and `QUESTION$`.

mod erasing;
mod patterns;
mod requests;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::address::PostalAddress;
use crate::change::IndexEntry;
use crate::expression::{Condition, value};
use crate::id::{AddressName, CustomerId};
use crate::index::GSI2;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::lists;
use crate::request::Guarded;
use crate::residence::Residence;
use crate::shard::Shards;
use crate::text::{Email, Username};

pub use erasing::*;
pub use patterns::*;
pub use requests::*;

/// The maximum number of addresses of a customer. This limit keeps the profile far below DynamoDB's
/// limit of 400 KB.
pub const MAX_ADDRESSES: usize = 50;
pub const OVERVIEW_ORDERS: usize = 20;
pub const OVERVIEW_QUESTIONS: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// The lowest tier, in which every customer begins.
    #[default]
    Bronze,
    Silver,
    Gold,
}

impl Tier {
    pub const ALL: [Self; 3] = [Self::Bronze, Self::Silver, Self::Gold];

    /// Returns the name in keys, JSON and attributes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bronze => "bronze",
            Self::Silver => "silver",
            Self::Gold => "gold",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be bronze, silver or gold")]
pub struct UnknownTier;

impl FromStr for Tier {
    type Err = UnknownTier;

    fn from_str(text: &str) -> Result<Self, UnknownTier> {
        Self::ALL.into_iter().find(|tier| tier.as_str() == text).ok_or(UnknownTier)
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    pub country: String,
    pub city: String,
}

entity! {
    Customer = "Customer" {
        fixed {
            /// The `sub` of the customer's token, or an id that staff gave.
            id: CustomerId,
            /// The email address. A verified address is unique in its folded form. The address
            /// changes only together with its claim ([`rename`]).
            email: Email,
            /// Whether the customer has verified the address, or staff have entered it as verified.
            /// Only a verified address has a claim.
            email_verified: bool,
            /// The user name, unique in its folded form. It changes only together with its claim
            /// ([`rename`]).
            username: Username,
            /// The tier. It is part of the index key in the tier's list.
            tier: Tier,
            /// The place in which the customer lives. It is part of the index key in the place's
            /// list. [`crate::residence::settle`] changes it.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            place: Option<Location>,
            /// When the erasure of the customer began, if it has begun. From then on no request
            /// adds items to the customer ([`check`]), so that the erasure can finish.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            erasing_since: Option<Instant>,
            /// The number of shards with which the customer's index key in the list of the tier is
            /// computed ([`crate::lists`]).
            #[serde(skip_serializing_if = "lists::is_first", default = "lists::first")]
            list_shards: Shards,
        }
        mutable by CustomerChanges {
            name: String,
            addresses: BTreeMap<AddressName, PostalAddress>,
        }
    }
}

impl Customer {
    /// Creates a profile of the lowest tier with a verified email address.
    #[must_use]
    pub const fn new(id: CustomerId, email: Email, username: Username, name: String) -> Self {
        Self {
            id,
            email,
            email_verified: true,
            username,
            tier: Tier::Bronze,
            place: None,
            erasing_since: None,
            list_shards: lists::FIRST,
            name,
            addresses: BTreeMap::new(),
        }
    }
}

/// The key of a customer in the list of a tier, which begins with the oldest customer.
#[derive(Debug, Clone, Copy)]
pub struct TierIndexKey<'a> {
    pub tier: Tier,
    pub created_at: Instant,
    pub id: &'a CustomerId,
    /// The number of shards with which the key is computed.
    pub shards: Shards,
}

impl TierIndexKey<'_> {
    fn key(&self) -> Result<IndexKey, KeyError> {
        Ok(IndexKey {
            index: GSI2,
            partition: tier_partition(self.tier, self.shards.of(self.id.as_str()))?,
            sort: SortKey::new(crate::encoding::join(&self.created_at.to_string(), &[self.id]))?,
        })
    }
}

impl IndexEntry for TierIndexKey<'_> {
    type Entity = Customer;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("tier", value(self.tier)?), lists::field(self.shards)?])
    }
}

fn tier_partition(tier: Tier, shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("TIER", &[&tier.as_str(), &shard])
}

impl Entity for Customer {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id)
    }

    fn index_keys(&self, meta: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        let Self { id, tier, list_shards, .. } = self;
        let tier = TierIndexKey { tier: *tier, created_at: meta.created_at, id, shards: *list_shards }.key()?;
        let place = self.place.as_ref().map(|place| Residence { place, id: &self.id }.key()).transpose()?;
        let erasing = self.erasing_since.map(|since| ErasingIndexKey { since, id: &self.id }.key()).transpose()?;
        Ok([tier].into_iter().chain(place).chain(erasing).collect())
    }
}

pub(crate) const PROFILE: &str = "PROFILE";

pub(crate) fn partition(id: &CustomerId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("CUSTOMER", &[id])
}

pub(crate) fn key(id: &CustomerId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new(PROFILE)? })
}

/// Returns a check that a customer exists and is not being erased, as an action for a transaction
/// that needs the customer.
pub(crate) fn check(id: &CustomerId) -> Result<Guarded, KeyError> {
    Ok(Guarded::check(key(id)?, Condition::Exists.and(stays())))
}

/// Returns the [`check`] of the customer of a new order. A guest has no profile.
pub(crate) fn check_profile(id: &CustomerId) -> Result<Option<Guarded>, KeyError> {
    if id.is_guest() { Ok(None) } else { check(id).map(Some) }
}

/// Returns a [`check`] that the customer's verified address is still the one that was read.
pub(crate) fn check_email(customer: &Customer) -> Result<Guarded, EncodeError> {
    let same = Condition::Is("email", value(&customer.email)?).and(Condition::Is("email_verified", value(true)?));
    Ok(Guarded::check(key(&customer.id)?, same.and(stays())))
}

pub(crate) const fn stays() -> Condition {
    Condition::Lacks("erasing_since")
}

/// A sentinel item that reserves a verified email address for one customer. Its key is the folded
/// address, so two spellings of an address conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmailClaim {
    /// The folded address.
    pub email: String,
    pub customer_id: CustomerId,
}

impl Entity for EmailClaim {
    const NAME: &'static str = "EmailClaim";

    fn key(&self) -> Result<Key, KeyError> {
        email_key(&self.email)
    }
}

fn email_key(folded: &str) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("EMAIL", &[&folded])?, sk: SortKey::new("EMAIL")? })
}

/// A sentinel item that reserves a user name for one customer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsernameClaim {
    /// The folded name.
    pub username: String,
    pub customer_id: CustomerId,
}

impl Entity for UsernameClaim {
    const NAME: &'static str = "UsernameClaim";

    fn key(&self) -> Result<Key, KeyError> {
        username_key(&self.username)
    }
}

fn username_key(folded: &str) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("USERNAME", &[&folded])?, sk: SortKey::new("USERNAME")? })
}

/// A customer as an index returns it. The id is enough to read the profile by key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CustomerSummary {
    pub id: CustomerId,
}

view!(CustomerSummary of Customer);
