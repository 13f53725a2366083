//! Idempotent requests: a repeated request takes effect only once.
//!
//! # Why a request takes effect only once
//! The action of [`Once::claim`] writes the record of the used key, on the condition that the key
//! has no valid record. The transaction that executes the request contains this action. So the
//! record exists if and only if the effect does, and a first attempt needs no additional read. Of
//! two concurrent attempts, DynamoDB refuses one. The refused attempt reads the record
//! ([`Once::replay`]) and returns the response of the other.
//!
//! # Replay before a refusal
//! A handler must also read the record before it refuses a request for another reason, such as too
//! little stock. The first attempt of the same request may have used up the stock.
//!
//! The handler must read the record after the data that caused the refusal. In the other order, the
//! first attempt could take effect between the two reads. The client would then get a refusal
//! although its request succeeded.
//!
//! A record is valid for 24 hours ([`idempotency::LIFETIME_SECONDS`]). After that time the handlers
//! ignore it, even if DynamoDB has not removed it yet.

use key_schema::id::{AgentId, Born, CustomerId, Id};
use key_schema::idempotency::{self, IdempotencyRecord, LIFETIME_SECONDS, Scope, StoredResponse};
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Stored};
use key_schema::request::Guarded;

use crate::problem::{Code, Problem};
use crate::request::Request;
use crate::response::Response;
use crate::services::Services;

/// The idempotency key of a request, with the request's fingerprint.
#[derive(Debug)]
pub struct Once {
    scope: Scope,
    hash: String,
}

impl Once {
    /// Reads the key of a request that must have one.
    ///
    /// # Errors
    /// 401 `unauthenticated`. Otherwise as [`Request::idempotency_key`] and
    /// [`Request::fingerprint`].
    pub fn required(request: &Request<'_>) -> Result<Self, Problem> {
        Self::new(request, request.idempotency_key()?)
    }

    /// Reads the key of a request that may have one.
    ///
    /// # Errors
    /// 401 `unauthenticated`. Otherwise as [`Request::idempotency_key_optional`] and
    /// [`Request::fingerprint`].
    pub fn optional(request: &Request<'_>) -> Result<Option<Self>, Problem> {
        request.idempotency_key_optional()?.map(|key| Self::new(request, key)).transpose()
    }

    /// Reads the key of a request to a route that needs no token. The key may be missing. All
    /// anonymous callers share one set of keys. So the responses must be public, and the clients
    /// must choose unguessable keys.
    pub fn of_anybody(request: &Request<'_>) -> Result<Option<Self>, Problem> {
        let key = request.idempotency_key_optional()?;
        key.map(|key| Self::of(request, request.caller().key().to_owned(), key)).transpose()
    }

    /// Reads the key of a request by a guest. `of` names the guest's cart or order, so that no other
    /// caller has the key. Without an Idempotency-Key, `default` is the key, if there is one.
    pub fn of_guest(request: &Request<'_>, of: &impl Id, default: Option<&str>) -> Result<Option<Self>, Problem> {
        let key = request.idempotency_key_optional()?.or(default);
        // Nobody can sign in with such an id.
        let caller = format!("{}{}", CustomerId::guests(), of.as_str());
        key.map(|key| Self::of(request, caller, key)).transpose()
    }

    /// Reads the key of a request by an agent, which may be missing.
    pub fn of_agent(request: &Request<'_>, agent: &AgentId) -> Result<Option<Self>, Problem> {
        let key = request.idempotency_key_optional()?;
        // Nobody can sign in with such an id.
        let caller = CustomerId::guests_of(agent).to_string();
        key.map(|key| Self::of(request, caller, key)).transpose()
    }

    /// Reads the key of a request by an agent whose protocol wants one for each endpoint, and compares the
    /// bodies by their meaning.
    pub fn of_agents_endpoint(request: &Request<'_>, agent: &AgentId) -> Result<Self, Problem> {
        let (key, (_, path)) = (request.idempotency_key()?, request.target());
        let caller = format!("{} {path}", CustomerId::guests_of(agent));
        Ok(Self { scope: Scope { caller, key: key.to_owned() }, hash: request.fingerprint_of_meaning()? })
    }

    fn new(request: &Request<'_>, key: &str) -> Result<Self, Problem> {
        Self::of(request, request.signed_in()?.id().to_string(), key)
    }

    fn of(request: &Request<'_>, caller: String, key: &str) -> Result<Self, Problem> {
        Ok(Self { scope: Scope { caller, key: key.to_owned() }, hash: request.fingerprint()? })
    }

    /// Returns the caller and the key, for a handler that reads the record together with other
    /// items ([`Once::first`]).
    #[must_use]
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Returns the stored response of a record, or `None` when the key has no valid record.
    ///
    /// # Errors
    /// 422 `idempotency_key_reused` when the record belongs to another request.
    pub fn first<'r>(
        &self,
        record: Option<&'r IdempotencyRecord>,
        now: Instant,
    ) -> Result<Option<&'r StoredResponse>, Problem> {
        match record.filter(|record| !record.is_expired(now)) {
            Some(record) if record.request_hash == self.hash => Ok(Some(&record.answer)),
            Some(_) => Err(Problem::new(
                Code::IdempotencyKeyReused,
                "This Idempotency-Key was used for another request. Send a new one.",
            )),
            None => Ok(None),
        }
    }

    /// Returns the first response again, byte for byte, from a record that stores it
    /// ([`Once::claim`] with [`StoredResponse::Body`]). Returns `None` when the key has no valid
    /// record.
    pub async fn replay(&self, services: &Services) -> Result<Option<Response>, Problem> {
        let record = services.table.get(&idempotency::get(&self.scope)?).await?;
        match self.first(record.as_deref(), Instant::now())? {
            Some(StoredResponse::Body { body, .. }) => Response::replay(body).map(Some),
            Some(_) => Err(Problem::internal("the idempotency record holds no body to replay")),
            None => Ok(None),
        }
    }

    /// Returns the first response if there is one, otherwise `problem`. Use it for a request that
    /// would be refused.
    pub async fn replay_or(&self, services: &Services, problem: Problem) -> Result<Response, Problem> {
        self.replay(services).await?.ok_or(problem)
    }

    /// Returns the action that claims the key, for the transaction that executes the request.
    pub fn claim(&self, answer: StoredResponse, born: Born, at: Instant) -> Result<Guarded, Problem> {
        Ok(idempotency::claim(&self.record(answer, born, at), at)?)
    }

    /// Stores the response to a request that has changed nothing, for protocols that want it. Returns
    /// false if the key is in use.
    pub async fn keep(&self, services: &Services, answer: StoredResponse, at: Instant) -> Result<bool, Problem> {
        let record = self.record(answer, services.born(at)?, at);
        Ok(services.table.write(&idempotency::keep(&record, at)?).await?.is_ok())
    }

    fn record(&self, answer: StoredResponse, born: Born, at: Instant) -> Stored<IdempotencyRecord> {
        let record = IdempotencyRecord {
            scope: self.scope.clone(),
            request_hash: self.hash.clone(),
            answer,
            expires_at: at.plus_seconds(LIFETIME_SECONDS),
        };
        Stored::new(record, born, at)
    }

    /// Returns the action of [`Once::claim`] for a response that is stored unchanged, with its
    /// headers.
    pub fn claim_with(&self, response: &Response, born: Born, at: Instant) -> Result<Guarded, Problem> {
        self.claim(response.stored()?, born, at)
    }

    /// Returns 409 `idempotency_in_progress`, for a claim that the table refused although the key
    /// has no valid record.
    #[must_use]
    pub fn in_progress() -> Problem {
        Problem::new(
            Code::IdempotencyInProgress,
            "The first request with this Idempotency-Key is still running. If it failed, it is undone within two \
            minutes.",
        )
    }
}
