//! One run of the consumer: what it reaches of the world, one step at a time.

use std::fmt::Debug;
use std::future::poll_fn;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};

use crate::world::World;

/// Lets the calls of one run through one at a time. Between two calls the run can be looked at, made to wait for another, or dropped: that is a
/// crash.
#[derive(Debug, Default)]
pub struct Gate(Mutex<Passage>);

#[derive(Debug, Default)]
struct Passage {
    open: bool,
    waiting: Vec<Waker>,
    /// What the run has seen so far, which is all that its local state can depend on.
    seen: u64,
    calls: usize,
}

impl Gate {
    /// The next call may pass.
    pub fn open(&self) {
        let mut passage = self.0.lock().unwrap();
        passage.open = true;
        for waker in passage.waiting.drain(..) {
            waker.wake();
        }
    }

    /// Whether no call has used the permission.
    pub fn is_open(&self) -> bool {
        self.0.lock().unwrap().open
    }

    /// A digest of all answers that the run has got.
    pub fn seen(&self) -> u64 {
        self.0.lock().unwrap().seen
    }

    async fn pass(&self) {
        poll_fn(|context| {
            let mut passage = self.0.lock().unwrap();
            if passage.open {
                passage.open = false;
                passage.calls += 1;
                Poll::Ready(())
            } else {
                passage.waiting.push(context.waker().clone());
                Poll::Pending
            }
        })
        .await;
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
    pub gate: Arc<Gate>,
}

impl Process {
    pub fn new(world: Arc<Mutex<World>>) -> Self {
        Self { world, gate: Arc::default() }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// One call: waits for its turn, then acts on the world at once.
    pub async fn call<R>(
        &self,
        name: &'static str,
        act: impl FnOnce(&mut World) -> R,
        digest: impl FnOnce(&R) -> u64,
    ) -> R {
        self.gate.pass().await;
        let answer = act(&mut self.world());
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
