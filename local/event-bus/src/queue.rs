//! Implements an in-memory queue with the rules of an SQS standard queue. A journal stores given-up
//! messages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::Journal;
use crate::pending::Work;

/// SQS has no limit, but this queue uses the process's memory.
const CAPACITY: usize = 100_000;

#[derive(Debug, Clone)]
pub struct QueueSettings {
    pub arn: String,
    /// How long a received message is hidden from other receivers.
    pub visibility_timeout: Duration,
    /// The dead-letter queue, and the number of receptions after which a message moves there.
    /// Without a dead-letter queue, a message is delivered again until a receiver deletes it.
    pub redrive: Option<(Arc<Queue>, u32)>,
    pub journal: Option<Arc<Journal>>,
}

/// A standard queue. The retention period is not enforced.
#[derive(Debug)]
pub struct Queue {
    settings: QueueSettings,
    messages: Mutex<VecDeque<Stored>>,
    arrived: Notify,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Id of the message. It never changes.
    pub id: String,
    /// Receipt of the last reception. The receiver deletes the message with it.
    pub receipt: String,
    pub body: String,
    pub sent: SystemTime,
    pub first_received: Option<SystemTime>,
    pub receive_count: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GivenUp {
    pub queue: String,
    pub message: Message,
    /// ARN of the queue or function that should have processed the message.
    pub to: String,
    /// The event that a redrive delivers again.
    pub event: Value,
}

#[derive(Debug)]
struct Stored {
    message: Message,
    /// The message is hidden until this time.
    visible_at: Instant,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// The message is work in progress.
    Work(Work),
    /// The message was given up. A redrive sends this event to the target with this ARN.
    GivenUp { to: String, event: Value },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the queue is full: {CAPACITY} messages")]
pub struct QueueFull;

impl Queue {
    #[must_use]
    pub fn new(settings: QueueSettings) -> Arc<Self> {
        Arc::new(Self { settings, messages: Mutex::default(), arrived: Notify::new() })
    }

    #[must_use]
    pub fn arn(&self) -> &str {
        &self.settings.arn
    }

    /// Adds a message. `work` stays in progress at least until the message is deleted or given up.
    pub fn send(&self, body: String, work: Work) -> Result<(), QueueFull> {
        self.keep(Message::new(body), Content::Work(work))
    }

    /// The target `to` should have processed `event`. The message does not count as work in
    /// progress.
    pub(crate) fn give_up(&self, message: Message, to: &str, event: Value) -> Result<(), QueueFull> {
        let given_up = GivenUp { queue: self.arn().to_owned(), message, to: to.to_owned(), event };
        let Some(journal) = &self.settings.journal else { return self.restore(given_up) };
        let id = given_up.message.id.clone();
        // The journal stores the message before any receiver can take it.
        journal.give_up(given_up.clone());
        self.restore(given_up).inspect_err(|_| journal.settle(&id))
    }

    /// Adds a given-up message that the journal has stored for this queue.
    pub fn restore(&self, given_up: GivenUp) -> Result<(), QueueFull> {
        let GivenUp { message, to, event, .. } = given_up;
        self.keep(message, Content::GivenUp { to, event })
    }

    /// Returns the given-up messages in this queue, oldest first.
    #[must_use]
    pub fn given_up(&self) -> Vec<GivenUp> {
        self.lock().iter().filter_map(|stored| self.as_given_up(stored)).collect()
    }

    #[must_use]
    pub fn count_given_up(&self) -> usize {
        self.lock().iter().filter(|stored| matches!(stored.content, Content::GivenUp { .. })).count()
    }

    /// Removes and returns the oldest given-up message whose target ARN satisfies `to`.
    pub(crate) fn take_given_up(&self, to: impl Fn(&str) -> bool) -> Option<GivenUp> {
        let mut messages = self.lock();
        let meant = |stored: &Stored| matches!(&stored.content, Content::GivenUp { to: arn, .. } if to(arn));
        let index = messages.iter().position(meant)?;
        self.as_given_up(&messages.remove(index)?)
    }

    fn as_given_up(&self, stored: &Stored) -> Option<GivenUp> {
        let Content::GivenUp { to, event } = &stored.content else { return None };
        let (queue, message) = (self.arn().to_owned(), stored.message.clone());
        Some(GivenUp { queue, message, to: to.clone(), event: event.clone() })
    }

    pub(crate) const fn journal(&self) -> Option<&Arc<Journal>> {
        self.settings.journal.as_ref()
    }

    /// Receives at most `limit` visible messages, oldest first.
    ///
    /// The received messages are hidden from other receivers until they are deleted or the
    /// visibility timeout ends. A message that was already received too often moves to the
    /// dead-letter queue instead.
    pub fn receive(&self, limit: usize) -> Vec<Message> {
        let now = Instant::now();
        let mut received = Vec::new();
        let mut messages = self.lock();
        let mut index = 0;
        while received.len() < limit && index < messages.len() {
            let Some(stored) = messages.get_mut(index).filter(|stored| stored.visible_at <= now) else {
                index += 1;
                continue;
            };
            if let Some((dead, most)) = &self.settings.redrive
                && stored.message.receive_count >= *most
                // If the dead-letter queue is full, the message stays in this queue and is
                // delivered again.
                && dead.give_up(stored.message.clone(), self.arn(), stored.event()).is_ok()
            {
                tracing::warn!(queue = self.arn(), receptions = stored.message.receive_count, "a message is given up");
                if let Some(Stored { content: Content::Work(work), .. }) = messages.remove(index) {
                    work.finish();
                }
                continue;
            }
            stored.message.receive_count += 1;
            stored.message.first_received.get_or_insert_with(SystemTime::now);
            stored.message.receipt = format!("{:032x}", fastrand::u128(..));
            stored.visible_at = now + self.settings.visibility_timeout;
            received.push(stored.message.clone());
            index += 1;
        }
        received
    }

    /// Waits until a message is visible.
    pub async fn ready(&self) {
        loop {
            let arrived = self.arrived.notified();
            let next = self.lock().iter().map(|stored| stored.visible_at).min();
            let now = Instant::now();
            match next {
                Some(at) if at <= now => return,
                Some(at) => tokio::select! {
                    () = arrived => {}
                    () = tokio::time::sleep_until(at) => {}
                },
                None => arrived.await,
            }
        }
    }

    /// `receipt` must be the receipt of its last reception. An older receipt has no effect.
    pub fn delete(&self, receipt: &str) {
        let mut messages = self.lock();
        let Some(index) = messages.iter().position(|stored| stored.message.receipt == receipt) else { return };
        let Some(stored) = messages.remove(index) else { return };
        drop(messages);
        match stored.content {
            Content::Work(work) => work.finish(),
            Content::GivenUp { .. } => {
                if let Some(journal) = &self.settings.journal {
                    journal.settle(&stored.message.id);
                }
            }
        }
    }

    /// Makes a message visible after `wait`. `receipt` must be the receipt of its last reception.
    pub fn show_after(&self, receipt: &str, wait: Duration) {
        if let Some(stored) = self.lock().iter_mut().find(|stored| stored.message.receipt == receipt) {
            stored.visible_at = Instant::now() + wait;
        }
        self.arrived.notify_waiters();
    }

    /// Returns all messages, hidden or not, oldest first.
    #[must_use]
    pub fn contents(&self) -> Vec<Message> {
        self.lock().iter().map(|stored| stored.message.clone()).collect()
    }

    fn keep(&self, message: Message, content: Content) -> Result<(), QueueFull> {
        let mut messages = self.lock();
        if messages.len() >= CAPACITY {
            return Err(QueueFull);
        }
        messages.push_back(Stored { message, visible_at: Instant::now(), content });
        drop(messages);
        self.arrived.notify_waiters();
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Stored>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stored {
    /// Returns the message's body as JSON, or as a string if it is not JSON.
    fn event(&self) -> Value {
        serde_json::from_str(&self.message.body).unwrap_or_else(|_| self.message.body.as_str().into())
    }
}

impl Message {
    pub(crate) fn new(body: String) -> Self {
        let id = uuid::Uuid::new_v4().to_string();
        Self { id, receipt: String::new(), body, sent: SystemTime::now(), first_received: None, receive_count: 0 }
    }

    /// Returns the message in the form of Lambda's SQS event, without `md5OfBody`, which no
    /// consumer needs.
    pub(crate) fn event(&self, arn: &str) -> Value {
        let milliseconds = |time: SystemTime| {
            let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            since.as_millis().to_string()
        };
        json!({
            "messageId": self.id,
            "receiptHandle": self.receipt,
            "body": self.body,
            "attributes": {
                "ApproximateReceiveCount": self.receive_count.to_string(),
                "SentTimestamp": milliseconds(self.sent),
                "SenderId": "events.amazonaws.com",
                "ApproximateFirstReceiveTimestamp": milliseconds(self.first_received.unwrap_or(self.sent)),
            },
            "messageAttributes": {},
            "eventSource": "aws:sqs",
            "eventSourceARN": arn,
            "awsRegion": arn.split(':').nth(3).unwrap_or_default(),
        })
    }
}
