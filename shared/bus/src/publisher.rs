//! The publisher, which sends events to EventBridge with PutEvents.
//!
//! A call takes at most [`MAX_ENTRIES`] entries and less than [`MAX_REQUEST_BYTES`]. Its response
//! has a result for each entry, so a successful call may contain failed entries. The publisher
//! sends only these again, with full jitter and within a time budget. If a call has no response,
//! [`aws::Service`] repeats all of it. Both retries can publish an event twice. Subscribers
//! recognise the repetition by the event's id.

use std::time::Duration;

use aws::{Api, Call, Failure, Method, Response, Service, SetupError, is_transient};
use futures::StreamExt as _;
use futures::stream;
use serde::{Deserialize, Serialize};
use telemetry::correlation;
use tokio::time::{Instant, sleep};

use crate::{Event, SOURCE};

/// The maximum number of entries in one PutEvents call (API reference, `PutEvents`).
pub const MAX_ENTRIES: usize = 10;
/// The total size of a call's entries must be below this limit (User Guide, "Calculating PutEvents
/// event entry size"). Some regions accept more, but an event must also fit into a message to a
/// queue or a function.
pub const MAX_REQUEST_BYTES: usize = 256 * 1024;
/// The number of bytes that a timestamp adds to the size of an entry, in any notation (same page of
/// the User Guide).
const TIME_BYTES: usize = 14;

const CONCURRENCY: usize = 4;
/// The upper bound of the first random wait before failed entries are sent again. The bound doubles
/// each time.
const BASE: Duration = Duration::from_millis(50);
/// The upper bound of every random wait.
const CAP: Duration = Duration::from_millis(800);
/// The maximum number of times that entries are sent.
const ROUNDS: u32 = 10;

/// The error codes of entries that the bus will never accept. All other codes mean a temporary
/// failure or a fault of the deployment, such as a missing permission. An entry with another code
/// is valid, and its event must not be quarantined.
const REFUSALS: [&str; 2] = ["InvalidArgument", "MalformedDetail"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Published,
    /// The bus did not accept the event, but may accept it later. Or the bus did not respond, and
    /// may have published the event.
    Retryable {
        /// An error code or a similar text that is safe to log.
        reason: String,
    },
    /// The bus will never accept the event.
    Refused {
        /// The reason. It may quote the event.
        reason: String,
    },
}

#[derive(Debug, Clone)]
pub struct EventBus {
    service: Service,
    name: String,
    limits: Limits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The total size of a call's entries must be below this number of bytes.
    pub bytes: usize,
    /// The time after which failed entries are not sent again.
    pub budget: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: MAX_REQUEST_BYTES, budget: Duration::from_secs(4) }
    }
}

const HEADERS: [(&str, &str); 2] =
    [("content-type", "application/x-amz-json-1.1"), ("x-amz-target", "AWSEvents.PutEvents")];

/// An event in the form in which a call sends it.
struct Entry {
    /// The event's position in the call of [`EventBus::publish`].
    position: usize,
    entry: RequestEntry,
    bytes: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct PutEvents<'a> {
    entries: Vec<&'a RequestEntry>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct RequestEntry {
    event_bus_name: String,
    source: &'static str,
    detail_type: &'static str,
    /// The time in seconds since 1970.
    time: i64,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_header: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PutEventsAnswer {
    #[serde(default)]
    entries: Vec<ResultEntry>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ResultEntry {
    event_id: Option<String>,
    error_code: Option<String>,
    error_message: Option<String>,
}

impl EventBus {
    /// Creates a publisher from the environment: `BUS_NAME` and the SDK's variables (region,
    /// credentials, endpoint).
    pub fn from_env() -> Result<Self, SetupError> {
        Ok(Self::new(Service::from_env(Api::EventBridge)?, aws::variable("BUS_NAME")?))
    }

    #[must_use]
    pub fn new(service: Service, name: String) -> Self {
        Self { service, name, limits: Limits::default() }
    }

    #[must_use]
    pub const fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Publishes events concurrently, in no fixed sequence. A caller that needs a sequence awaits
    /// the outcome of one event before it publishes the next. The result has one outcome for each
    /// event, in the sequence of `events`.
    pub async fn publish(&self, events: &[Event]) -> Vec<Outcome> {
        let unanswered = Outcome::Retryable { reason: "no answer".to_owned() };
        let mut outcomes = vec![unanswered; events.len()];
        let mut pending = Vec::with_capacity(events.len());
        for (position, event) in events.iter().enumerate() {
            match self.entry(position, event) {
                Ok(entry) => pending.push(entry),
                Err(reason) => settle(&mut outcomes, position, Outcome::Refused { reason }),
            }
        }
        let until = Instant::now() + self.limits.budget;
        for round in 0..ROUNDS {
            pending = self.round(pending, &mut outcomes).await;
            let wait = BASE.saturating_mul(1 << round).min(CAP).mul_f64(fastrand::f64());
            if pending.is_empty() || Instant::now() + wait >= until {
                break;
            }
            sleep(wait).await;
        }
        outcomes
    }

    /// Sends entries in calls that are as full as possible. Returns the entries that are worth
    /// another attempt.
    async fn round(&self, entries: Vec<Entry>, outcomes: &mut [Outcome]) -> Vec<Entry> {
        let calls = pack(entries, self.limits.bytes).into_iter().map(|entries| self.call(entries));
        let answers: Vec<(Vec<Entry>, Vec<Answer>)> = stream::iter(calls).buffered(CONCURRENCY).collect().await;
        let mut again = Vec::new();
        for (entries, answers) in answers {
            for (entry, answer) in entries.into_iter().zip(answers) {
                settle(outcomes, entry.position, answer.outcome);
                if answer.again {
                    again.push(entry);
                }
            }
        }
        again
    }

    async fn call(&self, entries: Vec<Entry>) -> (Vec<Entry>, Vec<Answer>) {
        let answers = match self.put(&entries).await {
            Ok(answer) => {
                let mut results = answer.entries.into_iter();
                entries.iter().map(|_| results.next().map_or_else(Answer::missing, Answer::from)).collect()
            }
            Err(reason) => vec![Answer::failed(reason); entries.len()],
        };
        (entries, answers)
    }

    /// Makes one call of PutEvents. An error is safe to log.
    async fn put(&self, entries: &[Entry]) -> Result<PutEventsAnswer, String> {
        let entries = entries.iter().map(|entry| &entry.entry).collect();
        let body = serde_json::to_vec(&PutEvents { entries }).map_err(|error| error.to_string())?;
        let call = Call { headers: &HEADERS, body: body.into(), ..Call::new(Method::POST, "/") };
        let says_later = |response: &Response| is_transient(response.status, response.json_error().as_deref());
        let response = self.service.call(&call, says_later).await.map_err(|error| error.to_string())?;
        match response.status {
            200 => serde_json::from_slice(&response.body).map_err(|_| Failure::Broken.to_string()),
            status => Err(response.json_error().unwrap_or_else(|| format!("status {status}"))),
        }
    }

    /// Creates the entry of an event. The error is the reason why the event has no valid entry.
    fn entry(&self, position: usize, event: &Event) -> Result<Entry, String> {
        let detail = event.to_detail().map_err(|error| error.to_string())?;
        let kind = event.kind().as_str();
        let bytes = TIME_BYTES + SOURCE.len() + kind.len() + detail.len();
        if bytes >= self.limits.bytes {
            return Err(format!(
                "an entry of {bytes} bytes is too large: it must have less than {}",
                self.limits.bytes
            ));
        }
        let entry = RequestEntry {
            event_bus_name: self.name.clone(),
            source: SOURCE,
            detail_type: kind,
            time: event.occurred_at.as_seconds(),
            detail,
            trace_header: correlation::trace_header().map(|header| header.to_string()),
        };
        Ok(Entry { position, entry, bytes })
    }
}

/// The result of a call for one entry.
#[derive(Debug, Clone)]
struct Answer {
    outcome: Outcome,
    /// Whether another attempt within this call of [`EventBus::publish`] may succeed.
    again: bool,
}

impl Answer {
    /// Creates the result of a call that failed as a whole, after all its attempts.
    const fn failed(reason: String) -> Self {
        Self { outcome: Outcome::Retryable { reason }, again: false }
    }

    /// Creates the result of an entry for which the response has no result. The bus may have
    /// published the event.
    fn missing() -> Self {
        Self { outcome: Outcome::Retryable { reason: "no result for the entry".to_owned() }, again: true }
    }
}

impl From<ResultEntry> for Answer {
    fn from(result: ResultEntry) -> Self {
        match (result.error_code, result.event_id) {
            (None, Some(_)) => Self { outcome: Outcome::Published, again: false },
            (Some(code), _) if REFUSALS.contains(&code.as_str()) => {
                let reason = format!("{code}: {}", result.error_message.unwrap_or_default());
                Self { outcome: Outcome::Refused { reason }, again: false }
            }
            (Some(reason), _) => Self { outcome: Outcome::Retryable { reason }, again: true },
            (None, None) => Self::missing(),
        }
    }
}

fn settle(outcomes: &mut [Outcome], position: usize, outcome: Outcome) {
    if let Some(entry) = outcomes.get_mut(position) {
        *entry = outcome;
    }
}

/// Packs entries into calls. Each call is filled before the next one begins.
fn pack(entries: Vec<Entry>, limit: usize) -> Vec<Vec<Entry>> {
    let mut calls: Vec<Vec<Entry>> = Vec::new();
    let mut bytes = 0;
    for entry in entries {
        match calls.last_mut() {
            Some(call) if call.len() < MAX_ENTRIES && bytes + entry.bytes < limit => {
                bytes += entry.bytes;
                call.push(entry);
            }
            _ => {
                bytes = entry.bytes;
                calls.push(vec![entry]);
            }
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(bytes: &[usize], limit: usize) -> Vec<Vec<usize>> {
        let entry =
            |(position, bytes): (usize, &usize)| Entry { position, entry: RequestEntry::default(), bytes: *bytes };
        let calls = pack(bytes.iter().enumerate().map(entry).collect(), limit);
        calls.into_iter().map(|call| call.into_iter().map(|entry| entry.position).collect()).collect()
    }

    #[test]
    fn a_call_has_ten_entries_before_the_next_call_begins() {
        assert_eq!(calls(&[], 100), Vec::<Vec<usize>>::new());
        let of = |entries: usize| calls(&vec![1; entries], 100).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!((of(1), of(10), of(11), of(25)), (vec![1], vec![10], vec![10, 1], vec![10, 10, 5]));
    }

    #[test]
    fn the_entries_of_a_call_are_together_smaller_than_the_limit() {
        assert_eq!(calls(&[50, 49, 1, 99, 60, 39], 100), [vec![0, 1], vec![2], vec![3], vec![4, 5]]);
    }

    #[test]
    fn only_an_error_of_the_entry_itself_is_a_refusal() {
        let answer = |code: Option<&str>, id: Option<&str>| {
            let (error_code, event_id) = (code.map(str::to_owned), id.map(str::to_owned));
            Answer::from(ResultEntry { event_id, error_code, error_message: Some("why".to_owned()) })
        };
        let refused = Outcome::Refused { reason: "MalformedDetail: why".to_owned() };
        assert_eq!(answer(None, Some("e1")).outcome, Outcome::Published);
        assert_eq!(answer(Some("MalformedDetail"), None).outcome, refused);
        assert!(matches!(answer(Some("InvalidArgument"), None).outcome, Outcome::Refused { .. }));
        for code in
            ["ThrottlingException", "InternalFailure", "NotAuthorizedForSourceException", "AccessDeniedException"]
        {
            let again = answer(Some(code), None);
            assert_eq!(again.outcome, Outcome::Retryable { reason: code.to_owned() });
            assert!(again.again);
        }
        assert!(answer(None, None).again, "an entry without a result is published again");
    }
}
