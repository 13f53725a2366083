//! Sink `derived`: what the table holds of its own contents a second time.
//!
//! | record of | derives | exact because |
//! | --- | --- | --- |
//! | an order | sales rows, counters of products, totals of places ([`sales`]) | each row proves its own counting, in one transaction with it |
//! | a stock, review statistics | the product's copies for the search document ([`copies`]) | a copy is a set, ordered by its source's `rev` |
//! | a product | its entries in further categories ([`memberships`]) | a copy is a set, ordered by its source's `rev` |
//!
//! Copies are made from the record's own image, for an older one changes nothing; what counts is read, for the difference must be to what is there.

mod copies;
mod memberships;
mod sales;
mod turns;

use std::sync::Arc;

use futures::future::BoxFuture;
use key_schema::entity::AnyEntity;
use key_schema::item::EncodeError;
use key_schema::key::KeyError;
use key_schema::request::Single;
use table::{TableError, WriteError};

use crate::batch::{Change, Record};
use crate::lane;
use crate::ledger::{Ledger, Reason, Verdict};
use crate::ports::Items;
use crate::sink::Sink;
use turns::Turns;

/// The sink of derived data.
#[derive(Debug)]
pub struct Derived<I> {
    table: Arc<I>,
    turns: Turns,
    concurrency: usize,
}

impl<I: Items> Derived<I> {
    /// A sink over this table that takes up to `concurrency` items at once.
    #[must_use]
    pub fn new(table: Arc<I>, concurrency: usize) -> Self {
        Self { table, turns: Turns::default(), concurrency }
    }

    async fn derive(&self, change: &Change) -> Result<(), DeriveError> {
        let table = &*self.table;
        match change.after() {
            Some(AnyEntity::Order(order)) if sales::moved(change.before(), order) => {
                sales::derive(table, &self.turns, &order.id).await
            }
            Some(AnyEntity::Stock(stock)) => copies::stock(table, change, stock).await,
            Some(AnyEntity::ReviewStats(stats)) => copies::rating(table, change, stats).await,
            Some(AnyEntity::Product(product)) => memberships::refresh(table, change, product).await,
            // Of what an operator removed nothing is derived: what the books rest on stays.
            _ => Ok(()),
        }
    }
}

impl<I: Items> Sink for Derived<I> {
    fn name(&self) -> &'static str {
        "derived"
    }

    fn take<'a>(&'a self, records: &'a [Record<'a>], ledger: &'a Ledger) -> BoxFuture<'a, ()> {
        Box::pin(lane::each(records, self.concurrency, ledger, move |record| async move {
            self.derive(&record.change).await.map_or_else(Verdict::from, |()| Verdict::Done)
        }))
    }
}

/// Writes a copy. Where its condition does not hold, the copy is newer, or what it would lie on is not there.
async fn copy<I: Items>(table: &I, write: &Single<()>) -> Result<(), DeriveError> {
    match table.write(write).await {
        Ok(()) => telemetry::crash_point("stream.derived.applied"),
        Err(WriteError::Refused(_)) => {}
        Err(WriteError::Table(error)) => return Err(error.into()),
    }
    Ok(())
}

/// Why nothing was derived.
#[derive(Debug, thiserror::Error)]
enum DeriveError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// What was read kept changing before it could be written.
    #[error("others kept deriving the same")]
    Overtaken,
}

impl From<KeyError> for DeriveError {
    fn from(error: KeyError) -> Self {
        Self::Encode(error.into())
    }
}

impl From<DeriveError> for Verdict {
    fn from(error: DeriveError) -> Self {
        match error {
            // What the table holds is unreadable, or has no form as what is derived of it: no retry changes that.
            DeriveError::Table(TableError::Decode(error)) => Self::Refused(Reason::new("malformed_source", error)),
            DeriveError::Encode(error) => Self::Refused(Reason::new("underivable", error)),
            DeriveError::Table(error) => Self::Failed(Reason::new("table", error)),
            DeriveError::Overtaken => Self::Failed(Reason::new("overtaken", error)),
        }
    }
}
