//! Work on orders that takes several transactions: placing one that is too large for a single transaction, undoing it, and giving back the stock of
//! one that is cancelled or returned.
//!
//! The transactions are in [`key_schema::order::staged`]. Each holds on its own: whatever breaks off, at whatever point, leaves an order that nobody
//! can see or whose status already is what it was to become, and that the janitor finds. Two who work on the same order at once, such as a slow
//! function and the janitor, cannot both take a step: the other sees that the head has moved and looks again.

mod place;
mod rest;
mod undo;

use key_schema::item::EncodeError;
use key_schema::key::KeyError;
use key_schema::order::Part;
use table::{Refusal, TableError, TransactError};

pub use place::{Placing, place};
pub use rest::give_back;
pub use undo::{Undone, undo};

/// How often work is taken up again after somebody else has worked on the same order.
const ATTEMPTS: usize = 8;

/// Work that stopped. Everything done so far stands, and is found by the janitor.
#[derive(Debug, thiserror::Error)]
pub enum StagingError {
    /// A condition of the order itself does not hold, or of a line; nothing of that transaction was done.
    #[error("refused: {:?}", .0.iter().map(|refusal| refusal.label).collect::<Vec<_>>())]
    Refused(Vec<Refusal<Part>>),
    /// Others kept working on the same order.
    #[error("others work on the order")]
    Contended,
    /// The table did not take a request.
    #[error(transparent)]
    Table(#[from] TableError),
    /// An item has no DynamoDB form.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

impl From<TransactError<Part>> for StagingError {
    fn from(error: TransactError<Part>) -> Self {
        match error {
            TransactError::Refused(refusals) => Self::Refused(refusals),
            TransactError::Table(error) => Self::Table(error),
        }
    }
}

impl From<KeyError> for StagingError {
    fn from(error: KeyError) -> Self {
        Self::Encode(error.into())
    }
}

/// Whether a refusal says that somebody else has moved the order.
fn moved(refusals: &[Refusal<Part>]) -> bool {
    refusals.iter().any(|refusal| refusal.label == Part::Order)
}
