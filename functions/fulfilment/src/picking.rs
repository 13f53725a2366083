//! The steps of the queue of picking jobs.
//!
//! Orders move like this, each arrow one transaction:
//!
//! ```text
//! (paid) ──wait──▶ waiting ──admit──▶ at a station ──leave──▶ (gone)
//!                     └───────────────leave──────────────────▶
//! ```
//!
//! Every message is handled in two parts: its own step is *written*, then the function *looks* whether an order waits and a station is free, and admits.
//!
//! - **Never more than N.** Admitting is conditional on the size of the set of stations, in the table.
//! - **No job is lost.** The message of payment is answered only when the order waits; admitting takes it from the list and adds it to the stations
//!   at once. Only `leave` removes, and only for an order that has left paid and picking, to which no order returns.
//! - **No job stays for ever.** `wait` checks in its transaction that the order is still paid or being picked. So it was committed before the order left;
//!   the event of leaving is published after that, and its message, delivered at least once, finds the order and removes it from wherever it is. An
//!   `admit` that meets it finds the order no longer waiting and does nothing. A message of payment that comes after it, however
//!   late, is refused by the check.
//! - **No wake-up is lost.** Whoever adds to the list writes first and then looks at the stations; whoever leaves a station writes first and then looks at the
//!   list; both look with strong reads. If the one sees no room, the other's removal comes after that look, so the other sees what waits. If a
//!   function ends between writing and looking, its message was not answered, comes again, writes nothing new, and looks.
//! - **Repetitions change nothing.** An order that waits is not added again, one that has a station keeps it. A message of payment that meets its own
//!   repetition may put an order back on the list that has just got a station; the look that follows takes it off, and the condition lets an order that
//!   has a station pass without taking a second one.

use std::collections::BTreeSet;

use key_schema::id::{Born, IdError, OrderId};
use key_schema::instant;
use key_schema::item::{EncodeError, Stored};
use key_schema::key::KeyError;
use key_schema::picking::{self, Part, WaitingJob};
use serde::Serialize;
use table::{Measured, Table, TableError, TransactError};
use telemetry::{correlation, crash_point};
use tokio::time::{Instant, timeout_at};

use crate::message::{Batch, Message, MessageError, Step};

/// How many that wait are looked at to admit one: more than one only so that an order that has a station already is found behind the first.
const LOOK_AHEAD: usize = 10;
/// How often one look may go on: each round either admits an order or finds that somebody else was faster.
const MAX_ROUNDS: usize = 4 * picking::MAX_STATIONS;

/// What the queue is told: the messages that must come again, and no others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Answer {
    #[serde(rename = "batchItemFailures")]
    failures: Vec<Failure>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Failure {
    #[serde(rename = "itemIdentifier")]
    id: String,
}

impl Answer {
    fn naming(ids: impl IntoIterator<Item = String>) -> Self {
        Self { failures: ids.into_iter().map(|id| Failure { id }).collect() }
    }

    /// The ids of the messages that must come again.
    #[must_use]
    pub fn failed(&self) -> Vec<&str> {
        self.failures.iter().map(|failure| failure.id.as_str()).collect()
    }
}

/// Why a message must come again.
#[derive(Debug, thiserror::Error)]
pub enum PickingError {
    /// It cannot be read.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The table fails.
    #[error(transparent)]
    Table(#[from] TableError),
    /// An id makes no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// An id is none.
    #[error(transparent)]
    Id(#[from] IdError),
    /// An item cannot be written.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// Others kept changing what is to be changed.
    #[error("the picking stations are contended")]
    Contended,
}

/// The queue of picking jobs.
#[derive(Debug)]
pub struct Picking {
    table: Table,
    stations: usize,
}

impl Picking {
    /// With so many stations.
    #[must_use]
    pub const fn new(table: Table, stations: usize) -> Self {
        Self { table, stations }
    }

    /// What the access patterns have consumed since the last look.
    #[must_use]
    pub fn costs(&self) -> Vec<Measured> {
        self.table.meter().take()
    }

    /// Takes a batch until `stop`. One after the other: they meet at the same item. They share one look at the end; without it, every
    /// message comes again.
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
            // On nobody's behalf: who is admitted may have been placed by another request than any of these.
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

    /// Does what a message says.
    async fn write(&self, message: &Message) -> Result<(), PickingError> {
        match message.step()? {
            Step::Wait(order) => self.wait(order).await,
            Step::Leave(order) => self.leave(&order).await,
            Step::Nothing => Ok(()),
        }
    }

    /// Puts an order on the list, unless it is there, has a station, or is not to be picked any more.
    async fn wait(&self, order_id: OrderId) -> Result<(), PickingError> {
        // Only spares a repetition its writes: what is read here may change at once, and nothing depends on it.
        if self.jobs().await?.contains(&order_id) {
            return Ok(());
        }
        let born = Born::new(order_id.as_str())?;
        let job = Stored::new(WaitingJob { order_id }, born, instant::Instant::now());
        match self.table.transact(&picking::wait(&job)?).await {
            Ok(()) | Err(TransactError::Refused(_)) => Ok(()),
            Err(TransactError::Table(error)) => Err(error.into()),
        }
    }

    /// Takes an order out, wherever it is.
    async fn leave(&self, order: &OrderId) -> Result<(), PickingError> {
        let leave = picking::leave(order, &Born::new(order.as_str())?, instant::Instant::now())?;
        match self.table.transact(&leave).await {
            Ok(()) => Ok(()),
            Err(TransactError::Refused(_)) => Err(PickingError::Contended),
            Err(TransactError::Table(error)) => Err(error.into()),
        }
    }

    /// Gives free stations to those that have waited longest, until no station is free or nobody waits.
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
            match self.table.transact(&admit).await {
                Ok(()) => crash_point("fulfilment.admitted"),
                // Somebody else admitted or removed it, or took the last station, since the look: look again.
                Err(TransactError::Refused(refusals)) => {
                    let parts: Vec<Part> = refusals.iter().map(|refusal| refusal.label).collect();
                    tracing::debug!(?parts, "a waiting order was not admitted");
                }
                Err(TransactError::Table(error)) => return Err(error.into()),
            }
        }
        Err(PickingError::Contended)
    }

    async fn jobs(&self) -> Result<BTreeSet<OrderId>, PickingError> {
        let stations = self.table.get(&picking::stations()?).await?;
        Ok(stations.map(|stations| stations.data.jobs).unwrap_or_default())
    }
}
