//! The rules and queues of the template: what becomes of the events of the bus.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use emulators::events::{EventBusServer, Published};
use event_bus::{
    AsyncFunction, AsyncSettings, CallError, EventBus, Invoke, Pace, Pending, Queue, QueueMapping,
    QueueMappingSettings, QueueSettings, Rule, Target, TargetKind,
};
use event_pattern::{Dialect, Pattern, PatternError};
use futures::future::{BoxFuture, FutureExt as _};
use runtime_api::{Functions, InvokeError};
use template::Template;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Events that the bus has taken and no rule has looked at yet. Beyond it, publishers wait.
const WAITING: usize = 1024;
/// Bound of one invocation with its wait for a free environment; the function's own timeout is less.
const INVOCATION_TIMEOUT: Duration = Duration::from_secs(900);

/// Everybody who listens to the bus. Dropping it abandons what is under way.
pub(crate) struct Subscribers {
    pending: Pending,
    /// How many events the rules have looked at.
    routed: watch::Receiver<u64>,
    pump: JoinHandle<()>,
    _mappings: Vec<QueueMapping>,
}

impl Subscribers {
    /// Starts to deliver what is put on the buses from now on.
    ///
    /// # Errors
    /// [`PatternError`]; the template has been read, so that every pattern is one.
    pub(crate) fn start(
        template: &Template,
        server: &EventBusServer,
        functions: &Arc<Functions>,
    ) -> Result<Self, PatternError> {
        let pace = Pace::default();
        let invoke = |name: &str| -> Arc<dyn Invoke> {
            Arc::new(Function { functions: Arc::clone(functions), name: name.to_owned() })
        };
        let queues = queues(template);
        let mut targets = HashMap::new();
        for function in &template.functions {
            let asynchronous = &function.asynchronous;
            let settings = AsyncSettings {
                arn: function.arn.clone(),
                maximum_retries: asynchronous.maximum_retries,
                maximum_age: asynchronous.maximum_age,
                on_failure: asynchronous.on_failure.as_ref().and_then(|to| queues.get(&to.arn).cloned()),
            };
            let function = AsyncFunction::start(settings, invoke(&function.logical_id), pace);
            targets.insert(function.arn().to_owned(), TargetKind::Function(function));
        }
        targets.extend(queues.iter().map(|(arn, queue)| (arn.clone(), TargetKind::Queue(Arc::clone(queue)))));

        let rules = template.rules.iter().map(|rule| {
            let target = |target: &template::Target| {
                Some(Target {
                    kind: targets.get(&target.arn)?.clone(),
                    maximum_retries: target.maximum_retries,
                    maximum_age: target.maximum_age,
                    dead_letter: target.dead_letter.as_ref().and_then(|arn| queues.get(arn).cloned()),
                })
            };
            Ok(Rule {
                name: rule.logical_id.clone(),
                bus: rule.bus.clone(),
                pattern: Pattern::new(&rule.pattern, Dialect::EventBridge)?,
                targets: rule.targets.iter().filter_map(target).collect(),
            })
        });
        let bus = EventBus::start(rules.collect::<Result<_, PatternError>>()?, pace);

        let mappings = template.queue_mappings.iter().filter_map(|mapping| {
            let queue = queues.get(&mapping.queue)?;
            let settings = QueueMappingSettings {
                batch_size: usize::try_from(mapping.batch_size).unwrap_or(usize::MAX),
                batching_window: mapping.batching_window,
                report_batch_item_failures: mapping.report_batch_item_failures,
                // Lambda begins with five pollers.
                maximum_concurrency: usize::try_from(mapping.maximum_concurrency.unwrap_or(5)).unwrap_or(5),
            };
            Some(QueueMapping::start(settings, Arc::clone(queue), invoke(&mapping.function), pace))
        });
        let mappings = mappings.collect();
        let pending = Pending::default();
        let (count, routed) = watch::channel(0);
        let pump = tokio::spawn(pump(server.subscribe(WAITING), bus, pending.clone(), count));
        Ok(Self { pending, routed, pump, _mappings: mappings })
    }

    /// Waits until the first `accepted` events of the bus, and whatever else began before, has been
    /// delivered and worked on, or given up.
    pub(crate) async fn settled(&self, accepted: u64) {
        // The sender ends with the system.
        if self.routed.clone().wait_for(|routed| *routed >= accepted).await.is_ok() {
            self.pending.settled().await;
        }
    }

    /// How many deliveries and messages are under way.
    pub(crate) fn pending(&self) -> usize {
        self.pending.count()
    }
}

impl Drop for Subscribers {
    fn drop(&mut self) {
        self.pump.abort();
    }
}

async fn pump(mut events: mpsc::Receiver<Published>, bus: EventBus, pending: Pending, routed: watch::Sender<u64>) {
    while let Some(event) = events.recv().await {
        let work = pending.begin();
        bus.publish(&event.bus, &event.envelope(), &work).await;
        routed.send_modify(|count| *count += 1);
    }
}

/// The queues of the template by ARN. A dead-letter queue is made before those that it serves; one that
/// would be its own in a circle is left without.
fn queues(template: &Template) -> HashMap<String, Arc<Queue>> {
    let mut made: HashMap<String, Arc<Queue>> = HashMap::new();
    // Each round makes at least one more, or only those in circles are left.
    for round in 0..=template.queues.len() {
        for queue in &template.queues {
            let redrive = match &queue.redrive {
                Some(redrive) => made.get(&redrive.arn).map(|dead| (Arc::clone(dead), redrive.maximum_receive_count)),
                None => None,
            };
            let waits = queue.redrive.is_some() && redrive.is_none() && round < template.queues.len();
            if waits || made.contains_key(&queue.arn) {
                continue;
            }
            let (arn, visibility_timeout) = (queue.arn.clone(), queue.visibility_timeout);
            made.insert(arn.clone(), Queue::new(QueueSettings { arn, visibility_timeout, redrive }));
        }
    }
    made
}

struct Function {
    functions: Arc<Functions>,
    name: String,
}

impl Invoke for Function {
    fn invoke(&self, payload: Bytes) -> BoxFuture<'_, Result<Bytes, CallError>> {
        async move {
            let deadline = Instant::now() + INVOCATION_TIMEOUT;
            let answer = self.functions.invoke(&self.name, payload, deadline).await;
            answer.map_err(|error| match error {
                InvokeError::Function(_) | InvokeError::PayloadTooLarge(_) => CallError::Failed(error.to_string()),
                _ => CallError::NotCalled(error.to_string()),
            })
        }
        .boxed()
    }
}
