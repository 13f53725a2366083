//! Sink `bus`: publishes events on the event bus.
//!
//! # Why no event is lost, and few are published twice
//!
//! The events of a record depend only on the record ([`crate::transitions`]). A record is settled
//! as done only after the bus has accepted all its events. After a crash Lambda delivers the record
//! again, and its events have the same ids. The bus does not deduplicate events. So the sink
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
//! particular order, and neither are the events of one record. So the sink sends a batch in *waves*
//! of up to 100 events, in as few requests as possible. The first wave has the events of each
//! item's first record, and the second wave has those of each item's second record. If the bus
//! cannot accept an event now, the item's later records stay unsettled. If the bus will never
//! accept an event, its record is quarantined and the item's later records continue. Records are
//! never merged, because two changes are two events.

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
use crate::ports::{Items, Publisher};
use crate::sink::Sink;
use crate::transitions::Rules;
use crate::verdict::{Reason, Verdict, Verdicts};

/// The purpose of this sink's marks.
const PURPOSE: &str = "bus";
/// The maximum number of events that are sent before their marks are written.
const WAVE: usize = 100;

#[derive(Debug)]
pub struct Bus<I, P> {
    table: Arc<I>,
    publisher: P,
    rules: Rules,
}

/// The events of one item that are still to be sent.
type Lane = VecDeque<Unsent>;

/// A record with events that are still to be sent.
struct Unsent {
    position: usize,
    events: Vec<Event>,
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
        loop {
            for lane in &mut open {
                drop_published(lane, &known, verdicts);
            }
            open.retain(|lane| !lane.is_empty());
            let mut size = 0;
            let counts = open.iter().map(|lane| next(lane).len());
            let counts = counts.take_while(|count| {
                size += count;
                size <= WAVE || size == *count
            });
            let counts: Vec<usize> = counts.collect();
            let wave: Vec<Event> = open.iter().take(counts.len()).flat_map(next).cloned().collect();
            if wave.is_empty() {
                return;
            }
            let outcomes = self.publisher.publish(&wave).await.into_iter();
            telemetry::crash_point("stream.bus.published");
            let missing = || Outcome::Retryable { reason: "no outcome".to_owned() };
            let mut sent = wave.into_iter().zip(outcomes.chain(std::iter::repeat_with(missing)));
            let mut published = Vec::new();
            let mut moved = false;
            for (lane, count) in open.iter_mut().zip(counts) {
                let (mut refused, mut failed) = (None, None);
                for (event, outcome) in sent.by_ref().take(count) {
                    moved |= !matches!(outcome, Outcome::Retryable { .. });
                    match outcome {
                        Outcome::Published => published.push(event.id),
                        Outcome::Refused { reason } => refused = Some(reason),
                        Outcome::Retryable { reason } => failed = Some(reason),
                    }
                }
                match (failed, refused) {
                    (Some(reason), _) => stop(lane, verdicts, Reason::new("bus", reason)),
                    (None, Some(reason)) => refuse(lane, verdicts, Reason::new("bus_refuses", reason)),
                    (None, None) => {}
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

    /// Returns the unsent events of each item, and settles records without events.
    fn unsent(&self, records: &[Record<'_>], verdicts: &Verdicts) -> Vec<Lane> {
        let open = |(position, record): (usize, &Record<'_>)| match self.rules.events(record) {
            Ok(events) if events.is_empty() => {
                verdicts.settle(position, Verdict::Done);
                None
            }
            Ok(events) => Some(Unsent { position, events }),
            Err(error) => {
                verdicts.settle(position, Verdict::Refused(Reason::new("unreadable_old_image", error)));
                None
            }
        };
        let lanes = lanes(records).into_iter().map(|lane| lane.into_iter().filter_map(open).collect());
        lanes.filter(|lane: &Lane| !lane.is_empty()).collect()
    }

    async fn marked(&self, open: &[Lane]) -> Result<HashSet<EventId>, Reason> {
        let ids: Vec<&EventId> =
            open.iter().flatten().flat_map(|record| &record.events).map(|event| &event.id).collect();
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

/// Returns the unsent events of the lane's first record.
fn next(lane: &Lane) -> &[Event] {
    lane.front().map_or(&[], |record| &record.events)
}

/// Removes the published events from the front of the lane, and settles the completed records.
fn drop_published(lane: &mut Lane, known: &HashSet<EventId>, verdicts: &Verdicts) {
    while let Some(record) = lane.front_mut() {
        record.events.retain(|event| !known.contains(&event.id));
        if !record.events.is_empty() {
            return;
        }
        verdicts.settle(record.position, Verdict::Done);
        lane.pop_front();
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
