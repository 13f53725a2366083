//! The steps of the queue of picking jobs.
//!
//! Each arrow is one transaction that moves an order:
//!
//! ```text
//! (paid) ──wait──▶ waiting ──admit──▶ at a station ──leave──▶ (gone)
//!                     └───────────────leave──────────────────▶
//! ```
//!
//! The function handles a batch in two parts. First it writes the step of each message. Then it
//! reads the waiting orders and the stations, and admits orders to free stations.
//!
//! - **Never more orders than stations.** `admit` has a condition on the number of orders that have
//!   a station.
//! - **No job is lost.** A payment message is acknowledged only when the order waits. `admit` moves
//!   the order from the list to the stations in one transaction. Only `leave` removes orders. The
//!   removed orders have left the statuses paid and picking, to which no order returns.
//! - **No job stays forever.** The transaction of `wait` checks that the order is still paid or
//!   being picked. So the order's shipment or cancellation comes later, and its message removes the
//!   order from the list or the stations. A concurrent `admit` finds that the order no longer waits
//!   and does nothing. `wait` does nothing if the payment message arrives after the order has left.
//!   The transaction of `admit` checks the order, too. If the order has left, the function removes
//!   it from the list without waiting for its message.
//! - **No wake-up is lost.** An invocation that adds an order to the list writes first and then
//!   reads the stations. An invocation that frees a station writes first and then reads the list.
//!   Both reads are strongly consistent. If the first invocation finds no free station, the second
//!   one writes later, and then finds the waiting order. If an invocation ends between its write
//!   and its read, SQS delivers its message again. Then the next invocation writes nothing new, and
//!   reads.
//! - **Repetitions change nothing.** A waiting order is not added again, and an order with a
//!   station keeps it. A payment message and its concurrent repetition may put an order back on the
//!   list just after it got a station. The next `admit` removes the order from the list and gives
//!   it no second station.

use std::collections::BTreeSet;

use bus::queue::{Answer, Batch, Message, MessageError};
use key_schema::id::{Born, IdError, OrderId};
use key_schema::instant;
use key_schema::item::{EncodeError, Stored};
use key_schema::key::KeyError;
use key_schema::picking::{self, PickingAction, WaitingJob};
use table::{Measured, Table, TableError};
use telemetry::{correlation, crash_point};
use tokio::time::{Instant, timeout_at};

use crate::message::Step;

/// The number of waiting orders that a round of `admit` reads. Orders behind the first one may
/// already have a station, and the round removes them from the list.
const LOOK_AHEAD: usize = 10;
/// The maximum number of rounds of one `admit`. In each round, this or another invocation admits or
/// removes an order.
const MAX_ROUNDS: usize = 4 * picking::MAX_STATIONS;

/// The reason why a message must be delivered again.
#[derive(Debug, thiserror::Error)]
pub enum PickingError {
    #[error(transparent)]
    Message(#[from] MessageError),
    #[error(transparent)]
    Table(#[from] TableError),
    /// An id cannot be part of a key.
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Id(#[from] IdError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// Other invocations changed the same items in every round.
    #[error("the picking stations are contended")]
    Contended,
}

#[derive(Debug)]
pub struct Picking {
    table: Table,
    stations: usize,
}

impl Picking {
    #[must_use]
    pub const fn new(table: Table, stations: usize) -> Self {
        Self { table, stations }
    }

    /// Returns the capacity that each access pattern has consumed since the last call.
    #[must_use]
    pub fn costs(&self) -> Vec<Measured> {
        self.table.meter().take()
    }

    /// Handles a batch until `stop`, one message after another, because all messages change one
    /// item. One call of `admit` at the end serves all of them. If this call fails, every message
    /// is delivered again.
    pub async fn take(&self, batch: &Batch, stop: Instant) -> Answer {
        let mut done = BTreeSet::new();
        for message in &batch.records {
            let (message_id, cause) = (message.id.as_str(), message.cause());
            let correlation_id = cause.as_deref();
            match timeout_at(stop, correlation::caused_by(correlation_id, self.write(message))).await {
                Ok(Ok(())) => {
                    done.insert(message_id);
                }
                Ok(Err(PickingError::Message(error))) => {
                    tracing::error!(message_id, %error, "a message cannot be read");
                }
                Ok(Err(error)) => tracing::warn!(message_id, correlation_id, %error, "a message failed"),
                Err(_) => tracing::warn!(message_id, correlation_id, "no time is left for a message"),
            }
        }
        if !done.is_empty() {
            crash_point("fulfilment.waiting");
            // The messages and the admitted orders can come from different requests, so the
            // admission has no correlation id.
            let admitted = timeout_at(stop, self.admit()).await;
            let failure = match admitted {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("no time is left".to_owned()),
            };
            if let Some(error) = failure {
                tracing::warn!(error, "waiting orders were not admitted");
                done.clear();
            }
        }
        let open = batch.records.iter().filter(|message| !done.contains(message.id.as_str()));
        Answer::naming(open.map(|message| message.id.clone()))
    }

    async fn write(&self, message: &Message) -> Result<(), PickingError> {
        match Step::in_message(message)? {
            Step::Wait(order) => self.wait(order).await,
            Step::Leave(order) => self.leave(&order).await,
            Step::Nothing => Ok(()),
        }
    }

    /// Puts an order on the list, unless it is listed, has a station, or no longer needs picking.
    async fn wait(&self, order_id: OrderId) -> Result<(), PickingError> {
        // This read only avoids the writes of a repeated message. The result may be outdated, and
        // nothing depends on it.
        if self.jobs().await?.contains(&order_id) {
            return Ok(());
        }
        let born = Born::new(order_id.as_str())?;
        let job = Stored::new(WaitingJob { order_id }, born, instant::Instant::now());
        let _ = self.table.transact(&picking::wait(&job)?).await?;
        Ok(())
    }

    async fn leave(&self, order: &OrderId) -> Result<(), PickingError> {
        let leave = picking::leave(order, &Born::new(order.as_str())?, instant::Instant::now())?;
        self.table.transact(&leave).await?.map_err(|_| PickingError::Contended)
    }

    /// Gives each free station to the waiting order that was placed first.
    async fn admit(&self) -> Result<(), PickingError> {
        for _ in 0..MAX_ROUNDS {
            let jobs = self.jobs().await?;
            let waiting = self.table.query(&picking::waiting()?.limit(LOOK_AHEAD)).await?.items;
            let first = || waiting.first().filter(|_| jobs.len() < self.stations);
            let Some(next) = waiting.iter().find(|job| jobs.contains(&job.order_id)).or_else(first) else {
                return Ok(());
            };
            let (order, at) = (&next.order_id, instant::Instant::now());
            let admit = picking::admit(order, self.stations, &Born::new(order.as_str())?, at)?;
            match self.table.transact(&admit).await? {
                Ok(()) => crash_point("fulfilment.admitted"),
                // The order was shipped or cancelled, and its message is late. Until the message
                // arrives, the order would keep other waiting orders from a station.
                Err(refusals) if refusals.names(PickingAction::Order) => self.leave(order).await?,
                // Another invocation admitted or removed the order, or used the last station. The
                // next round reads again.
                Err(refusals) => {
                    let parts: Vec<PickingAction> = refusals.iter().map(|refusal| refusal.action).collect();
                    tracing::info!(?parts, "a waiting order was not admitted");
                }
            }
        }
        Err(PickingError::Contended)
    }

    async fn jobs(&self) -> Result<BTreeSet<OrderId>, PickingError> {
        let stations = self.table.get(&picking::stations()?).await?;
        Ok(stations.map(|stations| stations.data.jobs).unwrap_or_default())
    }
}
