use std::collections::BTreeSet;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::future::join_all;
use hyper::{Request, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::entry::{Entry, Published, Refusal};
use crate::access::{Access, Denied, Need};
use crate::endpoint::{Answer, Endpoint, Service, json_answer};
use crate::faults::{FaultKind, Faults};
use crate::log::{Log, Page};

const KEPT: usize = 200_000;
/// EventBridge's limits for a request.
const MAX_ENTRIES: usize = 10;
const MAX_BYTES: usize = 256 * 1024;

/// A callback that stores an event for the subscribers, before the publisher gets a success
/// response. If the callback fails, the event is rejected.
pub type Accept = Box<dyn Fn(&Published) -> io::Result<()> + Send + Sync>;

const MEDIA_TYPE: &str = "application/x-amz-json-1.1";

/// An in-process event bus that responds as EventBridge does. Dropping the value ends the server.
pub struct EventBusServer {
    endpoint: Endpoint,
    bus: Arc<Bus>,
}

impl EventBusServer {
    /// Opens a loopback port and serves the buses with these names. Needs a Tokio runtime.
    pub async fn start(buses: &[String]) -> io::Result<Self> {
        Self::serve(buses, Log::new(KEPT), None).await
    }

    /// Works like [`EventBusServer::start`], and keeps events in a file. At the start it reads
    /// earlier events from the file. It passes each new event to `accept`.
    pub async fn open(buses: &[String], history: &Path, accept: Accept) -> io::Result<Self> {
        Self::serve(buses, Log::open(history, KEPT)?, Some(accept)).await
    }

    async fn serve(buses: &[String], published: Log<Published>, accept: Option<Accept>) -> io::Result<Self> {
        let faults = Faults::default();
        let (names, subscribers) = (buses.to_vec(), Mutex::default());
        let bus = Arc::new(Bus { names, published, accept, subscribers, faults: faults.clone() });
        Ok(Self { endpoint: Endpoint::start(Arc::clone(&bus), faults).await?, bus })
    }

    #[must_use]
    pub fn service_events(&self) -> ServiceEvents {
        ServiceEvents(Arc::clone(&self.bus))
    }

    /// Subscribes to the events that are published from now on.
    ///
    /// A publisher gets its response when its events are in the queue of every subscriber. A queue
    /// has room for `capacity` events, at least 1. While a queue is full, publishers wait, at most
    /// until their requests time out. No accepted event is lost. Dropping the receiver ends the
    /// subscription.
    #[must_use]
    pub fn subscribe(&self, capacity: usize) -> mpsc::Receiver<Published> {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        self.bus.subscribers().push(sender);
        receiver
    }

    /// Skips the first `after` accepted events, and returns at most `limit` of the following
    /// events. The newest 200,000 are kept. After a restart at most 20,000 are left.
    #[must_use]
    pub fn published(&self, after: u64, limit: usize) -> Page<Published> {
        self.bus.published.page(after, limit)
    }

    /// Returns the number of accepted events that are no longer kept.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.bus.published.dropped()
    }
}

impl Deref for EventBusServer {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}

/// Sends events of AWS services to the default bus, which every account has.
#[derive(Clone)]
pub struct ServiceEvents(Arc<Bus>);

impl ServiceEvents {
    /// Sends an event of a service. If the event cannot be stored, the error is logged and the
    /// event is dropped. AWS services do not guarantee their events either.
    pub async fn send(&self, source: &str, detail_type: &str, detail: Value) {
        // `publish` has already logged the error.
        let _ = self.0.publish(Published::of_service(source, detail_type, detail)).await;
    }
}

struct Bus {
    names: Vec<String>,
    published: Log<Published>,
    accept: Option<Accept>,
    subscribers: Mutex<Vec<mpsc::Sender<Published>>>,
    faults: Faults,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct PutEvents {
    entries: Vec<Entry>,
}

/// The part of a request that determines which permissions it needs: the buses.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Buses {
    entries: Vec<OnBus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OnBus {
    event_bus_name: Option<String>,
}

impl Service for Bus {
    async fn answer(&self, request: Request<Bytes>) -> Answer {
        let target = request.headers().get("x-amz-target").and_then(|target| target.to_str().ok());
        if target != Some("AWSEvents.PutEvents") {
            return error(StatusCode::BAD_REQUEST, "UnknownOperationException", "only PutEvents is supported");
        }
        let put: PutEvents = match serde_json::from_slice(request.body()) {
            Ok(put) => put,
            Err(refused) => return error(StatusCode::BAD_REQUEST, "SerializationException", &refused.to_string()),
        };
        match oversize(&put.entries) {
            Some(reason) => error(StatusCode::BAD_REQUEST, "ValidationException", &reason),
            None => json_answer(MEDIA_TYPE, StatusCode::OK, &self.put(put.entries).await),
        }
    }

    fn refusal(&self, kind: FaultKind, _: &Request<Bytes>) -> Option<Answer> {
        match kind {
            FaultKind::Throttle => Some(error(StatusCode::BAD_REQUEST, "ThrottlingException", "Rate exceeded")),
            FaultKind::Error => {
                Some(error(StatusCode::INTERNAL_SERVER_ERROR, "InternalException", "An internal error occurred"))
            }
            _ => None,
        }
    }

    fn needs(&self, request: &Request<Bytes>, access: &Access) -> Vec<Need> {
        let entries = serde_json::from_slice::<Buses>(request.body()).map(|buses| buses.entries).unwrap_or_default();
        let names = entries.into_iter().map(|entry| entry.event_bus_name.unwrap_or_else(|| "default".to_owned()));
        let arn = |name: String| match name.starts_with("arn:") {
            true => name,
            false => access.arn("events", &format!("event-bus/{name}")),
        };
        // A request that cannot be parsed needs no permission, because it is rejected anyway.
        let arns: BTreeSet<String> = names.map(arn).collect();
        arns.into_iter().map(|arn| Need::new("events:PutEvents", arn)).collect()
    }

    fn forbidden(&self, denied: &Denied) -> Answer {
        error(StatusCode::BAD_REQUEST, "AccessDeniedException", &denied.to_string())
    }
}

impl Bus {
    async fn put(&self, entries: Vec<Entry>) -> Value {
        let failing = self.failing(entries.len());
        let (mut results, mut failed) = (Vec::with_capacity(entries.len()), 0);
        for (at, entry) in entries.into_iter().enumerate() {
            let event = if failing & (1 << at) != 0 { Err(Refusal::throttled()) } else { entry.event(&self.names) };
            let event = match event {
                Ok(event) => self.publish(event).await,
                Err(refusal) => Err(refusal),
            };
            match event {
                Ok(event_id) => results.push(json!({"EventId": event_id})),
                Err(refusal) => {
                    failed += 1;
                    results.push(json!({"ErrorCode": refusal.code, "ErrorMessage": refusal.message}));
                }
            }
        }
        json!({"FailedEntryCount": failed, "Entries": results})
    }

    /// Returns the entries that a partial failure rejects, as bits. A partial failure rejects at
    /// least one entry. If there are several entries, it accepts at least one.
    fn failing(&self, entries: usize) -> u64 {
        let Some(strike) = self.faults.draw(|kind| kind == FaultKind::Partial) else { return 0 };
        let all = (1 << entries.min(MAX_ENTRIES)) - 1;
        let choices = if all == 1 { 1 } else { all - 1 };
        1 + strike.chance % choices
    }

    /// Waits until every subscriber has room, and then sends the event to the subscribers and to
    /// the log. If the publisher disconnects during the wait, no subscriber gets the event. Returns
    /// the event's id.
    async fn publish(&self, event: Published) -> Result<String, Refusal> {
        let subscribers = self.subscribers().clone();
        // `reserve_owned` fails only if the subscriber has been dropped. Such a subscriber is
        // skipped.
        let room = join_all(subscribers.into_iter().map(mpsc::Sender::reserve_owned)).await;
        if let Some(accept) = &self.accept
            && let Err(error) = accept(&event)
        {
            tracing::error!(%error, "an event cannot be stored");
            return Err(Refusal::internal());
        }
        let id = event.event_id.clone();
        for permit in room.into_iter().flatten() {
            permit.send(event.clone());
        }
        self.published.push(event);
        self.subscribers().retain(|subscriber| !subscriber.is_closed());
        Ok(id)
    }

    fn subscribers(&self) -> MutexGuard<'_, Vec<mpsc::Sender<Published>>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn oversize(entries: &[Entry]) -> Option<String> {
    let detected = |count, bound| {
        format!(
            "1 validation error detected: Value of {count} entries at 'entries' failed to satisfy constraint: {bound}"
        )
    };
    match entries.len() {
        0 => Some(detected(0, "Member must have length greater than or equal to 1")),
        count if count > MAX_ENTRIES => Some(detected(count, "Member must have length less than or equal to 10")),
        _ if entries.iter().map(Entry::size).sum::<usize>() >= MAX_BYTES => {
            Some("Total size of the entries in the request is over the limit.".to_owned())
        }
        _ => None,
    }
}

fn error(status: StatusCode, code: &str, message: &str) -> Answer {
    json_answer(MEDIA_TYPE, status, &json!({"__type": code, "message": message}))
}
