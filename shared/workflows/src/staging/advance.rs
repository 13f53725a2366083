//! Sends transactions whose actions are partly optional.

use key_schema::order::OrderAction;
use key_schema::request::Transaction;
use table::{Refusal, Refusals, Table, TableError};

/// Sends the transaction that changes an order's status. The customer's open orders may lack the
/// order, because they have expired. The product of a line may have been revived, and then its
/// pieces are no longer counted. The transaction is sent again without these actions. Returns the
/// refusals of the last transaction.
///
/// # Errors
/// [`TableError`].
pub async fn advance(
    table: &Table,
    transaction: Transaction<OrderAction>,
) -> Result<Result<(), Refusals<OrderAction>>, TableError> {
    without_refused(table, transaction, |refusal| refusal.action == OrderAction::Open || is_revived(refusal)).await
}

/// Sends a transaction that returns pieces, without those of products that were revived.
pub(crate) async fn return_pieces(
    table: &Table,
    transaction: Transaction<OrderAction>,
) -> Result<Result<(), Refusals<OrderAction>>, TableError> {
    without_refused(table, transaction, is_revived).await
}

/// Returns whether pieces are refused because the stock is of another incarnation of the product. A
/// stock that is missing is an error.
fn is_revived(refusal: &Refusal<OrderAction>) -> bool {
    matches!(refusal.action, OrderAction::Stock(_)) && refusal.item.is_some()
}

/// Sends a transaction. As long as only optional actions are refused, it is sent again without
/// them.
async fn without_refused(
    table: &Table,
    mut transaction: Transaction<OrderAction>,
    is_optional: fn(&Refusal<OrderAction>) -> bool,
) -> Result<Result<(), Refusals<OrderAction>>, TableError> {
    loop {
        match table.transact(&transaction).await? {
            Err(refusals) if refusals.iter().all(is_optional) => {
                for refusal in refusals.iter() {
                    transaction = transaction.without(&refusal.action);
                }
            }
            outcome => return Ok(outcome),
        }
    }
}
