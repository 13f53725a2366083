use std::time::Duration;

use key_schema::item::Stored;
use key_schema::order::addresses::OrderAddresses;
use key_schema::order::staged::{self, RESERVED_AT_ONCE};
use key_schema::order::{Order, OrderAction, OrderLine};
use key_schema::product::Stock;
use key_schema::request::Guarded;
use table::{Refusal, Refusals, Table};

use crate::staging::StagingError;
use crate::staging::undo::{Undone, undo};

/// The maximum time that a request spends on undoing an order that it could not place.
const PATIENCE: Duration = Duration::from_secs(4);

#[derive(Debug)]
pub struct Placing<'a> {
    /// The head. Its status is `placing`, and its [`unfinished`](Order::unfinished) work names its
    /// idempotency key.
    pub order: &'a Stored<Order>,
    pub lines: &'a [Stored<OrderLine>],
    /// The caller who places the order.
    pub by: &'a str,
    /// The claim of the idempotency key, if the request has such a key.
    pub claim: Option<Guarded>,
    /// The order's entry in its customer's open orders, if the customer places the order.
    pub open: Option<Guarded>,
    /// The removal of the cart that contained the lines, if there is one.
    pub cart: Option<Guarded>,
    pub addresses: Option<&'a Stored<OrderAddresses>>,
    /// The counts of the promotions that the order uses.
    pub uses: Vec<(OrderAction, Guarded)>,
}

/// Places an order. After a failure the function undoes the order. If that fails too, the janitor
/// undoes the order.
///
/// # Errors
/// - [`StagingError::Refused`] with every reason. If one line has too little stock, the function
///   reads all stocks, and adds the other lines with too little stock. The order is undone.
/// - [`StagingError::Contended`] when the outcome is unknown, or the order was not placed and could
///   not be undone yet.
/// - [`StagingError::Table`] when a request failed. The order is undone.
pub async fn place(table: &Table, placing: Placing<'_>) -> Result<(), StagingError> {
    let id = &placing.order.id;
    let mut refused_by_check = false;
    let Err(error) = steps(table, &placing, &mut refused_by_check).await else { return Ok(()) };
    // If the response of the last transaction was lost, the order may have been placed. In that
    // case `undo` reads the order and does nothing.
    match tokio::time::timeout(PATIENCE, undo(table, id)).await {
        Ok(Ok(Undone::Visible)) => Ok(()),
        Ok(Ok(Undone::Gone)) => {
            tracing::info!(order = %id, %error, "an order was not placed, and its request has undone it");
            // The check already named every line with too little stock, so it is not repeated.
            Err(if refused_by_check { error } else { complete(table, &placing, error).await })
        }
        // Until the janitor undoes the order, its idempotency key is in use and its stock is
        // reserved. The error must not say that nothing happened.
        Ok(Err(left)) => {
            tracing::warn!(order = %id, error = %left, "an order is left to the janitor");
            Err(StagingError::Contended)
        }
        Err(_) => {
            tracing::warn!(order = %id, "an order is left to the janitor, because undoing it takes too long");
            Err(StagingError::Contended)
        }
    }
}

/// Places the order. Sets `refused_by_check` if the check of all stocks refuses the order.
async fn steps(table: &Table, placing: &Placing<'_>, refused_by_check: &mut bool) -> Result<(), StagingError> {
    let mut head = placing.order.clone();
    let (claim, open, uses) = (placing.claim.clone(), placing.open.clone(), placing.uses.clone());
    table.transact(&staged::begin(&head, claim, open, uses)?).await??;
    telemetry::crash_point("orders.staged.begun");
    // This check comes before the first reservation: an order that cannot be placed must not
    // reserve stock that other orders need. It comes after the claims, because a refused claim is
    // the more useful response.
    let short = short(table, placing.lines).await?;
    if !short.is_empty() {
        *refused_by_check = true;
        return Err(short.into());
    }
    for lines in placing.lines.chunks(RESERVED_AT_ONCE) {
        table.transact(&staged::reserve(&head, lines)?).await??;
        head = staged::counted(&head, lines.len(), true);
        telemetry::crash_point("orders.staged.reserved");
    }
    table.transact(&staged::commit(&head, placing.by, placing.cart.clone(), placing.addresses)?).await??;
    telemetry::crash_point("orders.placed");
    Ok(())
}

/// Returns the lines that now have too little stock, as the refusals that their transactions would
/// get.
async fn short(table: &Table, lines: &[Stored<OrderLine>]) -> Result<Refusals<OrderAction>, StagingError> {
    let stocks = staged::available(lines.iter().map(|line| &line.product_id))?;
    // An unreadable stock counts as missing, so the response names its line.
    let stocks = table.batch_get_readable(&stocks).await?.items;
    let mut short = Vec::new();
    for (line, stock) in lines.iter().zip(stocks) {
        let stock = match stock {
            Some(stock) if serves(&stock, line) => continue,
            Some(stock) => Some(stock.to_item()?),
            None => None,
        };
        short.push(Refusal { action: OrderAction::Stock(line.line), item: stock });
    }
    Ok(short.into_iter().collect())
}

fn serves(stock: &Stock, line: &OrderLine) -> bool {
    stock.sellable && stock.available >= line.quantity && stock.is_of(&line.product_born)
}

/// If a line was refused for too little stock, adds the other lines with too little stock. The
/// order is already undone, so the stocks include the pieces that the order had reserved.
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
