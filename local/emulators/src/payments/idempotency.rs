//! Idempotency keys (<https://docs.stripe.com/api/idempotent_requests>).

use std::collections::{HashMap, VecDeque};

use hyper::StatusCode;

use super::wire::{Form, Refusal, Reply};
use super::{MAX_KEYS, full};

const LIFETIME_SECONDS: i64 = 24 * 60 * 60;
const MAX_LENGTH: usize = 255;

#[derive(Debug, Default)]
pub(super) struct Keys {
    entries: HashMap<String, Entry>,
    /// The keys by age, so that old keys are found.
    ages: VecDeque<(i64, String)>,
}

#[derive(Debug)]
struct Entry {
    path: String,
    form: Form,
    /// The stored response. `None` means that the request is in progress.
    reply: Option<Reply>,
}

impl Keys {
    /// Returns the stored response of an earlier request, or else reserves the key.
    pub(super) fn begin(&mut self, key: &str, path: &str, form: &Form, now: i64) -> Result<Option<Reply>, Refusal> {
        self.forget(now);
        if key.chars().count() > MAX_LENGTH {
            return Err(Refusal::invalid("Idempotency keys can have at most 255 characters."));
        }
        let form = form.sorted();
        if let Some(entry) = self.entries.get(key) {
            return entry.answer(key, path, &form);
        }
        if self.entries.len() >= MAX_KEYS {
            return Err(full("idempotency keys", MAX_KEYS));
        }
        self.entries.insert(key.to_owned(), Entry { path: path.to_owned(), form, reply: None });
        self.ages.push_back((now, key.to_owned()));
        Ok(None)
    }

    pub(super) fn finish(&mut self, key: &str, reply: &Reply) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.reply = Some(reply.clone());
        }
    }

    pub(super) fn in_use(&self) -> usize {
        self.entries.values().filter(|entry| entry.reply.is_none()).count()
    }

    /// A key stays while its request is in progress.
    fn forget(&mut self, now: i64) {
        while let Some((since, key)) = self.ages.front() {
            let is_open = self.entries.get(key).is_some_and(|entry| entry.reply.is_none());
            if is_open || now.saturating_sub(*since) < LIFETIME_SECONDS {
                return;
            }
            self.entries.remove(key);
            self.ages.pop_front();
        }
    }
}

impl Entry {
    fn answer(&self, key: &str, path: &str, form: &Form) -> Result<Option<Reply>, Refusal> {
        let misused = |how: String| {
            let message = format!(
                "Keys for idempotent requests can only be used {how}. Try using a key other than '{key}' if you \
                meant to execute a different request."
            );
            Err(Refusal::new(StatusCode::BAD_REQUEST, "idempotency_error", message))
        };
        if self.path != path {
            return misused(format!("for the same endpoint they were first used for ('{path}' vs '{}')", self.path));
        }
        if self.form != *form {
            return misused("with the same parameters they were first used with".to_owned());
        }
        self.reply.clone().map(|reply| Some(reply.replayed())).ok_or_else(|| in_use(key))
    }
}

pub(super) fn in_use(key: &str) -> Refusal {
    let message = format!(
        "There is currently another in-progress request using this Idempotent Key (that probably means you submitted \
        twice, and the other request is still going through): {key}. Please try again later."
    );
    let refusal = Refusal::invalid(message).code("idempotency_key_in_use");
    refusal.status(StatusCode::CONFLICT).retry(true)
}
