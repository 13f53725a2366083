//! The quarantine: a store for records that a sink refused or that cannot be read. A stored record
//! does not stop its shard.

use std::sync::Arc;

use futures::future::BoxFuture;
use key_schema::instant::Instant;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use storage::objects::Class;

use crate::batch::Origin;
use crate::ports::Objects;
use crate::verdict::Reason;

pub const PREFIX: &str = "quarantine/";
/// The maximum length of an event id in an object's name. The stream's ids have 32 characters.
const MAX_EVENT_ID_BYTES: usize = 128;
/// The maximum plausible distance between a record's time and now: twice the 24 hours for which the
/// stream keeps a record.
const BELIEVED_SECONDS: i64 = 48 * 60 * 60;

/// A store for records that a sink refused or that cannot be read.
pub trait Quarantine: Send + Sync {
    /// Stores one record. A repeated call changes nothing.
    fn put<'a>(&'a self, entry: Entry<'a>) -> BoxFuture<'a, Result<(), Reason>>;
}

#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The sinks that have not taken the record, separated by commas.
    pub consumer: &'a str,
    pub origin: &'a Origin<'a>,
    pub reason: &'a Reason,
}

/// A quarantine in an object store. It can store any record that fits into an invocation (6 MB). An
/// object's name has this form:
///
/// ```text
/// quarantine/<day>/<event id or sequence number>-<consumer>.json
/// ```
///
/// If a batch has failed too often, Lambda itself writes it to the same bucket, under
/// `aws/lambda/`.
#[derive(Debug)]
pub struct InStore<O>(pub Arc<O>);

#[derive(Debug, Serialize, Deserialize)]
pub struct Quarantined {
    pub at: Instant,
    /// The sinks that have not taken the record, separated by commas.
    pub consumer: String,
    /// The short name of the reason ([`Reason::kind`]).
    pub kind: String,
    /// The detail of the reason. It may quote the item.
    pub reason: String,
    /// The record's position in its shard.
    pub sequence_number: String,
    /// The stream's event id, if it is usable.
    pub event_id: Option<String>,
    /// The record's JSON, unchanged.
    pub record: Box<RawValue>,
}

impl<O: Objects> Quarantine for InStore<O> {
    fn put<'a>(&'a self, entry: Entry<'a>) -> BoxFuture<'a, Result<(), Reason>> {
        Box::pin(async move {
            let failed = |error: serde_json::Error| Reason::new("quarantine", error);
            let now = Instant::now();
            let body = serde_json::to_vec(&entry.quarantined(now).map_err(failed)?).map_err(failed)?;
            // If the object exists, an earlier delivery has quarantined the record.
            let put = self.0.put_new(&entry.name(now), body, Class::Standard).await;
            put.map_err(|error| Reason::new("quarantine", error))?;
            telemetry::crash_point("stream.quarantine.kept");
            Ok(())
        })
    }
}

impl Entry<'_> {
    fn quarantined(&self, now: Instant) -> Result<Quarantined, serde_json::Error> {
        Ok(Quarantined {
            at: now,
            consumer: self.consumer.to_owned(),
            kind: self.reason.kind.to_owned(),
            reason: self.reason.detail.clone(),
            sequence_number: self.origin.sequence.to_string(),
            event_id: self.origin.event_id.clone(),
            record: RawValue::from_string(self.origin.text.to_owned())?,
        })
    }

    /// Returns the name of the object for a record that is quarantined `now`.
    fn name(&self, now: Instant) -> String {
        let Origin { sequence, event_id, written_at, .. } = self.origin;
        // A record without a usable event id is identified by its sequence number.
        let event_id = event_id.as_deref().filter(|id| is_plain(id)).unwrap_or(sequence.as_str());
        // The name has the day of the record, so it is the same for every delivery. The present day
        // could differ between two deliveries. An implausible day is not used, because an operator
        // would not look for the record there.
        let believed = now.plus_seconds(-BELIEVED_SECONDS)..=now.plus_seconds(BELIEVED_SECONDS);
        let day = written_at.filter(|at| believed.contains(at)).unwrap_or(now).day();
        format!("{PREFIX}{day}/{event_id}-{}.json", self.consumer)
    }
}

/// Returns whether an id can be part of a name unchanged.
fn is_plain(id: &str) -> bool {
    (1..=MAX_EVENT_ID_BYTES).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn name(event_id: Option<&str>, written_at: Option<&str>) -> String {
        let origin = Origin {
            sequence: "42".parse().unwrap(),
            event_id: event_id.map(str::to_owned),
            written_at: written_at.map(|at| at.parse().unwrap()),
            cause: None,
            text: "{}",
        };
        let reason = Reason::new("malformed_item", "no name");
        Entry { consumer: "search", origin: &origin, reason: &reason }.name("2017-01-02T00:00:01.000Z".parse().unwrap())
    }

    #[test]
    fn every_delivery_of_a_record_gives_the_same_name_even_after_midnight() {
        assert_eq!(name(Some("e1"), Some("2017-01-01T23:59:59.000Z")), "quarantine/2017-01-01/e1-search.json");
    }

    #[test]
    fn an_implausible_day_becomes_today_and_an_unusable_event_id_becomes_the_sequence_number() {
        for written_at in [None, Some("1970-01-01T00:00:00.000Z"), Some("9999-01-01T00:00:00.000Z")] {
            assert_eq!(name(None, written_at), "quarantine/2017-01-02/42-search.json");
        }
        let endless = "e".repeat(5_000);
        for event_id in [None, Some(""), Some("a\u{0}b"), Some("../../x"), Some("ä"), Some(endless.as_str())] {
            assert_eq!(name(event_id, None), "quarantine/2017-01-02/42-search.json");
        }
    }
}
