use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::staged::{self, Claims, UNDONE_AT_ONCE, Unfinished, Work};
use key_schema::order::{Order, OrderAction, OrderLine, OrderStatus};
use key_schema::request::Transaction;
use table::{Backoff, Refusals, Table};

use crate::engine::{self, Standing, Undone, Worker};
use crate::staging::transition::return_pieces;
use crate::staging::{Items, PlaceOrder, StagingError, Stop};

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
    head: Option<Stored<Order>>,
    /// The reserved lines that are not undone.
    lines: Vec<Stored<OrderLine>>,
    backoff: Backoff,
}

impl<'a> Undoer<'a> {
    pub(super) fn new(table: &'a Table, id: &'a OrderId) -> Self {
        Self { table, id, head: None, lines: Vec::new(), backoff: Backoff::new() }
    }
}

impl Worker for Undoer<'_> {
    type End = Undone;

    async fn stands(&mut self, done: Option<PlaceOrder>) -> Result<Standing<PlaceOrder, Undone>, StagingError> {
        if done == Some(PlaceOrder::Begin) {
            return Ok(Standing::Over(Undone::Gone));
        }
        if done.is_none() {
            if self.head.is_some() && !self.backoff.wait().await {
                return Err(StagingError::Contended);
            }
            let items = Items::read(self.table, self.id).await?;
            match &items.head {
                // Without a head there are no lines either: one transaction removes the head and
                // the last lines.
                None => return Ok(Standing::Over(Undone::Gone)),
                Some(head) if head.status != OrderStatus::Placing => return Ok(Standing::Over(Undone::Visible)),
                Some(_) => (self.head, self.lines) = (items.head, items.lines),
            }
        }
        Ok(Standing::At(if self.lines.len() > UNDONE_AT_ONCE { PlaceOrder::Reserve } else { PlaceOrder::Begin }))
    }
}

impl Undoer<'_> {
    /// Returns the head and the next lines. Another worker may have reserved further lines while
    /// the items were read. Then the step is late, and the next read finds these lines.
    fn next(&self) -> Result<(&Stored<Order>, Vec<&Stored<OrderLine>>), Stop> {
        let head = self.head.as_ref().ok_or(Stop::Late)?;
        match &head.unfinished {
            Some(Unfinished { work: Work::Placing { lines, .. }, .. })
                if u64::try_from(self.lines.len()) == Ok(*lines) => {}
            _ => return Err(Stop::Late),
        }
        Ok((head, self.lines.iter().take(UNDONE_AT_ONCE).collect()))
    }

    async fn send(&self, undo: Transaction<OrderAction>) -> Result<Result<(), Refusals<OrderAction>>, Stop> {
        match return_pieces(self.table, undo).await? {
            Err(refusals) if refusals.names(OrderAction::Order) => Err(Stop::Late),
            outcome => Ok(outcome),
        }
    }

    pub(super) async fn release(&mut self) -> Result<(), Stop> {
        let (head, lines) = self.next()?;
        self.send(staged::undo(head, &lines, Instant::now())?).await??;
        let (head, count) = (staged::counted(head, lines.len(), false), lines.len());
        self.head = Some(head);
        self.lines.drain(..count);
        Ok(())
    }

    pub(super) async fn remove(&mut self) -> Result<(), Stop> {
        let (head, lines) = self.next()?;
        let mut claims = Claims { reference: true, idempotency: true, open: true };
        // Each iteration leaves out at least one refused claim, or ends the loop.
        loop {
            let done = self.send(staged::undo_last(head, &lines, claims, Instant::now())?).await?;
            let Err(refusals) = done else { return Ok(()) };
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
}
