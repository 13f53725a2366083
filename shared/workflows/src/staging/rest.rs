//! Returns the rest of the stock of a cancelled or returned order.

use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::order::staged::{self, GIVEN_BACK_AT_ONCE, Unfinished, Work};
use key_schema::order::{self, MAX_LINES, OrderAction, PlacedOrder};
use table::Table;

use crate::engine::{self, Bound, Standing, Worker, workflow};
use crate::staging::transition::return_pieces;
use crate::staging::{ATTEMPTS, StagingError, Stop, read};

workflow! {
    /// Returns the stock of a cancelled or returned order of many lines. The write that changes the
    /// status returns the first part.
    ReturnStock of OrderAction, by Returner, begun ["orders.lapsed", "orders.moved"];
    GiveBack => {
        run give_back, at most Bound::Times(MAX_LINES.div_ceil(GIVEN_BACK_AT_ONCE) + ATTEMPTS),
            crash "orders.staged.given_back";
        forward only;
    }
}

/// Gives the rest of an order's stock back. The function is idempotent and may run concurrently.
///
/// # Errors
/// [`StagingError`]. After an error, the next call gives the rest back.
pub async fn give_back(table: &Table, id: &OrderId) -> Result<(), StagingError> {
    let Some(order) = read(table, id).await? else { return Ok(()) };
    if !order.has_all_lines() {
        return Err(StagingError::Contended);
    }
    engine::run(&mut Returner { table, order, is_current: true }).await
}

struct Returner<'a> {
    table: &'a Table,
    /// The head's count of returned lines refers to the sequence of the lines.
    order: PlacedOrder,
    /// Whether the head was read or written after the last step.
    is_current: bool,
}

impl Worker for Returner<'_> {
    type End = ();

    async fn stands(&mut self, _: Option<ReturnStock>) -> Result<Standing<ReturnStock, ()>, StagingError> {
        if !std::mem::take(&mut self.is_current) {
            match self.table.get(&order::head(&self.order.head.id)?).await? {
                Some(head) => self.order.head = head,
                None => return Ok(Standing::Over(())),
            }
        }
        Ok(match self.order.head.unfinished {
            Some(Unfinished { work: Work::Returning(_), .. }) => Standing::At(ReturnStock::GiveBack),
            _ => Standing::Over(()),
        })
    }
}

impl Returner<'_> {
    async fn give_back(&mut self) -> Result<(), Stop> {
        let PlacedOrder { head, lines, .. } = &mut self.order;
        let Some(give_back) = staged::give_back(head, lines, Instant::now())? else { return Ok(()) };
        match return_pieces(self.table, lines, give_back).await? {
            Err(refusals) if refusals.names(OrderAction::Order) => return Err(Stop::Late),
            outcome => outcome?,
        }
        // The transaction has advanced the head's count in the same way.
        if let Some(Unfinished { work: Work::Returning(done), .. }) = &mut head.data.unfinished {
            *done += GIVEN_BACK_AT_ONCE as u64;
            if *done >= lines.len() as u64 {
                head.data.unfinished = None;
            }
        }
        self.is_current = true;
        Ok(())
    }
}
