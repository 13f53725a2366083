//! Work on orders that takes several transactions:
//!
//! - placing an order that is too large for one transaction, and undoing it
//! - returning the stock of a cancelled or returned order
//! - cancelling an order that was not paid in time
//!
//! [`key_schema::order::staged`] contains the transactions. Each of them leaves a valid order. So
//! after any interruption an order is either invisible or in its new status, and the janitor finds
//! it. Two concurrent workers on one order, such as a slow function and the janitor, cannot both
//! take the same step. The second worker's condition fails, and that worker reads the order again.

mod lapse;
mod place;
mod rest;
mod transition;
mod undo;

use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::staged::{Unfinished, Work};
use key_schema::order::{self, Order, OrderAction, OrderItem, OrderLine, OrderStatus};
use table::Table;

pub use crate::engine::Undone;
pub use lapse::{Lapsed, lapse};
pub(crate) use place::PlaceOrder;
pub use place::{Placing, place};
pub(crate) use rest::ReturnStock;
pub use rest::give_back;
pub use transition::transition;
pub use undo::undo;

/// The maximum number of attempts while other workers change the same order.
const ATTEMPTS: usize = 8;

/// An error that stopped the work on an order. The janitor finds the order.
pub type StagingError = crate::WorkflowError<OrderAction>;

type Stop = crate::engine::Stop<OrderAction>;

/// The items of an order, as one query reads them.
struct Items {
    head: Option<Stored<Order>>,
    /// In line order.
    lines: Vec<Stored<OrderLine>>,
    /// The instant of the last status.
    last: Instant,
}

impl Items {
    async fn read(table: &Table, id: &OrderId) -> Result<Self, StagingError> {
        let mut found = Self { head: None, lines: Vec::new(), last: Instant::MIN };
        for item in table.query(&order::read_for_update(id)?).await?.items {
            match item {
                OrderItem::Order(order) => found.head = Some(order),
                OrderItem::OrderLine(line) => found.lines.push(line),
                OrderItem::OrderStatusEvent(event) => found.last = found.last.max(event.at),
                OrderItem::Payment(_) => {}
            }
        }
        found.lines.sort_by_key(|line| line.line);
        Ok(found)
    }

    /// Returns the lines of an order, if all of them were read.
    fn all(self, head: &Order) -> Result<Vec<OrderLine>, StagingError> {
        let is_whole = u64::try_from(self.lines.len()) == Ok(head.line_count);
        let lines = self.lines.into_iter().map(|line| line.data).collect();
        if is_whole { Ok(lines) } else { Err(StagingError::Contended) }
    }
}

/// What [`resume`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumed {
    /// The order was not placed and is removed.
    Undone,
    /// All stock of the cancelled or returned order is given back.
    Finished,
    /// The order has no unfinished work.
    Nothing,
}

/// Undoes or finishes the unfinished work of an order.
///
/// # Errors
/// [`StagingError`]. After an error, the next call does the rest.
pub async fn resume(table: &Table, head: &Order) -> Result<Resumed, StagingError> {
    match &head.unfinished {
        _ if head.status == OrderStatus::Placing => Ok(match undo(table, &head.id).await? {
            Undone::Gone => Resumed::Undone,
            Undone::Visible => Resumed::Nothing,
        }),
        Some(Unfinished { work: Work::Returning(_), .. }) => {
            give_back(table, &head.id).await.map(|()| Resumed::Finished)
        }
        _ => Ok(Resumed::Nothing),
    }
}
