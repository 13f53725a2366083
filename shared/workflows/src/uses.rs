//! The uses of hot promotions: the shard that has one for an order, and the leases that give shards uses.
//!
//! [`key_schema::promotion`] explains the shards.

use std::fmt::Debug;

use key_schema::id::PromotionId;
use key_schema::instant::Instant;
use key_schema::item::{Item, Stored};
use key_schema::order::OrderAction;
use key_schema::promotion::{self, Found, Leases, PromotionUses, USE_SHARDS, Use};
use table::{Attempt, Backoff, Refusal, Table, TableError};

use crate::WorkflowError;
use crate::stock::PASSES;

/// Where a promotion has a use left.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Left {
    /// In this shard, or in the head.
    At(Option<u32>),
    /// Nowhere.
    Nothing,
    /// The promotion has another limit than the caller knows. The item is its head.
    Changed(Option<Item>),
}

/// Finds a use, and leases uses for its shard if that has none.
///
/// # Errors
/// [`WorkflowError::Table`], and [`WorkflowError::Contended`] if orders kept taking what was found.
async fn left<A: Copy + Debug>(table: &Table, usage: &Use) -> Result<Left, WorkflowError<A>> {
    let (id, shard) = (&usage.promotion, usage.shard);
    let (mut backoff, mut before) = (Backoff::new(), None);
    // Most often the head has uses left, so the first pass reads no other shard.
    let mut only = shard;
    for _ in 0..=PASSES {
        let shards = USE_SHARDS.all().filter(|number| only.is_none_or(|only| only == *number));
        let items = table.batch_get(&promotion::leases(id, shards)?).await?.into_iter().flatten();
        let Some(leases) = Leases::of(items) else { return Ok(Left::Changed(None)) };
        if (leases.head.limit, leases.head.limit_since) != (usage.limit_total, usage.limit_since) {
            return Ok(Left::Changed(Some(leases.head.to_item()?)));
        }
        if leases.head.uses >= usage.limit_total.unwrap_or_default() && !leases.head.leased {
            return Ok(Left::Nothing);
        }
        match leases.find(shard, Instant::now())? {
            Found::At(found) => return Ok(Left::At(found)),
            Found::Lease(lease) => {
                if let Attempt::Cancelled { .. } = table.try_transact(&lease, &mut backoff).await? {
                    backoff.after_conflict().await?;
                }
            }
            Found::Nothing if only.take().is_some() => {}
            // Between two equal reads, no use moved from an item that was not read yet to one that was.
            Found::Nothing if before.as_ref() == Some(&leases.revs()) => {
                if leases.head.leased {
                    let _is_newer = table.write(&promotion::spent(&leases.head)?).await?;
                }
                return Ok(Left::Nothing);
            }
            Found::Nothing => before = Some(leases.revs()),
        }
    }
    Err(WorkflowError::Contended)
}

/// Returns whether a promotion with this limit has no use left, although its shards may have had some
/// when its head was read. If so, records it, so that later readers need not read the shards. Before
/// that, uses of an earlier limit go back to the head.
///
/// # Errors
/// [`WorkflowError::Table`].
pub async fn is_used_up<A: Copy + Debug>(
    table: &Table,
    id: &PromotionId,
    limit: u64,
) -> Result<bool, WorkflowError<A>> {
    let mut before = None;
    for _ in 0..PASSES {
        let read = table.batch_get(&promotion::leases(id, USE_SHARDS.all())?).await?;
        let Some(leases) = Leases::of(read.into_iter().flatten()).filter(|leases| leases.used() >= limit) else {
            return Ok(false);
        };
        // A lease between the reads of head and shard would hide its uses.
        if before.as_ref() == Some(&leases.revs()) {
            if leases.shards.iter().all(|shard| shard.unused == 0) {
                let _is_newer = table.write(&promotion::spent(&leases.head)?).await?;
            } else {
                let back = promotion::take_back(&leases, Instant::now())?;
                let _is_newer = table.try_transact(&back, &mut Backoff::new()).await?;
            }
            return Ok(true);
        }
        before = Some(leases.revs());
    }
    // Orders keep taking uses, and the next one finds out.
    Ok(false)
}

/// Finds another shard for a use that was refused. Returns a refusal if the promotion has no use left.
pub(crate) async fn pick(
    table: &Table,
    usage: &mut Use,
    refusal: &Refusal<OrderAction>,
) -> Result<Option<Refusal<OrderAction>>, WorkflowError<OrderAction>> {
    let head = refusal.stored::<Stored<PromotionUses>>().ok().flatten();
    let is_of_head = usage.shard.is_none();
    if is_of_head && head.is_none_or(|head| !head.leased || head.limit != usage.limit_total) {
        return Ok(Some(refusal.clone()));
    }
    match left(table, usage).await {
        Ok(Left::At(shard)) => {
            usage.shard = shard;
            Ok(None)
        }
        Ok(Left::Nothing) => Ok(Some(Refusal { action: refusal.action, item: None })),
        Ok(Left::Changed(item)) => Ok(Some(Refusal { action: refusal.action, item })),
        Err(WorkflowError::Contended) => Err(TableError::Contended.into()),
        Err(error) => Err(error),
    }
}

/// Chooses other shards for the uses whose shards are busy.
pub(crate) fn give_way(uses: &mut [Use], busy: &[OrderAction]) {
    for (usage, at) in uses.iter_mut().zip(0_u64..) {
        if let Some(shard) = usage.shard.as_mut().filter(|_| busy.contains(&OrderAction::Uses(at))) {
            *shard = (*shard + 1 + fastrand::u32(..USE_SHARDS.0 - 1)) % USE_SHARDS.0;
        }
    }
}
