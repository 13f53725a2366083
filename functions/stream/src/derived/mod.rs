//! Sink `derived`: the table's derived data.
//!
//! - From an order the sink derives sales rows, counters of products and totals of places
//!   ([`sales`]). They are exact, because one transaction writes each row and its effect on the
//!   counters.
//! - From a product's stock and review statistics it derives the copies in the product's item, for
//!   the search document ([`copies`]). They are exact, because a copy is replaced only by a copy
//!   with a higher `rev` of its source.
//! - From counts of sales, views and likes it derives the ranks of leaderboards ([`ranks`]). They
//!   are exact for the same reason as the copies. The `rev` of a rank is the sum of the `rev` of
//!   its sources.
//! - From a product it derives the product's entries in further categories, which are [`copies`],
//!   too. The same holds for a variant in the list of its parent.
//!
//! Copies use the record's own image, because an image that is older than the copy changes nothing.
//! Counters use the result of a read, because the sink adds only the difference between the new
//! rows and the rows in the table.

mod copies;
mod ranks;
mod sales;

use std::sync::Arc;

use futures::future::BoxFuture;
use key_schema::entity::AnyEntity;
use key_schema::item::EncodeError;
use key_schema::key::KeyError;
use key_schema::request::Single;
use table::TableError;

use crate::batch::Record;
use crate::lane;
use crate::order_lines::ReadError;
use crate::ports::Items;
use crate::sink::Sink;
use crate::verdict::{Reason, Verdict, Verdicts};
use sales::Turns;

#[derive(Debug)]
pub struct Derived<I> {
    table: Arc<I>,
    turns: Turns,
    concurrency: usize,
}

impl<I: Items> Derived<I> {
    /// Creates a sink on this table that takes up to `concurrency` items at once.
    #[must_use]
    pub fn new(table: Arc<I>, concurrency: usize) -> Self {
        Self { table, turns: Turns::default(), concurrency }
    }

    async fn derive(&self, record: &Record<'_>) -> Result<(), DeriveError> {
        let (table, change) = (&*self.table, &record.change);
        match change.after() {
            Some(AnyEntity::Order(_)) if record.is_import() => Ok(()),
            Some(AnyEntity::Order(order)) if sales::affects_sales(change.before(), order) => {
                sales::derive(table, &self.turns, record, &order.id).await
            }
            Some(AnyEntity::Stock(stock)) => copies::stock(table, change, stock).await,
            Some(AnyEntity::ReviewStats(stats)) => copies::rating(table, change, stats).await,
            Some(AnyEntity::Product(product)) => {
                copies::variant(table, change, product).await?;
                copies::memberships(table, change, product).await
            }
            Some(AnyEntity::LikeCount(likes)) => ranks::likes(table, likes).await,
            Some(AnyEntity::Tally(tally)) => ranks::tally(table, tally).await,
            // The sink derives nothing from a removal. The sales rows remain, because they are
            // accounting records.
            _ => Ok(()),
        }
    }
}

impl<I: Items> Sink for Derived<I> {
    fn name(&self) -> &'static str {
        "derived"
    }

    fn take<'a>(&'a self, records: &'a [Record<'a>], verdicts: &'a Verdicts) -> BoxFuture<'a, ()> {
        Box::pin(lane::each(records, self.concurrency, verdicts, move |record| async move {
            self.derive(record).await.map_or_else(Verdict::from, |()| Verdict::Done)
        }))
    }
}

/// Writes a copy. A refusal means that the stored copy is newer, or that its target does not exist.
async fn copy<I: Items>(table: &I, write: &Single<()>) -> Result<(), DeriveError> {
    if table.write(write).await?.is_ok() {
        telemetry::crash_point("stream.derived.applied");
    }
    Ok(())
}

#[derive(Debug, thiserror::Error)]
enum DeriveError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// Other consumers changed the items between the read and the write in every attempt.
    #[error("other consumers kept changing the same items")]
    Overtaken,
}

impl From<ReadError> for DeriveError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Table(error) => error.into(),
            ReadError::Key(error) => error.into(),
        }
    }
}

impl From<KeyError> for DeriveError {
    fn from(error: KeyError) -> Self {
        Self::Encode(error.into())
    }
}

impl From<DeriveError> for Verdict {
    fn from(error: DeriveError) -> Self {
        match error {
            // The stored data cannot be decoded or encoded, and no retry changes that.
            DeriveError::Table(TableError::Decode(error)) => Self::Refused(Reason::new("malformed_source", error)),
            DeriveError::Encode(error) => Self::Refused(Reason::new("underivable", error)),
            DeriveError::Table(error) => Self::Failed(Reason::new("table", error)),
            DeriveError::Overtaken => Self::Failed(Reason::new("overtaken", error)),
        }
    }
}
