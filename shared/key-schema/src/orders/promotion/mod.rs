//! Promotions: discounts for everybody, or for customers who enter a code.
//!
//! A promotion without a code is *automatic*. It is in the partition `PRICING`, so the Query that
//! reads the rules of pricing also reads all automatic promotions. A promotion with a code is in
//! the partition `PROMOTIONS`. In both partitions the sort key is `PROMOTION#<id>`, so one list
//! contains both kinds. A sentinel item `PROMOTIONCODE#<folded code>` leads from a code to its
//! promotion, and keeps the code unique.
//!
//! # Limits
//! A promotion may have a limit for all customers, and one for each customer. The partition
//! `PROMOTION#<id>` has the counts of uses: the item `USES` and an item `USE#<customer>` for each
//! customer. The transaction that places an order raises the counts, on the condition that they are
//! below their limits. The transaction that cancels the order lowers them. So the uses never exceed
//! a limit. Uses of promotions without a limit are not counted, because the counter of a popular
//! promotion would be a hot item.
//!
//! # Limits of hot promotions
//! With a limit of at least [`SPREAD_FROM`], [`USE_SHARDS`] shards count the uses, each in a partition
//! of its own. A shard *leases* uses: a transaction adds them to the count of `USES`, which is the head,
//! and to the uses that the shard has left ([`Leases`]). An order takes a use that its shard has left.
//! A cancelled order lowers the count of the head. So the count is never below the uses of all orders,
//! and a lease never raises it above the limit. If the head has no uses left, an order takes one that
//! another shard has left. It is refused only if no shard has one.
//!
//! Each change of the limit begins a new period ([`Promotion::limit_since`]), and an order takes only
//! uses that were leased in the period that it read. Uses of an earlier period go back to the head when
//! an order finds them. An order that read the promotion before the change may still take one.
//!
//! Each promotion has the item `USES` from its creation, and the item stays after the deletion. So
//! no second promotion can have the same id and inherit the counts. The item `USE#<customer>` has a
//! hash of the customer's id, and an erasure does not remove it. So a customer who signs up again
//! gets no further uses.

mod leases;
mod patterns;
mod requests;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::customer::Tier;
use crate::id::{CustomerId, ProductId, PromotionId};
use crate::instant::Instant;
use crate::item::{Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::money::Money;
use crate::pricing;
use crate::product::{CategoryPath, Product};
use crate::quota::CustomerHash;
use crate::text::fold;

pub use leases::*;
pub use patterns::*;
pub use requests::*;

pub const MAX_AUTOMATIC: usize = 20;
/// The maximum size of a promotion's item. The automatic promotions and the other rules of pricing
/// must fit into one Query.
pub const MAX_PROMOTION_BYTES: usize = 4 * 1024;
pub const MAX_PRODUCTS: usize = 100;
pub const MAX_CODES: usize = 5;
/// The maximum number of promotions of one order. Each may change two counts in the order's
/// transaction.
pub const MAX_APPLIED: usize = 5;
/// The maximum length of a code, in bytes of UTF-8.
pub const MAX_CODE_BYTES: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub enum Reduction {
    /// A part of the price, in basis points: 1,250 is 12.5 %.
    Percentage(u32),
    Amount(Money),
    /// For every `buy + get` pieces, `get` pieces are free. The cheapest pieces of all are free.
    BuyXGetY {
        /// The number of pieces that are paid for.
        buy: u64,
        /// The number of pieces that are free.
        get: u64,
    },
    FreeShipping,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goods {
    All,
    /// These products, and the variants of those that are parents.
    Products(Vec<ProductId>),
    /// The products whose own category is this one or below it.
    Category(CategoryPath),
}

impl Goods {
    #[must_use]
    pub fn include(&self, product: &Product) -> bool {
        match self {
            Self::All => true,
            Self::Products(ids) => {
                ids.contains(&product.id) || product.parent.as_ref().is_some_and(|id| ids.contains(id))
            }
            Self::Category(path) => product.category_path.is_within(path),
        }
    }
}

/// The conditions of a promotion. Each one that is present must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    /// The lowest price of the promotion's goods in the cart, before discounts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub min_amount: Option<Money>,
    /// The lowest tier of the customer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tier: Option<Tier>,
    /// Whether the customer must have no other order, except cancelled orders.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub first_order: bool,
    /// The first instant at which the promotion applies.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<Instant>,
    /// The instant from which the promotion no longer applies.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub until: Option<Instant>,
}

entity! {
    Promotion = "Promotion" {
        fixed {
            id: PromotionId,
            /// The code that customers enter, in the spelling of staff. An automatic promotion has
            /// no code.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            code: Option<String>,
        }
        mutable by PromotionChanges {
            name: String,
            reduction: Reduction,
            applies_to: Goods,
            conditions: Conditions,
            #[serde(skip_serializing_if = "Option::is_none", default)]
            limit_total: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none", default)]
            limit_per_customer: Option<u64>,
            /// The version of the promotion after which `limit_total` last changed, or 0.
            #[serde(skip_serializing_if = "is_zero", default)]
            limit_since: u64,
            /// Whether the promotion excludes all others.
            exclusive: bool,
            /// The priority. A promotion with a higher priority is applied earlier.
            priority: i64,
        }
    }
}

impl Entity for Promotion {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id, self.code.is_some())
    }
}

impl Promotion {
    #[must_use]
    pub fn is_running(&self, now: Instant) -> bool {
        let Conditions { from, until, .. } = &self.conditions;
        from.is_none_or(|from| from <= now) && until.is_none_or(|until| now < until)
    }

    /// Returns whether the promotion depends on who orders. A guest may have any number of addresses,
    /// so such a promotion is only for customers with an account.
    #[must_use]
    pub const fn depends_on_customer(&self) -> bool {
        self.uses_per_customer().is_some() || self.conditions.tier.is_some()
    }

    /// Returns the maximum number of uses by one customer. For a promotion of first orders, the
    /// number is 1.
    #[must_use]
    pub const fn uses_per_customer(&self) -> Option<u64> {
        if self.conditions.first_order { Some(1) } else { self.limit_per_customer }
    }
}

entity! {
    PromotionUses = "PromotionUses" {
        fixed {
            promotion_id: PromotionId,
        }
        mutable by PromotionUsesChanges {
            /// The maximum number of uses. It is absent if there is no limit, and after the
            /// deletion of the promotion.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            limit: Option<u64>,
            /// The promotion's `limit_since`.
            #[serde(skip_serializing_if = "is_zero", default)]
            limit_since: u64,
            /// The number of uses by orders, and of the uses that shards have left. Without a limit,
            /// uses are not counted.
            uses: u64,
            /// Whether a shard may have uses left.
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            leased: bool,
        }
    }
}

impl Entity for PromotionUses {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        uses_key(&self.promotion_id)
    }
}

impl PromotionUses {
    #[must_use]
    pub fn of(promotion: &Stored<Promotion>) -> Stored<Self> {
        let Promotion { id, limit_total, limit_since, .. } = &promotion.data;
        let (promotion_id, limit) = (id.clone(), *limit_total);
        let uses = Self { promotion_id, limit, limit_since: *limit_since, uses: 0, leased: false };
        Stored::new(uses, promotion.meta.born.clone(), promotion.meta.created_at)
    }

    pub fn key_of(promotion: &PromotionId) -> Result<Key, KeyError> {
        uses_key(promotion)
    }
}

entity! {
    /// A shard of the uses of a hot promotion.
    UsesShard = "UsesShard" {
        fixed {
            promotion_id: PromotionId,
            /// The number of the shard, from 0.
            shard: u32,
        }
        mutable by UsesShardChanges {
            /// The promotion's `limit_since` when the shard leased its uses.
            limit_since: u64,
            /// The uses that orders can take.
            unused: u64,
        }
    }
}

impl Entity for UsesShard {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        uses_shard_key(&self.promotion_id, self.shard)
    }
}

entity! {
    CustomerUses = "CustomerUses" {
        fixed {
            promotion_id: PromotionId,
            customer: CustomerHash,
        }
        mutable by CustomerUsesChanges {
            uses: u64,
        }
    }
}

impl CustomerUses {
    pub fn key_of(promotion: &PromotionId, customer: &CustomerId) -> Result<Key, KeyError> {
        customer_uses_key(promotion, &CustomerHash::of(customer))
    }
}

impl Entity for CustomerUses {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        customer_uses_key(&self.promotion_id, &self.customer)
    }
}

// serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A sentinel item that reserves a code for one promotion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromotionCode {
    /// The folded code ([`fold`]).
    pub code: String,
    pub promotion_id: PromotionId,
}

impl Entity for PromotionCode {
    const NAME: &'static str = "PromotionCode";

    fn key(&self) -> Result<Key, KeyError> {
        code_key(&self.code)
    }
}

impl PromotionCode {
    /// Returns the claim on a promotion's code, if it has one.
    #[must_use]
    pub fn of(promotion: &Stored<Promotion>) -> Option<Stored<Self>> {
        let claim = Self { code: fold(promotion.code.as_deref()?), promotion_id: promotion.id.clone() };
        Some(Stored::new(claim, promotion.meta.born.clone(), promotion.meta.created_at))
    }

    pub fn promotion_key(&self) -> Result<Key, KeyError> {
        key(&self.promotion_id, true)
    }
}

/// A promotion as an order keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedPromotion {
    pub id: PromotionId,
    pub name: String,
    /// The code, if the customer entered one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<String>,
    /// The discount in minor units.
    pub discount: i64,
    /// Whether the use is counted among the uses of all customers.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub counted: bool,
    /// Whether the use is counted among the uses of the customer.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub counted_per_customer: bool,
}

fn key(id: &PromotionId, has_code: bool) -> Result<Key, KeyError> {
    let pk = if has_code { coded_partition()? } else { pricing::partition()? };
    Ok(Key { pk, sk: SortKey::of("PROMOTION", &[id])? })
}

fn coded_partition() -> Result<PartitionKey, KeyError> {
    PartitionKey::new("PROMOTIONS")
}

fn uses_partition(id: &PromotionId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("PROMOTION", &[id])
}

fn uses_key(id: &PromotionId) -> Result<Key, KeyError> {
    Ok(Key { pk: uses_partition(id)?, sk: SortKey::new("USES")? })
}

fn uses_shard_key(id: &PromotionId, shard: u32) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("PROMOTION", &[id, &shard])?, sk: SortKey::new("USES")? })
}

fn customer_uses_key(id: &PromotionId, customer: &CustomerHash) -> Result<Key, KeyError> {
    Ok(Key { pk: uses_partition(id)?, sk: SortKey::of("USE", &[&customer.as_str()])? })
}

fn code_key(folded: &str) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("PROMOTIONCODE", &[&folded])?, sk: SortKey::new("PROMOTIONCODE")? })
}
