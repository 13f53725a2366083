//! Daily quotas: how many requests of a kind one customer may make on one UTC day.
//!
//! Most of these requests add one item each, and without a quota nothing limits the number of these
//! items. The transaction that adds the item also counts the request, in an item for the customer
//! and the day. Above the quota, DynamoDB refuses the transaction.
//!
//! The key holds a hash of the customer's id, and an erasure does not remove the item. So a
//! customer who is erased and signs up again on the same day gets no new quota.

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::expression::Condition;
use crate::id::{AgentId, Born, CustomerId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity};
use crate::key::{Key, KeyError, PartitionKey, SortKey, hash};
use crate::request::Guarded;

/// The lifetime of a day's counts, which begins at the last counted request.
const LIFETIME_SECONDS: i64 = 2 * 24 * 60 * 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quota {
    /// Carts and checkouts that an agent begins. The limit is the agent's own.
    Checkouts,
    /// Requests for a code that verifies an email address.
    Codes,
    /// Pages of a copy of the customer's data.
    DataPages,
    Documents,
    /// Unknown codes of promotions that guests enter. All guests are counted together, because a
    /// guest can have any number of carts.
    GuestCodes,
    Organizations,
    PromotionCodes,
    Questions,
    Reviews,
    Sessions,
    /// Transfers of money to another wallet.
    Transfers,
}

impl Quota {
    pub const ALL: [Self; 11] = [
        Self::Checkouts,
        Self::Codes,
        Self::DataPages,
        Self::Documents,
        Self::GuestCodes,
        Self::Organizations,
        Self::PromotionCodes,
        Self::Questions,
        Self::Reviews,
        Self::Sessions,
        Self::Transfers,
    ];

    /// Returns the quota of a customer's unknown codes of promotions.
    #[must_use]
    pub fn of_codes(customer: &CustomerId) -> Self {
        if customer.is_guest() { Self::GuestCodes } else { Self::PromotionCodes }
    }

    /// Returns the name of the counter, which error messages also use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Checkouts => "checkouts",
            Self::Codes => "codes",
            Self::DataPages => "data_pages",
            Self::Documents => "documents",
            Self::GuestCodes => "guest_codes",
            Self::Organizations => "organizations",
            Self::PromotionCodes => "promotion_codes",
            Self::Questions => "questions",
            Self::Reviews => "reviews",
            Self::Sessions => "sessions",
            Self::Transfers => "transfers",
        }
    }

    /// Returns the maximum number of requests on a day.
    #[must_use]
    pub const fn limit(self) -> u64 {
        match self {
            Self::Codes => 3,
            Self::DataPages | Self::Documents | Self::Sessions => 1_000,
            Self::Organizations => 100,
            Self::PromotionCodes => 50,
            Self::Questions | Self::Reviews => 200,
            Self::Checkouts | Self::GuestCodes | Self::Transfers => 10_000,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomerHash(String);

impl CustomerHash {
    #[must_use]
    pub fn of(customer: &CustomerId) -> Self {
        Self(hash("quotas of", customer.as_str()))
    }

    #[must_use]
    pub fn of_agent(agent: &AgentId) -> Self {
        Self(hash("quotas of an agent", agent.as_str()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

entity! {
    /// The numbers of requests of a customer on a day, one number for each quota.
    QuotaDay = "QuotaDay" {
        fixed {
            customer: CustomerHash,
            /// The UTC day.
            day: String,
            /// The instant at which the counts expire, which is also the time to live.
            expires_at: Instant,
        }
        mutable by QuotaDayChanges {
            #[serde(skip_serializing_if = "is_zero", default)]
            checkouts: u64,
            #[serde(default)]
            codes: u64,
            #[serde(skip_serializing_if = "is_zero", default)]
            data_pages: u64,
            #[serde(default)]
            documents: u64,
            #[serde(skip_serializing_if = "is_zero", default)]
            guest_codes: u64,
            #[serde(default)]
            organizations: u64,
            #[serde(skip_serializing_if = "is_zero", default)]
            promotion_codes: u64,
            #[serde(default)]
            questions: u64,
            #[serde(skip_serializing_if = "is_zero", default)]
            reviews: u64,
            #[serde(default)]
            sessions: u64,
            #[serde(skip_serializing_if = "is_zero", default)]
            transfers: u64,
        }
    }
}

// Serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl QuotaDay {
    /// Returns the number of unknown codes that count for this quota ([`Quota::of_codes`]).
    #[must_use]
    pub const fn unknown_codes(&self, quota: Quota) -> u64 {
        match quota {
            Quota::GuestCodes => self.guest_codes,
            _ => self.promotion_codes,
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

pub(crate) fn day_key(customer: &CustomerId, at: Instant) -> Result<Key, KeyError> {
    key(&CustomerHash::of(customer), &at.day())
}

/// Counts a request of a customer, as an action of a transaction. DynamoDB refuses the action if
/// the quota is used up.
pub(crate) fn count(customer: &CustomerId, quota: Quota, at: Instant) -> Result<Guarded, EncodeError> {
    count_many(customer, quota, 1, at)
}

/// Counts a cart or checkout that an agent begins, of which it may begin `limit` in a day.
pub(crate) fn count_checkout(agent: &AgentId, limit: u64, at: Instant) -> Result<Guarded, EncodeError> {
    count_of(CustomerHash::of_agent(agent), Quota::Checkouts, 1, limit, at)
}

/// Counts some requests of a customer at once. The last requests may exceed the quota.
pub(crate) fn count_many(
    customer: &CustomerId,
    quota: Quota,
    requests: i64,
    at: Instant,
) -> Result<Guarded, EncodeError> {
    count_of(CustomerHash::of(customer), quota, requests, quota.limit(), at)
}

fn count_of(
    customer: CustomerHash,
    quota: Quota,
    requests: i64,
    limit: u64,
    at: Instant,
) -> Result<Guarded, EncodeError> {
    let day = at.day();
    let expires_at = at.plus_seconds(LIFETIME_SECONDS);
    let change = Change::<QuotaDay>::visible(at)
        .or_create(&Born::counter(), at)
        .set("customer", &customer)?
        .set("day", &day)?
        .set("expires_at", expires_at)?
        .expire_at(expires_at)
        .add(quota.name(), requests);
    Ok(Guarded::update(key(&customer, &day)?, change, Condition::count_below(quota.name(), limit)))
}
