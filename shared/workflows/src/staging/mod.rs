//! Work on orders that takes several transactions. It places an order that is too large for one
//! transaction, undoes it, and returns the stock of a cancelled or returned order. It also cancels
//! orders that have lapsed.
//!
//! [`key_schema::order::staged`] contains the transactions, and each is valid on its own. An
//! interruption at any point leaves an order that is either invisible or already in its new status,
//! and the janitor finds it. Two concurrent workers on one order, such as a slow function and the
//! janitor, cannot both take the same step. The second one finds that the head has changed, and
//! reads it again.

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

/// How often work is attempted while other workers change the same order.
const ATTEMPTS: usize = 8;

/// An error that stopped the work. Completed steps remain, and the janitor finds them.
#[derive(Debug, thiserror::Error)]
pub enum StagingError {
    /// A condition of the order itself or of a line does not hold. That transaction had no effect.
    #[error("refused: {:?}", .0.iter().map(|refusal| refusal.action).collect::<Vec<_>>())]
    Refused(Refusals<OrderAction>),
    /// Other workers kept changing the same order.
    #[error("others work on the order")]
    Contended,
    /// The table did not execute a request.
    #[error(transparent)]
    Table(#[from] TableError),
    /// An item cannot be encoded for DynamoDB.
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
