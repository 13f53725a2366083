//! Changes the status of an order.

use key_schema::order::Part;
use key_schema::request::Transaction;
use table::{Table, TransactError};

/// Sends the transaction that changes an order's status. If only the customer's open orders lack the
/// order, because they have expired, the transaction is sent once more without them.
///
/// # Errors
/// [`TransactError`] of the last transaction.
pub async fn advance(table: &Table, transaction: Transaction<Part>) -> Result<(), TransactError<Part>> {
    match table.transact(&transaction).await {
        Err(TransactError::Refused(refusals)) if refusals.iter().all(|refusal| refusal.label == Part::Open) => {
            table.transact(&transaction.without(&Part::Open)).await
        }
        outcome => outcome,
    }
}
