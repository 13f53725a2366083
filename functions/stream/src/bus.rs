//! Sink `bus`: tells the event bus what happened.
//!
//! # Why no event is lost, and few come twice
//!
//! The events of a record are a function of the record ([`crate::transitions`]), and a record is settled only after the bus has taken all of
//! them: whatever crashes in between, the record comes again and so do its events, under the same ids. The bus has no
//! deduplication, so an event that it has taken is *marked* in the table ([`key_schema::mark`]), and what is marked is not sent again: neither
//! when a batch is delivered a second time because of another record, nor when a record is replayed a month later.
//!
//! Between the bus's answer and the mark lies a gap. A crash in it sends the events of one wave again, with the ids that they had, by
//! which subscribers recognise them. Marking first would close the gap and lose events instead.
//!
//! # When a mark cannot be written
//!
//! The record is settled as done all the same. The event is out; the question is only how often it comes again. To fail the record is to
//! have it delivered again for certain, without a mark, so the event is sent again for certain, and the shard waits for the table while it repeats
//! itself. To settle it is to send it again only if the record is delivered for some other reason, and then once. So in every
//! schedule the second way sends at most as often as the first, and neither loses anything. The write has by then been tried for seconds;
//! that it failed is logged.
//!
//! # Order
//!
//! The events of one item go out in their order: the next is sent when the bus has the one before. Events of different items have no order, so
//! the batch goes out in *waves*, the first open event of each item in one call of the publisher, then the second of each, in as few requests as
//! possible. An event that the bus does not take stops its item: what follows stays unsettled. One that it will never take is set aside
//! and its item goes on. Records are never folded: two changes are two events.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use bus::{Event, EventId, Outcome};
use futures::future::BoxFuture;
use key_schema::id::IdError;
use key_schema::instant::Instant;
use key_schema::item::EncodeError;
use key_schema::mark::{self, Mark};
use table::TableError;

use crate::batch::Record;
use crate::lane::lanes;
use crate::ledger::{Ledger, Reason, Verdict};
use crate::ports::{Items, Publisher};
use crate::sink::Sink;
use crate::transitions::Rules;

/// Whose marks they are.
const PURPOSE: &str = "bus";
/// The most events that are sent before their marks are written: what a crash can repeat.
const WAVE: usize = 100;

/// The sink of the event bus.
#[derive(Debug)]
pub struct Bus<I, P> {
    table: Arc<I>,
    publisher: P,
    rules: Rules,
}

/// The events of one item that are still to be sent.
type Lane = VecDeque<Open>;

/// A record with events that are still to be sent.
struct Open {
    position: usize,
    events: VecDeque<Event>,
}

impl<I: Items, P: Publisher> Bus<I, P> {
    /// A sink that marks in this table what it has published.
    #[must_use]
    pub const fn new(table: Arc<I>, publisher: P, rules: Rules) -> Self {
        Self { table, publisher, rules }
    }

    async fn send(&self, records: &[Record<'_>], ledger: &Ledger) {
        let mut open = self.open(records, ledger);
        let mut known = match self.known(&open).await {
            Ok(known) => known,
            Err(reason) => {
                for record in open.iter().flatten() {
                    ledger.settle(record.position, Verdict::Failed(reason.clone()));
                }
                return;
            }
        };
        loop {
            for lane in &mut open {
                pass_over(lane, &known, ledger);
            }
            open.retain(|lane| !lane.is_empty());
            let wave: Vec<Event> = open.iter().take(WAVE).filter_map(next).cloned().collect();
            if wave.is_empty() {
                return;
            }
            let mut outcomes = self.publisher.publish(&wave).await.into_iter();
            telemetry::crash_point("stream.bus.published");
            let mut published = Vec::with_capacity(wave.len());
            let mut moved = false;
            for (lane, event) in open.iter_mut().zip(wave) {
                let outcome = outcomes.next().unwrap_or_else(|| Outcome::Retryable { reason: "no outcome".to_owned() });
                moved |= !matches!(outcome, Outcome::Retryable { .. });
                match outcome {
                    Outcome::Published => published.push(event.id),
                    Outcome::Refused { reason } => refuse(lane, ledger, Reason::new("bus_refuses", reason)),
                    Outcome::Retryable { reason } => stop(lane, ledger, Reason::new("bus", reason)),
                }
            }
            // What is out is settled before it is marked: see above.
            known.extend(published.iter().cloned());
            for lane in &mut open {
                pass_over(lane, &known, ledger);
            }
            self.mark(&published).await;
            telemetry::crash_point("stream.bus.marked");
            if !moved {
                // The bus takes nothing at the moment: the rest need not try.
                return;
            }
        }
    }

    /// The events of each item. What has none is settled here.
    fn open(&self, records: &[Record<'_>], ledger: &Ledger) -> Vec<Lane> {
        let open = |(position, record): (usize, &Record<'_>)| match self.rules.events(record) {
            Ok(events) if events.is_empty() => {
                ledger.settle(position, Verdict::Done);
                None
            }
            Ok(events) => Some(Open { position, events: events.into() }),
            Err(error) => {
                ledger.settle(position, Verdict::Refused(Reason::new("unreadable_old_image", error)));
                None
            }
        };
        let lanes = lanes(records).into_iter().map(|lane| lane.into_iter().filter_map(open).collect());
        lanes.filter(|lane: &Lane| !lane.is_empty()).collect()
    }

    /// Which of the events were published before, as far as is marked.
    async fn known(&self, open: &[Lane]) -> Result<HashSet<EventId>, Reason> {
        let ids: Vec<&EventId> =
            open.iter().flatten().flat_map(|record| &record.events).map(|event| &event.id).collect();
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        let read =
            mark::known(PURPOSE, ids.iter().map(|id| id.as_str())).map_err(|error| Reason::new("mark", error))?;
        let marks = self.table.batch_get(&read).await.map_err(|error| Reason::new("table", error))?;
        Ok(ids.into_iter().zip(marks).filter_map(|(id, mark)| mark.map(|_| id.clone())).collect())
    }

    async fn mark(&self, published: &[EventId]) {
        if published.is_empty() {
            return;
        }
        let unmarked = match self.keep(published).await {
            Ok(0) => return,
            Ok(unmarked) => unmarked,
            Err(error) => {
                tracing::warn!(cause = %error, "published events could not be marked");
                published.len()
            }
        };
        tracing::warn!(unmarked, "events are sent again if their records come again");
    }

    /// How many marks could not be written.
    async fn keep(&self, published: &[EventId]) -> Result<usize, MarkError> {
        let now = Instant::now();
        let marks = published.iter().map(|id| Mark::new(PURPOSE, id.as_str(), now)).collect::<Result<Vec<_>, _>>()?;
        Ok(self.table.batch_write(&mark::keep(&marks)?).await?.len())
    }
}

impl<I: Items, P: Publisher> Sink for Bus<I, P> {
    fn name(&self) -> &'static str {
        "bus"
    }

    fn take<'a>(&'a self, records: &'a [Record<'a>], ledger: &'a Ledger) -> BoxFuture<'a, ()> {
        Box::pin(self.send(records, ledger))
    }
}

/// Why marks were not written.
#[derive(Debug, thiserror::Error)]
enum MarkError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(transparent)]
    Id(#[from] IdError),
}

/// The event that is to be sent first.
fn next(lane: &Lane) -> Option<&Event> {
    lane.front().and_then(|record| record.events.front())
}

/// Drops the events at the head of the lane that the bus has, and settles the records of which it has all.
fn pass_over(lane: &mut Lane, known: &HashSet<EventId>, ledger: &Ledger) {
    while let Some(record) = lane.front_mut() {
        while record.events.front().is_some_and(|event| known.contains(&event.id)) {
            record.events.pop_front();
        }
        if !record.events.is_empty() {
            return;
        }
        ledger.settle(record.position, Verdict::Done);
        lane.pop_front();
    }
}

/// Sets the first record of the lane aside, and what it would still have sent.
fn refuse(lane: &mut Lane, ledger: &Ledger, reason: Reason) {
    if let Some(record) = lane.pop_front() {
        ledger.settle(record.position, Verdict::Refused(reason));
    }
}

/// The first record of the lane failed; what is behind it is not attempted.
fn stop(lane: &mut Lane, ledger: &Ledger, reason: Reason) {
    if let Some(record) = lane.front() {
        ledger.settle(record.position, Verdict::Failed(reason));
    }
    lane.clear();
}
