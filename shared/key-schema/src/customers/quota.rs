//! Daily quotas: how many requests of a kind one customer may make on one UTC day.
//!
//! Some requests add an item each, and their number has no other limit. The transaction of such a
//! request also counts it in an item for the customer and the day. Above the quota, DynamoDB
//! refuses the transaction.
//!
//! The key holds a hash of the customer's id, and the item outlives an erasure by its time to live.
//! So a customer who is erased and signs up again on the same day gets no new quota.

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::expression::Condition;
use crate::id::{Born, CustomerId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity};
use crate::key::{Key, KeyError, PartitionKey, SortKey, hash};
use crate::request::Guarded;

/// The lifetime of a day's counts, from the last request.
const LIFETIME_SECONDS: i64 = 2 * 24 * 60 * 60;

/// A kind of request that has a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quota {
    /// Requests for a code that verifies an email address.
    Codes,
    /// New documents.
    Documents,
    /// New organizations.
    Organizations,
    /// New questions.
    Questions,
    /// New sessions.
    Sessions,
}

impl Quota {
    /// Every quota.
    pub const ALL: [Self; 5] = [Self::Codes, Self::Documents, Self::Organizations, Self::Questions, Self::Sessions];

    /// Returns the name of the counter, which error messages also use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Codes => "codes",
            Self::Documents => "documents",
            Self::Organizations => "organizations",
            Self::Questions => "questions",
            Self::Sessions => "sessions",
        }
    }

    /// Returns the maximum number of requests on a day.
    #[must_use]
    pub const fn limit(self) -> u64 {
        match self {
            Self::Codes => 3,
            Self::Documents | Self::Sessions => 1_000,
            Self::Organizations => 100,
            Self::Questions => 200,
        }
    }
}

/// The hash of a customer's id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomerHash(String);

impl CustomerHash {
    /// Returns the hash of a customer's id.
    #[must_use]
    pub fn of(customer: &CustomerId) -> Self {
        Self(hash("quotas of", customer.as_str()))
    }
}

entity! {
    /// The requests of a customer on a day, by quota.
    QuotaDay = "QuotaDay" {
        fixed {
            /// The hash of the customer's id.
            customer: CustomerHash,
            /// The UTC day.
            day: String,
            /// The instant at which the counts expire, which is also the time to live.
            expires_at: Instant,
        }
        mutable by QuotaDayChanges {
            /// The requests for codes.
            #[serde(default)]
            codes: u64,
            /// The new documents.
            #[serde(default)]
            documents: u64,
            /// The new organizations.
            #[serde(default)]
            organizations: u64,
            /// The new questions.
            #[serde(default)]
            questions: u64,
            /// The new sessions.
            #[serde(default)]
            sessions: u64,
        }
    }
}

impl Entity for QuotaDay {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.customer, &self.day)
    }

    fn expires(&self) -> Option<Instant> {
        Some(self.expires_at)
    }
}

fn key(customer: &CustomerHash, day: &str) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("QUOTA", &[&customer.0])?, sk: SortKey::new(crate::encoding::join("DAY", &[&day]))? })
}

/// Counts a request of a customer, as an action of a transaction. DynamoDB refuses the action if
/// the quota is used up.
pub(crate) fn count(customer: &CustomerId, quota: Quota, at: Instant) -> Result<Guarded, EncodeError> {
    let (customer, day) = (CustomerHash::of(customer), at.day());
    let expires_at = at.plus_seconds(LIFETIME_SECONDS);
    let change = Change::<QuotaDay>::visible(at)
        .or_create(&Born::counter(), at)
        .set("customer", &customer)?
        .set("day", &day)?
        .set("expires_at", expires_at)?
        .expire_at(expires_at)
        .add(quota.name(), 1);
    Ok(Guarded::update(key(&customer, &day)?, change, Condition::count_below(quota.name(), quota.limit())))
}
