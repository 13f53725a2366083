//! One run of the consumer: what it reaches of the world, one step at a time.

use std::fmt::Debug;
use std::future::poll_fn;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};

use crate::territory::{Actor, Footprint, Reach, Territory};
use crate::world::World;

/// Lets the calls of one run through one at a time. Between two calls the run can be looked at, made to wait for another, or dropped: that is a
/// crash.
#[derive(Debug, Default)]
pub struct Gate(Mutex<Passage>);

#[derive(Debug, Default)]
struct Passage {
    open: Option<Fate>,
    /// The calls that wait, in the order in which they will be polled.
    waiting: Vec<(Waker, Reach)>,
    /// What the run has seen so far, which is all that its local state can depend on.
    seen: u64,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is done.
    Done,
    /// It is not, or not the last part of it.
    Fails,
}

impl Gate {
    /// The next call may pass.
    pub fn open(&self, fate: Fate) {
        let mut passage = self.0.lock().unwrap();
        passage.open = Some(fate);
        for (waker, _) in passage.waiting.drain(..) {
            waker.wake();
        }
    }

    /// Whether no call has used the permission.
    pub fn is_open(&self) -> bool {
        self.0.lock().unwrap().open.is_some()
    }

    /// How far the next call reaches; `None` if none waits.
    pub fn next(&self) -> Option<Reach> {
        self.0.lock().unwrap().waiting.first().map(|(_, reach)| *reach)
    }

    /// A digest of all answers that the run has got.
    pub fn seen(&self) -> u64 {
        self.0.lock().unwrap().seen
    }

    async fn pass(&self, reach: Reach) -> Fate {
        poll_fn(|context| {
            let mut passage = self.0.lock().unwrap();
            match passage.open.take() {
                Some(fate) => Poll::Ready(fate),
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

/// The ports of one run.
#[derive(Debug, Clone)]
pub struct Process {
    world: Arc<Mutex<World>>,
    territory: Arc<Territory>,
    shard: usize,
    pub gate: Arc<Gate>,
}

impl Process {
    /// For a delivery of a shard.
    pub fn new(world: Arc<Mutex<World>>, territory: Arc<Territory>, shard: usize) -> Self {
        Self { world, territory, shard, gate: Arc::default() }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// One call: waits for its turn, then acts on the world at once.
    pub async fn call<R>(
        &self,
        name: &'static str,
        footprint: Footprint,
        act: impl FnOnce(&mut World, Fate) -> R,
        digest: impl FnOnce(&R) -> u64,
    ) -> R {
        let reach = self.territory.enter(Actor::Delivery(self.shard), &footprint);
        let fate = self.gate.pass(reach).await;
        let answer = {
            let mut world = self.world();
            let before: Vec<usize> = world.stream.iter().map(Vec::len).collect();
            let answer = act(&mut world, fate);
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

/// A digest of what prints alike. Not for what holds maps without an order.
pub fn digest(value: &impl Debug) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{value:?}").hash(&mut hasher);
    hasher.finish()
}
