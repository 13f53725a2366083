//! Giving back the rest of the stock of an order that was cancelled or returned.

use key_schema::entity::AnyEntity;
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::order::staged::{self, GIVEN_BACK_AT_ONCE, Unfinished, Work};
use key_schema::order::{self, MAX_LINES};
use table::{Table, TransactError};

use crate::{ATTEMPTS, StagingError, moved};

/// Transactions of the largest order, and as many meetings with somebody else as are borne.
const STEPS: usize = MAX_LINES.div_ceil(GIVEN_BACK_AT_ONCE) + ATTEMPTS;

/// Gives back what is left of an order's stock. It may be called again and by several at once.
///
/// # Errors
/// [`StagingError`]; what is left is given back by the next call.
pub async fn give_back(table: &Table, id: &OrderId) -> Result<(), StagingError> {
    let items = table.query(&order::edit(id)?).await?.items;
    let (mut head, mut lines) = (None, Vec::new());
    for item in items {
        match item {
            AnyEntity::Order(order) => head = Some(order),
            AnyEntity::OrderLine(line) => lines.push(line.data),
            _ => {}
        }
    }
    let Some(mut head) = head else { return Ok(()) };
    if u64::try_from(lines.len()) != Ok(head.line_count) {
        return Err(StagingError::Contended);
    }
    // How far it has come is counted in this order.
    lines.sort_by_key(|line| line.line);
    for _ in 0..STEPS {
        let Some(transaction) = staged::give_back(&head, &lines, Instant::now())? else { return Ok(()) };
        match table.transact(&transaction).await {
            Ok(()) => advance(&mut head.data.unfinished, lines.len()),
            Err(TransactError::Refused(refusals)) if moved(&refusals) => {
                let Some(current) = table.get(&order::head(id)?).await? else { return Ok(()) };
                head = current;
            }
            Err(error) => return Err(error.into()),
        }
        telemetry::crash_point("orders.staged.given_back");
    }
    Err(StagingError::Contended)
}

/// What the transaction has made of the head.
fn advance(unfinished: &mut Option<Unfinished>, lines: usize) {
    if let Some(Unfinished { work: Work::Returning(done), .. }) = unfinished {
        *done += GIVEN_BACK_AT_ONCE as u64;
        if *done >= lines as u64 {
            *unfinished = None;
        }
    }
}
