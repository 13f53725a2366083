use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::OrderItem;
use key_schema::order::staged::{self, Claims, UNDONE_AT_ONCE, Unfinished, Work};
use key_schema::order::{self, Order, OrderAction, OrderLine, OrderStatus};
use table::{Backoff, Table};

use crate::staging::advance::return_pieces;
use crate::staging::{ATTEMPTS, StagingError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undone {
    Gone,
    /// The order was placed, so it is kept.
    Visible,
}

/// Undoes an order unless it was placed. The function is idempotent and may run concurrently.
///
/// # Errors
/// [`StagingError`]. After an error, the next call undoes the rest.
pub async fn undo(table: &Table, id: &OrderId) -> Result<Undone, StagingError> {
    let mut backoff = Backoff::new();
    for _ in 0..ATTEMPTS {
        let items = table.query(&order::read_for_update(id)?).await?.items;
        let (mut head, mut lines) = (None, Vec::new());
        for item in items {
            match item {
                OrderItem::Order(order) => head = Some(order),
                OrderItem::OrderLine(line) => lines.push(line),
                OrderItem::OrderStatusEvent(_) => {}
            }
        }
        // Without a head there are no lines either: one transaction removes the head and the last
        // lines.
        let Some(head) = head else { return Ok(Undone::Gone) };
        if head.status != OrderStatus::Placing {
            return Ok(Undone::Visible);
        }
        // Another worker may have reserved further lines while the items were read. The next
        // attempt reads them.
        if is_whole(&head, lines.len()) && attempt(table, head, &lines).await? {
            return Ok(Undone::Gone);
        }
        if !backoff.wait().await {
            break;
        }
    }
    Err(StagingError::Contended)
}

/// Returns whether `lines` is the number of all reserved lines.
fn is_whole(head: &Order, lines: usize) -> bool {
    match &head.unfinished {
        Some(Unfinished { work: Work::Placing { lines: reserved, .. }, .. }) => u64::try_from(lines) == Ok(*reserved),
        _ => false,
    }
}

/// Undoes the order. Returns `false` if another worker has changed it.
async fn attempt(table: &Table, mut head: Stored<Order>, lines: &[Stored<OrderLine>]) -> Result<bool, StagingError> {
    let at = Instant::now();
    let lines: Vec<&Stored<OrderLine>> = lines.iter().collect();
    let mut chunks: Vec<&[&Stored<OrderLine>]> = lines.chunks(UNDONE_AT_ONCE).collect();
    let last = chunks.pop().unwrap_or_default();
    for chunk in chunks {
        match return_pieces(table, staged::undo(&head, chunk, at)?).await? {
            Ok(()) => head = staged::counted(&head, chunk.len(), false),
            Err(refusals) if refusals.names(OrderAction::Order) => return Ok(false),
            Err(refusals) => return Err(refusals.into()),
        }
        telemetry::crash_point("orders.staged.undone");
    }
    let mut claims = Claims { reference: true, idempotency: true, open: true };
    // Each iteration leaves out at least one refused claim, or ends the loop.
    loop {
        let done = return_pieces(table, staged::undo_last(&head, last, claims, at)?).await?;
        let Err(refusals) = done else { return Ok(true) };
        if refusals.names(OrderAction::Order) {
            return Ok(false);
        }
        let kept = Claims {
            reference: claims.reference && !refusals.names(OrderAction::Reference),
            idempotency: claims.idempotency && !refusals.names(OrderAction::Idempotency),
            open: claims.open && !refusals.names(OrderAction::Open),
        };
        if kept == claims {
            return Err(refusals.into());
        }
        claims = kept;
    }
}
