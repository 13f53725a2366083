//! Implements the bus: selects the targets of an event, retries failed deliveries, and gives up
//! after too many failures.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use event_pattern::Pattern;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::pending::{Pending, Work};
use crate::{AsyncFunction, GivenUp, Message, Pace, Queue};

/// Maximum number of deliveries in progress. When it is reached, publishers wait.
const CAPACITY: usize = 1000;
/// Maximum number of retries and maximum age of a redriven message. They are small, because an
/// operator waits for the result.
const REDRIVE_RETRIES: u32 = 20;
const REDRIVE_AGE: Duration = Duration::from_secs(3600);

#[derive(Clone)]
pub struct Rule {
    /// Name of the rule, for logs and given-up events.
    pub name: String,
    pub bus: String,
    pub pattern: Pattern,
    pub targets: Vec<Target>,
}

#[derive(Clone)]
pub struct Target {
    pub kind: TargetKind,
    pub maximum_retries: u32,
    /// Age at which a delivery is given up.
    pub maximum_age: Duration,
    /// Queue for events that could not be delivered. Without a queue, the events are only logged.
    pub dead_letter: Option<Arc<Queue>>,
}

#[derive(Clone)]
pub enum TargetKind {
    Function(Arc<AsyncFunction>),
    Queue(Arc<Queue>),
}

/// Delivers events to the targets of rules. Dropping the value ends the deliveries.
pub struct EventBus {
    rules: Vec<Rule>,
    deliveries: mpsc::Sender<Delivery>,
    _tasks: JoinSet<()>,
}

struct Delivery {
    rule: String,
    target: Target,
    event: Value,
    work: Work,
}

impl EventBus {
    /// Starts to deliver events. Needs a Tokio runtime.
    #[must_use]
    pub fn start(rules: Vec<Rule>, pace: Pace) -> Self {
        let (deliveries, receiver) = mpsc::channel(1);
        let mut tasks = JoinSet::new();
        tasks.spawn(deliver(receiver, pace));
        Self { rules, deliveries, _tasks: tasks }
    }

    /// Publishes an event on `bus`, in EventBridge's delivery format. `work` stays in progress at
    /// least until every target has finished the event or given it up.
    pub async fn publish(&self, bus: &str, event: &Value, work: &Work) {
        for rule in self.rules.iter().filter(|rule| rule.bus == bus && rule.pattern.matches(event)) {
            for target in &rule.targets {
                let delivery = Delivery {
                    rule: rule.name.clone(),
                    target: target.clone(),
                    event: event.clone(),
                    work: work.clone(),
                };
                // Sending fails only if the receiving task has ended, and this value keeps that
                // task alive.
                let _ = self.deliveries.send(delivery).await;
            }
        }
    }

    /// Takes the oldest message in `dead` whose target is in `targets`, and delivers it to this
    /// target again. Returns whether there was such a message.
    pub async fn redrive(&self, dead: &Arc<Queue>, targets: &HashMap<String, TargetKind>, pending: &Pending) -> bool {
        // This reserves room in the channel before the message is taken from the queue. So no
        // message is lost if the caller stops waiting.
        let Ok(place) = self.deliveries.reserve().await else { return false };
        let Some(given_up) = dead.take_given_up(|to| targets.contains_key(to)) else { return false };
        let work = match dead.journal() {
            Some(journal) => {
                journal.redrive(&given_up.message.id);
                pending.begin_kept(journal, &given_up.message.id)
            }
            None => pending.begin(),
        };
        if let Some(delivery) = Delivery::again(given_up, dead, targets, work) {
            place.send(delivery);
        }
        true
    }

    /// Repeats a redrive that, according to the journal, did not finish.
    pub async fn redrive_again(
        &self,
        given_up: GivenUp,
        dead: &Arc<Queue>,
        targets: &HashMap<String, TargetKind>,
        work: Work,
    ) {
        if let Some(delivery) = Delivery::again(given_up, dead, targets, work) {
            let _ = self.deliveries.send(delivery).await;
        }
    }
}

async fn deliver(mut incoming: mpsc::Receiver<Delivery>, pace: Pace) {
    let mut deliveries = JoinSet::new();
    loop {
        tokio::select! {
            delivery = incoming.recv(), if deliveries.len() < CAPACITY => match delivery {
                Some(delivery) => {
                    deliveries.spawn(delivery.run(pace));
                }
                None => break,
            },
            Some(_) = deliveries.join_next() => {}
        }
    }
    while deliveries.join_next().await.is_some() {}
}

impl Delivery {
    /// Returns `None` if its target no longer exists.
    fn again(given_up: GivenUp, dead: &Arc<Queue>, targets: &HashMap<String, TargetKind>, work: Work) -> Option<Self> {
        let target = Target {
            kind: targets.get(&given_up.to)?.clone(),
            maximum_retries: REDRIVE_RETRIES,
            maximum_age: REDRIVE_AGE,
            dead_letter: Some(Arc::clone(dead)),
        };
        Some(Self { rule: "redrive".to_owned(), target, event: given_up.event, work })
    }

    async fn run(self, pace: Pace) {
        let begun = Instant::now();
        let mut attempts = 0_u32;
        loop {
            let error = match self.hand_over().await {
                Ok(()) => break,
                Err(error) => error,
            };
            attempts += 1;
            let wait = pace.after(attempts);
            let condition = if attempts > self.target.maximum_retries {
                "MaximumRetryAttempts"
            } else if begun.elapsed() + wait > self.target.maximum_age {
                "MaximumEventAgeInSeconds"
            } else {
                sleep(wait).await;
                continue;
            };
            self.give_up(condition, attempts - 1, &error);
            break;
        }
        self.work.finish();
    }

    async fn hand_over(&self) -> Result<(), String> {
        match &self.target.kind {
            TargetKind::Function(function) => {
                function.take(self.event.clone(), self.work.clone()).await.map_err(|error| error.to_string())
            }
            TargetKind::Queue(queue) => {
                let body = match &self.event {
                    Value::String(text) => text.clone(),
                    event => event.to_string(),
                };
                queue.send(body, self.work.clone()).map_err(|error| error.to_string())
            }
        }
    }

    /// EventBridge puts the reason into message attributes. Here it is in the body.
    fn give_up(&self, condition: &str, retries: u32, error: &str) {
        tracing::warn!(rule = self.rule, condition, retries, error, "an event cannot be delivered");
        let Some(queue) = &self.target.dead_letter else { return };
        let body = json!({
            "event": self.event,
            "RULE": self.rule,
            "ERROR_MESSAGE": error,
            "EXHAUSTED_RETRY_CONDITION": condition,
            "RETRY_ATTEMPTS": retries,
        });
        let to = match &self.target.kind {
            TargetKind::Function(function) => function.arn(),
            TargetKind::Queue(queue) => queue.arn(),
        };
        if let Err(error) = queue.give_up(Message::new(body.to_string()), to, self.event.clone()) {
            tracing::error!(%error, rule = self.rule, "an event is lost");
        }
    }
}
