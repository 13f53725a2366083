//! A pool of open, idle connections.
//!
//! The wall clock measures how long a connection has been idle. Lambda freezes an environment
//! between requests, and its monotonic clock does not count that time, but the server does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use aws_smithy_types::body::SdkBody;
use hyper::client::conn::http1::SendRequest;

use super::Origin;

/// How long an idle connection is kept. The server may have closed an older one without this
/// process noticing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// A connection that was idle for this long is checked before use. The runtime first gets a chance
/// to notice that the server has closed it.
const LOOK_AFTER: Duration = Duration::from_secs(1);
/// How many idle connections are kept at most: more than a function's concurrent requests.
const MAX_KEPT: usize = 64;

pub(super) type Sender = SendRequest<SdkBody>;

#[derive(Debug, Default)]
pub(super) struct Pool {
    /// In order of their last use. The most recently used connection is the last.
    free: Mutex<Vec<Free>>,
}

#[derive(Debug)]
struct Free {
    origin: Origin,
    sender: Sender,
    since: SystemTime,
}

impl Free {
    /// Returns `None` when the clock was set back.
    fn age(&self, now: SystemTime) -> Option<Duration> {
        now.duration_since(self.since).ok()
    }
}

impl Pool {
    /// Takes a connection that is ready to use, as far as the client can know.
    pub async fn take(&self, origin: &Origin) -> Option<Sender> {
        while let Some((mut sender, rested)) = self.next(origin) {
            if rested {
                tokio::task::yield_now().await;
            }
            // The connection's task may not yet have seen the end of the previous response. `ready`
            // fails when the connection has ended.
            if sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
        None
    }

    /// Removes the origin's most recently used connection. The flag is true if it was idle for
    /// [`LOOK_AFTER`] or longer.
    fn next(&self, origin: &Origin) -> Option<(Sender, bool)> {
        let now = SystemTime::now();
        let mut free = self.free();
        free.retain(|free| free.age(now).is_some_and(|age| age < IDLE_TIMEOUT));
        let last = free.iter().rposition(|free| free.origin == *origin)?;
        let taken = free.remove(last);
        let rested = taken.age(now).is_some_and(|age| age >= LOOK_AFTER);
        Some((taken.sender, rested))
    }

    /// Wraps a connection that returns to the pool when its response has been read.
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

    /// The list is valid even after a panic of another holder of the lock.
    fn free(&self) -> MutexGuard<'_, Vec<Free>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection in use. Dropping it without [`Kept::give_back`] closes the connection.
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
