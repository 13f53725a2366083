//! What AWS does between an event bus and its subscribers, on one machine.
//!
//! An [`EventBus`] gives each event to the targets of the rules whose pattern takes it: to a function,
//! which is invoked by Lambda's rules for events that nobody waits for ([`AsyncFunction`]), or to a
//! [`Queue`], which a [`QueueMapping`] empties into a function by the rules of an event source mapping.
//! What a target cannot be given, a function does not take or a queue hands out in vain ends in a
//! dead-letter queue.
//!
//! ```text
//! publish ─▶ rules ─┬─▶ AsyncFunction ──▶ Invoke        retries, age ─▶ on-failure queue
//!                   └─▶ Queue ─▶ QueueMapping ─▶ Invoke  receptions  ─▶ dead-letter queue
//! ```
//!
//! Delivery is at least once, as on AWS, and everything is bounded: a bus whose targets cannot keep up
//! makes publishers wait. Waits are those of [`Pace`], much shorter than AWS's; counts and ages are the
//! template's. With a [`Journal`], what is under way and what was given up outlives the process.

mod function;
mod journal;
mod mapping;
mod pace;
mod pending;
mod queue;
mod rules;

use bytes::Bytes;
use futures::future::BoxFuture;

pub use function::{AsyncFunction, AsyncSettings};
pub use journal::{Accepted, Journal, Unsettled};
pub use mapping::{QueueCall, QueueMapping, QueueMappingSettings, Role};
pub use pace::Pace;
pub use pending::{Pending, Work};
pub use queue::{GivenUp, Message, Queue, QueueFull, QueueSettings};
pub use rules::{EventBus, Rule, Target, TargetKind};

/// Calls a function and waits for its answer.
pub trait Invoke: Send + Sync + 'static {
    /// Sends `payload` and gives the function's answer. Must end: the function's own timeout bounds it.
    fn invoke(&self, payload: Bytes) -> BoxFuture<'_, Result<Bytes, CallError>>;
}

/// Why a call gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The function ran and failed, timed out or crashed.
    #[error("the function failed: {0}")]
    Failed(String),
    /// The function could not be called, because it is throttled or not there.
    #[error("the function could not be called: {0}")]
    NotCalled(String),
}

#[cfg(test)]
mod tests;
