//! The calls of one delivery to the [`World`], one at a time.

use std::fmt::Debug;
use std::future::poll_fn;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};

use crate::territory::{Actor, Footprint, Reach, Territory};
use crate::world::World;

/// A gate that lets the calls of one delivery pass one at a time. Between two calls a test can
/// inspect, pause or drop the delivery. A drop is a crash.
#[derive(Debug, Default)]
pub struct Gate(Mutex<Passage>);

#[derive(Debug, Default)]
struct Passage {
    open: Option<CallOutcome>,
    /// The waiting calls, in the order in which they will continue.
    waiting: Vec<(Waker, Reach)>,
    /// A digest of all responses to the delivery's calls. The local state of the delivery depends
    /// only on them.
    seen: u64,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// The call succeeds.
    Done,
    /// The call fails completely or in its last part.
    Fails,
}

impl Gate {
    /// Lets the next call pass with this outcome.
    pub fn open(&self, outcome: CallOutcome) {
        let mut passage = self.0.lock().unwrap();
        passage.open = Some(outcome);
        for (waker, _) in passage.waiting.drain(..) {
            waker.wake();
        }
    }

    /// Returns whether a call may still pass.
    pub fn is_open(&self) -> bool {
        self.0.lock().unwrap().open.is_some()
    }

    /// Returns whether other actors can notice the next call, or `None` if no call waits.
    pub fn next(&self) -> Option<Reach> {
        self.0.lock().unwrap().waiting.first().map(|(_, reach)| *reach)
    }

    /// Returns a digest of all responses to the delivery's calls.
    pub fn seen(&self) -> u64 {
        self.0.lock().unwrap().seen
    }

    async fn pass(&self, reach: Reach) -> CallOutcome {
        poll_fn(|context| {
            let mut passage = self.0.lock().unwrap();
            match passage.open.take() {
                Some(outcome) => Poll::Ready(outcome),
                None => {
                    passage.waiting.push((context.waker().clone(), reach));
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn note(&self, call: &'static str, answer: u64) {
        let mut passage = self.0.lock().unwrap();
        let mut hasher = DefaultHasher::new();
        (passage.seen, call, answer).hash(&mut hasher);
        passage.seen = hasher.finish();
    }
}

/// The ports of one delivery.
#[derive(Debug, Clone)]
pub struct Process {
    world: Arc<Mutex<World>>,
    territory: Arc<Territory>,
    shard: usize,
    pub gate: Arc<Gate>,
}

impl Process {
    /// Creates the ports for a delivery of a shard.
    pub fn new(world: Arc<Mutex<World>>, territory: Arc<Territory>, shard: usize) -> Self {
        Self { world, territory, shard, gate: Arc::default() }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Makes one call: waits until the gate opens, and then executes the call on the world.
    pub async fn call<R>(
        &self,
        name: &'static str,
        footprint: Footprint,
        act: impl FnOnce(&mut World, CallOutcome) -> R,
        digest: impl FnOnce(&R) -> u64,
    ) -> R {
        let reach = self.territory.enter(Actor::Delivery(self.shard), &footprint);
        let outcome = self.gate.pass(reach).await;
        let answer = {
            let mut world = self.world();
            let before: Vec<usize> = world.stream.iter().map(Vec::len).collect();
            let answer = act(&mut world, outcome);
            for (shard, (before, after)) in before.iter().zip(&world.stream).enumerate() {
                let feeds = *before != after.len();
                assert!(!feeds || self.territory.is_fed(shard, reach), "{name} feeds shard {shard}");
            }
            answer
        };
        self.gate.note(name, digest(&answer));
        answer
    }
}

/// Returns a digest of a value's debug output. The value must not contain unordered maps.
pub fn digest(value: &impl Debug) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{value:?}").hash(&mut hasher);
    hasher.finish()
}
