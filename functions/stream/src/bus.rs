//! Sink `bus`: publishes events on the event bus.
//!
//! # Why no event is lost, and few are published twice
//!
//! The event of a record depends only on the record ([`crate::transitions`]). A record is settled
//! as done only after the bus has accepted its event. After a crash Lambda delivers the record
//! again, and its event has the same id. The bus does not deduplicate events. So the sink
//! *marks* each accepted event in the table ([`key_schema::mark`]) and does not send a marked event
//! again. This also holds if a batch is delivered again because of another record, or a record is
//! replayed a month later.
//!
//! A crash between the bus's response and the marks repeats one wave of events (see "Order").
//! Subscribers recognise repeated events by their ids. If the sink wrote the mark before the
//! publication, a crash between them would lose the event.
//!
//! # When a mark cannot be written
//!
//! The record is still settled as done, because its event is published. If the sink failed the
//! record instead, Lambda would certainly deliver it again. Then the event would be sent again, and
//! the shard would wait for the table. The event of a settled record is sent again only if Lambda
//! delivers the record again for another reason. Neither choice loses an event. The sink retries
//! the write of the mark for a few seconds, and logs a failure.
//!
//! # Order
//!
//! The events of one item are sent in order. The sink sends an event only after the bus has
//! accepted the events of the item's previous record. Events of different items are in no
//! particular order. So the sink sends a batch in *waves* of up to 100 events, in as few requests as
//! possible. The first wave has the event of each item's first record, and the second wave has that
//! of each item's second record. If the bus
//! cannot accept an event now, the item's later records stay unsettled. If the bus will never
//! accept an event, its record is quarantined and the item's later records continue. Records are
//! never merged, because two changes are two events.
//!
//! # The lines of a placed order
//!
//! The event of a placed order contains the order's lines, so that its subscribers do not read the
//! order. The lines are items of their own, which the stream does not pass to this sink. The sink
//! reads them with strong consistency, but only for an event without a mark. If the read fails, the
//! record fails like a record whose event the bus does not accept. An event without its lines says
//! how many it leaves out ([`bus::OrderPlaced::add_lines`]).

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use bus::{Data, Event, EventId, Outcome};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream;
use key_schema::id::IdError;
use key_schema::instant::Instant;
use key_schema::item::EncodeError;
use key_schema::mark::{self, Mark};
use table::TableError;

use crate::batch::Record;
use crate::lane::lanes;
use crate::order_lines::{self, ReadError};
use crate::ports::{Items, Publisher};
use crate::sink::Sink;
use crate::transitions::Rules;
use crate::verdict::{Reason, Verdict, Verdicts};

/// The purpose of this sink's marks.
const PURPOSE: &str = "bus";
/// The maximum number of events that are sent before their marks are written.
const WAVE: usize = 100;
/// The maximum number of orders whose lines are read at once.
const READS: usize = 8;

#[derive(Debug)]
pub struct Bus<I, P> {
    table: Arc<I>,
    publisher: P,
    rules: Rules,
}

/// The events of one item that are still to be sent.
type Lane = VecDeque<Unsent>;

/// A record with an event that is still to be sent.
struct Unsent {
    position: usize,
    event: Event,
}

impl<I: Items, P: Publisher> Bus<I, P> {
    #[must_use]
    pub const fn new(table: Arc<I>, publisher: P, rules: Rules) -> Self {
        Self { table, publisher, rules }
    }

    async fn send(&self, records: &[Record<'_>], verdicts: &Verdicts) {
        let mut open = self.unsent(records, verdicts);
        let mut known = match self.marked(&open).await {
            Ok(known) => known,
            Err(reason) => {
                for record in open.iter().flatten() {
                    verdicts.settle(record.position, Verdict::Failed(reason.clone()));
                }
                return;
            }
        };
        for lane in &mut open {
            drop_published(lane, &known, verdicts);
        }
        let lanes = stream::iter(open.iter_mut());
        lanes.for_each_concurrent(READS, |lane| self.add_lines(lane, records, verdicts)).await;
        loop {
            open.retain(|lane| !lane.is_empty());
            let wave: Vec<Event> =
                open.iter().take(WAVE).filter_map(|lane| lane.front()).map(|next| next.event.clone()).collect();
            if wave.is_empty() {
                return;
            }
            let outcomes = self.publisher.publish(&wave).await.into_iter();
            telemetry::crash_point("stream.bus.published");
            let missing = || Outcome::Retryable { reason: "no outcome".to_owned() };
            let outcomes = outcomes.chain(std::iter::repeat_with(missing));
            let mut published = Vec::new();
            let mut moved = false;
            for ((lane, event), outcome) in open.iter_mut().zip(wave).zip(outcomes) {
                moved |= !matches!(outcome, Outcome::Retryable { .. });
                match outcome {
                    Outcome::Published => published.push(event.id),
                    Outcome::Refused { reason } => refuse(lane, verdicts, Reason::new("bus_refuses", reason)),
                    Outcome::Retryable { reason } => stop(lane, verdicts, Reason::new("bus", reason)),
                }
            }
            // The records are settled before their marks are written. So a failed mark does not
            // fail a record.
            known.extend(published.iter().cloned());
            for lane in &mut open {
                drop_published(lane, &known, verdicts);
            }
            self.mark(&published).await;
            telemetry::crash_point("stream.bus.marked");
            if !moved {
                // The bus accepts no event now, so the other events are not sent.
                return;
            }
        }
    }

    /// Adds the lines to the events of placed orders. A record whose lines cannot be read now fails,
    /// and the item's later records stay unsettled.
    async fn add_lines(&self, lane: &mut Lane, records: &[Record<'_>], verdicts: &Verdicts) {
        for at in 0..lane.len() {
            let Some(Unsent { position, event }) = lane.get_mut(at) else { return };
            let (Data::OrderPlaced(placed), Some(record)) = (&mut event.data, records.get(*position)) else { continue };
            match order_lines::read(record, &*self.table, &placed.order_id).await {
                Ok(lines) => placed.add_lines(lines.iter().map(|line| &line.data)),
                // No retry makes the lines readable, and the order is news without its lines.
                Err(ReadError::Table(TableError::Decode(error))) => {
                    tracing::warn!(error = error.for_log(), "the lines of a placed order are left out");
                }
                Err(error) => {
                    verdicts.settle(*position, Verdict::Failed(Reason::new("table", error)));
                    lane.truncate(at);
                    return;
                }
            }
        }
    }

    /// Returns the unsent events of each item, and settles records without events.
    fn unsent(&self, records: &[Record<'_>], verdicts: &Verdicts) -> Vec<Lane> {
        let open = |(position, record): (usize, &Record<'_>)| match self.rules.event(record) {
            Ok(None) => {
                verdicts.settle(position, Verdict::Done);
                None
            }
            Ok(Some(event)) => Some(Unsent { position, event }),
            Err(error) => {
                verdicts.settle(position, Verdict::Refused(Reason::new("unreadable_old_image", error)));
                None
            }
        };
        let lanes = lanes(records).into_iter().map(|lane| lane.into_iter().filter_map(open).collect());
        lanes.filter(|lane: &Lane| !lane.is_empty()).collect()
    }

    async fn marked(&self, open: &[Lane]) -> Result<HashSet<EventId>, Reason> {
        let ids: Vec<&EventId> = open.iter().flatten().map(|record| &record.event.id).collect();
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        // The existence of a mark says enough, so an unreadable mark stops no batch.
        let read =
            mark::known(PURPOSE, ids.iter().map(|id| id.as_str())).map_err(|error| Reason::new("mark", error))?.raw();
        let marks = self.table.batch_get(&read).await.map_err(|error| Reason::new("table", error))?;
        Ok(ids.into_iter().zip(marks).filter_map(|(id, mark)| mark.map(|_| id.clone())).collect())
    }

    async fn mark(&self, published: &[EventId]) {
        if published.is_empty() {
            return;
        }
        let unmarked = match self.write_marks(published).await {
            Ok(0) => return,
            Ok(unmarked) => unmarked,
            Err(error) => {
                tracing::warn!(cause = %error, "published events could not be marked");
                published.len()
            }
        };
        tracing::warn!(unmarked, "events are published again if Lambda delivers their records again");
    }

    /// Writes the marks and returns how many could not be written.
    async fn write_marks(&self, published: &[EventId]) -> Result<usize, MarkError> {
        let now = Instant::now();
        let marks = published.iter().map(|id| Mark::new(PURPOSE, id.as_str(), now)).collect::<Result<Vec<_>, _>>()?;
        Ok(self.table.batch_write(&mark::keep(&marks)?).await?.len())
    }
}

impl<I: Items, P: Publisher> Sink for Bus<I, P> {
    fn name(&self) -> &'static str {
        "bus"
    }

    fn take<'a>(&'a self, records: &'a [Record<'a>], verdicts: &'a Verdicts) -> BoxFuture<'a, ()> {
        Box::pin(self.send(records, verdicts))
    }
}

#[derive(Debug, thiserror::Error)]
enum MarkError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(transparent)]
    Id(#[from] IdError),
}

/// Removes the published events from the front of the lane, and settles their records.
fn drop_published(lane: &mut Lane, known: &HashSet<EventId>, verdicts: &Verdicts) {
    while let Some(record) = lane.pop_front_if(|record| known.contains(&record.event.id)) {
        verdicts.settle(record.position, Verdict::Done);
    }
}

fn refuse(lane: &mut Lane, verdicts: &Verdicts, reason: Reason) {
    if let Some(record) = lane.pop_front() {
        verdicts.settle(record.position, Verdict::Refused(reason));
    }
}

/// Fails the first record of the lane. The lane's later records are not attempted.
fn stop(lane: &mut Lane, verdicts: &Verdicts, reason: Reason) {
    if let Some(record) = lane.front() {
        verdicts.settle(record.position, Verdict::Failed(reason));
    }
    lane.clear();
}
