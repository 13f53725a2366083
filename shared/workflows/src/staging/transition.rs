//! Sends transactions with some optional actions: if the table refuses only optional actions, the
//! transaction is sent again without the refused actions.

use key_schema::item::Stored;
use key_schema::order::{OrderAction, OrderLine};
use key_schema::request::Transaction;
use table::{Refusal, Refusals, Table};

use crate::old_stock;
use crate::staging::StagingError;

/// Sends the transaction that changes an order's status. If the table refuses only actions of these
/// kinds, the transaction is sent again without them:
///
/// - the removal from the customer's open orders: that list may have expired
/// - the return of a promotion's use: its count may be missing in a restored table
/// - the return of pieces to a product that staff have created again: the new stock does not count
///   these pieces
///
/// `lines` are the lines whose pieces the transaction returns. Returns the refusals of the last
/// transaction.
///
/// # Errors
/// [`StagingError`], but never [`StagingError::Refused`].
pub async fn transition(
    table: &Table,
    lines: &[Stored<OrderLine>],
    transaction: Transaction<OrderAction>,
) -> Result<Result<(), Refusals<OrderAction>>, StagingError> {
    without_refused(table, lines, transaction, |refusal| refusal.action == OrderAction::Open || is_lost(refusal)).await
}

/// Sends a transaction that returns pieces. If staff created a product again, the function leaves
/// out the pieces of that product. It also leaves out the uses of promotions whose count is missing
/// or zero.
pub(crate) async fn return_pieces(
    table: &Table,
    lines: &[Stored<OrderLine>],
    transaction: Transaction<OrderAction>,
) -> Result<Result<(), Refusals<OrderAction>>, StagingError> {
    without_refused(table, lines, transaction, is_lost).await
}

/// Returns whether the refused return has no target any more. Either the stock belongs to another
/// incarnation of the product, or the count of a promotion's uses is missing or zero. Returns
/// `false` for a missing stock, so that this refusal stays an error.
fn is_lost(refusal: &Refusal<OrderAction>) -> bool {
    match refusal.action {
        OrderAction::Stock(_) => refusal.item.is_some(),
        OrderAction::Uses(_) | OrderAction::CustomerUses(_) => true,
        _ => false,
    }
}

async fn without_refused(
    table: &Table,
    lines: &[Stored<OrderLine>],
    mut transaction: Transaction<OrderAction>,
    is_optional: fn(&Refusal<OrderAction>) -> bool,
) -> Result<Result<(), Refusals<OrderAction>>, StagingError> {
    loop {
        match table.transact(&transaction).await? {
            Err(refusals) if old_stock::moved_for(table, lines, &refusals).await? => {}
            Err(refusals) if refusals.iter().all(is_optional) => {
                for refusal in refusals.iter() {
                    transaction = transaction.without(&refusal.action);
                }
            }
            outcome => return Ok(outcome),
        }
    }
}
