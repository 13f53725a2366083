//! A cache of the shop's settings, for functions that read them often.
//!
//! # Guarantee
//! At most [`MAX_AGE`] after an acknowledged change, every function sees it. The cache holds the
//! result of a strongly consistent read. The age of a result is the time since its read began. The
//! execution environment that changes the settings sees the change at once.
//!
//! # Clock
//! The cache uses the wall clock. Lambda freezes an environment between requests, and the monotonic
//! clock does not count that time. If the clock was set back, the age is unknown and the settings
//! are read again.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use key_schema::instant::Instant;
use key_schema::settings::{self, Known};
use table::Table;

use crate::problem::Problem;
use crate::services::random;

/// How long after a change a function may still use the previous settings.
pub const MAX_AGE: Duration = Duration::from_secs(30);

pub struct SettingsCache {
    clock: Box<dyn Fn() -> Instant + Send + Sync>,
    held: Mutex<Option<Held>>,
}

#[derive(Debug, Clone)]
struct Held {
    known: Arc<Known>,
    since: Instant,
}

impl Held {
    /// Returns how much longer the settings may be used, or `None` if they are too old.
    fn remaining_time(&self, now: Instant) -> Option<Duration> {
        let age = u64::try_from(now.as_millis() - self.since.as_millis()).ok()?;
        MAX_AGE.checked_sub(Duration::from_millis(age)).filter(|remaining| !remaining.is_zero())
    }
}

impl Default for SettingsCache {
    fn default() -> Self {
        Self::new(Instant::now)
    }
}

impl SettingsCache {
    pub fn new(clock: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        Self { clock: Box::new(clock), held: Mutex::new(None) }
    }

    /// Creates a cache whose settings never expire, for tests and measurements.
    #[must_use]
    pub fn unchanging(known: Known) -> Self {
        let cache = Self::new(|| Instant::EPOCH);
        cache.keep(Arc::new(known), Instant::EPOCH);
        cache
    }

    #[must_use]
    pub fn now(&self) -> Instant {
        (self.clock)()
    }

    /// Returns the settings, and how long they may still be used.
    pub async fn current(&self, table: &Table) -> Result<(Arc<Known>, Duration), Problem> {
        let now = self.now();
        let held = self.held().as_ref().and_then(|held| Some((Arc::clone(&held.known), held.remaining_time(now)?)));
        if let Some(current) = held {
            return Ok(current);
        }
        // Few requests read the settings. Without the box, the SDK's large future would be part of
        // the future of every request.
        let known = Box::pin(self.latest(table)).await?;
        let asked = Held { known: Arc::clone(&known), since: now };
        Ok((known, asked.remaining_time(self.now()).unwrap_or_default()))
    }

    /// Reads the settings from the table, not from the cache, and stores them in the cache.
    pub async fn latest(&self, table: &Table) -> Result<Arc<Known>, Problem> {
        let since = self.now();
        let random = u32::from_be_bytes(random()?);
        let found = table.get(&settings::read(random.into())?).await?;
        let known = Arc::new(found.map(Known::from).unwrap_or_default());
        self.keep(Arc::clone(&known), since);
        Ok(known)
    }

    /// Stores settings that were current at `since` or later.
    ///
    /// Of two concurrent results, the cache keeps the result with the higher version until it
    /// expires. Then the cache accepts a lower version, because the table may have been restored
    /// from a backup.
    pub fn keep(&self, known: Arc<Known>, since: Instant) {
        let now = self.now();
        let mut held = self.held();
        let outdated =
            held.as_ref().is_some_and(|held| held.known.version > known.version && held.remaining_time(now).is_some());
        if !outdated {
            *held = Some(Held { known, since });
        }
    }

    /// Clears the cache, for a caller that has found that the content may be outdated.
    pub fn forget(&self) {
        *self.held() = None;
    }

    /// Locks the cache. Its content is always replaced as a whole, so it is valid even if another
    /// holder of the lock has panicked.
    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SettingsCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SettingsCache").field("held", &*self.held()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    fn cache() -> (SettingsCache, Arc<AtomicI64>) {
        let millis = Arc::new(AtomicI64::new(1_000_000));
        let clock = Arc::clone(&millis);
        (SettingsCache::new(move || Instant::from_millis(clock.load(Ordering::Relaxed)).unwrap()), millis)
    }

    fn version(version: u64) -> Arc<Known> {
        Arc::new(Known { version, ..Known::default() })
    }

    fn held(cache: &SettingsCache) -> Option<u64> {
        cache.held().as_ref().map(|held| held.known.version)
    }

    #[test]
    fn cached_settings_expire_after_their_maximum_age() {
        let since = Instant::from_millis(1_000_000).unwrap();
        let held = Held { known: version(1), since };
        assert_eq!(held.remaining_time(since), Some(MAX_AGE));
        assert_eq!(held.remaining_time(since.plus_millis(29_999)), Some(Duration::from_millis(1)));
        assert_eq!(held.remaining_time(since.plus_millis(30_000)), None);
        assert_eq!(held.remaining_time(since.plus_millis(-1)), None, "the clock was set back");
    }

    #[test]
    fn an_outdated_read_does_not_replace_a_later_version_that_has_not_expired() {
        let (cache, millis) = cache();
        cache.keep(version(5), cache.now());
        cache.keep(version(4), cache.now());
        assert_eq!(held(&cache), Some(5));
        cache.keep(version(6), cache.now());
        assert_eq!(held(&cache), Some(6));
        millis.fetch_add(30_000, Ordering::Relaxed);
        cache.keep(version(4), cache.now());
        assert_eq!(held(&cache), Some(4));
        cache.forget();
        assert_eq!(held(&cache), None);
    }
}
