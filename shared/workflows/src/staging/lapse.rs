use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::order::{self, OrderAction, OrderStatus, RETURNED_AT_ONCE};
use table::Table;

use crate::staging::{Items, StagingError, give_back, transition};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lapsed {
    Cancelled,
    /// The order is not pending, or its time for the payment has not ended.
    NotDue,
}

/// Cancels a pending order whose time for the payment has ended by `now`, and returns its stock.
/// Does nothing for any other order. If the call is interrupted after it cancelled a large order,
/// the order stays in the list of unfinished orders. The janitor then returns the rest of the
/// stock.
///
/// # Errors
/// [`StagingError`]. If the order is still pending after the error, the next call cancels it.
pub async fn lapse(table: &Table, id: &OrderId, now: Instant) -> Result<Lapsed, StagingError> {
    let mut items = Items::read(table, id).await?;
    let due = |lapses_at: Instant| lapses_at <= now;
    let Some(head) =
        items.head.take().filter(|head| head.status == OrderStatus::Pending && head.lapses_at.is_some_and(due))
    else {
        return Ok(Lapsed::NotDue);
    };
    // The instants of the history must increase, but the clocks of two functions may differ.
    let at = now.max(items.last.plus_millis(1));
    let lines = items.all(&head)?;
    match transition(table, order::lapse(&head, &lines, at)?).await? {
        Ok(()) => {}
        Err(refusals) if refusals.names(OrderAction::Order) => return Ok(Lapsed::NotDue),
        Err(refusals) => return Err(refusals.into()),
    }
    telemetry::crash_point("orders.lapsed");
    if lines.len() > RETURNED_AT_ONCE {
        give_back(table, id).await?;
    }
    Ok(Lapsed::Cancelled)
}
