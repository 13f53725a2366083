//! Stocks in shards: their sum, their number, and the shards that have the pieces of an order.
//!
//! [`key_schema::product`] explains the shards.

use std::fmt::Debug;

use key_schema::id::ProductId;
use key_schema::instant::Instant;
use key_schema::item::{EncodeError, Stored};
use key_schema::order::{OrderAction, OrderLine, PlacedOrder};
use key_schema::pattern::Pattern;
use key_schema::product::{self, GROWTH, MAX_STOCK_SHARDS, Picks, Product, ReshardReason, ShardedStock, Stock};
use key_schema::promotion::Use;
use key_schema::request::Transaction;
use key_schema::sales;
use table::{Attempt, Backoff, Refusal, Refusals, Table, TableError, retry_on_conflict};

use crate::{WorkflowError, old_stock, uses};

/// The access patterns with which [`reshard`] and [`level`] change the shards of a stock.
pub const PATTERNS: &[&Pattern] =
    &[&product::READ_STOCK, &product::READ_SHARDS, &product::GROW, &product::MOVE_PIECES, &product::MERGE];

/// The maximum number of passes over all shards while orders or a move change them.
pub(crate) const PASSES: usize = 8;
/// The number of cancelled attempts of one order after which its busy stocks get more shards.
const HOT_AFTER: u32 = 3;

/// Reads the first shard of a product's stock with strong consistency. If it is missing, moves a stock
/// of a table of the earlier form ([`old_stock`]). Only a missing stock costs further requests.
///
/// # Errors
/// [`WorkflowError::Table`], and [`WorkflowError::Contended`] if other writers kept changing the old
/// stock.
pub async fn found<A: Copy + Debug>(table: &Table, id: &ProductId) -> Result<Option<Stored<Stock>>, WorkflowError<A>> {
    match table.get(&product::stock(id)?).await? {
        None => old_stock::moved(table, id).await,
        found => Ok(found),
    }
}

/// Like [`found`], but does not move a stock. Reads of the shop must write nothing, for example in
/// maintenance.
///
/// # Errors
/// [`WorkflowError::Table`].
pub async fn seen<A: Copy + Debug>(table: &Table, id: &ProductId) -> Result<Option<Stored<Stock>>, WorkflowError<A>> {
    match table.get(&product::stock(id)?).await? {
        None => old_stock::seen(table, id).await,
        seen => Ok(seen),
    }
}

/// Reads all shards of a stock. `first` is its first shard.
///
/// # Errors
/// [`WorkflowError::Table`], and [`WorkflowError::Contended`] if the number of shards changed during the
/// reads.
pub async fn shards<A: Copy + Debug>(
    table: &Table,
    mut first: Stored<Stock>,
) -> Result<Vec<Stored<Stock>>, WorkflowError<A>> {
    for _ in 0..PASSES {
        let Some(read) = product::further_shards(&first)? else { return Ok(vec![first]) };
        let further: Option<Vec<_>> = table.batch_get(&read).await?.into_iter().collect();
        match further {
            Some(further) => return Ok(std::iter::once(first).chain(further).collect()),
            // A merge has deleted shards after the first one was read.
            None => first = table.get(&product::stock(&first.product_id)?).await?.ok_or(WorkflowError::Contended)?,
        }
    }
    Err(WorkflowError::Contended)
}

/// Returns the first shard with the pieces of all shards. While pieces move, the number may lack them.
///
/// # Errors
/// Those of [`shards`].
pub async fn whole<A: Copy + Debug>(table: &Table, first: Stored<Stock>) -> Result<Stored<Stock>, WorkflowError<A>> {
    if first.shards.is_none() {
        return Ok(first);
    }
    sum(shards(table, first).await?).ok_or(WorkflowError::Contended)
}

/// Returns the stock of a product for a customer who wants so many pieces. If the first shard has too
/// few, it gets the pieces of all shards. If the product is out of stock, no shard is read.
///
/// # Errors
/// Those of [`shards`].
pub async fn wanted(
    table: &Table,
    product: &Product,
    first: Stored<Stock>,
    pieces: u64,
) -> Result<Stored<Stock>, WorkflowError<()>> {
    if first.available >= pieces || !product.copied.in_stock { Ok(first) } else { whole(table, first).await }
}

/// Returns the first shard with the pieces of all shards.
pub(crate) fn sum(shards: Vec<Stored<Stock>>) -> Option<Stored<Stock>> {
    let available = shards.iter().map(|shard| shard.available).sum();
    let mut first = shards.into_iter().next()?;
    first.data.available = available;
    Some(first)
}

/// Gives a stock that is for sale the number of shards that staff ask for. Returns the whole stock, or
/// [`None`] if there is no stock for sale. Call [`level`] afterwards, unless the number is 1.
///
/// # Errors
/// Those of [`shards`], and [`WorkflowError::Contended`] if other requests kept changing the stock.
pub async fn reshard<A: Copy + Debug>(
    table: &Table,
    id: &ProductId,
    number: u32,
) -> Result<Option<Stored<Stock>>, WorkflowError<A>> {
    retry_on_conflict(async || {
        for _ in 0..PASSES {
            let first = found(table, id).await?.filter(|stock| stock.sellable);
            let Some(first) = first else { return Ok::<_, WorkflowError<A>>(Some(None)) };
            if number == 1 && first.shards.is_none() {
                return Ok(Some(Some(first)));
            }
            let (at, asked) = (Instant::now(), ReshardReason::Asked);
            // Another request may have changed the number after the first read.
            let shards = shards(table, first).await?;
            let first = shards.first().ok_or(WorkflowError::Contended)?;
            let reshard = match number >= first.shards() {
                true => product::grow(first, number, asked, at)?,
                false => product::merge(&shards, number, asked, at)?,
            };
            if let Attempt::Done = table.try_transact(&reshard, &mut Backoff::new()).await? {
                let mut whole = sum(shards).ok_or(WorkflowError::Contended)?;
                whole.data.shards = (number > 1).then_some(number);
                return Ok(Some(Some(whole)));
            }
            for step in product::drain(&shards, number, at)? {
                table.try_transact(&step, &mut Backoff::new()).await?;
            }
        }
        Ok(None)
    })
    .await
}

/// Spreads the pieces of a stock evenly over its shards. Returns the number of moves. A busy shard
/// keeps its pieces until the next call.
///
/// # Errors
/// Those of [`shards`].
pub async fn level<A: Copy + Debug>(table: &Table, id: &ProductId) -> Result<u32, WorkflowError<A>> {
    level_if(table, id, |_| true).await
}

/// Like [`level`], but only if a shard has less than half of its share. So small differences, which each
/// order makes, cause no moves.
///
/// # Errors
/// Those of [`shards`].
pub async fn level_uneven<A: Copy + Debug>(table: &Table, id: &ProductId) -> Result<u32, WorkflowError<A>> {
    let is_uneven = |shards: &[Stored<Stock>]| {
        let total: u64 = shards.iter().map(|shard| shard.available).sum();
        let count = u64::try_from(shards.len()).unwrap_or(u64::MAX);
        shards.iter().any(|shard| shard.available < total / count.max(1) / 2)
    };
    level_if(table, id, is_uneven).await
}

async fn level_if<A: Copy + Debug>(
    table: &Table,
    id: &ProductId,
    is_wanted: impl Fn(&[Stored<Stock>]) -> bool,
) -> Result<u32, WorkflowError<A>> {
    let Some(first) = table.get(&product::stock(id)?).await? else { return Ok(0) };
    let shards = shards(table, first).await?;
    let mut moves = 0;
    if !is_wanted(&shards) {
        return Ok(moves);
    }
    for step in product::level(&shards, Instant::now())? {
        if let Attempt::Done = table.try_transact(&step, &mut Backoff::new()).await? {
            moves += 1;
        }
    }
    Ok(moves)
}

/// Merges some shards of a stock that has been calm, as [`ShardedStock::merged`] says. Returns whether
/// it did.
///
/// # Errors
/// Those of [`shards`].
pub async fn settle<A: Copy + Debug>(
    table: &Table,
    listed: &Stored<ShardedStock>,
    now: Instant,
) -> Result<bool, WorkflowError<A>> {
    let Some(fewer) = listed.merged(listed.meta.updated_at, now) else { return Ok(false) };
    let Some(first) = table.get(&product::stock(&listed.product_id)?).await? else { return Ok(false) };
    let shards = shards(table, first).await?;
    let merge = product::merge(&shards, fewer, ReshardReason::Since(listed.meta.updated_at), now)?;
    Ok(matches!(table.try_transact(&merge, &mut Backoff::new()).await?, Attempt::Done))
}

/// Moves the sales that further items count to the product's first item. Returns whether all were
/// moved. The next call moves what conflicts.
///
/// # Errors
/// [`WorkflowError::Table`].
pub async fn fold_sales<A: Copy + Debug>(table: &Table, id: &ProductId) -> Result<bool, WorkflowError<A>> {
    let mut is_done = true;
    for counted in table.batch_get(&sales::counts(id)?).await?.into_iter().flatten() {
        if let Some(fold) = sales::fold(&counted)? {
            is_done &= matches!(table.try_transact(&fold, &mut Backoff::new()).await?, Attempt::Done);
        }
    }
    Ok(is_done)
}

/// Gives a busy stock more shards. Returns the number of its shards. `known` is the number that the
/// caller knows. A stock with another number was changed meanwhile and stays as it is.
///
/// # Errors
/// [`WorkflowError::Table`].
pub async fn widen<A: Copy + Debug>(
    table: &Table,
    id: &ProductId,
    known: Option<u32>,
    reason: ReshardReason,
) -> Result<u32, WorkflowError<A>> {
    let Some(first) = table.get(&product::stock(id)?).await? else { return Ok(known.unwrap_or(1)) };
    let (now, more) = (first.shards(), (first.shards() * GROWTH).min(MAX_STOCK_SHARDS));
    // Few pieces are sold soon, and an order finds them faster in few shards.
    let pieces = first.available.saturating_mul(u64::from(now));
    let is_worth_it = more > now && first.sellable && pieces >= u64::from(more);
    if known.is_some_and(|known| known != now) || !is_worth_it {
        return Ok(now);
    }
    let grow = product::grow(&first, more, reason, Instant::now())?;
    Ok(match table.try_transact(&grow, &mut Backoff::new()).await? {
        Attempt::Done => more,
        Attempt::Refused(_) | Attempt::Cancelled { .. } => now,
    })
}

/// What an order's transaction takes from shards.
pub trait Takes {
    /// Returns the lines, which take pieces.
    fn lines(&mut self) -> &mut [Stored<OrderLine>];

    /// Returns the uses of promotions.
    fn uses(&mut self) -> &mut [Use] {
        &mut []
    }
}

impl Takes for [Stored<OrderLine>] {
    fn lines(&mut self) -> &mut [Stored<OrderLine>] {
        self
    }
}

impl Takes for PlacedOrder {
    fn lines(&mut self) -> &mut [Stored<OrderLine>] {
        &mut self.lines
    }

    fn uses(&mut self) -> &mut [Use] {
        &mut self.uses
    }
}

/// Executes an order's transaction, which takes pieces of stocks and uses of promotions. Lines and uses
/// whose shards are busy or have too few take them from other shards. `transaction` makes the
/// transaction from the order. Returns the refusals if all shards of a line together have too few
/// pieces, if a promotion is used up, or if another action was refused.
///
/// # Errors
/// Those of [`shards`], and those of [`Table::transact`].
pub async fn transact<O: Takes + ?Sized>(
    table: &Table,
    order: &mut O,
    transaction: impl Fn(&O) -> Result<Transaction<OrderAction>, EncodeError>,
) -> Result<Result<(), Refusals<OrderAction>>, WorkflowError<OrderAction>> {
    let (mut backoff, mut cancelled) = (Backoff::new(), 0);
    loop {
        match table.try_transact(&transaction(order)?, &mut backoff).await? {
            Attempt::Done => return Ok(Ok(())),
            Attempt::Refused(refusals) => {
                if let Some(refusals) = pick_again(table, order, &refusals).await? {
                    return Ok(Err(refusals));
                }
                backoff.after_conflict().await?;
            }
            Attempt::Cancelled { failure, busy } => {
                cancelled += 1;
                give_way(table, order.lines(), &busy, cancelled == HOT_AFTER).await;
                uses::give_way(order.uses(), &busy);
                if !backoff.wait().await {
                    return Err(failure.into());
                }
            }
        }
    }
}

/// Chooses other shards for lines whose stock is busy. If these stocks are hot, they get more shards.
async fn give_way(table: &Table, lines: &mut [Stored<OrderLine>], busy: &[OrderAction], is_hot: bool) {
    for line in lines.iter_mut().filter(|line| busy.contains(&OrderAction::Stock(line.line))) {
        let known = line.picks.shards();
        if is_hot && line.picks.taken.len() <= 1 {
            match widen::<OrderAction>(table, &line.product_id, Some(known), ReshardReason::Hot).await {
                Ok(number) if number != known => {
                    line.data.picks = Picks::first(&line.order_id, Some(number), line.quantity);
                    continue;
                }
                Ok(_) => {}
                // The order itself may still succeed.
                Err(error) => tracing::warn!(%error, "a busy stock did not get more shards"),
            }
        }
        line.data.picks.elsewhere(fastrand::u32(..));
    }
}

/// Finds other shards for the lines and uses that were refused. Returns [`None`] if all of them have
/// new shards, so that another attempt may succeed. Otherwise returns the refusals, with the whole
/// stocks.
async fn pick_again<O: Takes + ?Sized>(
    table: &Table,
    order: &mut O,
    refusals: &Refusals<OrderAction>,
) -> Result<Option<Refusals<OrderAction>>, WorkflowError<OrderAction>> {
    use OrderAction::{Open, Stock, Uses};
    if !refusals.iter().all(|refusal| matches!(refusal.action, Stock(_) | Uses(_) | Open)) {
        // The refusal of one shard does not say that the promotion is used up.
        let uses = order.uses();
        let is_of_shard = |action| match action {
            Uses(at) => usize::try_from(at).ok().and_then(|at| uses.get(at)).is_some_and(|usage| usage.shard.is_some()),
            _ => false,
        };
        return Ok(Some(refusals.iter().filter(|refusal| !is_of_shard(refusal.action)).cloned().collect()));
    }
    let mut left: Vec<Refusal<OrderAction>> = Vec::new();
    let mut has_found = false;
    for refusal in refusals.iter() {
        if left.iter().any(|other| other.action == refusal.action) {
            continue;
        }
        let refused = match refusal.action {
            Stock(number) => match order.lines().iter_mut().find(|line| line.line == number) {
                Some(line) => pick(table, line, refusal).await?,
                None => Some(refusal.clone()),
            },
            Uses(at) => match usize::try_from(at).ok().and_then(|at| order.uses().get_mut(at)) {
                Some(usage) => uses::pick(table, usage, refusal).await?,
                None => Some(refusal.clone()),
            },
            _ => Some(refusal.clone()),
        };
        match refused {
            Some(refusal) => left.push(refusal),
            None => has_found = true,
        }
    }
    let is_short = left.iter().any(|refusal| refusal.action != Open);
    Ok((is_short || !has_found).then(|| left.into_iter().collect()))
}

/// Finds shards with the pieces of a refused line. Returns a refusal if all shards together have too
/// few.
async fn pick(
    table: &Table,
    line: &mut Stored<OrderLine>,
    refusal: &Refusal<OrderAction>,
) -> Result<Option<Refusal<OrderAction>>, WorkflowError<OrderAction>> {
    let seen = refusal.stored::<Stored<Stock>>().ok().flatten();
    // A missing item may be a stock that is not moved yet. Any other item of one shard is short.
    let is_one = refusal.item.is_some() && seen.as_ref().is_none_or(|stock| stock.shards.is_none());
    if line.picks.taken.is_empty() && is_one {
        return Ok(Some(refusal.clone()));
    }
    let mut before = None;
    for _ in 0..PASSES {
        let Some(first) = found(table, &line.product_id).await? else {
            return Ok(Some(Refusal { action: refusal.action, item: None }));
        };
        let shards = shards(table, first).await?;
        if let Some(picks) = Picks::among(line, &shards) {
            line.data.picks = picks;
            return Ok(None);
        }
        // One pass may miss pieces that moved to a shard that it had already read. If two passes find
        // the same `rev` of every shard, then no shard changed between them, and the sum is right.
        let revs: Vec<u64> = shards.iter().map(|shard| shard.meta.rev).collect();
        if before.as_ref() == Some(&revs) {
            let whole = sum(shards).ok_or(WorkflowError::Contended)?;
            return Ok(Some(Refusal { action: refusal.action, item: Some(whole.to_item()?) }));
        }
        before = Some(revs);
    }
    Err(TableError::Contended.into())
}
