use std::time::Duration;

use key_schema::item::Stored;
use key_schema::order::staged::{self, RESERVED_AT_ONCE, UNDONE_AT_ONCE};
use key_schema::order::{MAX_LINES, OrderAction, OrderLine, PlacedOrder};
use key_schema::product::Picks;
use key_schema::promotion;
use key_schema::request::{Guarded, MAX_TRANSACTION_ACTIONS};
use table::{Refusal, Refusals, Table};

use crate::engine::{Bound, ONCE, Standing, Worker, run_or_undo, workflow};
use crate::staging::undo::Undoer;
use crate::staging::{ATTEMPTS, StagingError, Stop};
use crate::{old_stock, stock};

/// The maximum time that a request spends on undoing an order that it could not place.
const PATIENCE: Duration = Duration::from_secs(4);

workflow! {
    /// Places an order of many lines, which no list shows before the last step. A failed request
    /// undoes its order. The janitor undoes the order of an interrupted request.
    PlaceOrder of OrderAction, by Placer undone by Undoer, begun [];
    Begin => {
        run begin, at most ONCE, crash "orders.staged.begun";
        undo remove, at most Bound::Times(ATTEMPTS);
    }
    Reserve => {
        run reserve, at most Bound::Times(MAX_LINES), crash "orders.staged.reserved";
        undo release, at most Bound::Times(MAX_LINES.div_ceil(UNDONE_AT_ONCE) + ATTEMPTS), crash "orders.staged.undone";
    }
    Commit => {
        run commit, at most ONCE, crash "orders.placed";
        forward only;
    }
}

/// Places a staged order ([`PlacedOrder::staged`]) with the writes of [`key_schema::order::place`].
/// After a failure the function undoes the order. If that fails too, the janitor undoes the order.
///
/// # Errors
/// - [`StagingError::Refused`] with every reason. If one line has too little stock, the function
///   reads all stocks, and adds the other lines with too little stock. The order is undone.
/// - [`StagingError::Contended`] when the outcome is unknown, or the order was not placed and could
///   not be undone yet.
/// - [`StagingError::Table`] when a request failed. The order is undone.
pub async fn place(table: &Table, order: PlacedOrder, with: &[(OrderAction, Guarded)]) -> Result<(), StagingError> {
    let id = order.head.id.clone();
    let mut placer = Placer { table, order, with, reserved: 0, refused_by_check: false };
    let Err(error) = run_or_undo(&mut placer, &mut Undoer::new(table, &id), PATIENCE, &id).await else { return Ok(()) };
    // The check already named every line with too little stock, so it is not repeated.
    Err(if placer.refused_by_check { error } else { complete(table, &mut placer.order.lines, error).await })
}

struct Placer<'a> {
    table: &'a Table,
    order: PlacedOrder,
    with: &'a [(OrderAction, Guarded)],
    /// The number of reserved lines.
    reserved: usize,
    /// Whether the check of all stocks refused the order.
    refused_by_check: bool,
}

impl Worker for Placer<'_> {
    type End = ();

    async fn stands(&mut self, done: Option<PlaceOrder>) -> Result<Standing<PlaceOrder, ()>, StagingError> {
        Ok(match done {
            None => Standing::At(PlaceOrder::Begin),
            Some(PlaceOrder::Commit) => Standing::Over(()),
            Some(_) if self.reserved >= self.order.lines.len() => Standing::At(PlaceOrder::Commit),
            Some(_) => Standing::At(PlaceOrder::Reserve),
        })
    }
}

impl Placer<'_> {
    async fn begin(&mut self) -> Result<(), Stop> {
        let begin = |order: &PlacedOrder| {
            let uses = promotion::take(&order.uses, &order.head.customer_id, order.head.meta.created_at)?;
            staged::begin(&order.head, &self.with.iter().cloned().chain(uses).collect::<Vec<_>>())
        };
        Ok(stock::transact(self.table, &mut self.order, begin).await??)
    }

    async fn reserve(&mut self) -> Result<(), Stop> {
        if self.reserved == 0 {
            // This check comes before the first reservation: an order that cannot be placed must
            // not reserve stock that other orders need. It comes after the claims, because a
            // refused claim is the more useful response.
            let short = short(self.table, &mut self.order.lines).await?;
            if !short.is_empty() {
                self.refused_by_check = true;
                return Err(short.into());
            }
        }
        let head = &self.order.head;
        let rest = self.order.lines.get_mut(self.reserved..).unwrap_or_default();
        let reserve = |rest: &[Stored<OrderLine>]| staged::reserve(head, next_lines(rest));
        stock::transact(self.table, rest, reserve).await??;
        let count = next_lines(rest).len();
        self.order.head = staged::counted(head, count, true);
        self.reserved += count;
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), Stop> {
        Ok(self.table.transact(&staged::commit(&self.order, self.with)?).await??)
    }
}

/// Returns those of the next lines that one transaction can reserve. A line that takes its pieces
/// from several shards has more actions.
fn next_lines(lines: &[Stored<OrderLine>]) -> &[Stored<OrderLine>] {
    let mut actions = 1;
    let fits = |line: &&Stored<OrderLine>| {
        actions += 1 + line.picks.taken.len().max(1);
        actions <= MAX_TRANSACTION_ACTIONS
    };
    let count = lines.iter().take(RESERVED_AT_ONCE).take_while(fits).count();
    lines.get(..count).unwrap_or_default()
}

/// Returns the lines that now have too little stock, as the refusals that their transactions would
/// get. The other lines get the shards that have their pieces.
async fn short(table: &Table, lines: &mut [Stored<OrderLine>]) -> Result<Refusals<OrderAction>, StagingError> {
    let stocks = staged::available(lines.iter().map(|line| &line.product_id))?;
    // An unreadable stock counts as missing, so the response names its line.
    let stocks = table.batch_get_readable(&stocks).await?.items;
    let mut short = Vec::new();
    for (line, stock) in lines.iter_mut().zip(stocks) {
        let stock = match stock {
            None => old_stock::readable(stock::found(table, &line.product_id).await)?,
            stock => stock,
        };
        let stock = match stock {
            Some(stock) => {
                let shards = stock::shards(table, stock).await?;
                if let Some(picks) = Picks::among(line, &shards) {
                    line.data.picks = picks;
                    continue;
                }
                stock::sum(shards).map(|stock| stock.to_item()).transpose()?
            }
            None => None,
        };
        short.push(Refusal { action: OrderAction::Stock(line.line), item: stock });
    }
    Ok(short.into_iter().collect())
}

/// If a line was refused for too little stock, adds the other lines with too little stock. The
/// order is already undone, so the stocks include the pieces that the order had reserved.
async fn complete(table: &Table, lines: &mut [Stored<OrderLine>], error: StagingError) -> StagingError {
    let StagingError::Refused(refusals) = error else { return error };
    if refusals.iter().any(|refusal| matches!(refusal.action, OrderAction::Stock(_)))
        && let Ok(short) = short(table, lines).await
    {
        let others = short.iter().filter(|refusal| !refusals.names(refusal.action));
        return StagingError::Refused(refusals.iter().chain(others).cloned().collect());
    }
    StagingError::Refused(refusals)
}
