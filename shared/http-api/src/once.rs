//! Requests that take effect once, however often they come.
//!
//! # Why once
//! The record of a used key is written in the transaction of the effect ([`Once::claim`]), on the condition that the key is free. So the record exists
//! exactly when the effect does, nothing is read beforehand that a first attempt would not need, and of two attempts at the same time one is
//! refused with all that it wanted to do. Whoever is refused looks for the record ([`Once::replay`]) and gives the first answer again.
//!
//! # Before giving up, look
//! An attempt that is refused for another reason must look as well: it may have been the first attempt of this very request that used up the
//! stock or the money. The look comes after whatever the refusal is based on. The other way round, the first attempt could take effect in between,
//! and a request that has succeeded would be answered with a refusal.
//!
//! A key counts for 24 hours ([`idempotency::LIFETIME_SECONDS`]), whether or not DynamoDB has removed its record by then.

use key_schema::id::Born;
use key_schema::idempotency::{self, Answer, IdempotencyRecord, LIFETIME_SECONDS, Scope};
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Stored};
use key_schema::request::Guarded;

use crate::problem::{Code, Problem};
use crate::request::Request;
use crate::response::Response;
use crate::store::Store;

/// The idempotency key of a request, with what tells the request from another.
#[derive(Debug)]
pub struct Once {
    scope: Scope,
    hash: String,
}

impl Once {
    /// From a request that must have a key.
    ///
    /// # Errors
    /// 401 `unauthenticated`; as [`Request::idempotency_key`]; as [`Request::fingerprint`].
    pub fn required(request: &Request<'_>) -> Result<Self, Problem> {
        Self::new(request, request.idempotency_key()?)
    }

    /// From a request that may have a key.
    ///
    /// # Errors
    /// 401 `unauthenticated`; as [`Request::idempotency_key_optional`]; as [`Request::fingerprint`].
    pub fn optional(request: &Request<'_>) -> Result<Option<Self>, Problem> {
        request.idempotency_key_optional()?.map(|key| Self::new(request, key)).transpose()
    }

    /// From a request that may have a key and needs no token. All who have none share their keys, so this is for answers that anybody may see, and
    /// for clients that choose keys which nobody guesses.
    ///
    /// # Errors
    /// As [`Request::idempotency_key_optional`]; as [`Request::fingerprint`].
    pub fn of_anybody(request: &Request<'_>) -> Result<Option<Self>, Problem> {
        let key = request.idempotency_key_optional()?;
        key.map(|key| Self::of(request, request.caller().key().to_owned(), key)).transpose()
    }

    fn new(request: &Request<'_>, key: &str) -> Result<Self, Problem> {
        Self::of(request, request.signed_in()?.id().to_string(), key)
    }

    fn of(request: &Request<'_>, caller: String, key: &str) -> Result<Self, Problem> {
        Ok(Self { scope: Scope { caller, key: key.to_owned() }, hash: request.fingerprint()? })
    }

    /// Whose key, and which: for a handler that reads the record with other items ([`Once::first`]).
    #[must_use]
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// What a record says was answered; none when the key is free.
    ///
    /// # Errors
    /// 422 `idempotency_key_reused` when the record is of another request.
    pub fn first<'r>(
        &self,
        record: Option<&'r IdempotencyRecord>,
        now: Instant,
    ) -> Result<Option<&'r Answer>, Problem> {
        match record.filter(|record| !record.is_expired(now)) {
            Some(record) if record.request_hash == self.hash => Ok(Some(&record.answer)),
            Some(_) => Err(Problem::new(
                Code::IdempotencyKeyReused,
                "This Idempotency-Key was used for another request; take a new one.",
            )),
            None => Ok(None),
        }
    }

    /// The first answer again, byte for byte, from a record that keeps it ([`Once::claim`] with [`Answer::Body`]); none when the key is free.
    ///
    /// # Errors
    /// As [`Once::first`]; those of the table.
    pub async fn replay(&self, store: &Store) -> Result<Option<Response>, Problem> {
        let record = store.table.get(&idempotency::get(&self.scope)?).await?;
        match self.first(record.as_deref(), Instant::now())? {
            Some(Answer::Body { body, .. }) => Response::replay(body).map(Some),
            Some(_) => Err(Problem::internal("the idempotency record holds no body, and nobody makes one from it")),
            None => Ok(None),
        }
    }

    /// The first answer if there is one, else this problem: for a request that must be given up.
    pub async fn replay_or(&self, store: &Store, problem: Problem) -> Result<Response, Problem> {
        self.replay(store).await?.ok_or(problem)
    }

    /// The action that uses the key, for the transaction of the effect.
    ///
    /// # Errors
    /// When the record cannot be stored.
    pub fn claim(&self, answer: Answer, born: Born, at: Instant) -> Result<Guarded, Problem> {
        let record = IdempotencyRecord {
            scope: self.scope.clone(),
            request_hash: self.hash.clone(),
            answer,
            expires_at: at.plus_seconds(LIFETIME_SECONDS),
        };
        Ok(idempotency::claim(&Stored::new(record, born, at), at)?)
    }

    /// [`Once::claim`] with an answer that is kept as it is, with its headers.
    ///
    /// # Errors
    /// When the answer could not be built, or the record cannot be stored.
    pub fn claim_with(&self, response: &Response, born: Born, at: Instant) -> Result<Guarded, Problem> {
        let answer = Answer::Body { status: response.status().as_u16(), body: response.to_record()? };
        self.claim(answer, born, at)
    }

    /// 409 `idempotency_in_progress`: the claim was refused, and yet there is no record that counts.
    #[must_use]
    pub fn in_progress() -> Problem {
        Problem::new(
            Code::IdempotencyInProgress,
            "The first request with this Idempotency-Key is still running, or broke off and will be undone within two minutes.",
        )
    }
}
