//! A queue as SQS's standard queues are, in memory. A journal keeps what was given up.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::Journal;
use crate::pending::Work;

/// Messages that a queue holds. SQS has no such bound, but also does not live in this process.
const CAPACITY: usize = 100_000;

/// What the template says of a queue.
#[derive(Debug, Clone)]
pub struct QueueSettings {
    /// Its ARN.
    pub arn: String,
    /// How long a message that was received is hidden from others.
    pub visibility_timeout: Duration,
    /// Where a message goes, and after how many receptions. Without it a message is handed out for ever.
    pub redrive: Option<(Arc<Queue>, u32)>,
    /// What keeps the messages that are given up to this queue.
    pub journal: Option<Arc<Journal>>,
}

/// A standard queue. How long messages are kept is not enforced.
#[derive(Debug)]
pub struct Queue {
    settings: QueueSettings,
    messages: Mutex<VecDeque<Stored>>,
    arrived: Notify,
}

/// A message that was received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its id, for as long as it lives.
    pub id: String,
    /// What whoever received it last deletes it by.
    pub receipt: String,
    /// What was sent.
    pub body: String,
    /// When it was sent.
    pub sent: SystemTime,
    /// When it was received first.
    pub first_received: Option<SystemTime>,
    /// How often it was received.
    pub receive_count: u32,
}

/// A message in a dead-letter queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GivenUp {
    /// ARN of the queue that it lies in.
    pub queue: String,
    /// The message.
    pub message: Message,
    /// ARN of the queue or function that it was meant for.
    pub to: String,
    /// What that is to be given again: the event.
    pub event: Value,
}

#[derive(Debug)]
struct Stored {
    message: Message,
    /// Hidden until then.
    visible_at: Instant,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// A message is work to be done.
    Work(Work),
    /// One that was given up is not. It was meant for this ARN, which is to be given this event again.
    GivenUp { to: String, event: Value },
}

/// A queue holds as many messages as it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the queue is full: {CAPACITY} messages")]
pub struct QueueFull;

impl Queue {
    /// An empty queue.
    #[must_use]
    pub fn new(settings: QueueSettings) -> Arc<Self> {
        Arc::new(Self { settings, messages: Mutex::default(), arrived: Notify::new() })
    }

    /// Its ARN.
    #[must_use]
    pub fn arn(&self) -> &str {
        &self.settings.arn
    }

    /// Adds a message, which is `work` until it is deleted or given up.
    ///
    /// # Errors
    /// [`QueueFull`].
    pub fn send(&self, body: String, work: Work) -> Result<(), QueueFull> {
        self.keep(Message::new(body), Content::Work(work))
    }

    /// Adds what was given up elsewhere, where `to` was to have `event`: nobody is expected to work on it.
    pub(crate) fn give_up(&self, message: Message, to: &str, event: Value) -> Result<(), QueueFull> {
        let given_up = GivenUp { queue: self.arn().to_owned(), message, to: to.to_owned(), event };
        let Some(journal) = &self.settings.journal else { return self.restore(given_up) };
        let id = given_up.message.id.clone();
        // First, so that nothing follows from it that the journal does not know yet.
        journal.give_up(given_up.clone());
        self.restore(given_up).inspect_err(|_| journal.settle(&id))
    }

    /// Adds a message that was given up to this queue before, as its journal says.
    ///
    /// # Errors
    /// [`QueueFull`].
    pub fn restore(&self, given_up: GivenUp) -> Result<(), QueueFull> {
        let GivenUp { message, to, event, .. } = given_up;
        self.keep(message, Content::GivenUp { to, event })
    }

    /// The messages that were given up to this queue, oldest first.
    #[must_use]
    pub fn given_up(&self) -> Vec<GivenUp> {
        self.lock().iter().filter_map(|stored| self.as_given_up(stored)).collect()
    }

    /// How many messages were given up to this queue.
    #[must_use]
    pub fn count_given_up(&self) -> usize {
        self.lock().iter().filter(|stored| matches!(stored.content, Content::GivenUp { .. })).count()
    }

    /// Takes the oldest message out that was given up to this queue and meant for one of `to`.
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

    /// What keeps the messages that are given up to it.
    pub(crate) const fn journal(&self) -> Option<&Arc<Journal>> {
        self.settings.journal.as_ref()
    }

    /// At most `limit` messages that are not hidden, oldest first. They are hidden from others until
    /// they are deleted or the visibility timeout is over. One that was received too often already goes
    /// to the dead-letter queue instead.
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
                // Without room there it stays here, and is handed out once more.
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

    /// Waits until a message is there that is not hidden.
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

    /// Removes a message by the receipt of its last reception; an older receipt does nothing.
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

    /// Shows a message again after `wait`, by the receipt of its last reception.
    pub fn show_after(&self, receipt: &str, wait: Duration) {
        if let Some(stored) = self.lock().iter_mut().find(|stored| stored.message.receipt == receipt) {
            stored.visible_at = Instant::now() + wait;
        }
        self.arrived.notify_waiters();
    }

    /// Everything in it, hidden or not, oldest first.
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
    /// What the message holds, which is an event where it came from a bus.
    fn event(&self) -> Value {
        serde_json::from_str(&self.message.body).unwrap_or_else(|_| self.message.body.as_str().into())
    }
}

impl Message {
    pub(crate) fn new(body: String) -> Self {
        let id = uuid::Uuid::new_v4().to_string();
        Self { id, receipt: String::new(), body, sent: SystemTime::now(), first_received: None, receive_count: 0 }
    }

    /// The message as an SQS event of Lambda has it. There is no `md5OfBody`: nothing here needs it.
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
