use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use emulators::access::Access;
use emulators::events::{EventBusServer, Published};
use event_bus::{
    Accepted, AsyncFunction, AsyncSettings, CallError, EventBus, GivenUp, Invoke, Journal, Pace, Pending, Queue,
    QueueMapping, QueueMappingSettings, QueueSettings, Rule, Target, TargetKind, Work,
};
use event_pattern::{Dialect, Pattern, PatternError};
use futures::future::{BoxFuture, FutureExt as _};
use runtime_api::{Functions, InvokeError};
use template::Template;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::mappings::MappingRole;

/// Maximum number of accepted events that the rules have not read yet. When it is reached,
/// publishers wait.
const WAITING: usize = 1024;
/// Every function's timeout is shorter.
const INVOCATION_TIMEOUT: Duration = Duration::from_secs(900);

/// All subscribers of the buses. Dropping the value abandons deliveries in progress.
pub(crate) struct Subscribers {
    pending: Pending,
    routed: watch::Receiver<u64>,
    pump: JoinHandle<()>,
    bus: Arc<EventBus>,
    /// Functions and queues by ARN.
    targets: HashMap<String, TargetKind>,
    queues: Vec<Arc<Queue>>,
    /// Logical ids of the functions and queues, by ARN.
    names: HashMap<String, String>,
    journal: Option<Arc<Journal>>,
    _mappings: Vec<QueueMapping>,
}

impl Subscribers {
    /// Starts to deliver new events of the buses, and unfinished work from `journal`.
    ///
    /// # Errors
    /// [`PatternError`] for an invalid pattern. A parsed template has only valid patterns.
    pub(crate) fn start(
        template: &Template,
        server: &EventBusServer,
        functions: &Arc<Functions>,
        access: &Arc<Access>,
        journal: Option<&Arc<Journal>>,
    ) -> Result<Self, PatternError> {
        let pace = Pace::default();
        let invoke = |name: &str| function(functions, name);
        let queues = queues(template, journal);
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

        let rules = template.rules.iter().filter(|rule| rule.is_enabled).map(|rule| {
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
        let bus = Arc::new(EventBus::start(rules.collect::<Result<_, PatternError>>()?, pace));

        let mappings = template.queue_mappings.iter().filter_map(|mapping| {
            let queue = queues.get(&mapping.queue)?;
            let settings = QueueMappingSettings {
                batch_size: usize::try_from(mapping.batch_size).unwrap_or(usize::MAX),
                batching_window: mapping.batching_window,
                report_batch_item_failures: mapping.report_batch_item_failures,
                // Lambda begins with five pollers, so five is the default.
                maximum_concurrency: usize::try_from(mapping.maximum_concurrency.unwrap_or(5)).unwrap_or(5),
            };
            let role = Arc::new(MappingRole::of_queue(mapping, access));
            Some(QueueMapping::start(settings, Arc::clone(queue), invoke(&mapping.function), role, pace))
        });
        let mappings = mappings.collect();
        let pending = Pending::default();
        let left = journal.map(|journal| UnfinishedWork::of(journal, &queues, &pending)).unwrap_or_default();
        // The events that the server has now are from earlier runs. Each of them is finished, or is
        // unfinished work in the journal.
        let (count, routed) = watch::channel(server.published(u64::MAX, 1).next);
        let pump = Pump {
            bus: Arc::clone(&bus),
            targets: targets.clone(),
            pending: pending.clone(),
            journal: journal.cloned(),
            routed: count,
        };
        let pump = tokio::spawn(pump.run(left, server.subscribe(WAITING)));
        let functions = template.functions.iter().map(|function| (&function.arn, &function.logical_id));
        let names = functions.chain(template.queues.iter().map(|queue| (&queue.arn, &queue.logical_id)));
        Ok(Self {
            pending,
            routed,
            pump,
            bus,
            names: names.map(|(arn, name)| (arn.clone(), name.clone())).collect(),
            queues: template.queues.iter().filter_map(|queue| queues.get(&queue.arn).cloned()).collect(),
            targets,
            journal: journal.cloned(),
            _mappings: mappings,
        })
    }

    /// Waits until the first `accepted` events of the bus, and all work that began before this
    /// call, are processed or given up.
    pub(crate) async fn settled(&self, accepted: u64) {
        // The wait fails only if the system has been dropped.
        if self.routed.clone().wait_for(|routed| *routed >= accepted).await.is_ok() {
            self.pending.settled().await;
        }
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending.count()
    }

    pub(crate) fn failures(&self) -> Vec<GivenUp> {
        self.queues.iter().flat_map(|queue| queue.given_up()).collect()
    }

    pub(crate) fn count_failures(&self) -> usize {
        self.queues.iter().map(|queue| queue.count_given_up()).sum()
    }

    /// Redrives the messages that are now in the dead-letter queues, and returns their number.
    pub(crate) async fn redrive(&self) -> usize {
        let mut redriven = 0;
        for queue in &self.queues {
            // A message that fails again returns to the queue. So the number of iterations is the
            // number of messages that were in the queue before the loop.
            for _ in 0..queue.count_given_up() {
                if !self.bus.redrive(queue, &self.targets, &self.pending).await {
                    break;
                }
                redriven += 1;
            }
        }
        redriven
    }

    pub(crate) fn name<'a>(&'a self, arn: &'a str) -> &'a str {
        self.names.get(arn).map_or(arn, String::as_str)
    }

    /// Closes the journal, if there is one, so that it keeps unfinished work for the next start.
    /// From now on, calls fail only because the system ends, so the next start must repeat them.
    pub(crate) fn close(&self) {
        if let Some(journal) = &self.journal {
            journal.close();
        }
    }
}

impl Drop for Subscribers {
    fn drop(&mut self) {
        self.close();
        self.pump.abort();
    }
}

/// The unfinished work of the previous run. All of it counts as in progress from the start.
#[derive(Default)]
struct UnfinishedWork {
    accepted: Vec<(Accepted, Work)>,
    redriven: Vec<(GivenUp, Arc<Queue>, Work)>,
}

impl UnfinishedWork {
    /// Reads the unfinished work, and puts given-up messages back into their dead-letter queues.
    fn of(journal: &Arc<Journal>, queues: &HashMap<String, Arc<Queue>>, pending: &Pending) -> Self {
        let unsettled = journal.unsettled();
        for given_up in unsettled.given_up {
            let Some(queue) = queues.get(&given_up.queue) else { continue };
            if let Err(error) = queue.restore(given_up) {
                tracing::warn!(%error, queue = queue.arn(), "an event that was given up cannot be listed");
            }
        }
        let redriven = unsettled.redriven.into_iter().filter_map(|given_up| {
            let work = pending.begin_kept(journal, &given_up.message.id);
            Some((queues.get(&given_up.queue)?.clone(), work)).map(|(queue, work)| (given_up, queue, work))
        });
        let accepted = unsettled.accepted.into_iter().map(|accepted| {
            let work = pending.begin_kept(journal, &accepted.id);
            (accepted, work)
        });
        Self { redriven: redriven.collect(), accepted: accepted.collect() }
    }
}

struct Pump {
    bus: Arc<EventBus>,
    targets: HashMap<String, TargetKind>,
    pending: Pending,
    journal: Option<Arc<Journal>>,
    routed: watch::Sender<u64>,
}

impl Pump {
    async fn run(self, left: UnfinishedWork, mut events: mpsc::Receiver<Published>) {
        for (given_up, queue, work) in left.redriven {
            self.bus.redrive_again(given_up, &queue, &self.targets, work).await;
        }
        for (accepted, work) in left.accepted {
            self.bus.publish(&accepted.bus, &accepted.event, &work).await;
            work.finish();
        }
        while let Some(event) = events.recv().await {
            let work = match &self.journal {
                Some(journal) => self.pending.begin_kept(journal, &event.event_id),
                None => self.pending.begin(),
            };
            self.bus.publish(&event.bus, &event.envelope(), &work).await;
            work.finish();
            self.routed.send_modify(|count| *count += 1);
        }
    }
}

/// Creates the template's queues, by ARN. A dead-letter queue must be created before the queues
/// that use it. If queues form a cycle, at least one of them gets no dead-letter queue.
fn queues(template: &Template, journal: Option<&Arc<Journal>>) -> HashMap<String, Arc<Queue>> {
    let mut made: HashMap<String, Arc<Queue>> = HashMap::new();
    // Each round creates at least one more queue until only cycles are left. The last round creates
    // the queues of the cycles.
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
            let settings = QueueSettings { arn: arn.clone(), visibility_timeout, redrive, journal: journal.cloned() };
            made.insert(arn, Queue::new(settings));
        }
    }
    made
}

/// Returns the function `name` for callers other than the gateway, such as schedules and queues.
pub(crate) fn function(functions: &Arc<Functions>, name: &str) -> Arc<dyn Invoke> {
    Arc::new(Function { functions: Arc::clone(functions), name: name.to_owned() })
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
