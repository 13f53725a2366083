//! Sends transactions with some optional actions: if the table refuses only these, the transaction
//! is sent again without them.

use key_schema::order::OrderAction;
use key_schema::request::Transaction;
use table::{Refusal, Refusals, Table, TableError};

/// Sends the transaction that changes an order's status. If the table refuses only actions of these
/// kinds, the transaction is sent again without them:
///
/// - the removal from the customer's open orders, because that list has expired
/// - the return of pieces to a product that staff have created again, because its new stock does
///   not count them
///
/// Returns the refusals of the last transaction.
///
/// # Errors
/// [`TableError`].
pub async fn advance(
    table: &Table,
    transaction: Transaction<OrderAction>,
) -> Result<Result<(), Refusals<OrderAction>>, TableError> {
    without_refused(table, transaction, |refusal| refusal.action == OrderAction::Open || is_revived(refusal)).await
}

/// Sends a transaction that returns pieces. It leaves out pieces of products that staff created
/// again.
pub(crate) async fn return_pieces(
    table: &Table,
    transaction: Transaction<OrderAction>,
) -> Result<Result<(), Refusals<OrderAction>>, TableError> {
    without_refused(table, transaction, is_revived).await
}

/// Returns whether a stock action is refused because the stock belongs to another incarnation of
/// the product. A missing stock is an error.
fn is_revived(refusal: &Refusal<OrderAction>) -> bool {
    matches!(refusal.action, OrderAction::Stock(_)) && refusal.item.is_some()
}

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
