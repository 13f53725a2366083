//! The log lines of a batch for operators.
//!
//! A batch has one line, and one more line for each failed record. Each sink also has a line of
//! metrics, except in a batch of heartbeats in which every record succeeds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use key_schema::entity::AnyEntity;
use key_schema::key::Key;
use search_index::document_id;
use serde::Serialize;
use serde_json::{Map, Value, json};
use table::Measured;
use telemetry::correlation::Ids;
use telemetry::emf::{Line, Unit};

use crate::batch::{Batch, Record};
use crate::sequence::SequenceNumber;
use crate::verdict::Verdict;

/// The outcome of a batch, without keys and without item data.
#[derive(Debug, Clone)]
pub struct Report {
    consumer: String,
    records: usize,
    foreign: usize,
    in_time: bool,
    earliest: Option<String>,
    oldest: Option<Duration>,
    /// The age of the last heartbeat in the batch. The janitor writes heartbeats.
    heartbeat: Option<Duration>,
    only_heartbeats: bool,
    causes: Ids,
    sinks: Vec<(&'static str, Counts)>,
    malformed: Counts,
    took: Duration,
    costs: Vec<Measured>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Records that are durable or have no effect.
    pub done: usize,
    pub quarantined: usize,
    pub failed: usize,
    /// Records that were not attempted, or not settled at the deadline.
    pub unfinished: usize,
}

impl Report {
    pub(crate) fn new(consumer: &str, batch: &Batch<'_>, in_time: bool, earliest: Option<&SequenceNumber>) -> Self {
        let origins = batch.records.iter().map(|record| &record.origin);
        let origins = origins.chain(batch.malformed.iter().map(|malformed| &malformed.origin));
        let oldest = origins.clone().filter_map(|origin| origin.written_at).min();
        Self {
            consumer: consumer.to_owned(),
            records: batch.records.len() + batch.malformed.len() + batch.foreign,
            foreign: batch.foreign,
            in_time,
            earliest: earliest.map(ToString::to_string),
            oldest: oldest.map(|at| age(at.as_millis())),
            heartbeat: batch.records.iter().rev().find_map(heartbeat),
            only_heartbeats: batch.malformed.is_empty()
                && batch.foreign == 0
                && batch.records.iter().all(|record| heartbeat(record).is_some()),
            causes: origins.filter_map(|origin| origin.cause.as_deref()).collect(),
            sinks: Vec::new(),
            malformed: Counts::default(),
            took: Duration::ZERO,
            costs: Vec::new(),
        }
    }

    /// Counts a sink's verdicts and logs each failure.
    pub(crate) fn sink(&mut self, name: &'static str, batch: &Batch<'_>, verdicts: &[Option<Verdict>]) {
        for (record, verdict) in batch.records.iter().zip(verdicts) {
            if let Some(Verdict::Failed(reason)) = verdict {
                let (sequence_number, key) = (record.origin.sequence.as_str(), key_hash(&record.key));
                tracing::warn!(
                    sink = name,
                    sequence_number,
                    correlation_id = record.origin.cause.as_deref(),
                    key,
                    kind = reason.kind,
                    cause = reason.detail,
                    "a record failed"
                );
            }
        }
        self.sinks.push((name, Counts::of(verdicts)));
    }

    /// Counts the verdicts on malformed records, and logs failed writes to the quarantine.
    pub(crate) fn aside(&mut self, batch: &Batch<'_>, verdicts: &[Option<Verdict>]) {
        for (malformed, verdict) in batch.malformed.iter().zip(verdicts) {
            if let Some(Verdict::Failed(reason)) = verdict {
                let sequence_number = malformed.origin.sequence.as_str();
                tracing::warn!(
                    sequence_number,
                    correlation_id = malformed.origin.cause.as_deref(),
                    kind = reason.kind,
                    cause = reason.detail,
                    "a malformed record could not be quarantined"
                );
            }
        }
        self.malformed = Counts::of(verdicts);
    }

    pub(crate) fn finish(&mut self, took: Duration, costs: Vec<Measured>) {
        self.took = took;
        self.costs = costs;
    }

    #[must_use]
    pub fn counts(&self, sink: &str) -> Option<Counts> {
        self.sinks.iter().find(|(name, _)| *name == sink).map(|(_, counts)| *counts)
    }

    #[must_use]
    pub const fn malformed(&self) -> Counts {
        self.malformed
    }

    /// Prints the lines. The metrics have the consumer or the sink as a dimension, because the two
    /// deployments of this crate share one service name.
    pub fn print(&self, request_id: &str, trace: Option<&str>) {
        for line in self.lines(request_id, trace) {
            line.print();
        }
    }

    fn lines(&self, request_id: &str, trace: Option<&str>) -> Vec<Line> {
        let mut lines = vec![self.batch_line(request_id).trace(trace)];
        if !self.is_idle() {
            lines.extend(self.sinks.iter().map(|(name, counts)| sink_line(name, *counts)));
        }
        lines
    }

    /// Returns whether the batch needs only the metric of its heartbeat. CloudWatch charges each
    /// metric by the hour, and while nothing else changes, all batches contain only heartbeats.
    fn is_idle(&self) -> bool {
        let succeeded = |counts: &Counts| counts.failed + counts.unfinished + counts.quarantined == 0;
        self.heartbeat.is_some()
            && self.only_heartbeats
            && self.in_time
            && self.earliest.is_none()
            && self.sinks.iter().all(|(_, counts)| succeeded(counts))
    }

    fn batch_line(&self, request_id: &str) -> Line {
        let sinks: Map<String, Value> =
            self.sinks.iter().map(|(name, counts)| ((*name).to_owned(), json!(counts))).collect();
        let costs: Vec<Value> = self.costs.iter().map(cost).collect();
        let is_idle = self.is_idle();
        let figure = |line: Line, name: &'static str, unit: Unit, value: f64| {
            if is_idle { line.property(name, value) } else { line.metric(name, unit, value) }
        };
        let line = Line::new().dimension("Consumer", &self.consumer);
        let line = figure(line, "Records", Unit::Count, count(self.records));
        let line = figure(line, "Malformed", Unit::Count, count(self.malformed.quarantined));
        let mut line = figure(line, "Duration", Unit::Milliseconds, self.took.as_secs_f64() * 1000.0)
            .property("request_id", request_id)
            .causes(&self.causes)
            .property("sinks", sinks)
            .property("malformed", json!(self.malformed))
            .property("foreign", self.foreign)
            .property("in_time", self.in_time)
            .property("earliest_unfinished", self.earliest.as_deref())
            .property("patterns", costs);
        if let Some(age) = self.heartbeat {
            line = line.metric("Heartbeat", Unit::Milliseconds, age.as_secs_f64() * 1000.0);
        }
        if let Some(age) = self.oldest {
            line = figure(line, "OldestRecordAge", Unit::Milliseconds, age.as_secs_f64() * 1000.0);
        }
        line
    }
}

impl Counts {
    fn of(verdicts: &[Option<Verdict>]) -> Self {
        verdicts.iter().fold(Self::default(), |mut counts, verdict| {
            match verdict {
                Some(Verdict::Done) => counts.done += 1,
                Some(Verdict::Quarantined) => counts.quarantined += 1,
                Some(Verdict::Failed(_)) => counts.failed += 1,
                Some(Verdict::Refused(_)) | None => counts.unfinished += 1,
            }
            counts
        })
    }
}

fn sink_line(name: &str, counts: Counts) -> Line {
    Line::new()
        .dimension("Sink", name)
        .metric("Done", Unit::Count, count(counts.done))
        .metric("Failed", Unit::Count, count(counts.failed))
        .metric("Unfinished", Unit::Count, count(counts.unfinished))
        .metric("Quarantined", Unit::Count, count(counts.quarantined))
}

/// Returns the age of a heartbeat, or `None` for other records.
fn heartbeat(record: &Record<'_>) -> Option<Duration> {
    match record.change.after() {
        Some(AnyEntity::Heartbeat(beat)) => Some(age(beat.round.as_millis())),
        _ => None,
    }
}

fn cost(measured: &Measured) -> Value {
    json!({"pattern": measured.pattern.id, "requests": measured.requests, "units": measured.capacity_units})
}

/// Returns a short hash of a key, for the log. The log contains no keys, because a key may contain
/// a customer id.
fn key_hash(key: &Key) -> String {
    document_id(key.pk.as_str(), key.sk.as_str()).chars().take(16).collect()
}

fn age(written_at_millis: i64) -> Duration {
    let written = UNIX_EPOCH + Duration::from_millis(u64::try_from(written_at_millis).unwrap_or_default());
    SystemTime::now().duration_since(written).unwrap_or_default()
}

/// Converts a count. The result is exact, because a batch has at most 10,000 records.
#[allow(clippy::cast_precision_loss)]
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;
    use crate::batch::Event;
    use crate::verdict::Reason;

    fn event() -> Event {
        let record = |sequence: u32, time: u32| {
            json!({
                "eventName": "REMOVE",
                "dynamodb": {
                    "SequenceNumber": sequence.to_string(), "ApproximateCreationDateTime": time,
                    "Keys": {"PK": {"S": "REFERENCE#secret"}, "SK": {"S": "REFERENCE"}},
                    "OldImage": {
                        "entity": {"S": "ReferenceClaim"}, "reference": {"S": "secret"}, "order_id": {"S": "o1"},
                        "version": {"N": "1"},
                        "rev": {"N": "1"}, "born": {"S": "b"}, "created_at": {"S": "2017-01-01T00:00:00.000Z"},
                        "updated_at": {"S": "2017-01-01T00:00:00.000Z"},
                    },
                },
            })
        };
        let malformed = json!({"dynamodb": {"SequenceNumber": "9", "NewImage": {"req": {"S": "r7"}}}});
        serde_json::from_str(&json!({"Records": [record(1, 2_000), record(2, 1_000), malformed]}).to_string()).unwrap()
    }

    #[test]
    fn a_batch_is_one_line_with_counts_and_without_keys() {
        let event = event();
        let batch = Batch::decode(&event).unwrap();
        assert_eq!((batch.records.len(), batch.malformed.len()), (2, 1));
        let mut report = Report::new("search", &batch, true, Some(&"2".parse().unwrap()));
        report.sink("search", &batch, &[Some(Verdict::Done), Some(Verdict::Failed(Reason::new("table", "away")))]);
        report.aside(&batch, &[Some(Verdict::Quarantined)]);
        report.finish(Duration::from_millis(5), Vec::new());
        let line = report.batch_line("r1").to_json(UNIX_EPOCH);
        assert!(!line.contains("secret") && !line.contains('\n'));
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["Records"], 3.0);
        assert_eq!(line["sinks"]["search"], json!({"done": 1, "quarantined": 0, "failed": 1, "unfinished": 0}));
        assert_eq!(line["malformed"]["quarantined"], 1);
        assert_eq!(line["earliest_unfinished"], "2");
        assert_eq!((&line["correlation_ids"], &line["correlation_id_count"]), (&json!(["r7"]), &json!(1)));
        // The age is computed from the older record's time.
        assert!(line["OldestRecordAge"].as_f64().unwrap() >= age(1_000_000).as_secs_f64() * 1000.0 - 60_000.0);
    }

    fn beat() -> Value {
        json!({
            "eventName": "MODIFY",
            "dynamodb": {
                "SequenceNumber": "1", "ApproximateCreationDateTime": 1_000,
                "Keys": {"PK": {"S": "HEARTBEAT"}, "SK": {"S": "HEARTBEAT"}},
                "NewImage": {
                    "entity": {"S": "Heartbeat"}, "round": {"S": "2017-01-01T00:00:00.000Z"}, "version": {"N": "7"},
                    "rev": {"N": "7"}, "born": {"S": "counter"}, "created_at": {"S": "2016-01-01T00:00:00.000Z"},
                    "updated_at": {"S": "2017-01-01T00:00:00.000Z"},
                },
            },
        })
    }

    #[test]
    fn a_heartbeat_is_reported_with_its_age() {
        let answered = |event: &Event| {
            let batch = Batch::decode(event).unwrap();
            let line = Report::new("search", &batch, true, None).batch_line("r1").to_json(UNIX_EPOCH);
            let line: Value = serde_json::from_str(&line).unwrap();
            (line["Consumer"].clone(), line["Heartbeat"].as_f64())
        };
        let with: Event = serde_json::from_str(&json!({"Records": [beat()]}).to_string()).unwrap();
        let (consumer, age) = answered(&with);
        assert!(consumer == json!("search") && age.is_some_and(|age| age > 1e11), "{consumer} {age:?}");
        assert_eq!(answered(&event()).1, None);
    }

    #[test]
    fn a_batch_of_heartbeats_publishes_only_their_age_unless_a_record_fails() {
        let published = |records: &[Value], last: Verdict| {
            let event: Event = serde_json::from_str(&json!({ "Records": records }).to_string()).unwrap();
            let batch = Batch::decode(&event).unwrap();
            let mut verdicts = vec![Some(Verdict::Done); batch.records.len()];
            *verdicts.last_mut().unwrap() = Some(last);
            let mut report = Report::new("search", &batch, true, None);
            report.sink("search", &batch, &verdicts);
            let lines = report.lines("r1", None).into_iter();
            let lines = lines.map(|line| serde_json::from_str::<Value>(&line.to_json(UNIX_EPOCH)).unwrap());
            let metrics = |line: Value| line["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().unwrap().len();
            lines.map(metrics).collect::<Vec<_>>()
        };
        let failed = || Verdict::Failed(Reason::new("table", "away"));
        assert_eq!(published(&[beat()], Verdict::Done), [1]);
        assert_eq!(published(&[beat(), beat()], Verdict::Done), [1]);
        assert_eq!(published(&[beat()], failed()), [5, 4]);
        assert_eq!(published(&[beat()], Verdict::Quarantined), [5, 4]);
        let change = json!({
            "eventName": "REMOVE",
            "dynamodb": {
                "SequenceNumber": "2", "ApproximateCreationDateTime": 1_000,
                "Keys": {"PK": {"S": "REFERENCE#r"}, "SK": {"S": "REFERENCE"}},
                "OldImage": {
                    "entity": {"S": "ReferenceClaim"}, "reference": {"S": "r"}, "order_id": {"S": "o1"},
                    "version": {"N": "1"},
                    "rev": {"N": "1"}, "born": {"S": "b"}, "created_at": {"S": "2017-01-01T00:00:00.000Z"},
                    "updated_at": {"S": "2017-01-01T00:00:00.000Z"},
                },
            },
        });
        assert_eq!(published(&[beat(), change], Verdict::Done), [5, 4]);
    }

    #[test]
    fn a_sink_has_metrics_of_its_own() {
        let counts = Counts::of(&[Some(Verdict::Done), None, Some(Verdict::Refused(Reason::new("a", "b")))]);
        let line: Value = serde_json::from_str(&sink_line("derived", counts).to_json(UNIX_EPOCH)).unwrap();
        assert_eq!((&line["Sink"], &line["Done"], &line["Unfinished"]), (&json!("derived"), &json!(1.0), &json!(2.0)));
    }

    #[test]
    fn a_key_hash_has_16_hexadecimal_digits() {
        let event = event();
        let batch = Batch::decode(&event).unwrap();
        let hash = key_hash(&batch.records[0].key);
        assert_eq!(hash.len(), 16);
        assert!(hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
