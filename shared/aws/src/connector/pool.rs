//! A pool of open, idle connections.
//!
//! The wall clock measures how long a connection has been idle. Lambda freezes an environment
//! between requests. Its monotonic clock does not count that time, but the server's clock does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use aws_smithy_types::body::SdkBody;
use hyper::client::conn::http1::SendRequest;

use super::Origin;

/// The time after which an idle connection is discarded, because the server may have closed it
/// without notice.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// The idle time after which the pool yields to the runtime before it uses a connection again.
/// While the pool yields, the runtime can notice that the server has closed the connection.
const CHECK_AFTER: Duration = Duration::from_secs(1);
/// The maximum number of idle connections. A function has fewer concurrent requests.
const MAX_KEPT: usize = 64;

pub(super) type Sender = SendRequest<SdkBody>;

#[derive(Debug, Default)]
pub(super) struct Pool {
    /// The idle connections, ordered by their last use. The most recently used connection is the
    /// last.
    idle: Mutex<Vec<IdleConnection>>,
}

#[derive(Debug)]
struct IdleConnection {
    origin: Origin,
    sender: Sender,
    since: SystemTime,
}

impl IdleConnection {
    /// Returns how long the connection has been idle, or `None` when the clock was set back.
    fn age(&self, now: SystemTime) -> Option<Duration> {
        now.duration_since(self.since).ok()
    }
}

impl Pool {
    /// Removes a usable connection from the pool. The server may still have closed it without
    /// notice.
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

    /// Removes the origin's most recently used connection. The flag is true if the connection was
    /// idle for [`CHECK_AFTER`] or longer.
    fn next(&self, origin: &Origin) -> Option<(Sender, bool)> {
        let now = SystemTime::now();
        let mut idle = self.idle();
        idle.retain(|idle| idle.age(now).is_some_and(|age| age < IDLE_TIMEOUT));
        let last = idle.iter().rposition(|idle| idle.origin == *origin)?;
        let taken = idle.remove(last);
        let rested = taken.age(now).is_some_and(|age| age >= CHECK_AFTER);
        Some((taken.sender, rested))
    }

    /// Wraps a connection that returns to the pool when its response has been read.
    pub fn lend(self: &Arc<Self>, origin: Origin, sender: Sender) -> PooledConnection {
        PooledConnection { pool: Arc::clone(self), origin, sender }
    }

    fn put(&self, origin: Origin, sender: Sender) {
        let mut idle = self.idle();
        if idle.len() >= MAX_KEPT {
            idle.remove(0);
        }
        idle.push(IdleConnection { origin, sender, since: SystemTime::now() });
    }

    /// Locks the list. The list is valid even if another holder of the lock has panicked.
    fn idle(&self) -> MutexGuard<'_, Vec<IdleConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection in use. Dropping it without [`PooledConnection::release`] closes the connection.
#[derive(Debug)]
pub(super) struct PooledConnection {
    pool: Arc<Pool>,
    origin: Origin,
    sender: Sender,
}

impl PooledConnection {
    pub fn release(self) {
        let Self { pool, origin, sender } = self;
        pool.put(origin, sender);
    }
}
