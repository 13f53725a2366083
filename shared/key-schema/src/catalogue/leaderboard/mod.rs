//! Leaderboards: the products with the most sales, views and likes of a day, a week and all time.
//!
//! # Tallies and ranks
//!
//! A [`Tally`] counts one product on one board, on one day or over all time. It is a counter: many
//! writers add to it, and no condition depends on its value. So its writer does not know the new
//! value, and cannot write an index key with that value. A second item, the [`Rank`], has the index
//! key. A rank stores the sum of some counts, and its key in the index begins with the sum. The
//! stream's consumer writes the ranks. It adds up these sources:
//!
//! | board | for a day | for a week | for all time |
//! | --- | --- | --- | --- |
//! | sales, views | the day's tally | the tallies of seven days | a tally without a day |
//! | likes | the day's tallies | the tallies of seven days | all [`crate::like::LikeCount`] items |
//!
//! # Why a rank converges
//!
//! When the stream record of a source arrives, the consumer reads all sources of the rank with
//! strong consistency. The rank gets the sum of the sources' `rev` as its own `rev`, and replaces
//! only an older rank. A source's `rev` grows with every write. So the newest state of all sources
//! has a larger sum than every earlier or mixed state. The newest state wins, in any order of the
//! writes. The stream record of a write arrives after the write, so the consumer of the last record
//! reads the newest state.
//!
//! # Sales
//!
//! A sale counts on the day of its order's shipment ([`crate::sales`]).
//!
//! # When a tally expires
//!
//! The tallies of a week expire together, [`DAYS_KEPT`] days after the week. So a week is never
//! summed without some of its days. If an order is returned after that, only the sales of all time
//! change.
//!
//! # Views
//!
//! A read of a product adds [`VIEW_SAMPLE`] views with the probability 1/[`VIEW_SAMPLE`]. The id of
//! the request decides this, so a read needs no state. The expected sum is the number of reads.
//! [`standard_error`] returns its standard error.

mod period;

use std::str::FromStr;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::change::Change;
use crate::encoding::join;
use crate::expression::Condition;
use crate::id::{Born, ProductId};
use crate::index::GSI2;
use crate::instant::Instant;
use crate::item::{DecodeError, EncodeError, Entity, FromItem, Item, Meta, Stored, decode, entity_name};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::product::{self, Product};
use crate::request::{BatchGet, Guarded, Query, Range, Single, Transaction};
use crate::shard::Shards;

pub use period::{DAYS_KEPT, Period, PeriodError, WEEK_KEPT};

pub const SHARDS: Shards = Shards(4);
/// About one read in this many is counted. It counts as this many views.
pub const VIEW_SAMPLE: Shards = Shards(64);

/// The quantity by which a leaderboard sorts products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Board {
    /// Pieces of shipped orders, by the day of the shipment, without returned orders.
    Sales,
    /// Reads of the product's page, estimated from a sample.
    Views,
    /// Likes, less the likes that were removed in the same period.
    Likes,
}

impl Board {
    pub const ALL: [Self; 3] = [Self::Sales, Self::Views, Self::Likes];

    /// Returns the board's name in keys, URLs and responses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sales => "sales",
            Self::Views => "views",
            Self::Likes => "likes",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be sales, views or likes")]
pub struct BoardError;

impl FromStr for Board {
    type Err = BoardError;

    fn from_str(text: &str) -> Result<Self, BoardError> {
        Self::ALL.into_iter().find(|board| board.as_str() == text).ok_or(BoardError)
    }
}

entity! {
    /// A count of a product on a board: of one day or, for sales and views, of all time. The likes
    /// of a day have several counts, one for each shard of [`crate::like::COUNTERS`].
    Tally = "Tally" {
        fixed {
            board: Board,
            product_id: ProductId,
            /// The day, or all time.
            period: Period,
            /// The number of the count's shard, from 0. Only likes have more than one shard.
            part: u32,
            /// The count. It is negative if more was subtracted on the day than added.
            count: i64,
        }
        mutable {}
    }
}

impl Entity for Tally {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        tally_key(self.board, &self.product_id, self.period, self.part)
    }

    fn expires(&self) -> Option<Instant> {
        self.period.expires()
    }
}

fn partition(board: Board, product: &ProductId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("TALLY", &[&board.as_str(), product])
}

fn tally_key(board: Board, product: &ProductId, period: Period, part: u32) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(board, product)?, sk: SortKey::new(join(&period.to_string(), &[&part]))? })
}

entity! {
    /// The sum of a product's counts on a board in a period. Its index key puts it on the board's
    /// list.
    Rank = "Rank" {
        fixed {
            board: Board,
            product_id: ProductId,
            period: Period,
            count: i64,
        }
        mutable {}
    }
}

impl Entity for Rank {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        let sk = SortKey::of("RANK", &[&self.period.to_string()])?;
        Ok(Key { pk: partition(self.board, &self.product_id)?, sk })
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        let Some(count) = u64::try_from(self.count).ok().filter(|count| *count > 0) else { return Ok(Vec::new()) };
        let shard = SHARDS.of(self.product_id.as_str());
        Ok(vec![IndexKey {
            index: GSI2,
            partition: board_partition(self.board, self.period, shard)?,
            sort: SortKey::new(join(&digits(count), &[&self.product_id]))?,
        }])
    }

    fn expires(&self) -> Option<Instant> {
        self.period.expires()
    }
}

/// Returns the count with as many digits as the largest count, so that text order is numeric order.
fn digits(count: u64) -> String {
    format!("{count:020}")
}

fn board_partition(board: Board, period: Period, shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("BOARD", &[&board.as_str(), &period.to_string(), &shard])
}

impl Rank {
    /// Returns the rank whose count is the sum of these counts. Each count comes with the [`Meta`]
    /// of its item. Returns `None` if there is no count.
    pub fn sum<'a>(
        board: Board,
        product: &ProductId,
        period: Period,
        counts: impl IntoIterator<Item = (&'a Meta, i64)>,
    ) -> Option<Stored<Self>> {
        let mut counts = counts.into_iter();
        let (first, count) = counts.next()?;
        let data = Self { board, product_id: product.clone(), period, count };
        let mut sum = Stored { meta: Meta { born: Born::counter(), ..first.clone() }, data };
        for (part, count) in counts {
            sum.meta.rev = sum.meta.rev.saturating_add(part.rev);
            sum.meta.created_at = sum.meta.created_at.min(part.created_at);
            sum.meta.updated_at = sum.meta.updated_at.max(part.updated_at);
            sum.data.count = sum.data.count.saturating_add(count);
        }
        sum.meta.version = sum.meta.rev;
        Some(sum)
    }
}

/// A rank as the board's index returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankEntry {
    pub product_id: ProductId,
    /// The sum, read from the index key.
    pub count: u64,
}

#[derive(Deserialize)]
struct ProductOfRank {
    product_id: ProductId,
}

impl FromItem for RankEntry {
    fn from_item(item: Item) -> Result<Self, DecodeError> {
        let found = entity_name(&item)?;
        if found != Rank::NAME {
            return Err(DecodeError::OtherEntity { expected: Rank::NAME, found: found.to_owned() });
        }
        let count = match item.get(GSI2.sort_attribute()) {
            Some(AttributeValue::S(sort)) => sort.split('#').next().and_then(|count| count.parse().ok()),
            _ => None,
        };
        let count = count.ok_or_else(|| DecodeError::malformed(Rank::NAME, &item, "its key has no count"))?;
        let ProductOfRank { product_id } = decode(Rank::NAME, item)?;
        Ok(Self { product_id, count })
    }
}

patterns! {
    VIEW {
        id: "leaderboards.view",
        purpose: "Count a sampled view of a product",
        request: TransactWriteItems,
        key: "PK = TALLY#views#<product>, SK = <day>#<part> and ALL#<part>",
        requires: "no condition; ADD the views to both tallies",
        callers: "any",
    }
    DAYS {
        id: "leaderboards.days",
        purpose: "Read the counts of a product in a week",
        request: Query,
        key: "PK = TALLY#<board>#<product>, SK between <Monday> and <Sunday>$",
        returns: "the counts of each day",
        consistency: Consistency::Strong("the sum must include the change in the stream record"),
        callers: "system",
    }
    STORE_RANK {
        id: "leaderboards.place",
        purpose: "Copy the sum of a product's counts to a board",
        request: PutItem,
        key: "PK = TALLY#<board>#<product>, SK = RANK#<period>",
        requires: "the rank does not exist, or has an older rev",
        callers: "system",
    }
    TOP {
        id: "leaderboards.top",
        purpose: "List the first products of a board",
        request: ShardedQuery on GSI2,
        key: "GSI2PK = BOARD#<board>#<period>#<shard>, backward",
        returns: "products by count, the largest first",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    PRODUCTS {
        id: "leaderboards.products",
        purpose: "Read the products of a board",
        request: BatchGetItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT, for each id",
        returns: "the products, which may be retired",
        consistency: Consistency::Eventual,
        callers: "any",
    }
}

/// Returns the action that adds to a tally. The caller puts it into the transaction of the counted
/// change. Returns `None` if the tally has expired at `at`, the present time.
pub(crate) fn count(
    (board, product): (Board, &ProductId),
    (period, part): (Period, u32),
    amount: i64,
    at: Instant,
) -> Result<Option<Guarded>, EncodeError> {
    if period.is_expired(at) {
        return Ok(None);
    }
    let mut change = Change::<Tally>::visible(at)
        .or_create(&Born::counter(), at)
        .set("board", board)?
        .set("product_id", product)?
        .set("period", period)?
        .set("part", part)?
        .add("count", amount);
    if let Some(expires) = period.expires() {
        change = change.expire_at(expires);
    }
    Ok(Some(Guarded::modify(tally_key(board, product, period, part)?, change)))
}

/// Counts a view of a product, if the id of the request selects it for the sample.
pub fn view(product: &ProductId, request: &str, at: Instant) -> Result<Option<Transaction<()>>, EncodeError> {
    if VIEW_SAMPLE.of(request) != 0 {
        return Ok(None);
    }
    let views = i64::from(VIEW_SAMPLE.0);
    let mut transaction = Transaction::new(&VIEW);
    for period in [Period::day(at), Period::All] {
        transaction = transaction.optional((), count((Board::Views, product), (period, 0), views, at)?);
    }
    Ok(Some(transaction))
}

/// Returns the standard error of an estimated number of views, rounded up. Each read is in the
/// sample with the probability 1/N, so the variance of the estimate is (N - 1) times the estimate.
#[must_use]
pub fn standard_error(views: u64) -> u64 {
    let variance = views.saturating_mul(u64::from(VIEW_SAMPLE.0.saturating_sub(1)));
    let root = variance.isqrt();
    if root * root == variance { root } else { root + 1 }
}

pub fn days(board: Board, product: &ProductId, day: Instant) -> Result<Query<Stored<Tally>>, KeyError> {
    let (monday, sunday) = Period::week(day).days().unwrap_or((day, day));
    let range = Range::Between(monday.day(), format!("{}$", sunday.day()));
    Ok(Query::new(&DAYS, partition(board, product)?, range))
}

/// Writes a rank, unless the stored rank is as new or newer.
pub fn store_rank(rank: &Stored<Rank>) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(&STORE_RANK, Guarded::put(rank, Condition::count_below("rev", rank.meta.rev))?))
}

/// Lists the products of a board by count, the largest first.
pub fn top(board: Board, period: Period) -> Result<Query<RankEntry>, KeyError> {
    let shards = SHARDS.all().map(|shard| board_partition(board, period, shard)).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&TOP, shards, Range::All).descending())
}

/// Reads the products of a board, retired or not.
pub fn products<'a>(ids: impl IntoIterator<Item = &'a ProductId>) -> Result<BatchGet<Stored<Product>>, KeyError> {
    Ok(BatchGet::new(&PRODUCTS, ids.into_iter().map(product::key).collect::<Result<_, _>>()?))
}
