use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::staged::{self, Claims, UNDONE_AT_ONCE, Unfinished, Work};
use key_schema::order::{Order, OrderAction, OrderLine, OrderStatus, PlacedOrder};
use key_schema::request::Transaction;
use table::{Backoff, Refusals, Table};

use crate::engine::{self, Standing, Undone, Worker};
use crate::staging::transition::return_pieces;
use crate::staging::{PlaceOrder, StagingError, Stop, read};

/// Undoes an order unless it was placed. The function is idempotent and may run concurrently.
///
/// # Errors
/// [`StagingError`]. After an error, the next call undoes the rest.
pub async fn undo(table: &Table, id: &OrderId) -> Result<Undone, StagingError> {
    engine::run(&mut Undoer::new(table, id)).await
}

pub(super) struct Undoer<'a> {
    table: &'a Table,
    id: &'a OrderId,
    /// The order with the reserved lines that are not undone.
    order: Option<PlacedOrder>,
    backoff: Backoff,
}

impl<'a> Undoer<'a> {
    pub(super) fn new(table: &'a Table, id: &'a OrderId) -> Self {
        Self { table, id, order: None, backoff: Backoff::new() }
    }
}

impl Worker for Undoer<'_> {
    type End = Undone;

    async fn stands(&mut self, done: Option<PlaceOrder>) -> Result<Standing<PlaceOrder, Undone>, StagingError> {
        if done == Some(PlaceOrder::Begin) {
            return Ok(Standing::Over(Undone::Gone));
        }
        if done.is_none() {
            if self.order.is_some() && !self.backoff.wait().await {
                return Err(StagingError::Contended);
            }
            self.order = read(self.table, self.id).await?;
        }
        Ok(match &self.order {
            // Without a head there are no lines either: one transaction removes the head and the
            // last lines.
            None => Standing::Over(Undone::Gone),
            Some(order) if order.head.status != OrderStatus::Placing => Standing::Over(Undone::Visible),
            Some(order) if order.lines.len() > UNDONE_AT_ONCE => Standing::At(PlaceOrder::Reserve),
            Some(_) => Standing::At(PlaceOrder::Begin),
        })
    }
}

impl Undoer<'_> {
    /// Returns the head and the next lines. Another worker may have reserved further lines while
    /// the items were read. Then the step is late, and the next read finds these lines.
    fn next(&self) -> Result<(&Stored<Order>, &[Stored<OrderLine>]), Stop> {
        let PlacedOrder { head, lines, .. } = self.order.as_ref().ok_or(Stop::Late)?;
        match &head.unfinished {
            Some(Unfinished { work: Work::Placing { lines: count, .. }, .. })
                if u64::try_from(lines.len()) == Ok(*count) => {}
            _ => return Err(Stop::Late),
        }
        Ok((head, lines.get(..UNDONE_AT_ONCE).unwrap_or(lines)))
    }

    async fn send(
        &self,
        lines: &[Stored<OrderLine>],
        undo: Transaction<OrderAction>,
    ) -> Result<Result<(), Refusals<OrderAction>>, Stop> {
        match return_pieces(self.table, lines, undo).await? {
            Err(refusals) if refusals.names(OrderAction::Order) => Err(Stop::Late),
            outcome => Ok(outcome),
        }
    }

    pub(super) async fn release(&mut self) -> Result<(), Stop> {
        let (head, lines) = self.next()?;
        self.send(lines, staged::undo(head, lines, Instant::now())?).await??;
        let (head, count) = (staged::counted(head, lines.len(), false), lines.len());
        if let Some(order) = &mut self.order {
            order.head = head;
            order.lines.drain(..count);
        }
        Ok(())
    }

    pub(super) async fn remove(&mut self) -> Result<(), Stop> {
        let (head, lines) = self.next()?;
        let mut claims = Claims { number: true, reference: true, idempotency: true, open: true };
        // Each iteration leaves out at least one refused claim, or ends the loop.
        loop {
            let done = self.send(lines, staged::undo_last(head, lines, claims, Instant::now())?).await?;
            let Err(refusals) = done else { return Ok(()) };
            let kept = Claims {
                number: claims.number && !refusals.names(OrderAction::Number),
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
}
