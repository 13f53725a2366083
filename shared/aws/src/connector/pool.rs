//! Connections that are open and that nobody uses.
//!
//! The wall clock says for how long: an environment of Lambda stands still between requests, the time that it sleeps is not on its monotonic clock, and the
//! other side does not wait for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use aws_smithy_types::body::SdkBody;
use hyper::client::conn::http1::SendRequest;

use super::Origin;

/// How long a connection is kept that nobody uses. A connection that slept longer may be gone without our knowing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// After how long the runtime is let look first whether the other side has closed a connection.
const LOOK_AFTER: Duration = Duration::from_secs(1);
/// The most that are kept: more than a function asks at once.
const MAX_KEPT: usize = 64;

pub(super) type Sender = SendRequest<SdkBody>;

#[derive(Debug, Default)]
pub(super) struct Pool {
    /// The one that was used last is the last.
    free: Mutex<Vec<Free>>,
}

#[derive(Debug)]
struct Free {
    origin: Origin,
    sender: Sender,
    since: SystemTime,
}

impl Free {
    /// None when the clock was set back.
    fn age(&self, now: SystemTime) -> Option<Duration> {
        now.duration_since(self.since).ok()
    }
}

impl Pool {
    /// A connection that can be used at once, as far as can be known.
    pub async fn take(&self, origin: &Origin) -> Option<Sender> {
        while let Some((mut sender, rested)) = self.next(origin) {
            if rested {
                tokio::task::yield_now().await;
            }
            // The task that drives it may not yet have seen the end of the last answer. It fails where the connection has ended.
            if sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
        None
    }

    /// The connection to this origin that was used last, and whether it has rested since.
    fn next(&self, origin: &Origin) -> Option<(Sender, bool)> {
        let now = SystemTime::now();
        let mut free = self.free();
        free.retain(|free| free.age(now).is_some_and(|age| age < IDLE_TIMEOUT));
        let last = free.iter().rposition(|free| free.origin == *origin)?;
        let taken = free.remove(last);
        let rested = taken.age(now).is_some_and(|age| age >= LOOK_AFTER);
        Some((taken.sender, rested))
    }

    /// A connection that comes back when its answer has been read.
    pub fn kept(self: &Arc<Self>, origin: Origin, sender: Sender) -> Kept {
        Kept { pool: Arc::clone(self), origin, sender }
    }

    fn put(&self, origin: Origin, sender: Sender) {
        let mut free = self.free();
        if free.len() >= MAX_KEPT {
            free.remove(0);
        }
        free.push(Free { origin, sender, since: SystemTime::now() });
    }

    /// What is in it is sound whatever became of another holder of the lock.
    fn free(&self) -> MutexGuard<'_, Vec<Free>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection in use. One that is not given back closes.
#[derive(Debug)]
pub(super) struct Kept {
    pool: Arc<Pool>,
    origin: Origin,
    sender: Sender,
}

impl Kept {
    pub fn give_back(self) {
        let Self { pool, origin, sender } = self;
        pool.put(origin, sender);
    }
}
