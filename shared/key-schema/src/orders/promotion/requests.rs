//! The requests of promotions, and the actions that count their uses.

use item_model::prelude::*;

use super::{
    AppliedPromotion, CHANGE, CREATE, CustomerUses, DELETE, FIND, GET, LIST, Promotion, PromotionChanges as _,
    PromotionCode, PromotionUses, PromotionUsesChanges as _, READ, UNKNOWN_CODES, USES, UsesShard, code_key,
    coded_partition, customer_uses_key, first_shard, key, uses_key, uses_shard_key,
};
use crate::change::Change;
use crate::expression::{Condition, number, value};
use crate::id::{Born, CustomerId, OrderId, PromotionId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity as _, Stored};
use crate::key::KeyError;
use crate::order::OrderAction;
use crate::pricing::{self, Rules};
use crate::quota::{self, CustomerHash, Quota, QuotaDay};
use crate::request::{BatchGet, Guarded, Query, Range, Single, Transaction};
use crate::text::fold;

/// An action of a transaction that creates, changes or deletes a promotion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromotionAction {
    Promotion,
    /// Writes the counts of uses. DynamoDB refuses a creation if a deleted promotion had the id.
    Uses,
    /// Claims or releases the code. DynamoDB refuses it if another promotion has the code.
    Code,
    /// Writes the head of pricing. DynamoDB refuses it if the head has changed since it was read.
    Head,
    /// Writes the idempotency record. DynamoDB refuses it if an earlier attempt has a response.
    Idempotency,
}

one_of! {
    pub enum FoundItem { PromotionCode QuotaDay }
}

/// Reads the claim on each code, in the order of `codes`. The last item has the customer's quota
/// counts of the day.
pub fn find(codes: &[String], customer: &CustomerId, now: Instant) -> Result<BatchGet<FoundItem>, KeyError> {
    let mut keys = codes.iter().map(|code| code_key(&fold(code))).collect::<Result<Vec<_>, _>>()?;
    keys.push(quota::day_key(customer, now)?);
    Ok(BatchGet::new(&FIND, keys))
}

/// Counts unknown codes of a customer. DynamoDB refuses the write if the day's quota is used up.
pub fn count_unknown_codes(customer: &CustomerId, codes: usize, now: Instant) -> Result<Single<()>, EncodeError> {
    let codes = i64::try_from(codes).unwrap_or(i64::MAX);
    Ok(Single::new(&UNKNOWN_CODES, quota::count_many(customer, Quota::of_codes(customer), codes, now)?))
}

one_of! {
    pub enum PromotionItem { CustomerUses Promotion PromotionUses }
}

/// Reads the promotions in `coded`, which have a code. Also reads the uses of the promotions in
/// `coded` and `counted`, by all customers and by this customer.
pub fn read<'a>(
    coded: impl IntoIterator<Item = &'a PromotionId>,
    counted: impl IntoIterator<Item = &'a PromotionId>,
    customer: &CustomerId,
) -> Result<BatchGet<PromotionItem>, KeyError> {
    let (mut keys, customer) = (Vec::new(), CustomerHash::of(customer));
    for id in coded {
        keys.extend([key(id, true)?, uses_key(id)?, customer_uses_key(id, &customer)?]);
    }
    for id in counted {
        keys.extend([uses_key(id)?, customer_uses_key(id, &customer)?]);
    }
    Ok(BatchGet::new(&READ, keys))
}

pub fn get(id: &PromotionId) -> Result<BatchGet<PromotionItem>, KeyError> {
    Ok(BatchGet::new(&GET, vec![key(id, false)?, key(id, true)?, uses_key(id)?]))
}

pub fn list() -> Result<Query<Stored<Promotion>>, KeyError> {
    let partitions = vec![pricing::partition()?, coded_partition()?];
    Ok(Query::sharded(&LIST, partitions, Range::under("PROMOTION")))
}

/// Reads the uses of promotions by all customers.
pub fn uses<'a>(ids: impl IntoIterator<Item = &'a PromotionId>) -> Result<BatchGet<Stored<PromotionUses>>, KeyError> {
    Ok(BatchGet::new(&USES, ids.into_iter().map(uses_key).collect::<Result<_, _>>()?))
}

/// Creates a promotion. For an automatic promotion, the transaction also writes the new number of
/// rules into the head of pricing. The number comes from `rules`, the present rules of pricing.
/// `claim` writes the idempotency record ([`crate::idempotency::claim`]), if the request has a key.
pub fn create(
    rules: &Rules,
    promotion: &Stored<Promotion>,
    claim: Option<Guarded>,
) -> Result<Transaction<PromotionAction>, EncodeError> {
    let transaction = Transaction::new(&CREATE)
        .optional(PromotionAction::Idempotency, claim)
        .action(PromotionAction::Promotion, Guarded::put(promotion, Condition::NotExists)?)
        .action(PromotionAction::Uses, Guarded::put(&PromotionUses::of(promotion), Condition::NotExists)?);
    Ok(match PromotionCode::of(promotion) {
        Some(claim) => transaction.action(PromotionAction::Code, Guarded::put(&claim, Condition::NotExists)?),
        None => {
            let count = rules.count() + 1;
            transaction.action(PromotionAction::Head, rules.head(count, promotion.meta.created_at)?)
        }
    })
}

/// Gives the promotion `read` the values of `wanted`, which has the same id and code.
pub fn change(
    read: &Stored<Promotion>,
    wanted: &Promotion,
    at: Instant,
) -> Result<Transaction<PromotionAction>, EncodeError> {
    let since = if wanted.limit_total == read.limit_total { read.limit_since } else { read.meta.version };
    let change = Change::<Promotion>::visible(at)
        .name(&wanted.name)?
        .reduction(&wanted.reduction)?
        .applies_to(&wanted.applies_to)?
        .conditions(&wanted.conditions)?
        .limit_total(&wanted.limit_total)?
        .limit_per_customer(&wanted.limit_per_customer)?
        .limit_since(&since)?
        .exclusive(&wanted.exclusive)?
        .priority(&wanted.priority)?;
    let unchanged = Condition::version(read.meta.version);
    let mut transaction =
        Transaction::new(&CHANGE).action(PromotionAction::Promotion, Guarded::update(read.key()?, change, unchanged));
    if wanted.limit_total != read.limit_total {
        let limit = Change::<PromotionUses>::copied().limit(&wanted.limit_total)?.limit_since(&read.meta.version)?;
        transaction =
            transaction.action(PromotionAction::Uses, Guarded::update(uses_key(&read.id)?, limit, Condition::Exists));
    }
    Ok(transaction)
}

/// Deletes the promotion that was read, and releases its code.
pub fn delete(
    rules: &Rules,
    read: &Stored<Promotion>,
    at: Instant,
) -> Result<Transaction<PromotionAction>, EncodeError> {
    let unlimited = Change::<PromotionUses>::copied().limit(&None)?;
    let transaction = Transaction::new(&DELETE)
        .action(PromotionAction::Promotion, Guarded::delete(read.key()?, Condition::version(read.meta.version)))
        .action(PromotionAction::Uses, Guarded::update(uses_key(&read.id)?, unlimited, Condition::Exists));
    Ok(match PromotionCode::of(read) {
        Some(claim) => {
            let own = Condition::NotExists.or(Condition::Is("promotion_id", value(&read.id)?));
            transaction.action(PromotionAction::Code, Guarded::delete(claim.key()?, own))
        }
        None => transaction.action(PromotionAction::Head, rules.head(rules.count().saturating_sub(1), at)?),
    })
}

/// A promotion of an order, with the limits that were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    pub promotion: PromotionId,
    /// The maximum number of uses by all customers, if they are counted.
    pub limit_total: Option<u64>,
    /// The promotion's `limit_since`.
    pub limit_since: u64,
    /// The maximum number of uses by the customer, if they are counted.
    pub limit_per_customer: Option<u64>,
    /// The shard that counts the use by all customers, or [`None`] if the head counts it.
    pub shard: Option<u32>,
}

impl Use {
    /// Returns the use of a promotion by an order.
    #[must_use]
    pub fn of(promotion: &Promotion, order: &OrderId) -> Self {
        let limit_total = promotion.limit_total;
        Self {
            promotion: promotion.id.clone(),
            limit_total,
            limit_since: promotion.limit_since,
            limit_per_customer: promotion.uses_per_customer(),
            shard: limit_total.and_then(|limit| first_shard(limit, order)),
        }
    }
}

/// Counts the uses of an order's promotions, as actions of the transaction that places the order.
/// DynamoDB refuses an action if the limit that was read is reached, or if the shard has no use left. It
/// also refuses the action if staff have changed the limit since then, unless the shard still has uses
/// that it leased before.
pub fn take(uses: &[Use], customer: &CustomerId, at: Instant) -> Result<Vec<(OrderAction, Guarded)>, EncodeError> {
    let (mut actions, customer) = (Vec::new(), CustomerHash::of(customer));
    for (position, Use { promotion, limit_total, limit_since, limit_per_customer, shard }) in (0_u64..).zip(uses) {
        if let Some(limit) = *limit_total {
            let count = match shard {
                None => {
                    let change = Change::<PromotionUses>::copied().add("uses", 1);
                    let left = Condition::Is("limit", number(limit)).and(Condition::Below("uses", number(limit)));
                    Guarded::update(uses_key(promotion)?, change, left)
                }
                Some(shard) => {
                    let change = Change::<UsesShard>::copied().add("unused", -1);
                    let same = Condition::Is("limit_since", number(limit_since));
                    let left = same.and(Condition::AtLeast("unused", number(1)));
                    Guarded::update(uses_shard_key(promotion, *shard)?, change, left)
                }
            };
            actions.push((OrderAction::Uses(position), count));
        }
        if let Some(limit) = *limit_per_customer {
            let change = Change::<CustomerUses>::visible(at)
                .or_create(&Born::counter(), at)
                .set("promotion_id", promotion)?
                .set("customer", &customer)?
                .add("uses", 1);
            let left = Condition::count_below("uses", limit);
            let key = customer_uses_key(promotion, &customer)?;
            actions.push((OrderAction::CustomerUses(position), Guarded::update(key, change, left)));
        }
    }
    Ok(actions)
}

/// Gives back the uses of an order that is cancelled or was not placed.
pub(crate) fn give_back(
    applied: &[AppliedPromotion],
    customer: &CustomerId,
) -> Result<Vec<(OrderAction, Guarded)>, EncodeError> {
    let (mut actions, customer) = (Vec::new(), CustomerHash::of(customer));
    let used = || Condition::AtLeast("uses", number(1));
    for (position, promotion) in (0_u64..).zip(applied) {
        if promotion.counted {
            let change = Change::<PromotionUses>::copied().add("uses", -1);
            let action = Guarded::update(uses_key(&promotion.id)?, change, used());
            actions.push((OrderAction::Uses(position), action));
        }
        if promotion.counted_per_customer {
            let change = Change::<CustomerUses>::copied().add("uses", -1);
            let action = Guarded::update(customer_uses_key(&promotion.id, &customer)?, change, used());
            actions.push((OrderAction::CustomerUses(position), action));
        }
    }
    Ok(actions)
}
