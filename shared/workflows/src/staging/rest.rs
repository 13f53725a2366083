//! Returns the rest of the stock of a cancelled or returned order.

use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::order::OrderItem;
use key_schema::order::staged::{self, GIVEN_BACK_AT_ONCE, Unfinished, Work};
use key_schema::order::{self, MAX_LINES, OrderAction};
use table::Table;

use crate::staging::advance::return_pieces;
use crate::staging::{ATTEMPTS, StagingError};

/// The number of transactions for the largest order, plus some for conflicts with other workers.
const STEPS: usize = MAX_LINES.div_ceil(GIVEN_BACK_AT_ONCE) + ATTEMPTS;

/// Gives the rest of an order's stock back. The function is idempotent and may run concurrently.
///
/// # Errors
/// [`StagingError`]. After an error, the next call gives the rest back.
pub async fn give_back(table: &Table, id: &OrderId) -> Result<(), StagingError> {
    let items = table.query(&order::read_for_update(id)?).await?.items;
    let (mut head, mut lines) = (None, Vec::new());
    for item in items {
        match item {
            OrderItem::Order(order) => head = Some(order),
            OrderItem::OrderLine(line) => lines.push(line.data),
            OrderItem::OrderStatusEvent(_) => {}
        }
    }
    let Some(mut head) = head else { return Ok(()) };
    if u64::try_from(lines.len()) != Ok(head.line_count) {
        return Err(StagingError::Contended);
    }
    // The head's count of returned lines refers to this sequence of the lines.
    lines.sort_by_key(|line| line.line);
    for _ in 0..STEPS {
        let Some(transaction) = staged::give_back(&head, &lines, Instant::now())? else { return Ok(()) };
        match return_pieces(table, transaction).await? {
            Ok(()) => advance(&mut head.data.unfinished, lines.len()),
            Err(refusals) if refusals.names(OrderAction::Order) => {
                let Some(current) = table.get(&order::head(id)?).await? else { return Ok(()) };
                head = current;
            }
            Err(refusals) => return Err(refusals.into()),
        }
        telemetry::crash_point("orders.staged.given_back");
    }
    Err(StagingError::Contended)
}

/// Advances the head's count of returned lines, as the transaction does.
fn advance(unfinished: &mut Option<Unfinished>, lines: usize) {
    if let Some(Unfinished { work: Work::Returning(done), .. }) = unfinished {
        *done += GIVEN_BACK_AT_ONCE as u64;
        if *done >= lines as u64 {
            *unfinished = None;
        }
    }
}
