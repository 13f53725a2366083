//! Refuses tokens whose session has ended.
//!
//! # Guarantee
//! At most [`MAX_AGE`] after the end of a session, every function refuses its tokens. The
//! environment that ended the session refuses them at once. The cache holds results of strongly
//! consistent reads. The age of a result is the time since its read began.
//!
//! # Cost
//! A token that names no sign-in (in `origin_jti` or `sid`) costs nothing. For any other token, an
//! environment reads one item for each sign-in, at most once in [`MAX_AGE`]. An ended sign-in stays
//! ended, so it is not read again.
//!
//! If the table does not respond, the function responds 503. If the function accepted the token
//! instead, an attacker could overload the table, and a stolen token would work again. Nearly every
//! route needs the table anyway.
//!
//! # Clock
//! The cache uses the wall clock, for the same reason as [`crate::SettingsCache`].

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use key_schema::instant::Instant;
use key_schema::revocation::{self, SignIn};
use table::Table;

use crate::identity::Caller;
use crate::problem::Problem;

/// How long after the end of a session its tokens may still be accepted.
pub const MAX_AGE: Duration = Duration::from_secs(30);
/// The maximum number of sign-ins that an environment remembers.
const MAX_KNOWN: usize = 1_000;

pub struct SignIns {
    clock: Box<dyn Fn() -> Instant + Send + Sync>,
    known: Mutex<HashMap<SignIn, Known>>,
}

#[derive(Debug, Clone, Copy)]
enum Known {
    Ended,
    /// A read that began at this time found that the sign-in had not ended.
    ActiveAt(Instant),
}

impl Default for SignIns {
    fn default() -> Self {
        Self::new(Instant::now)
    }
}

impl SignIns {
    pub fn new(clock: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        Self { clock: Box::new(clock), known: Mutex::default() }
    }

    /// Refuses a caller whose session has ended.
    ///
    /// # Errors
    /// 401 `unauthenticated`. 503 when the table does not respond.
    pub async fn check(&self, table: &Table, caller: &Caller) -> Result<(), Problem> {
        let Caller::SignedIn(caller) = caller else { return Ok(()) };
        let Some(sign_in) = caller.sign_in() else { return Ok(()) };
        let now = (self.clock)();
        let ended = match self.held(sign_in, now) {
            Some(ended) => ended,
            None => {
                // Few requests look up a sign-in. Without the box, the SDK's large future would be
                // part of the future of every request.
                let get = revocation::get(sign_in)?;
                let found = Box::pin(table.get(&get)).await.map_err(Problem::unavailable)?;
                let ended = found.is_some();
                self.keep(sign_in.clone(), if ended { Known::Ended } else { Known::ActiveAt(now) });
                ended
            }
        };
        if ended { Err(Problem::signed_out()) } else { Ok(()) }
    }

    /// Remembers that sign-ins have ended, after this environment has ended them.
    pub fn ended(&self, sign_ins: impl IntoIterator<Item = SignIn>) {
        for sign_in in sign_ins {
            self.keep(sign_in, Known::Ended);
        }
    }

    /// Returns whether a sign-in has ended, or `None` if the table must be read.
    fn held(&self, sign_in: &SignIn, now: Instant) -> Option<bool> {
        match *self.known().get(sign_in)? {
            Known::Ended => Some(true),
            Known::ActiveAt(since) => {
                // If the clock was set back, the age is unknown.
                let age = u64::try_from(now.as_millis() - since.as_millis()).ok()?;
                (Duration::from_millis(age) < MAX_AGE).then_some(false)
            }
        }
    }

    /// Stores a result. A full cache is cleared first, which costs reads but never gives a wrong
    /// result.
    fn keep(&self, sign_in: SignIn, result: Known) {
        let mut known = self.known();
        if known.len() >= MAX_KNOWN && !known.contains_key(&sign_in) {
            known.clear();
        }
        // A read that began before the end of the session may return after the end. Its result must
        // not replace the recorded end.
        if !matches!((known.get(&sign_in), result), (Some(Known::Ended), Known::ActiveAt(_))) {
            known.insert(sign_in, result);
        }
    }

    /// Locks the map. Each entry is replaced as a whole, so the map is valid even if another holder
    /// of the lock has panicked.
    fn known(&self) -> MutexGuard<'_, HashMap<SignIn, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SignIns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignIns").field("known", &self.known().len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use key_schema::id::CustomerId;

    use super::*;

    #[test]
    fn the_cache_is_bounded_and_an_earlier_read_does_not_replace_an_ended_sign_in() {
        let (cache, ann) = (SignIns::default(), CustomerId::new("ann").unwrap());
        let now = Instant::now();
        for number in 0..2 * MAX_KNOWN + 1 {
            cache.keep(SignIn::of(&ann, &number.to_string()), Known::ActiveAt(now));
            assert!(cache.known().len() <= MAX_KNOWN, "{number}");
        }
        let phone = SignIn::of(&ann, "phone");
        cache.ended([phone.clone()]);
        cache.keep(phone.clone(), Known::ActiveAt(now));
        assert_eq!(cache.held(&phone, now), Some(true));
    }
}
