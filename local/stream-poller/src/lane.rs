//! A lane: one of the parallel workers of a mapping in a shard. It forms batches, calls the
//! function, and retries failed batches by Lambda's rules.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use crate::answer::{self, Outcome};
use crate::history::Verdict;
use crate::mapping::{MappingState, ShardState, count};
use crate::poller::Backoff;
use crate::{Condition, DiscardedBatch, FunctionError, MappingSettings, Record};

/// Leaves room for the JSON around the records, because Lambda's limit for an event is 6 MiB.
const MAX_PAYLOAD: usize = 6_000_000;
/// How long a stream keeps its records. The poller does not retry older batches.
const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
const DESTINATION_ATTEMPTS: usize = 5;

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The record's number in the shard's checkpoint.
    pub(crate) number: u64,
    pub(crate) record: Arc<Record>,
}

pub(crate) struct Lane {
    mapping: Arc<MappingState>,
    shard: Arc<ShardState>,
    incoming: mpsc::Receiver<Vec<Entry>>,
    waiting: VecDeque<Entry>,
}

struct Attempt {
    entries: Vec<Entry>,
    /// Failures that count as retries.
    failures: u32,
    /// Number of calls of the function that included the first of these records.
    invocations: u32,
    /// Whether a call was attempted, even if the function could not be called.
    tried: bool,
    error: Option<String>,
}

impl Lane {
    pub(crate) fn new(
        mapping: Arc<MappingState>,
        shard: Arc<ShardState>,
        incoming: mpsc::Receiver<Vec<Entry>>,
    ) -> Self {
        Self { mapping, shard, incoming, waiting: VecDeque::new() }
    }

    pub(crate) async fn run(mut self) {
        while let Some(batch) = self.next_batch().await {
            self.work_off(batch).await;
        }
    }

    fn settings(&self) -> &MappingSettings {
        &self.mapping.mapping.settings
    }

    /// Returns `None` at the end of the shard.
    async fn next_batch(&mut self) -> Option<Vec<Entry>> {
        if self.waiting.is_empty() {
            let deal = self.incoming.recv().await?;
            self.waiting.extend(deal);
        }
        let deadline = Instant::now() + self.settings().batching_window;
        let mut attention = self.mapping.attention.subscribe();
        loop {
            let (taken, is_full) = self.filling();
            let hurry = attention.borrow_and_update().drains > 0;
            if is_full {
                return Some(self.waiting.drain(..taken).collect());
            }
            let deadline = if hurry { Instant::now() } else { deadline };
            tokio::select! {
                // With `biased`, records that have already arrived are added even if the window has
                // ended.
                biased;
                deal = timeout_at(deadline, self.incoming.recv()) => match deal {
                    Ok(Some(deal)) => self.waiting.extend(deal),
                    Ok(None) | Err(_) => return Some(self.waiting.drain(..taken).collect()),
                },
                _ = attention.changed() => {}
            }
        }
    }

    /// Returns the number of waiting records in the next batch, and whether the batch is full.
    fn filling(&self) -> (usize, bool) {
        let mut bytes = 0;
        for (index, entry) in self.waiting.iter().enumerate() {
            bytes += entry.record.text().len() + 1;
            // A single record is always sent, because a batch of one record cannot be split.
            if index == self.settings().batch_size || (bytes > MAX_PAYLOAD && index > 0) {
                return (index, true);
            }
        }
        let taken = self.waiting.len();
        (taken, taken == self.settings().batch_size)
    }

    /// If the batch is bisected, the parts are processed in their order, so the records of one item
    /// stay in order.
    async fn work_off(&self, batch: Vec<Entry>) {
        let mut parts =
            VecDeque::from([Attempt { entries: batch, failures: 0, invocations: 0, tried: false, error: None }]);
        let mut backoff = Backoff::new(self.mapping.pace.retry, self.mapping.pace.retry_most);
        while let Some(mut part) = parts.pop_front() {
            self.discard_expired(&mut part).await;
            if part.entries.is_empty() {
                continue;
            }
            count(&self.mapping.counts.invocations, 1);
            let outcome = self.call(&mut part).await;
            if !matches!(outcome, Ok(Outcome::Done)) {
                count(&self.mapping.counts.failed_invocations, 1);
                self.note_failure(&part, outcome.is_err());
            }
            match outcome {
                Ok(Outcome::Done) => {
                    self.deliver(&part);
                    backoff.reset();
                    continue;
                }
                Ok(Outcome::DoneBefore(index)) => {
                    let rest = part.entries.split_off(index);
                    self.deliver(&part);
                    part.entries = rest;
                    if index == 0 {
                        part.failures += 1;
                    } else {
                        // Another record is now the first record. This call is its first failure.
                        part.failures = 1;
                        part.invocations = 1;
                        backoff.reset();
                    }
                }
                Ok(Outcome::Failed) if self.settings().bisect_on_function_error && part.entries.len() > 1 => {
                    // A failed call that leads to a bisection does not count as a retry.
                    let second = part.entries.split_off(part.entries.len() / 2);
                    parts.push_front(Attempt {
                        entries: second,
                        failures: part.failures,
                        invocations: part.invocations,
                        tried: true,
                        error: part.error.clone(),
                    });
                }
                Ok(Outcome::Failed) => part.failures += 1,
                Err(NotCalled) => part.invocations -= 1,
            }
            let retries = self.settings().maximum_retry_attempts;
            if retries.is_some_and(|retries| part.failures > retries) {
                self.discard(part, Condition::RetryAttemptsExhausted).await;
                backoff.reset();
            } else {
                parts.push_front(part);
                sleep(backoff.next()).await;
            }
        }
    }

    /// Notes that the records of a failed call will be delivered again.
    fn note_failure(&self, part: &Attempt, not_called: bool) {
        let attempts = part.invocations - u32::from(not_called);
        self.mapping.history.settle(&part.entries, Verdict::Retrying, attempts, part.error.as_ref());
    }

    async fn call(&self, part: &mut Attempt) -> Result<Outcome, NotCalled> {
        part.invocations += 1;
        part.tried = true;
        let function = &self.mapping.mapping.function;
        match function.invoke(payload(&part.entries)).await {
            Ok(answer) if self.settings().report_batch_item_failures => {
                let outcome = answer::read(&answer, |identifier| {
                    part.entries.iter().position(|entry| entry.record.sequence().as_str() == identifier)
                });
                if outcome != Outcome::Done {
                    part.error = Some("the function reported failed records".to_owned());
                }
                Ok(outcome)
            }
            Ok(_) => Ok(Outcome::Done),
            Err(error) => {
                tracing::warn!(%error, function = self.settings().function, "a stream batch failed");
                part.error = Some(error.to_string());
                match error {
                    FunctionError::Failed(_) => Ok(Outcome::Failed),
                    FunctionError::NotCalled(_) => Err(NotCalled),
                }
            }
        }
    }

    /// Without a maximum age, the limit is the stream's retention. Then no record is discarded
    /// before an attempt to deliver it, because a local stream also keeps older records while the
    /// system does not run.
    async fn discard_expired(&self, part: &mut Attempt) {
        let limit = match self.settings().maximum_record_age {
            Some(limit) => limit.min(RETENTION),
            None if part.tried => RETENTION,
            None => return,
        };
        let now = SystemTime::now();
        let expired = part
            .entries
            .iter()
            .take_while(|entry| now.duration_since(entry.record.created()).is_ok_and(|age| age > limit))
            .count();
        if expired > 0 {
            let rest = part.entries.split_off(expired);
            let expired = Attempt {
                entries: std::mem::replace(&mut part.entries, rest),
                failures: part.failures,
                invocations: part.invocations,
                tried: part.tried,
                error: part.error.clone(),
            };
            self.discard(expired, Condition::RecordAgeExceeded).await;
        }
    }

    async fn discard(&self, part: Attempt, condition: Condition) {
        let size = part.entries.len();
        tracing::warn!(function = self.settings().function, records = size, ?condition, "stream records are given up");
        let kept = match self.discarded(&part, condition) {
            Some(batch) => self.offer(batch).await,
            None => true,
        };
        let verdict = if kept { Verdict::Discarded } else { Verdict::Lost };
        self.mapping.history.settle(&part.entries, verdict, part.invocations, part.error.as_ref());
        let counts = &self.mapping.counts;
        count(if kept { &counts.discarded } else { &counts.lost }, size);
        self.settle(&part.entries);
    }

    /// Returns false if the destination could not store the batch.
    async fn offer(&self, batch: DiscardedBatch) -> bool {
        let Some(destination) = &self.mapping.mapping.on_failure else {
            return true;
        };
        let mut backoff = Backoff::new(self.mapping.pace.retry, self.mapping.pace.retry_most);
        for _ in 0..DESTINATION_ATTEMPTS {
            match destination.discard(batch.clone()).await {
                Ok(()) => return true,
                Err(error) => {
                    tracing::error!(%error, function = self.settings().function, "records may be lost");
                }
            }
            sleep(backoff.next()).await;
        }
        false
    }

    fn discarded(&self, part: &Attempt, condition: Condition) -> Option<DiscardedBatch> {
        let (first, last) = (part.entries.first()?, part.entries.last()?);
        Some(DiscardedBatch {
            function: self.settings().function.clone(),
            condition,
            invocations: part.invocations,
            error: part.error.clone(),
            stream_arn: self.mapping.stream_arn.clone(),
            shard_id: self.shard.id.clone(),
            first_sequence: first.record.sequence().clone(),
            last_sequence: last.record.sequence().clone(),
            first_arrival: first.record.created(),
            last_arrival: last.record.created(),
            size: part.entries.len(),
            payload: payload(&part.entries),
            at: SystemTime::now(),
        })
    }

    fn deliver(&self, part: &Attempt) {
        self.mapping.history.settle(&part.entries, Verdict::Delivered, part.invocations, None);
        count(&self.mapping.counts.delivered, part.entries.len());
        self.settle(&part.entries);
    }

    fn settle(&self, entries: &[Entry]) {
        let mut reader = self.shard.reader();
        for entry in entries {
            reader.checkpoint.settle(entry.number);
        }
        drop(reader);
        self.mapping.notify();
    }
}

/// The function could not be called, which does not count as an attempt.
struct NotCalled;

fn payload(entries: &[Entry]) -> Bytes {
    const OPEN: &str = "{\"Records\":[";
    const CLOSE: &str = "]}";
    let records: usize = entries.iter().map(|entry| entry.record.text().len() + 1).sum();
    let mut payload = String::with_capacity(OPEN.len() + records + CLOSE.len());
    payload.push_str(OPEN);
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            payload.push(',');
        }
        payload.push_str(entry.record.text());
    }
    payload.push_str(CLOSE);
    payload.into()
}
