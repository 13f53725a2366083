//! The shop's settings, kept in memory by whoever reads them often.
//!
//! # What a reader may rely on
//! A change is seen by every function within [`MAX_AGE`] of when it was acknowledged: what is kept was read strongly, counts from before it was asked for,
//! and is not used any longer than that. Whoever changes the settings through this function sees the change at once.
//!
//! # Whose clock
//! The wall clock. An environment of Lambda stands still between requests, and the time that it sleeps is not on its monotonic clock. A clock that was set
//! back makes what is kept younger than nothing: then it is read again.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use key_schema::instant::Instant;
use key_schema::settings::{self, Known};

use crate::problem::Problem;
use crate::store::Store;

/// How long after a change somebody may still see what was before.
pub const MAX_AGE: Duration = Duration::from_secs(30);

/// The settings as this environment knows them.
pub struct SettingsCache {
    clock: Box<dyn Fn() -> Instant + Send + Sync>,
    held: Mutex<Option<Held>>,
}

#[derive(Debug, Clone)]
struct Held {
    known: Arc<Known>,
    /// When it was asked for.
    since: Instant,
}

impl Held {
    /// For how long it may still be used.
    fn rest(&self, now: Instant) -> Option<Duration> {
        let age = u64::try_from(now.as_millis() - self.since.as_millis()).ok()?;
        MAX_AGE.checked_sub(Duration::from_millis(age)).filter(|rest| !rest.is_zero())
    }
}

impl Default for SettingsCache {
    fn default() -> Self {
        Self::new(Instant::now)
    }
}

impl SettingsCache {
    /// Knows nothing yet, and tells the time by this clock.
    pub fn new(clock: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        Self { clock: Box::new(clock), held: Mutex::new(None) }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Instant {
        (self.clock)()
    }

    /// The settings, and for how long they may still be used.
    ///
    /// # Errors
    /// Those of the table, when they have to be read.
    pub async fn current(&self, store: &Store) -> Result<(Arc<Known>, Duration), Problem> {
        let now = self.now();
        let held = self.held().as_ref().and_then(|held| Some((Arc::clone(&held.known), held.rest(now)?)));
        if let Some(current) = held {
            return Ok(current);
        }
        let known = self.latest(store).await?;
        let asked = Held { known: Arc::clone(&known), since: now };
        Ok((known, asked.rest(self.now()).unwrap_or_default()))
    }

    /// The settings as the table has them now, for whoever is about to change them.
    ///
    /// # Errors
    /// Those of the table.
    pub async fn latest(&self, store: &Store) -> Result<Arc<Known>, Problem> {
        let since = self.now();
        let [first, second, third, fourth, ..] = store.random()?;
        let random = u32::from_be_bytes([first, second, third, fourth]);
        let found = store.table.get(&settings::read(random.into())?).await?;
        let known = Arc::new(found.map(Known::from).unwrap_or_default());
        self.keep(Arc::clone(&known), since);
        Ok(known)
    }

    /// Keeps what the settings are since this instant or before. Of two answers that cross each other the later version stays, for as long as it
    /// may be used; beyond that a lower one is no error: the table may have been restored.
    pub fn keep(&self, known: Arc<Known>, since: Instant) {
        let now = self.now();
        let mut held = self.held();
        let outdated = held.as_ref().is_some_and(|held| held.known.version > known.version && held.rest(now).is_some());
        if !outdated {
            *held = Some(Held { known, since });
        }
    }

    /// Forgets what is known, because it has proved to be old.
    pub fn forget(&self) {
        *self.held() = None;
    }

    /// What is held is replaced whole, so that it is sound whatever became of another holder of the lock.
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
    fn what_is_kept_is_used_for_so_long_counted_from_when_it_was_asked_for() {
        let since = Instant::from_millis(1_000_000).unwrap();
        let held = Held { known: version(1), since };
        assert_eq!(held.rest(since), Some(MAX_AGE));
        assert_eq!(held.rest(since.plus_millis(29_999)), Some(Duration::from_millis(1)));
        assert_eq!(held.rest(since.plus_millis(30_000)), None);
        assert_eq!(held.rest(since.plus_millis(-1)), None, "the clock was set back");
    }

    #[test]
    fn an_answer_that_was_overtaken_does_not_replace_the_later_version_unless_that_is_too_old() {
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
