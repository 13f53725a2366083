//! Sink `derived`: the sales rows of orders.
//!
//! # Why the rows converge
//!
//! The rows of an order are a function of its head and its lines ([`key_schema::sales::derive`]). Lines never change. The head is not taken
//! from the record but read, strongly, when the rows are written: so a record that arrives twice, late or out of order derives what the
//! order is *now*. A row carries the head's `rev` and is written only over an older one, so that of two consumers which read different heads the
//! one with the newer head wins, whichever writes last. And the record of each change of the head that matters is delivered until it
//! was taken, after the change, so the newest such head is derived at least once. Rows are never deleted: those of a cancelled order stay
//! behind as reversed, with a `rev` that keeps older ones out.
//!
//! An order is never removed by the shop. When an operator removes one there is no head to derive from, and its rows, which the books rest on, stay.

use std::sync::Arc;

use futures::future::BoxFuture;
use key_schema::entity::AnyEntity;
use key_schema::id::OrderId;
use key_schema::item::{EncodeError, Stored};
use key_schema::key::KeyError;
use key_schema::order::{self, OrderStatus};
use key_schema::request::MAX_TRANSACTION_ACTIONS;
use key_schema::sales::{self, Sale};
use table::{Table, TableError, TransactError};

use crate::batch::{Change, Record};
use crate::lane;
use crate::ledger::{Ledger, Reason, Verdict};
use crate::sink::Sink;

/// The sink of derived data.
#[derive(Debug)]
pub struct Sales {
    table: Arc<Table>,
    concurrency: usize,
}

impl Sales {
    /// A sink over this table that derives up to `concurrency` orders at once.
    #[must_use]
    pub const fn new(table: Arc<Table>, concurrency: usize) -> Self {
        Self { table, concurrency }
    }

    async fn derive(&self, id: &OrderId) -> Result<(), DeriveError> {
        let Some(head) = self.table.get(&order::head(id)?).await? else { return Ok(()) };
        let lines = self.table.query(&order::lines(id)?).await?.items;
        let rows: Vec<Stored<Sale>> = lines.iter().map(|line| sales::derive(&head, line)).collect();
        for rows in rows.chunks(MAX_TRANSACTION_ACTIONS) {
            if self.apply(rows).await? == Applied::NotAll && rows.len() > 1 {
                // Some rows of the chunk are as new as this head and some are not: they were written under another chunking. Each is
                // then judged alone.
                for row in rows {
                    self.apply(std::slice::from_ref(row)).await?;
                }
            }
        }
        Ok(())
    }

    async fn apply(&self, rows: &[Stored<Sale>]) -> Result<Applied, DeriveError> {
        match self.table.transact(&sales::apply(rows)?).await {
            Ok(()) => Ok(Applied::OrNewer),
            Err(TransactError::Refused(newer)) if newer.len() >= rows.len() => Ok(Applied::OrNewer),
            Err(TransactError::Refused(_)) => Ok(Applied::NotAll),
            Err(TransactError::Table(error)) => Err(error.into()),
        }
    }
}

impl Sink for Sales {
    fn name(&self) -> &'static str {
        "derived"
    }

    fn take<'a>(&'a self, records: &'a [Record<'a>], ledger: &'a Ledger) -> BoxFuture<'a, ()> {
        Box::pin(lane::each(records, self.concurrency, ledger, move |record| async move {
            let Some(order) = moved(&record.change) else { return Verdict::Done };
            self.derive(order).await.map_or_else(Verdict::from, |()| Verdict::Done)
        }))
    }
}

/// The order whose sales the change may have altered: it became visible, or it began or ceased to count as sold.
fn moved(change: &Change) -> Option<&OrderId> {
    let Change::Written { new: AnyEntity::Order(new), old } = change else { return None };
    let matters = match old {
        Some(AnyEntity::Order(old)) => old.status.is_sale() != new.status.is_sale(),
        // A new order, or one whose former state cannot be read.
        _ => new.status != OrderStatus::Placing,
    };
    matters.then_some(&new.data.id)
}

/// What became of a chunk of rows.
#[derive(Debug, PartialEq, Eq)]
enum Applied {
    /// The table holds each of them, or a newer one.
    OrNewer,
    /// Nothing was written, and some of them are still to be.
    NotAll,
}

/// Why rows were not derived.
#[derive(Debug, thiserror::Error)]
enum DeriveError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

impl From<KeyError> for DeriveError {
    fn from(error: KeyError) -> Self {
        Self::Encode(error.into())
    }
}

impl From<DeriveError> for Verdict {
    fn from(error: DeriveError) -> Self {
        match error {
            // What the table holds of this order is unreadable, or has no form as rows: no retry changes that.
            DeriveError::Table(TableError::Decode(error)) => Self::Refused(Reason::new("malformed_order", error)),
            DeriveError::Encode(error) => Self::Refused(Reason::new("underivable_order", error)),
            DeriveError::Table(error) => Self::Failed(Reason::new("table", error)),
        }
    }
}
