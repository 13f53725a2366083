use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::order::{self, Order, OrderAction, OrderStatus, RETURNED_AT_ONCE};
use table::Table;

use crate::payments::is_late;
use crate::staging::{StagingError, give_back, read, transition};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lapsed {
    Cancelled,
    /// The order is not pending, or its time for the payment has not ended.
    NotDue,
}

/// Cancels a pending order whose time for the payment has ended by `now`, returns its stock, and gives
/// back what was paid. The cashier sends the operations of card payments.
/// Does nothing for any other order. If the call is interrupted after it cancelled a large order,
/// the order stays in the list of unfinished orders. The janitor then returns the rest of the
/// stock.
///
/// # Errors
/// [`StagingError`]. If the order is still pending after the error, the next call cancels it.
pub async fn lapse(table: &Table, id: &OrderId, now: Instant) -> Result<Lapsed, StagingError> {
    let is_due = |head: &Order| head.status == OrderStatus::Pending && head.lapses_at.is_some_and(|at| at <= now);
    let Some(order) = read(table, id).await?.filter(|order| is_due(&order.head)) else { return Ok(Lapsed::NotDue) };
    if !order.has_all_lines() {
        return Err(StagingError::Contended);
    }
    let at = order.next_step_at(now);
    let mut money = order.ledger(at);
    money.release_all();
    let lapse = order::lapse(&order.head, &order.lines, Some(&money), at)?;
    match transition(table, &order.lines, lapse).await? {
        Ok(()) => {}
        Err(refusals) if refusals.names(OrderAction::Order) => return Ok(Lapsed::NotDue),
        Err(refusals) if is_late(&refusals) => return Err(StagingError::Contended),
        Err(refusals) => return Err(refusals.into()),
    }
    telemetry::crash_point("orders.lapsed");
    if order.lines.len() > RETURNED_AT_ONCE {
        give_back(table, id).await?;
    }
    Ok(Lapsed::Cancelled)
}
