//! Placing an order by several transactions.

use std::time::Duration;

use key_schema::entity::AnyEntity;
use key_schema::item::Stored;
use key_schema::order::staged::{self, RESERVED_AT_ONCE};
use key_schema::order::{Order, OrderLine, Part};
use key_schema::request::Guarded;
use table::{Refusal, Table};

use crate::StagingError;
use crate::undo::{Undone, undo};

/// How long a request waits for its order to be undone, beside all that it has waited for already.
const PATIENCE: Duration = Duration::from_secs(4);

/// An order to be placed.
#[derive(Debug)]
pub struct Placing<'a> {
    /// The head: `placing`, with [`unfinished`](Order::unfinished) work that names its idempotency key.
    pub order: &'a Stored<Order>,
    /// Its lines.
    pub lines: &'a [Stored<OrderLine>],
    /// Who places it.
    pub by: &'a str,
    /// The idempotency record, if a key was given.
    pub claim: Option<Guarded>,
    /// The removal of the cart that it was made from, if any.
    pub cart: Option<Guarded>,
}

/// Places an order. When that fails nothing is left of it, or what is left is found and undone by the janitor.
///
/// # Errors
/// [`StagingError::Refused`] with every reason that is known: all the lines that are short, not only those of one transaction. Everything is undone,
/// as far as the table lets it. [`StagingError::Table`] when it is not known whether the order was placed, or it was not and could not be undone yet.
pub async fn place(table: &Table, placing: Placing<'_>) -> Result<(), StagingError> {
    let id = &placing.order.id;
    let Err(error) = steps(table, &placing).await else { return Ok(()) };
    // A lost answer of the last transaction looks like a failure; the order says what it was.
    match tokio::time::timeout(PATIENCE, undo(table, id)).await {
        Ok(Ok(Undone::Visible)) => Ok(()),
        Ok(Ok(Undone::Gone)) => Err(complete(table, &placing, error).await),
        // Until the janitor comes its key is in use and its stock held: it must not be said that nothing was done.
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
    table.transact(&staged::begin(&head, placing.claim.clone())?).await?;
    telemetry::crash_point("orders.staged.begun");
    // What cannot be served as a whole should not be taken from others, if only for moments. After the claims: they are the better answer.
    let short = short(table, placing.lines).await?;
    if !short.is_empty() {
        return Err(StagingError::Refused(short));
    }
    for lines in placing.lines.chunks(RESERVED_AT_ONCE) {
        table.transact(&staged::reserve(&head, lines)?).await?;
        head = staged::counted(&head, lines.len(), true);
        telemetry::crash_point("orders.staged.reserved");
    }
    table.transact(&staged::commit(&head, placing.by, placing.cart.clone())?).await?;
    telemetry::crash_point("orders.placed");
    Ok(())
}

/// The lines that cannot be served at the moment, each as its transaction would refuse it.
async fn short(table: &Table, lines: &[Stored<OrderLine>]) -> Result<Vec<Refusal<Part>>, StagingError> {
    let stocks = table.batch_get(&staged::available(lines.iter().map(|line| &line.product_id))?).await?;
    let mut short = Vec::new();
    for (line, stock) in lines.iter().zip(stocks) {
        let stock = match stock {
            Some(AnyEntity::Stock(stock)) if stock.sellable && stock.available >= line.quantity => continue,
            Some(AnyEntity::Stock(stock)) => Some(Box::new(stock.to_item()?)),
            _ => None,
        };
        short.push(Refusal { label: Part::Stock(line.line), item: stock });
    }
    Ok(short)
}

/// A refusal with the lines of the other transactions that are short too. The stock is back, so the others are as they were.
async fn complete(table: &Table, placing: &Placing<'_>, error: StagingError) -> StagingError {
    let StagingError::Refused(mut refusals) = error else { return error };
    if refusals.iter().any(|refusal| matches!(refusal.label, Part::Stock(_)))
        && let Ok(short) = short(table, placing.lines).await
    {
        let known: Vec<Part> = refusals.iter().map(|refusal| refusal.label).collect();
        refusals.extend(short.into_iter().filter(|refusal| !known.contains(&refusal.label)));
    }
    StagingError::Refused(refusals)
}
