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

mod advance;
mod lapse;
mod place;
mod rest;
mod undo;

use key_schema::item::EncodeError;
use key_schema::key::KeyError;
use key_schema::order::OrderAction;
use table::{Refusals, TableError};

pub use advance::advance;
pub use lapse::{Lapsed, lapse};
pub use place::{Placing, place};
pub use rest::give_back;
pub use undo::{Undone, undo};

/// The maximum number of attempts while other workers change the same order.
const ATTEMPTS: usize = 8;

/// An error that stopped the work. The earlier steps stay in effect, and the janitor finds the
/// order.
#[derive(Debug, thiserror::Error)]
pub enum StagingError {
    /// Some conditions of a transaction do not hold. The refused transaction changed nothing.
    #[error("refused: {:?}", .0.iter().map(|refusal| refusal.action).collect::<Vec<_>>())]
    Refused(Refusals<OrderAction>),
    /// Other workers kept changing the same order.
    #[error("other workers keep changing the order")]
    Contended,
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

impl From<Refusals<OrderAction>> for StagingError {
    fn from(refusals: Refusals<OrderAction>) -> Self {
        Self::Refused(refusals)
    }
}

impl From<KeyError> for StagingError {
    fn from(error: KeyError) -> Self {
        Self::Encode(error.into())
    }
}
