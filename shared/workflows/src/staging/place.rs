//! Places an order with several transactions.

use std::time::Duration;

use key_schema::entity::AnyEntity;
use key_schema::item::Stored;
use key_schema::order::staged::{self, RESERVED_AT_ONCE};
use key_schema::order::{Order, OrderAction, OrderLine};
use key_schema::product::Stock;
use key_schema::request::Guarded;
use table::{Refusal, Refusals, Table};

use crate::staging::StagingError;
use crate::staging::undo::{Undone, undo};

/// The maximum time that a request spends on undoing its order, after the time for placing it.
const PATIENCE: Duration = Duration::from_secs(4);

/// The order to place.
#[derive(Debug)]
pub struct Placing<'a> {
    /// The head. Its status is `placing`, and its [`unfinished`](Order::unfinished) work names its
    /// idempotency key.
    pub order: &'a Stored<Order>,
    /// The order's lines.
    pub lines: &'a [Stored<OrderLine>],
    /// The caller who places it.
    pub by: &'a str,
    /// The claim of the idempotency key, if one was given.
    pub claim: Option<Guarded>,
    /// The order's entry in its customer's open orders, if the customer places it.
    pub open: Option<Guarded>,
    /// The removal of the cart that the order was made from, if any.
    pub cart: Option<Guarded>,
}

/// Places an order. After a failure the order is undone completely, or the janitor finds the rest
/// and undoes it.
///
/// # Errors
/// - [`StagingError::Refused`] with every reason: all lines with too little stock, not only those
///   of one transaction. If reading the other lines' stock fails, they are missing. The order is
///   undone.
/// - [`StagingError::Contended`] when the outcome is unknown, or the order was not placed and could
///   not be undone yet.
/// - [`StagingError::Table`] when a request failed. The order was not placed, and is undone.
pub async fn place(table: &Table, placing: Placing<'_>) -> Result<(), StagingError> {
    let id = &placing.order.id;
    let Err(error) = steps(table, &placing).await else { return Ok(()) };
    // A lost response of the last transaction looks like a failure. The order itself shows the
    // outcome.
    match tokio::time::timeout(PATIENCE, undo(table, id)).await {
        Ok(Ok(Undone::Visible)) => Ok(()),
        Ok(Ok(Undone::Gone)) => Err(complete(table, &placing, error).await),
        // Until the janitor undoes it, the order's key is in use and its stock is reserved. The
        // error must not say that nothing was done.
        Ok(Err(left)) => {
            tracing::warn!(order = %id, error = %left, "an order is left to the janitor");
            Err(StagingError::Contended)
        }
        Err(_) => {
            tracing::warn!(order = %id, "an order is left to the janitor: undoing it takes too long");
            Err(StagingError::Contended)
        }
    }
}

async fn steps(table: &Table, placing: &Placing<'_>) -> Result<(), StagingError> {
    let mut head = placing.order.clone();
    table.transact(&staged::begin(&head, placing.claim.clone(), placing.open.clone())?).await??;
    telemetry::crash_point("orders.staged.begun");
    // An order that cannot be served completely should not take stock from others, even briefly.
    // The check runs after the claims, because a refused claim is the more useful response.
    let short = short(table, placing.lines).await?;
    if !short.is_empty() {
        return Err(short.into());
    }
    for lines in placing.lines.chunks(RESERVED_AT_ONCE) {
        table.transact(&staged::reserve(&head, lines)?).await??;
        head = staged::counted(&head, lines.len(), true);
        telemetry::crash_point("orders.staged.reserved");
    }
    table.transact(&staged::commit(&head, placing.by, placing.cart.clone())?).await??;
    telemetry::crash_point("orders.placed");
    Ok(())
}

/// Returns the lines that have too little stock now, as the refusals that their transactions would
/// get.
async fn short(table: &Table, lines: &[Stored<OrderLine>]) -> Result<Refusals<OrderAction>, StagingError> {
    let stocks = table.batch_get(&staged::available(lines.iter().map(|line| &line.product_id))?).await?;
    let mut short = Vec::new();
    for (line, stock) in lines.iter().zip(stocks) {
        let stock = match stock {
            Some(AnyEntity::Stock(stock)) if serves(&stock, line) => continue,
            Some(AnyEntity::Stock(stock)) => Some(stock.to_item()?),
            _ => None,
        };
        short.push(Refusal { action: OrderAction::Stock(line.line), item: stock });
    }
    Ok(short.into_iter().collect())
}

fn serves(stock: &Stock, line: &OrderLine) -> bool {
    stock.sellable && stock.available >= line.quantity && stock.is_of(line.product_born.as_ref())
}

/// Adds the lines with too little stock from the other transactions. The order is already undone,
/// so the stock that this function reads no longer lacks the order's own pieces.
async fn complete(table: &Table, placing: &Placing<'_>, error: StagingError) -> StagingError {
    let StagingError::Refused(refusals) = error else { return error };
    if refusals.iter().any(|refusal| matches!(refusal.action, OrderAction::Stock(_)))
        && let Ok(short) = short(table, placing.lines).await
    {
        let others = short.iter().filter(|refusal| !refusals.names(refusal.action));
        return StagingError::Refused(refusals.iter().chain(others).cloned().collect());
    }
    StagingError::Refused(refusals)
}
