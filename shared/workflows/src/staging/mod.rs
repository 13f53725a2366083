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
use key_schema::order::staged::{Unfinished, Work};
use key_schema::order::{self, Order, OrderAction, OrderStatus, PlacedOrder};
use table::Table;

pub use crate::engine::Undone;
pub use lapse::{Lapsed, lapse};
pub(crate) use place::PlaceOrder;
pub use place::place;
pub(crate) use rest::ReturnStock;
pub use rest::give_back;
pub use transition::transition;
pub use undo::undo;

/// The maximum number of attempts while other workers change the same order.
const ATTEMPTS: usize = 8;

/// An error that stopped the work on an order. The janitor finds the order.
pub type StagingError = crate::WorkflowError<OrderAction>;

type Stop = crate::engine::Stop<OrderAction>;

/// Reads an order with strong consistency.
pub(crate) async fn read(table: &Table, id: &OrderId) -> Result<Option<PlacedOrder>, StagingError> {
    Ok(PlacedOrder::of(table.query(&order::read_for_update(id)?).await?.items))
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
