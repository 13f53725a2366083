//! The stock of a product, and the requests that read and change it.
//!
//! # Shards
//!
//! A stock begins with one shard. For a sale it gets up to [`MAX_STOCK_SHARDS`], so that many orders
//! of the product write different items at the same time. An order takes its pieces from the shard
//! that follows from its id, or from another one if that shard is busy. If the shard has too few
//! pieces, the order reads all shards and takes the pieces where they are, also from several shards.
//! So an order is refused only if all shards together have too few pieces.
//!
//! # Why no piece is lost or sold twice
//!
//! Pieces move between shards only in one transaction, which takes from a shard only what it still
//! has. [`grow`] gives pieces of the first shard to new shards. [`level`] and [`drain`] move pieces
//! between two shards. [`merge`] deletes a shard only with the number of pieces that it gives to others. The
//! first shard knows the number of shards, and the product has a copy of it. An order with an old
//! number finds a shard that is missing or has too few pieces, and reads all shards again.
//!
//! While orders keep the shards busy, a transaction on all of them would always conflict. So `grow`,
//! `level` and `drain` use at most two shards that exist. Only `merge` and [`set_shards`] use all.
//!
//! Cancelled orders return their pieces to the first shard, because it always exists. A product is
//! retired, and becomes a parent of variants, only with one shard.

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use super::{
    ADJUST_STOCK, GROW, LIST_SHARDED, MERGE, MOVE_PIECES, Product, ProductAction, READ_SHARDS, READ_STOCK, SET_SHARDS,
    SET_STOCK, SHOW_STOCK, UNLIST, key,
};
use crate::change::Change;
use crate::encoding;
use crate::expression::{Condition, first_alive, number, value};
use crate::id::{Born, CustomerId, LocationId, OrderId, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::order::OrderLine;
use crate::request::{BatchGet, Get, Guarded, Query, Range, Single, Transaction};
use crate::shard::Shards;

/// The maximum number of pieces in a stock, and in one adjustment.
pub const MAX_STOCK: u64 = 1_000_000_000_000;
/// The number of pieces below which a stock is low, unless the deployment sets another threshold.
pub const STOCK_LOW: u64 = 10;
/// The maximum number of shards of a stock. A transaction can write all of them.
pub const MAX_STOCK_SHARDS: u32 = 64;
/// How many times as many shards a stock gets because of contention.
pub const GROWTH: u32 = 4;
/// The minimum time between two growths because of conflicts. During that time the first one takes
/// effect.
pub const PAUSE_SECONDS: i64 = 10;
/// How long a stock keeps its shards after their number has changed. Then some of them are merged.
pub const CALM_SECONDS: i64 = 60 * 60;

entity! {
    /// The number of a product's pieces for sale at a location. The item stays when the product is
    /// retired, so that a cancelled order can return its pieces until the product is revived.
    ///
    /// Each shard is a partition of its own. So the orders of a product share no partition with its
    /// readers, its sales and its reviews, and DynamoDB's limit of a partition holds for each shard.
    Stock = "Stock" {
        fixed {
            product_id: ProductId,
            /// The default is for stocks that are not moved yet ([`crate::product::old_stock`]).
            #[serde(default = "LocationId::main")]
            location: LocationId,
            /// The number of the shard, from 0. The default is like that of `location`.
            #[serde(default)]
            shard: u32,
            /// The number of available pieces. It is never negative, because every write that takes
            /// pieces is conditional. Only functions of [`crate::product`] change it.
            available: u64,
            /// Whether orders may take pieces from the stock. It is false for a retired product and
            /// for a parent of variants.
            sellable: bool,
            /// The `born` of the product to which the pieces belong. For a parent of variants, it
            /// is the `born` of the first variant. It is absent if the product was never revived
            /// and never had a variant.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            product_born: Option<Born>,
            /// The number of shards. Only the first shard has it, and only if there are several.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            shards: Option<u32>,
        }
        mutable by StockChanges {
            /// The last adjustment by hand, with its author and reason, for consumers of the
            /// stream.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            last_adjustment: Option<Adjustment>,
        }
    }
}

impl Stock {
    /// Creates a product's first stock, from which orders may take pieces.
    #[must_use]
    pub fn new(product_id: ProductId, available: u64) -> Self {
        Self {
            product_id,
            location: LocationId::main(),
            shard: 0,
            available,
            sellable: true,
            product_born: None,
            shards: None,
            last_adjustment: None,
        }
    }

    /// Returns the number of shards.
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.shards.unwrap_or(1).clamp(1, MAX_STOCK_SHARDS)
    }

    /// Returns whether an order line of the product with this `born` took its pieces from this
    /// stock. A revival gives the product a new `born`.
    #[must_use]
    pub fn is_of(&self, born: &Born) -> bool {
        self.product_born.as_ref().is_none_or(|own| own == born)
    }
}

entity! {
    /// An entry in the list of the stocks that have, or had within an hour, several shards. The
    /// `splitter` reads it to level and to merge the shards, and to move their counted sales
    /// ([`crate::sales::fold`]). `updated_at` is the time of the last change of their number.
    ShardedStock = "ShardedStock" {
        fixed {
            product_id: ProductId,
            location: LocationId,
            shards: u32,
            /// The number of shards that staff have set. Calm stocks are merged down to it.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            least: Option<u32>,
        }
        mutable {}
    }
}

impl Entity for ShardedStock {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        sharded_key(&self.product_id, &self.location)
    }
}

impl ShardedStock {
    /// Returns the number of shards after the next merge, or [`None`] if no merge is due.
    #[must_use]
    pub fn merged(&self, updated_at: Instant, now: Instant) -> Option<u32> {
        let fewer = (self.shards / GROWTH).max(self.least.unwrap_or(1)).max(1);
        (fewer < self.shards && is_calm(updated_at, now)).then_some(fewer)
    }

    /// Returns whether the stock can leave the list.
    #[must_use]
    pub fn is_over(&self, updated_at: Instant, now: Instant) -> bool {
        self.shards == 1 && is_calm(updated_at, now)
    }
}

fn is_calm(updated_at: Instant, now: Instant) -> bool {
    updated_at.plus_seconds(CALM_SECONDS) <= now
}

fn sharded_key(id: &ProductId, location: &LocationId) -> Result<Key, KeyError> {
    Ok(Key { pk: sharded_partition()?, sk: SortKey::of("STOCK", &[id, location])? })
}

fn sharded_partition() -> Result<PartitionKey, KeyError> {
    PartitionKey::new("SHARDEDSTOCKS")
}

/// The level of a stock, without the exact number of pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Availability {
    /// No pieces.
    None,
    /// At least one piece, but fewer than the threshold.
    Low,
    /// At least the threshold.
    Plenty,
}

impl Availability {
    /// Returns the level of this many pieces. `threshold` is the number below which a stock is low.
    #[must_use]
    pub const fn of(pieces: u64, threshold: u64) -> Self {
        match pieces {
            0 => Self::None,
            few if few < threshold => Self::Low,
            _ => Self::Plenty,
        }
    }
}

/// An adjustment of a stock by hand, for example after a delivery, a breakage or a recount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adjustment {
    /// The change in pieces, negative for a removal.
    pub by: i64,
    pub reason: String,
    pub staff: CustomerId,
    pub at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StockError {
    /// The stock would become negative.
    #[error("would make the stock negative")]
    Insufficient,
    /// The stock would exceed [`MAX_STOCK`].
    #[error("would make the stock larger than {MAX_STOCK}")]
    TooLarge,
}

impl Stock {
    /// Returns whether customers can buy at least one piece now.
    #[must_use]
    pub const fn in_stock(&self) -> bool {
        self.sellable && self.available > 0
    }

    /// Returns whether an order of the product with this `born` can take so many pieces now.
    #[must_use]
    pub fn can_supply(&self, quantity: u64, born: &Born) -> bool {
        self.sellable && self.available >= quantity && self.is_of(born)
    }

    /// Returns the number of pieces after an adjustment.
    pub fn moved(&self, by: i64) -> Result<u64, StockError> {
        match self.available.checked_add_signed(by) {
            Some(pieces) if pieces <= MAX_STOCK => Ok(pieces),
            None if by < 0 => Err(StockError::Insufficient),
            _ => Err(StockError::TooLarge),
        }
    }
}

impl Entity for Stock {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        shard_key(&self.product_id, &self.location, self.shard)
    }
}

pub(super) fn shard_key(id: &ProductId, location: &LocationId, shard: u32) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("STOCK", &[id, location, &shard])?, sk: SortKey::new("STOCK")? })
}

/// Returns the key of a product's first stock.
pub(crate) fn stock_key(id: &ProductId) -> Result<Key, KeyError> {
    shard_key(id, &LocationId::main(), 0)
}

/// Returns the product of which a partition is a shard of the stock that orders sell. `partition` is the partition's
/// key. Returns [`None`] for every other partition.
#[must_use]
pub fn product_of_stock(partition: &str) -> Option<ProductId> {
    let parts = encoding::split(partition)?;
    let [_, id, location, shard] = parts.as_slice() else { return None };
    let (id, shard) = (ProductId::new(id.as_str()).ok()?, shard.parse::<u32>().ok()?);
    // This excludes other entities and other spellings, as for counters.
    let key = shard_key(&id, &LocationId::new(location.as_str()).ok()?, shard).ok()?;
    let is_sold = location.as_str() == LocationId::main().as_str();
    (is_sold && shard < MAX_STOCK_SHARDS && key.pk.as_str() == partition).then_some(id)
}

/// Sets the stock of a product in the catalogue, and returns the stock. DynamoDB refuses the write if
/// the stock has several shards ([`set_shards`]).
pub fn set_stock(id: &ProductId, available: u64, at: Instant) -> Result<Single<Stored<Stock>>, EncodeError> {
    let change = Change::<Stock>::visible(at).set("available", available)?;
    Ok(Single::new(&SET_STOCK, Guarded::update(stock_key(id)?, change, sellable_in(1)?)))
}

/// Sets the stock, spread evenly over its shards. DynamoDB refuses the write if the number of shards
/// differs from that of `first`.
pub fn set_shards(first: &Stock, available: u64, at: Instant) -> Result<Transaction<ProductAction>, EncodeError> {
    let shards = first.shards();
    (0..shards).try_fold(Transaction::new(&SET_SHARDS), |transaction, shard| {
        let change = Change::<Stock>::visible(at).set("available", share(available, shards, shard))?;
        let able = if shard == 0 { sellable_in(shards)? } else { Condition::Exists };
        let set = Guarded::update(shard_key(&first.product_id, &first.location, shard)?, change, able);
        Ok(transaction.action(ProductAction::Stock, set))
    })
}

/// Adjusts a stock, of which `seen` are all shards. `claim` writes the idempotency record
/// ([`crate::idempotency::claim`]).
///
/// Without further shards, DynamoDB refuses the write if the number of pieces has changed. So the
/// response reports the stock right after this adjustment. With several shards, orders change the
/// stock too often for that. Then the first shard gets additional pieces, and removed pieces come
/// from shards that have them.
pub fn adjust_stock(
    seen: &[Stored<Stock>],
    adjustment: &Adjustment,
    claim: Guarded,
) -> Result<Transaction<ProductAction>, EncodeError> {
    let first = seen.first().ok_or(EncodeError::Overflow)?;
    let removed =
        if adjustment.by < 0 { among(seen, adjustment.by.unsigned_abs(), "", None) } else { Some(Vec::new()) };
    let removed = removed.ok_or(EncodeError::Overflow)?;
    let from = |shard| removed.iter().find(|pick| pick.shard == shard).map_or(0, |pick| pick.pieces);
    let mut transaction = Transaction::new(&ADJUST_STOCK);
    for (shard, stock) in (0..).zip(seen).filter(|(shard, _)| *shard == 0 || from(*shard) > 0) {
        let taken = pieces(from(shard))?;
        let change = Change::<Stock>::visible(adjustment.at);
        let (change, able) = match shard {
            0 => {
                let unchanged = Condition::Is("available", number(stock.available));
                let able = if seen.len() == 1 { unchanged } else { Condition::AtLeast("available", number(taken)) };
                let change = change.add("available", adjustment.by.max(0) - taken);
                (change.last_adjustment(&Some(adjustment.clone()))?, sellable_in(first.shards())?.and(able))
            }
            _ => (change.add("available", -taken), Condition::AtLeast("available", number(taken))),
        };
        transaction = transaction.action(ProductAction::Stock, Guarded::update(stock.key()?, change, able));
    }
    Ok(transaction.action(ProductAction::Idempotency, claim))
}

/// Returns the pieces of one shard of an evenly spread stock.
fn share(available: u64, shards: u32, shard: u32) -> u64 {
    let shards = u64::from(shards.max(1));
    available / shards + u64::from(u64::from(shard) < available % shards)
}

/// Returns the condition of a first shard that is sellable, and that counts so many shards.
fn sellable_in(shards: u32) -> Result<Condition, EncodeError> {
    let counted = if shards > 1 { Condition::Is("shards", number(shards)) } else { Condition::Lacks("shards") };
    Ok(Condition::Is("sellable", value(true)?).and(counted))
}

/// The reason for another number of shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReshardReason {
    /// Staff have set the number.
    Asked,
    /// Orders conflict. Another change within the last [`PAUSE_SECONDS`] prevents this one.
    Hot,
    /// DynamoDB throttled a shard in the minute that begins here, or the stock has been calm since
    /// then. A later change prevents this one.
    Since(Instant),
}

/// Gives a stock more shards, which get pieces of the first shard. DynamoDB refuses the write if the
/// number of shards has changed, if the first shard has fewer pieces than it gives, or if an earlier
/// change prevents this one ([`ReshardReason`]).
pub fn grow(
    first: &Stored<Stock>,
    shards: u32,
    reason: ReshardReason,
    at: Instant,
) -> Result<Transaction<ProductAction>, EncodeError> {
    let before = first.shards();
    let shards = shards.clamp(before, MAX_STOCK_SHARDS);
    // One share for the first shard, and one for each new shard.
    let shares = shards.saturating_sub(before) + 1;
    let given = first.available - share(first.available, shares, 0);
    let change = Change::<Stock>::visible(at).set("shards", (shards > 1).then_some(shards))?;
    let change = change.add("available", -pieces(given)?);
    let able = sellable_in(before)?.and(Condition::AtLeast("available", number(given)));
    let mut transaction = counted(Transaction::new(&GROW), first, shards, reason, at)?
        .action(ProductAction::Stock, Guarded::update(first.key()?, change, able));
    for (part, shard) in (1..shares).zip(before..shards) {
        let available = share(first.available, shares, part);
        let new = Stock { shard, available, shards: None, last_adjustment: None, ..first.data.clone() };
        let new = Stored::new(new, first.meta.born.clone(), at);
        transaction = transaction.action(ProductAction::Stock, Guarded::put(&new, Condition::NotExists)?);
    }
    Ok(transaction)
}

/// Adds the number of shards on the product and in the list of stocks with several shards.
fn counted(
    transaction: Transaction<ProductAction>,
    first: &Stored<Stock>,
    shards: u32,
    reason: ReshardReason,
    at: Instant,
) -> Result<Transaction<ProductAction>, EncodeError> {
    let copied = Change::<Product>::copied().set("stock_shards", (shards > 1).then_some(shards))?;
    let product = Guarded::update(key(&first.product_id)?, copied, super::in_catalogue());
    let listed = sharded_key(&first.product_id, &first.location)?;
    let before = |instant| Condition::NotExists.or(Condition::Below("updated_at", first_alive(instant)));
    let able = match reason {
        ReshardReason::Asked => None,
        ReshardReason::Hot => Some(before(at.plus_seconds(-PAUSE_SECONDS))),
        ReshardReason::Since(instant) => Some(before(instant)),
    };
    let change = Change::<ShardedStock>::visible(at)
        .or_create(&Born::counter(), at)
        .set("product_id", &first.product_id)?
        .set("location", &first.location)?
        .set("shards", shards)?;
    let entry = match able {
        None => Guarded::modify(listed, change.set("least", shards)?),
        Some(able) => Guarded::update(listed, change, able),
    };
    Ok(transaction.action(ProductAction::Product, product).action(ProductAction::Shards, entry))
}

/// Returns the transactions that spread the pieces evenly over these shards, which are all shards as
/// they were read. Each one moves pieces between two shards. DynamoDB refuses it if a shard is missing
/// or has too few pieces.
pub fn level(stocks: &[Stored<Stock>], at: Instant) -> Result<Vec<Transaction<ProductAction>>, EncodeError> {
    let total: u64 = stocks.iter().map(|stock| stock.available).sum();
    let count = u32::try_from(stocks.len()).map_err(|_| EncodeError::Overflow)?;
    let wanted = |stock: &Stock| share(total, count, stock.shard);
    let mut givers = stocks.iter().map(|stock| (stock, stock.available.saturating_sub(wanted(stock))));
    let (mut giver, mut moves) = (givers.next(), Vec::new());
    for taker in stocks {
        let mut missing = wanted(taker).saturating_sub(taker.available);
        while missing > 0 {
            let Some((from, spare)) = &mut giver else { return Ok(moves) };
            let moved = missing.min(*spare);
            if moved > 0 {
                moves.push(move_pieces(from, taker, moved, at)?);
                (missing, *spare) = (missing - moved, *spare - moved);
            }
            if *spare == 0 {
                giver = givers.next();
            }
        }
    }
    Ok(moves)
}

fn move_pieces(from: &Stock, to: &Stock, moved: u64, at: Instant) -> Result<Transaction<ProductAction>, EncodeError> {
    let taken = Change::<Stock>::visible(at).add("available", -pieces(moved)?);
    let given = Change::<Stock>::visible(at).add("available", pieces(moved)?);
    let able = Condition::AtLeast("available", number(moved));
    Ok(Transaction::new(&MOVE_PIECES)
        .action(ProductAction::Stock, Guarded::update(from.key()?, taken, able))
        .action(ProductAction::Stock, Guarded::update(to.key()?, given, Condition::Exists)))
}

/// Returns the transactions that empty the shards which a merge to so many would end. Orders find no
/// pieces in an empty shard, so they no longer write it, and [`merge`] succeeds beside them.
pub fn drain(
    stocks: &[Stored<Stock>],
    shards: u32,
    at: Instant,
) -> Result<Vec<Transaction<ProductAction>>, EncodeError> {
    let ended = stocks.iter().filter(|stock| stock.shard >= shards && stock.available > 0);
    let moves = ended.filter_map(|from| {
        let heir = stocks.iter().find(|stock| stock.shard == from.shard % shards.max(1))?;
        Some(move_pieces(from, heir, from.available, at))
    });
    moves.collect()
}

/// Merges shards, until the stock has so many. `stocks` are all its shards as they were read.
/// DynamoDB refuses the write if the number of shards has changed, or if a shard that ends has another
/// number of pieces.
pub fn merge(
    stocks: &[Stored<Stock>],
    shards: u32,
    reason: ReshardReason,
    at: Instant,
) -> Result<Transaction<ProductAction>, EncodeError> {
    let first = stocks.first().ok_or(EncodeError::Overflow)?;
    let shards = shards.clamp(1, first.shards());
    let mut transaction = counted(Transaction::new(&MERGE), first, shards, reason, at)?;
    for stock in stocks {
        let write = if stock.shard < shards {
            let heirs = stocks.iter().filter(|ended| ended.shard >= shards && ended.shard % shards == stock.shard);
            let gained: u64 = heirs.map(|ended| ended.available).sum();
            let change = Change::<Stock>::visible(at).add("available", pieces(gained)?);
            if stock.shard == 0 {
                let counted = change.set("shards", (shards > 1).then_some(shards))?;
                Guarded::update(stock.key()?, counted, sellable_in(first.shards())?)
            } else if gained > 0 {
                Guarded::update(stock.key()?, change, Condition::Exists)
            } else {
                continue;
            }
        } else {
            Guarded::delete(stock.key()?, Condition::Is("available", number(stock.available)))
        };
        transaction = transaction.action(ProductAction::Stock, write);
    }
    Ok(transaction)
}

/// Takes a stock out of the list ([`ShardedStock::is_over`]), unless the number of its shards changed
/// since the entry was read.
pub fn unlist(listed: &Stored<ShardedStock>) -> Result<Single<()>, EncodeError> {
    let unchanged = Condition::Is("rev", number(listed.meta.rev));
    Ok(Single::new(&UNLIST, Guarded::delete(listed.key()?, unchanged)))
}

/// Lists the stocks that have, or had within an hour, several shards.
pub fn sharded() -> Result<Query<Stored<ShardedStock>>, KeyError> {
    Ok(Query::new(&LIST_SHARDED, sharded_partition()?, Range::under("STOCK")))
}

/// The shards from which an order line takes its pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Picks {
    /// The known number of shards.
    of: u32,
    /// The pieces of each shard. If it is empty, the first shard gives all pieces.
    pub taken: Vec<Pick>,
}

/// Pieces that an order takes from one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pick {
    pub shard: u32,
    pub pieces: u64,
}

impl Picks {
    /// Returns the shard from which an order takes its pieces before it has seen the stock.
    #[must_use]
    pub fn first(order: &OrderId, shards: Option<u32>, pieces: u64) -> Self {
        let of = shards.unwrap_or(1).clamp(1, MAX_STOCK_SHARDS);
        let shard = Shards(of).of(order.as_str());
        Self { of, taken: if of == 1 { Vec::new() } else { vec![Pick { shard, pieces }] } }
    }

    /// Returns where an order line finds its pieces in these shards: all in one shard, or else in the
    /// fullest shards. Returns [`None`] if all shards together have too few.
    #[must_use]
    pub fn among(line: &OrderLine, stocks: &[Stored<Stock>]) -> Option<Self> {
        let of = u32::try_from(stocks.len()).ok()?;
        let taken = among(stocks, line.quantity, line.order_id.as_str(), Some(&line.product_born))?;
        Some(Self { of, taken })
    }

    /// Chooses another shard after a conflict. `random` is any number. Pieces from several shards stay
    /// where they are.
    pub fn elsewhere(&mut self, random: u32) {
        if let [pick] = self.taken.as_mut_slice()
            && self.of > 1
        {
            pick.shard = (pick.shard + 1 + random % (self.of - 1)) % self.of;
        }
    }

    /// Returns the known number of shards.
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.of.max(1)
    }
}

/// Returns where so many pieces are: all in one shard that follows from `seed`, or else in the fullest
/// shards.
fn among(stocks: &[Stored<Stock>], quantity: u64, seed: &str, born: Option<&Born>) -> Option<Vec<Pick>> {
    let usable = |stock: &&Stored<Stock>| stock.in_stock() && born.is_none_or(|born| stock.is_of(born));
    let mut usable: Vec<&Stored<Stock>> = stocks.iter().filter(usable).collect();
    let enough: Vec<_> = usable.iter().filter(|stock| stock.available >= quantity).collect();
    if let Some(count) = u32::try_from(enough.len()).ok().filter(|count| *count > 0) {
        let chosen = usize::try_from(Shards(count).of(seed)).unwrap_or_default();
        return enough.get(chosen).map(|stock| vec![Pick { shard: stock.shard, pieces: quantity }]);
    }
    usable.sort_by_key(|stock| std::cmp::Reverse(stock.available));
    let (mut picks, mut missing) = (Vec::new(), quantity);
    for stock in usable {
        let pieces = stock.available.min(missing);
        missing -= pieces;
        picks.push(Pick { shard: stock.shard, pieces });
        if missing == 0 {
            return Some(picks);
        }
    }
    None
}

/// Returns the actions that take the pieces of an order line, for the order's transaction. A condition
/// fails if a shard has too few pieces, is not sellable, or is not of the stock that the line sells
/// ([`Stock::is_of`]).
pub(crate) fn take(line: &OrderLine, at: Instant) -> Result<Vec<Guarded>, EncodeError> {
    let whole = [Pick { shard: 0, pieces: line.quantity }];
    let picks = if line.picks.taken.is_empty() { whole.as_slice() } else { line.picks.taken.as_slice() };
    let take = |pick: &Pick| {
        let taken = pieces(pick.pieces)?;
        let enough = Condition::Is("sellable", value(true)?).and(Condition::AtLeast("available", number(taken)));
        let change = Change::<Stock>::visible(at).add("available", -taken);
        let shard = shard_key(&line.product_id, &LocationId::main(), pick.shard)?;
        Ok(Guarded::update(shard, change, enough.and(of_incarnation(line)?)))
    };
    picks.iter().map(take).collect()
}

fn pieces(quantity: u64) -> Result<i64, EncodeError> {
    i64::try_from(quantity).map_err(|_| EncodeError::Overflow)
}

/// Returns the condition that the stock is the one that the line sold ([`Stock::is_of`]).
fn of_incarnation(line: &OrderLine) -> Result<Condition, EncodeError> {
    Ok(Condition::Lacks("product_born").or(Condition::Is("product_born", value(&line.product_born)?)))
}

/// Gives the pieces of a cancelled or returned order line back to the stock. The action is part of
/// the order's transaction. The stock of a retired product takes pieces back too. The condition
/// fails if the product was revived or got its first variant since the sale, because the new stock
/// does not include these pieces.
pub(crate) fn give_back(line: &OrderLine, at: Instant) -> Result<Guarded, EncodeError> {
    let change = Change::<Stock>::visible(at).add("available", pieces(line.quantity)?);
    Ok(Guarded::update(stock_key(&line.product_id)?, change, Condition::Exists.and(of_incarnation(line)?)))
}

/// Reads the further shards of a stock with strong consistency. `first` is the first shard. Returns
/// [`None`] if there is no other.
pub fn further_shards(first: &Stock) -> Result<Option<BatchGet<Stored<Stock>>>, KeyError> {
    let keys = (1..first.shards()).map(|shard| shard_key(&first.product_id, &first.location, shard));
    let keys = keys.collect::<Result<Vec<_>, _>>()?;
    Ok((!keys.is_empty()).then(|| BatchGet::new(&READ_SHARDS, keys)))
}

/// Reads the stock for a product page.
pub fn shown_stock(id: &ProductId) -> Result<Get<Stored<Stock>>, KeyError> {
    Ok(Get::new(&SHOW_STOCK, stock_key(id)?))
}

/// Reads a stock with strong consistency.
pub fn stock(id: &ProductId) -> Result<Get<Stored<Stock>>, KeyError> {
    Ok(Get::new(&READ_STOCK, stock_key(id)?))
}
