//! Implements Lambda's asynchronous invocation: Lambda first accepts an event, and calls the
//! function later.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::pending::Work;
use crate::{CallError, Invoke, Message, Pace, Queue};

/// Maximum number of unfinished events of one function. When it is reached, deliveries wait.
const CAPACITY: usize = 1000;

#[derive(Debug, Clone)]
pub struct AsyncSettings {
    pub arn: String,
    pub maximum_retries: u32,
    /// Age at which an event is given up.
    pub maximum_age: Duration,
    /// Queue for given-up events. Without a queue, the events are only logged.
    pub on_failure: Option<Arc<Queue>>,
}

/// A function that is invoked asynchronously, according to Lambda's
/// [rules](https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html).
/// Dropping the value abandons events in progress.
pub struct AsyncFunction {
    arn: String,
    events: mpsc::Sender<(Value, Work)>,
    _tasks: JoinSet<()>,
}

struct Caller {
    settings: AsyncSettings,
    function: Arc<dyn Invoke>,
    pace: Pace,
}

impl AsyncFunction {
    /// Starts to process events. Needs a Tokio runtime.
    #[must_use]
    pub fn start(settings: AsyncSettings, function: Arc<dyn Invoke>, pace: Pace) -> Arc<Self> {
        let (events, receiver) = mpsc::channel(1);
        let arn = settings.arn.clone();
        let caller = Arc::new(Caller { settings, function, pace });
        let mut tasks = JoinSet::new();
        tasks.spawn(work_off(caller, receiver));
        Arc::new(Self { arn, events, _tasks: tasks })
    }

    #[must_use]
    pub fn arn(&self) -> &str {
        &self.arn
    }

    /// `work` stays in progress at least until the event is finished or given up.
    pub async fn take(&self, event: Value, work: Work) -> Result<(), CallError> {
        let sent = self.events.send((event, work)).await;
        sent.map_err(|_| CallError::NotCalled(format!("{} accepts no more events", self.arn)))
    }
}

async fn work_off(caller: Arc<Caller>, mut events: mpsc::Receiver<(Value, Work)>) {
    let mut calls = JoinSet::new();
    loop {
        tokio::select! {
            event = events.recv(), if calls.len() < CAPACITY => match event {
                Some((event, work)) => {
                    let caller = Arc::clone(&caller);
                    calls.spawn(async move {
                        caller.finish(&event).await;
                        work.finish();
                    });
                }
                None => break,
            },
            Some(_) = calls.join_next() => {}
        }
    }
    while calls.join_next().await.is_some() {}
}

impl Caller {
    async fn finish(&self, event: &Value) {
        let begun = Instant::now();
        let payload = Bytes::from(event.to_string());
        let (mut calls, mut failures, mut refusals) = (0_u32, 0_u32, 0_u32);
        loop {
            let error = match self.function.invoke(payload.clone()).await {
                Ok(_) => return,
                Err(error) => error,
            };
            tracing::warn!(%error, function = self.settings.arn, "an event failed");
            let wait = match &error {
                CallError::Failed(_) => {
                    calls += 1;
                    failures += 1;
                    self.pace.after(failures)
                }
                // While the function is throttled, calls do not count as retries. They continue
                // until the event is too old.
                CallError::NotCalled(_) => {
                    refusals += 1;
                    self.pace.after(refusals)
                }
            };
            let condition = if failures > self.settings.maximum_retries {
                "RetriesExhausted"
            } else if begun.elapsed() + wait > self.settings.maximum_age {
                "EventAgeExceeded"
            } else {
                sleep(wait).await;
                continue;
            };
            self.give_up(event, condition, calls, &error);
            return;
        }
    }

    /// Sends the event to the on-failure queue, in the form of Lambda's on-failure record.
    fn give_up(&self, event: &Value, condition: &str, calls: u32, error: &CallError) {
        tracing::warn!(function = self.settings.arn, condition, calls, "an event is given up");
        let Some(queue) = &self.settings.on_failure else { return };
        let now = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
        let record = json!({
            "version": "1.0",
            "timestamp": now,
            "requestContext": {
                "requestId": uuid::Uuid::new_v4().to_string(),
                "functionArn": format!("{}:$LATEST", self.settings.arn),
                "condition": condition,
                "approximateInvokeCount": calls,
            },
            "requestPayload": event,
            "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
            "responsePayload": {"errorMessage": error.to_string()},
        });
        let message = Message::new(record.to_string());
        if let Err(error) = queue.give_up(message, &self.settings.arn, event.clone()) {
            tracing::error!(%error, function = self.settings.arn, "an event is lost");
        }
    }
}
