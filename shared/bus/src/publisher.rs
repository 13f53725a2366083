//! The way to EventBridge: PutEvents.
//!
//! A call takes at most [`MAX_ENTRIES`] entries and less than [`MAX_REQUEST_BYTES`], and its answer is about each entry alone: a call that succeeds
//! may still have failed for some of them. Those, and those alone, are sent again, with full jitter and inside a budget; what the
//! SDK itself repeats are whole calls that had no answer. Either can publish an event twice, which is why its id is derived.

use std::time::Duration;

use aws::SetupError;
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_eventbridge::primitives::DateTime;
use aws_sdk_eventbridge::types::{PutEventsRequestEntry, PutEventsResultEntry};
use futures::StreamExt as _;
use futures::stream;
use telemetry::correlation;
use tokio::time::{Instant, sleep};

use crate::{Event, SOURCE};

/// The most entries of one PutEvents call (API reference, `PutEvents`).
pub const MAX_ENTRIES: usize = 10;
/// The entries of a call are together smaller than this, and so is each of them (User Guide, "Calculating PutEvents event entry size").
/// Newer regions take more; what goes to a queue or a function behind the bus must fit there too.
pub const MAX_REQUEST_BYTES: usize = 256 * 1024;
/// What a time counts in the size of an entry, however it is written (as above).
const TIME_BYTES: usize = 14;

/// How many calls are under way at once.
const CONCURRENCY: usize = 4;
/// The first wait before failed entries are sent again is at most this long; each later one may be twice as long.
const BASE: Duration = Duration::from_millis(50);
/// No wait is longer.
const CAP: Duration = Duration::from_millis(800);
/// Nor more often than this.
const ROUNDS: u32 = 10;

/// The error codes of an entry that will never be taken as it is. Every other is about the moment or about the deployment (a throttle, a missing
/// permission): the event itself is good and must not be set aside for it.
const REFUSALS: [&str; 2] = ["InvalidArgument", "MalformedDetail"];

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The bus has it.
    Published,
    /// The bus has not taken it, or its answer did not arrive: the event may be on the bus.
    Retryable {
        /// An error code or its like, safe to log.
        reason: String,
    },
    /// The bus will never take it.
    Refused {
        /// Why; it may quote the event.
        reason: String,
    },
}

/// An event bus of EventBridge, with the client that reaches it.
#[derive(Debug, Clone)]
pub struct EventBus {
    client: Client,
    name: String,
    limits: Limits,
}

/// How much the publisher sends at once, and for how long it tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A call's entries are together smaller than this.
    pub bytes: usize,
    /// Failed entries are not sent again after this.
    pub budget: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: MAX_REQUEST_BYTES, budget: Duration::from_secs(4) }
    }
}

/// An event in the form in which it is sent.
struct Entry {
    /// The event's position in the call of [`EventBus::publish`].
    position: usize,
    entry: PutEventsRequestEntry,
    bytes: usize,
}

impl EventBus {
    /// From the environment: `BUS_NAME` and the SDK's own variables (region, credentials, endpoint).
    ///
    /// # Errors
    /// [`SetupError`] when `BUS_NAME` is missing or the TLS client cannot be built.
    pub async fn from_env() -> Result<Self, SetupError> {
        Self::over(&aws::config().await?)
    }

    /// Over the configuration that a function shares among its clients; `BUS_NAME` names the bus.
    ///
    /// # Errors
    /// [`SetupError::NotSet`] when the variable is missing.
    pub fn over(config: &aws::SdkConfig) -> Result<Self, SetupError> {
        Ok(Self::new(Client::new(config), aws::variable("BUS_NAME")?))
    }

    /// Over a client that is already built; `name` is the bus's name or ARN.
    #[must_use]
    pub fn new(client: Client, name: String) -> Self {
        Self { client, name, limits: Limits::default() }
    }

    /// The same with other limits.
    #[must_use]
    pub const fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Publishes events, in no particular order; who needs one waits for the outcome of the first before he publishes the second. The outcomes
    /// are in the order of the events.
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

    /// Sends entries in as few calls as may be, and gives back those that are worth another attempt.
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
        let sent = entries.iter().map(|entry| entry.entry.clone()).collect();
        let answers = match self.client.put_events().set_entries(Some(sent)).send().await {
            Ok(answer) => {
                let mut results = answer.entries.unwrap_or_default().into_iter();
                entries.iter().map(|_| results.next().map_or_else(Answer::missing, Answer::from)).collect()
            }
            Err(error) => vec![Answer::failed(describe(&error)); entries.len()],
        };
        (entries, answers)
    }

    /// The event as an entry; why it cannot be one.
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
        let entry = PutEventsRequestEntry::builder()
            .event_bus_name(&self.name)
            .source(SOURCE)
            .detail_type(kind)
            .time(DateTime::from_millis(event.occurred_at.as_millis()))
            .detail(detail)
            .set_trace_header(correlation::trace_header().map(|header| header.to_string()))
            .build();
        Ok(Entry { position, entry, bytes })
    }
}

/// What a call said of one entry.
#[derive(Debug, Clone)]
struct Answer {
    outcome: Outcome,
    /// Whether another attempt within this call of [`EventBus::publish`] is worth its while.
    again: bool,
}

impl Answer {
    /// The whole call failed, after the SDK repeated it.
    const fn failed(reason: String) -> Self {
        Self { outcome: Outcome::Retryable { reason }, again: false }
    }

    /// The answer is shorter than the call: what is missing in it may be published or not.
    fn missing() -> Self {
        Self { outcome: Outcome::Retryable { reason: "no result for the entry".to_owned() }, again: true }
    }
}

impl From<PutEventsResultEntry> for Answer {
    fn from(result: PutEventsResultEntry) -> Self {
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

/// Entries by call: each call is filled before the next is begun.
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

/// What a failed call is called in a log.
fn describe<E, R>(error: &SdkError<E, R>) -> String
where
    E: ProvideErrorMetadata,
{
    let text = match error {
        SdkError::ServiceError(service) => service.err().code().unwrap_or("unknown error"),
        SdkError::ConstructionFailure(_) => "the call could not be built",
        SdkError::TimeoutError(_) => "timeout",
        SdkError::DispatchFailure(failure) if failure.is_timeout() => "timeout",
        SdkError::DispatchFailure(_) => "connection",
        _ => "broken answer",
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(bytes: &[usize], limit: usize) -> Vec<Vec<usize>> {
        let entry = |(position, bytes): (usize, &usize)| Entry {
            position,
            entry: PutEventsRequestEntry::builder().build(),
            bytes: *bytes,
        };
        let calls = pack(bytes.iter().enumerate().map(entry).collect(), limit);
        calls.into_iter().map(|call| call.into_iter().map(|entry| entry.position).collect()).collect()
    }

    #[test]
    fn a_call_is_filled_to_ten_entries_before_the_next_is_begun() {
        assert_eq!(calls(&[], 100), Vec::<Vec<usize>>::new());
        let of = |entries: usize| calls(&vec![1; entries], 100).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!((of(1), of(10), of(11), of(25)), (vec![1], vec![10], vec![10, 1], vec![10, 10, 5]));
    }

    #[test]
    fn the_entries_of_a_call_are_together_smaller_than_the_limit() {
        assert_eq!(calls(&[50, 49, 1, 99, 60, 39], 100), [vec![0, 1], vec![2], vec![3], vec![4, 5]]);
    }

    #[test]
    fn only_what_is_about_the_entry_itself_is_a_refusal() {
        let answer = |code: Option<&str>, id: Option<&str>| {
            let result = PutEventsResultEntry::builder().set_error_code(code.map(str::to_owned));
            Answer::from(result.error_message("why").set_event_id(id.map(str::to_owned)).build())
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
        assert!(answer(None, None).again, "neither taken nor failed");
    }
}
