//! The shards of a hot promotion's uses, and the leases that give them uses.

use item_model::prelude::*;

use super::{LEASE, LEASES, PromotionUses, SPENT, UsesShard, UsesShardChanges as _, uses_key, uses_shard_key};
use crate::change::Change;
use crate::expression::{Condition, number};
use crate::id::{Born, OrderId, PromotionId};
use crate::instant::Instant;
use crate::item::{EncodeError, Stored};
use crate::key::KeyError;
use crate::request::{BatchGet, Guarded, Single, Transaction};
use crate::shard::Shards;

/// The number of shards.
pub const USE_SHARDS: Shards = Shards(64);
/// The lowest limit whose uses are counted in shards. Below it, the head counts every use.
pub const SPREAD_FROM: u64 = 1_000;
/// The maximum number of uses that a shard leases at once.
pub const MAX_LEASE: u64 = 100;

/// Returns the shard that first counts the use by an order, or [`None`] if the head counts it.
#[must_use]
pub fn first_shard(limit: u64, order: &OrderId) -> Option<u32> {
    (limit >= SPREAD_FROM).then(|| USE_SHARDS.of(order.as_str()))
}

one_of! {
    pub enum LeaseItem { PromotionUses UsesShard }
}

/// Reads the uses of a promotion: the head, and these shards.
pub fn leases(promotion: &PromotionId, shards: impl IntoIterator<Item = u32>) -> Result<BatchGet<LeaseItem>, KeyError> {
    let mut keys = vec![uses_key(promotion)?];
    for shard in shards {
        keys.push(uses_shard_key(promotion, shard)?);
    }
    Ok(BatchGet::new(&LEASES, keys))
}

/// The head and shards of a promotion's uses, as they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leases {
    pub head: Stored<PromotionUses>,
    /// The shards that exist.
    pub shards: Vec<Stored<UsesShard>>,
}

/// Where an order finds a use.
#[derive(Debug, Clone)]
pub enum Found {
    /// The shard has a use left. [`None`] is the head.
    At(Option<u32>),
    /// The transaction gives a shard uses, or takes back those that were leased at an earlier limit.
    Lease(Transaction<()>),
    /// Neither the head nor a shard that was read has a use left.
    Nothing,
}

impl Leases {
    /// Returns [`None`] without the head.
    #[must_use]
    pub fn of(items: impl IntoIterator<Item = LeaseItem>) -> Option<Self> {
        let (mut head, mut shards) = (None, Vec::new());
        for item in items {
            match item {
                LeaseItem::PromotionUses(uses) => head = Some(uses),
                LeaseItem::UsesShard(shard) => shards.push(shard),
            }
        }
        Some(Self { head: head?, shards })
    }

    /// Returns the number of uses by orders.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.head.uses.saturating_sub(self.shards.iter().map(|shard| shard.unused).sum())
    }

    /// Returns the `rev` of each item. If two reads have the same, nothing has changed between them.
    #[must_use]
    pub fn revs(&self) -> Vec<u64> {
        std::iter::once(self.head.meta.rev).chain(self.shards.iter().map(|shard| shard.meta.rev)).collect()
    }

    /// Returns where an order that prefers `shard` finds a use below the limit of the head.
    pub fn find(&self, shard: Option<u32>, at: Instant) -> Result<Found, EncodeError> {
        let limit = self.head.limit.unwrap_or_default();
        let free = limit.saturating_sub(self.head.uses);
        let is_current = |shard: &Stored<UsesShard>| shard.limit_since == self.head.limit_since;
        let own = self.shards.iter().find(|own| Some(own.shard) == shard);
        if own.is_some_and(|own| is_current(own) && own.unused > 0) || (shard.is_none() && free > 0) {
            return Ok(Found::At(shard));
        }
        if let Some(shard) = shard.filter(|_| free > 0) {
            // The last uses must not be all in a few shards, so each shard gets a part.
            let part = (free / (2 * u64::from(USE_SHARDS.0))).clamp(1, MAX_LEASE);
            return Ok(Found::Lease(lease(self, shard, part, at)?));
        }
        let other = self.shards.iter().find(|other| is_current(other) && other.unused > 0);
        if let Some(other) = other.filter(|_| shard.is_some()) {
            return Ok(Found::At(Some(other.shard)));
        }
        let is_left = self.shards.iter().any(|other| other.unused > 0);
        Ok(if is_left { Found::Lease(take_back(self, at)?) } else { Found::Nothing })
    }
}

/// Gives a shard so many uses below the limit of the head, and takes back those that it has.
pub fn lease(leases: &Leases, shard: u32, uses: u64, at: Instant) -> Result<Transaction<()>, EncodeError> {
    let seen = leases.shards.iter().find(|seen| seen.shard == shard);
    let (head, given) = (counted(leases, seen.map_or(0, |seen| seen.unused), uses)?, given(leases, shard, uses, at)?);
    Ok(Transaction::new(&LEASE).action((), head).action((), given))
}

/// Takes back the uses that the shards have, except those of the present limit if its uses are counted
/// in shards.
pub fn take_back(leases: &Leases, at: Instant) -> Result<Transaction<()>, EncodeError> {
    let head = &leases.head;
    let stays = |shard: &Stored<UsesShard>| {
        shard.limit_since == head.limit_since && head.limit.is_some_and(|limit| limit >= SPREAD_FROM)
    };
    let old: Vec<_> = leases.shards.iter().filter(|shard| shard.unused > 0 && !stays(shard)).collect();
    let head = counted(leases, old.iter().map(|shard| shard.unused).sum(), 0)?;
    old.into_iter().try_fold(Transaction::new(&LEASE).action((), head), |transaction, shard| {
        Ok(transaction.action((), given(leases, shard.shard, 0, at)?))
    })
}

/// Counts the uses of a lease in the head, instead of those that are taken back.
fn counted(leases: &Leases, taken_back: u64, uses: u64) -> Result<Guarded, EncodeError> {
    let PromotionUses { promotion_id, limit, limit_since, .. } = &leases.head.data;
    let limit = limit.unwrap_or_default();
    let same = if *limit_since > 0 {
        Condition::Is("limit_since", number(limit_since))
    } else {
        Condition::Lacks("limit_since")
    };
    let able = Condition::Is("limit", number(limit)).and(same);
    let able = able.and(Condition::AtLeast("uses", number(taken_back)));
    let able = match uses.checked_sub(taken_back) {
        Some(more @ 1..) => able.and(Condition::Below("uses", number((limit + 1).saturating_sub(more)))),
        _ => able,
    };
    let added = signed(uses)? - signed(taken_back)?;
    let change = Change::<PromotionUses>::copied().add("uses", added).set("leased", true)?;
    Ok(Guarded::update(uses_key(promotion_id)?, change, able))
}

/// Sets the uses that a shard has left, if it is as it was read.
fn given(leases: &Leases, shard: u32, uses: u64, at: Instant) -> Result<Guarded, EncodeError> {
    let PromotionUses { promotion_id, limit_since, .. } = &leases.head.data;
    let change = Change::<UsesShard>::visible(at).or_create(&Born::counter(), at).set("promotion_id", promotion_id)?;
    let change = change.set("shard", shard)?.limit_since(limit_since)?.unused(&uses)?;
    let unchanged = match leases.shards.iter().find(|seen| seen.shard == shard) {
        Some(seen) => Condition::Is("rev", number(seen.meta.rev)),
        None => Condition::NotExists,
    };
    Ok(Guarded::update(uses_shard_key(promotion_id, shard)?, change, unchanged))
}

/// Records that no shard has a use left. DynamoDB refuses the write if a shard got uses since the head
/// was read.
pub fn spent(head: &Stored<PromotionUses>) -> Result<Single<()>, EncodeError> {
    let spent = Change::<PromotionUses>::copied().set("leased", None::<bool>)?;
    let unchanged = Condition::Is("rev", number(head.meta.rev));
    Ok(Single::new(&SPENT, Guarded::update(uses_key(&head.promotion_id)?, spent, unchanged)))
}

fn signed(uses: u64) -> Result<i64, EncodeError> {
    i64::try_from(uses).map_err(|_| EncodeError::Overflow)
}
