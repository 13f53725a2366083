use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::{Invoke, Message, Pace, Queue};

#[derive(Debug, Clone)]
pub struct QueueMappingSettings {
    pub batch_size: usize,
    pub batching_window: Duration,
    /// Whether the function's response may name the messages that failed.
    pub report_batch_item_failures: bool,
    pub maximum_concurrency: usize,
}

/// The role of a function. To receive messages for the function, Lambda assumes the role.
pub trait Role: Send + Sync + 'static {
    /// Checks that the role allows this call of the queue.
    ///
    /// # Errors
    /// The reason for the refusal, in SQS's wording.
    fn check(&self, call: QueueCall) -> Result<(), String>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueCall {
    ReceiveMessage,
    DeleteMessage,
}

/// Passes a queue's messages to a function until this value is dropped. Unfinished messages stay in
/// the queue.
///
/// A failed message becomes visible again soon ([`Pace`]), before the visibility timeout, because
/// the mapping knows that the call has ended. The reception still counts towards the limit of
/// receptions. If the function's [`Role`] does not allow receiving messages, they stay in the
/// queue. If the role does not allow deleting messages, they are delivered again.
pub struct QueueMapping {
    _tasks: JoinSet<()>,
}

struct Poller {
    settings: QueueMappingSettings,
    queue: Arc<Queue>,
    function: Arc<dyn Invoke>,
    role: Arc<dyn Role>,
    pace: Pace,
}

impl QueueMapping {
    /// Starts the pollers. Needs a Tokio runtime.
    #[must_use]
    pub fn start(
        settings: QueueMappingSettings,
        queue: Arc<Queue>,
        function: Arc<dyn Invoke>,
        role: Arc<dyn Role>,
        pace: Pace,
    ) -> Self {
        let pollers = settings.maximum_concurrency.max(1);
        let poller = Arc::new(Poller { settings, queue, function, role, pace });
        let mut tasks = JoinSet::new();
        for _ in 0..pollers {
            let poller = Arc::clone(&poller);
            tasks.spawn(async move { poller.run().await });
        }
        Self { _tasks: tasks }
    }
}

impl Poller {
    async fn run(&self) {
        let mut refusals = 0;
        loop {
            self.queue.ready().await;
            if let Err(reason) = self.role.check(QueueCall::ReceiveMessage) {
                tracing::warn!(
                    reason,
                    queue = self.queue.arn(),
                    "the function's role does not allow receiving messages"
                );
                refusals += 1;
                sleep(self.pace.after(refusals)).await;
                continue;
            }
            refusals = 0;
            let batch = self.next_batch().await;
            if !batch.is_empty() {
                self.hand_over(&batch).await;
            }
        }
    }

    async fn next_batch(&self) -> Vec<Message> {
        let size = self.settings.batch_size.max(1);
        let mut batch = self.queue.receive(size);
        let deadline = Instant::now() + self.settings.batching_window;
        while !batch.is_empty()
            && batch.len() < size
            && !self.settings.batching_window.is_zero()
            && timeout_at(deadline, self.queue.ready()).await.is_ok()
        {
            batch.extend(self.queue.receive(size - batch.len()));
        }
        batch
    }

    async fn hand_over(&self, batch: &[Message]) {
        let records: Vec<Value> = batch.iter().map(|message| message.event(self.queue.arn())).collect();
        let payload = json!({"Records": records}).to_string();
        let failed = match self.function.invoke(payload.into()).await {
            Ok(answer) if self.settings.report_batch_item_failures => failures(&answer, batch),
            Ok(_) => Failures::These(HashSet::new()),
            Err(error) => {
                tracing::warn!(%error, queue = self.queue.arn(), "a batch of messages failed");
                Failures::All
            }
        };
        for message in batch {
            if failed.contains(&message.id) {
                self.queue.show_after(&message.receipt, self.pace.after(message.receive_count));
            } else if let Err(reason) = self.role.check(QueueCall::DeleteMessage) {
                // The message becomes visible again after its visibility timeout.
                tracing::warn!(
                    reason,
                    queue = self.queue.arn(),
                    "the function's role does not allow deleting a message"
                );
            } else {
                self.queue.delete(&message.receipt);
            }
        }
    }
}

/// The messages of a batch that must be delivered again.
#[derive(Debug, PartialEq, Eq)]
enum Failures {
    All,
    These(HashSet<String>),
}

impl Failures {
    fn contains(&self, id: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(ids) => ids.contains(id),
        }
    }
}

/// Reads a response by the rules of the Lambda developer guide, "Implementing partial batch
/// responses" for SQS.
///
/// An empty response, `null` and an empty or missing list mean success. If an identifier is empty,
/// unknown or missing, or the response has any other form, the whole batch counts as failed.
fn failures(answer: &[u8], batch: &[Message]) -> Failures {
    let none = Failures::These(HashSet::new());
    if answer.iter().all(u8::is_ascii_whitespace) {
        return none;
    }
    let list = match serde_json::from_slice(answer) {
        Ok(Value::Null) => return none,
        Ok(Value::Object(mut answer)) => match answer.remove("batchItemFailures") {
            None | Some(Value::Null) => return none,
            Some(Value::Array(list)) => list,
            Some(_) => return Failures::All,
        },
        Ok(_) | Err(_) => return Failures::All,
    };
    let named = list.iter().map(|failure| {
        let id = failure.get("itemIdentifier")?.as_str()?;
        batch.iter().any(|message| message.id == id).then(|| id.to_owned())
    });
    named.collect::<Option<_>>().map_or(Failures::All, Failures::These)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn answers_are_read_by_the_rules_of_the_guide() {
        let message = |id: &str| Message {
            id: id.to_owned(),
            receipt: String::new(),
            body: String::new(),
            sent: SystemTime::UNIX_EPOCH,
            first_received: None,
            receive_count: 1,
        };
        let batch = [message("a"), message("b")];
        let these = |ids: &[&str]| Failures::These(ids.iter().map(|&id| id.to_owned()).collect());
        for (answer, expected) in [
            ("", these(&[])),
            ("null", these(&[])),
            ("{}", these(&[])),
            (r#"{"batchItemFailures":null}"#, these(&[])),
            (r#"{"batchItemFailures":[]}"#, these(&[])),
            (r#"{"batchItemFailures":[{"itemIdentifier":"b"}]}"#, these(&["b"])),
            (r#"{"batchItemFailures":[{"itemIdentifier":""}]}"#, Failures::All),
            (r#"{"batchItemFailures":[{"itemIdentifier":null}]}"#, Failures::All),
            (r#"{"batchItemFailures":[{"itemIdentifer":"b"}]}"#, Failures::All),
            (r#"{"batchItemFailures":[{"itemIdentifier":"b"},{"itemIdentifier":"c"}]}"#, Failures::All),
            (r#"{"batchItemFailures":"b"}"#, Failures::All),
            (r#""ok""#, Failures::All),
            ("not json", Failures::All),
        ] {
            assert_eq!(failures(answer.as_bytes(), &batch), expected, "{answer}");
        }
    }
}
