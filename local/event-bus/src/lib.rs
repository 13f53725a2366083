//! Emulates, on one machine, the AWS services between an event bus and its subscribers.
//!
//! An [`EventBus`] passes each event to the targets of the rules whose pattern matches. It invokes
//! a function asynchronously, as Lambda does ([`AsyncFunction`]). A [`Queue`] holds events until a
//! [`QueueMapping`] passes them to a function, as an event source mapping does.
//!
//! An event or message that fails too often moves to a dead-letter queue. The failed step may be
//! the delivery to a target, the call of a function, or the processing after a reception from a
//! queue.
//!
//! ```text
//! publish ─▶ rules ─┬─▶ AsyncFunction ──▶ Invoke        retries, age ─▶ on-failure queue
//!                   └─▶ Queue ─▶ QueueMapping ─▶ Invoke  receptions  ─▶ dead-letter queue
//! ```
//!
//! Delivery is at least once, as on AWS. All buffers are bounded: if a bus's targets are too slow,
//! publishers wait. The waits between retries come from [`Pace`] and are much shorter than on AWS.
//! The maximum numbers of retries and the maximum ages come from the template. With a [`Journal`],
//! unfinished work and given-up messages survive the process.

mod function;
mod journal;
mod mapping;
mod pending;
mod queue;
mod rules;

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;

pub use function::{AsyncFunction, AsyncSettings};
pub use journal::{Accepted, Journal, Unsettled};
pub use mapping::{QueueCall, QueueMapping, QueueMappingSettings, Role};
pub use pending::{Pending, Work};
pub use queue::{GivenUp, Message, Queue, QueueFull, QueueSettings};
pub use rules::{EventBus, Rule, Target, TargetKind};

pub trait Invoke: Send + Sync + 'static {
    /// The call must always return. The function's timeout ensures this.
    fn invoke(&self, payload: Bytes) -> BoxFuture<'_, Result<Bytes, CallError>>;
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The function ran and failed, timed out or crashed.
    #[error("the function failed: {0}")]
    Failed(String),
    /// The function could not be called, because it is throttled or does not exist.
    #[error("the function could not be called: {0}")]
    NotCalled(String),
}

/// The waits between retries. The default suits one machine. On AWS, the waits are much longer.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// The first wait. Each further wait is twice as long, up to `most`.
    pub first: Duration,
    pub most: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { first: Duration::from_millis(100), most: Duration::from_secs(5) }
    }
}

impl Pace {
    /// Returns the wait after this many failures. The number is at least 1.
    pub(crate) fn after(self, failures: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.most)
    }
}

#[cfg(test)]
mod tests;
