//! The newest records of the stream, each with its fate in every mapping.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde_json::Value;

use crate::lane::Entry;
use crate::{Record, SequenceNumber};

/// Maximum number of records that are kept.
const MAX_RECORDS: usize = 1000;
/// Maximum size of the kept records in bytes, as the stream reports it.
const MAX_BYTES: u64 = 8 << 20;

/// A record of the stream, and its fate in every mapping.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The number of the record, in the order in which the poller read the records. It starts at 1.
    pub seq: u64,
    /// The time at which the poller first read the record.
    pub read: SystemTime,
    pub record: Arc<Record>,
    /// One entry for each mapping, in the order in which the caller passed them.
    pub mappings: Vec<MappingDelivery>,
}

/// The fate of a record in one mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingDelivery {
    pub function: String,
    pub verdict: Verdict,
    /// Number of calls of the function that included the record.
    pub attempts: u32,
    /// The function's last error. `None` for a delivered record.
    pub error: Option<String>,
    /// The time of the verdict. `None` while the mapping has not read the record.
    pub at: Option<SystemTime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The mapping's filter excludes the record, or the write changed nothing.
    Filtered,
    /// The mapping has not called its function with the record.
    Waiting,
    /// A call failed, and the mapping will repeat it.
    Retrying,
    Delivered,
    /// The mapping gave the record up. If there is a destination, it has stored the record.
    Discarded,
    /// The mapping gave the record up, and the destination failed to store it.
    Lost,
}

#[derive(Debug)]
pub(crate) struct History {
    functions: Vec<String>,
    ring: Mutex<Ring>,
}

/// One mapping's access to the history.
#[derive(Debug, Clone)]
pub(crate) struct MappingHistory {
    pub(crate) history: Arc<History>,
    pub(crate) mapping: usize,
}

#[derive(Debug, Default)]
struct Ring {
    kept: VecDeque<Kept>,
    numbers: HashMap<String, u64>,
    bytes: u64,
    /// The number of the newest record.
    last: u64,
    /// The newest record that was dropped. A mapping that is far behind reads older records.
    dropped: Option<SequenceNumber>,
}

#[derive(Debug)]
struct Kept {
    record: Arc<Record>,
    read: SystemTime,
    size: u64,
    states: Vec<Option<State>>,
}

#[derive(Debug, Clone)]
struct State {
    verdict: Verdict,
    attempts: u32,
    error: Option<String>,
    at: SystemTime,
}

impl History {
    /// Creates a history for the mappings of these functions.
    pub(crate) fn new(functions: Vec<String>) -> Self {
        Self { functions, ring: Mutex::default() }
    }

    /// Returns at most `limit` kept records after the record with the number `after`, oldest first.
    pub(crate) fn after(&self, after: u64, limit: usize) -> Vec<Delivery> {
        let ring = self.ring();
        let first = ring.first();
        let skipped = usize::try_from(after.saturating_add(1).saturating_sub(first)).unwrap_or(usize::MAX);
        let kept = ring.kept.iter().zip(first..).skip(skipped).take(limit);
        kept.map(|(kept, seq)| self.delivery(kept, seq)).collect()
    }

    fn delivery(&self, kept: &Kept, seq: u64) -> Delivery {
        let fate = |(function, state): (&String, &Option<State>)| MappingDelivery {
            function: function.clone(),
            verdict: state.as_ref().map_or(Verdict::Waiting, |state| state.verdict),
            attempts: state.as_ref().map_or(0, |state| state.attempts),
            error: state.as_ref().and_then(|state| state.error.clone()),
            at: state.as_ref().map(|state| state.at),
        };
        let mappings = self.functions.iter().zip(&kept.states).map(fate).collect();
        Delivery { seq, read: kept.read, record: Arc::clone(&kept.record), mappings }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MappingHistory {
    /// Notes records that the mapping has read. A record is in the history even if the filter
    /// excludes it.
    pub(crate) fn read(&self, records: &[(Arc<Record>, bool)]) {
        let (at, mappings) = (SystemTime::now(), self.history.functions.len());
        let mut ring = self.history.ring();
        for (record, passes) in records {
            let verdict = if *passes { Verdict::Waiting } else { Verdict::Filtered };
            let state = State { verdict, attempts: 0, error: None, at };
            if let Some(kept) = ring.get(record.sequence()) {
                set(kept, self.mapping, state);
            } else if ring.dropped.as_ref().is_none_or(|dropped| record.sequence() > dropped) {
                let mut kept = Kept { record: Arc::clone(record), read: at, size: size(record), states: Vec::new() };
                kept.states.resize(mappings, None);
                set(&mut kept, self.mapping, state);
                ring.push(kept);
            }
        }
    }

    pub(crate) fn settle(&self, entries: &[Entry], verdict: Verdict, attempts: u32, error: Option<&String>) {
        let at = SystemTime::now();
        let mut ring = self.history.ring();
        for entry in entries {
            if let Some(kept) = ring.get(entry.record.sequence()) {
                set(kept, self.mapping, State { verdict, attempts, error: error.cloned(), at });
            }
        }
    }
}

impl Ring {
    /// Returns the number of the oldest kept record.
    fn first(&self) -> u64 {
        self.last + 1 - u64::try_from(self.kept.len()).unwrap_or_default()
    }

    fn get(&mut self, sequence: &SequenceNumber) -> Option<&mut Kept> {
        let number = *self.numbers.get(sequence.as_str())?;
        let index = usize::try_from(number.checked_sub(self.first())?).ok()?;
        self.kept.get_mut(index)
    }

    fn push(&mut self, kept: Kept) {
        self.last += 1;
        self.bytes += kept.size;
        self.numbers.insert(kept.record.sequence().as_str().to_owned(), self.last);
        self.kept.push_back(kept);
        while self.kept.len() > MAX_RECORDS || self.bytes > MAX_BYTES {
            let Some(oldest) = self.kept.pop_front() else { return };
            self.bytes -= oldest.size;
            self.numbers.remove(oldest.record.sequence().as_str());
            self.dropped = Some(oldest.record.sequence().clone());
        }
    }
}

fn set(kept: &mut Kept, mapping: usize, state: State) {
    if let Some(place) = kept.states.get_mut(mapping) {
        *place = Some(state);
    }
}

fn size(record: &Record) -> u64 {
    record.event().pointer("/dynamodb/SizeBytes").and_then(Value::as_u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use serde_json::json;

    use super::*;

    fn record(number: u64, size: u64) -> Arc<Record> {
        let change = json!({"Keys": {"PK": {"S": "a"}}, "SequenceNumber": number.to_string(), "SizeBytes": size});
        Arc::new(Record::from_api(json!({"eventName": "INSERT", "dynamodb": change}), "arn").unwrap())
    }

    fn history() -> (Arc<History>, MappingHistory, MappingHistory) {
        let history = Arc::new(History::new(vec!["a".to_owned(), "b".to_owned()]));
        let of = |mapping| MappingHistory { history: Arc::clone(&history), mapping };
        (Arc::clone(&history), of(0), of(1))
    }

    fn verdicts(delivery: &Delivery) -> Vec<(Verdict, u32, Option<&str>)> {
        let fates = delivery.mappings.iter();
        fates.map(|fate| (fate.verdict, fate.attempts, fate.error.as_deref())).collect()
    }

    #[test]
    fn each_record_has_its_fate_in_every_mapping() {
        let (history, a, b) = history();
        let entry = |number| Entry { number, record: record(number, 1) };
        a.read(&[(record(1, 1), true), (record(2, 1), false)]);
        b.read(&[(record(1, 1), true)]);
        a.settle(&[entry(1)], Verdict::Retrying, 1, Some(&"down".to_owned()));
        b.settle(&[entry(1)], Verdict::Delivered, 1, None);
        let all = history.after(0, 10);
        assert_eq!(all.iter().map(|delivery| delivery.seq).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(verdicts(&all[0]), [(Verdict::Retrying, 1, Some("down")), (Verdict::Delivered, 1, None)]);
        assert_eq!(verdicts(&all[1]), [(Verdict::Filtered, 0, None), (Verdict::Waiting, 0, None)]);
        assert_eq!(all[1].mappings[1].at, None);
        assert_eq!(history.after(1, 10)[0].seq, 2);
        assert_eq!((history.after(0, 1).len(), history.after(2, 10).len()), (1, 0));
    }

    #[test]
    fn the_newest_records_are_kept_and_a_mapping_that_is_behind_brings_no_old_record_back() {
        let (history, a, b) = history();
        let records: Vec<(Arc<Record>, bool)> = (1..=1003).map(|number| (record(number, 1), true)).collect();
        a.read(&records);
        b.read(&records);
        let all = history.after(0, 2000);
        assert_eq!((all.len(), all[0].seq, all[0].record.sequence().as_str()), (1000, 4, "4"));
        assert!(all.iter().all(|delivery| delivery.mappings[1].at.is_some()));
        a.read(&[(record(1004, MAX_BYTES - 10), true)]);
        assert_eq!(history.after(0, 2000).len(), 11);
    }
}
