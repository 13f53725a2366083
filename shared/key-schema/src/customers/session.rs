//! Sessions: a customer's signed-in devices.
//!
//! A session records the sign-in of the token that began it. A caller who ends the session also
//! revokes that sign-in ([`crate::revocation`]). The expiry of a session revokes nothing. So an
//! expired session stays in the table for as long as its sign-in may be refreshed, and callers can
//! still end it.

use crate::index::GSI1;
use std::collections::BTreeSet;

use item_model::prelude::*;
use serde::Deserialize;
use serde_dynamo::AttributeValue;

use crate::change::{Change, IndexEntry};
use crate::customer;
use crate::encoding::join;
use crate::expression::{Condition, first_alive, number, value};
use crate::id::{CustomerId, SessionId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::quota::{self, Quota};
use crate::request::{BatchGet, BatchWrite, BatchWriteAction, Get, Guarded, Query, Range, Single, Transaction};
use crate::revocation::{self, Revocation, SignIn};

entity! {
    /// A session of a customer. The index of a customer's sessions is ordered by expiry. So the key
    /// condition of a Query is enough to leave out expired sessions, whether or not DynamoDB has
    /// removed them.
    Session = "Session" {
        fixed {
            id: SessionId,
            customer_id: CustomerId,
            /// The instant at which the session expires. Its time to live is later.
            expires_at: Instant,
            /// The sign-in of the token that began the session, if it was the customer's own token
            /// and named one.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            sign_in: Option<SignIn>,
        }
        mutable by SessionChanges {
            /// The customer's name for the device.
            device: String,
        }
    }
}

/// The key of a session among its customer's sessions, ordered by expiry.
#[derive(Debug, Clone, Copy)]
pub struct SessionIndexKey<'a> {
    pub customer_id: &'a CustomerId,
    pub expires_at: Instant,
    pub id: &'a SessionId,
}

impl SessionIndexKey<'_> {
    fn key(&self) -> Result<IndexKey, KeyError> {
        Ok(IndexKey {
            index: GSI1,
            partition: partition(self.customer_id)?,
            sort: SortKey::new(join(&self.expires_at.to_string(), &[self.id]))?,
        })
    }
}

impl IndexEntry for SessionIndexKey<'_> {
    type Entity = Session;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("expires_at", value(self.expires_at)?), ("ttl", number(time_to_live(self.expires_at).as_seconds()))])
    }
}

/// Returns when DynamoDB may remove a session: no token of its sign-in can then be valid.
fn time_to_live(expires_at: Instant) -> Instant {
    expires_at.plus_seconds(revocation::LIFETIME_SECONDS)
}

/// Returns the index partition of a customer's sessions. The names of archived sessions contain the
/// hash of this partition's key.
pub(crate) fn partition(customer: &CustomerId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("SESSIONS", &[customer])
}

fn key(id: &SessionId) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("SESSION", &[id])?, sk: SortKey::new("SESSION")? })
}

impl Entity for Session {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id)
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        Ok(vec![SessionIndexKey { customer_id: &self.customer_id, expires_at: self.expires_at, id: &self.id }.key()?])
    }

    fn expires(&self) -> Option<Instant> {
        Some(time_to_live(self.expires_at))
    }
}

impl Session {
    /// Returns whether the session has not expired.
    #[must_use]
    pub fn is_active(&self, now: Instant) -> bool {
        self.expires_at > now
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SessionSummary {
    pub id: SessionId,
    pub customer_id: CustomerId,
    pub device: String,
    pub created_at: Instant,
    pub expires_at: Instant,
}

view!(SessionSummary of Session);

/// An action of the transaction that begins or ends a session. A refusal names the action whose
/// condition failed. The variant says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionAction {
    /// A session with the new id already exists, or the session to end is another customer's.
    Session,
    /// The customer does not exist.
    Customer,
    /// The customer has used up the day's quota of sessions.
    Quota,
    /// The revocation. Its write has no condition, so it is never refused.
    Revocation,
}

patterns! {
    CREATE {
        id: "sessions.create",
        purpose: "Begin a session",
        request: TransactWriteItems,
        key: "PK = SESSION#<id>, SK = SESSION; PK = CUSTOMER#<customer>, SK = PROFILE (check); PK \
            = QUOTA#<hash of the customer>, SK = DAY#<day>",
        requires: "the session does not exist; the customer exists and has begun fewer sessions on \
            the day than the quota; ADD 1 to the quota's counter",
        callers: "owner",
    }
    GET {
        id: "sessions.get",
        purpose: "Read a session",
        request: GetItem,
        key: "PK = SESSION#<id>, SK = SESSION",
        returns: "the session",
        consistency: Consistency::Strong("the last change to a session decides whether it may be \
            extended"),
        callers: "owner",
    }
    EXTEND {
        id: "sessions.extend",
        purpose: "Extend or rename a session",
        request: UpdateItem,
        key: "PK = SESSION#<id>, SK = SESSION",
        requires: "the session is unchanged, and has not expired",
        callers: "owner",
    }
    END {
        id: "sessions.end",
        purpose: "End a session, and revoke the tokens of its sign-in",
        request: TransactWriteItems,
        key: "PK = SESSION#<id>, SK = SESSION; PK = REVOKED#<hash of customer and sign-in>, SK = \
            REVOKED, for the session's id and its token's sign-in",
        requires: "the session is this customer's or does not exist",
        callers: "owner",
    }
    ACTIVE {
        id: "sessions.active",
        purpose: "List a customer's active sessions",
        request: Query on GSI1,
        key: "GSI1PK = SESSIONS#<customer>, GSI1SK between the millisecond after <now> and the end",
        returns: "active sessions, in the order of expiry",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    OF_CUSTOMER {
        id: "sessions.of-customer",
        purpose: "Find every session of a customer, for an erasure or a copy of the data",
        request: Query on GSI1,
        key: "GSI1PK = SESSIONS#<customer>",
        returns: "active and expired sessions, in the order of expiry",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    READ_ALL {
        id: "sessions.read-all",
        purpose: "Read a customer's sessions with their sign-ins, for an erasure or a copy of the data",
        request: BatchGetItem,
        key: "PK = SESSION#<id>, SK = SESSION, for each id",
        returns: "the sessions, with their sign-ins",
        consistency: Consistency::Strong("a session must not be removed before its sign-in is \
            revoked"),
        callers: "owner",
    }
    REVOKE_ALL {
        id: "sessions.revoke-all",
        purpose: "Revoke the tokens of an erased customer's sessions",
        request: BatchWriteItem,
        key: "PK = REVOKED#<hash of customer and sign-in>, SK = REVOKED, for the id and the \
            sign-in of each session",
        requires: "no condition",
        callers: "owner",
    }
    END_ALL {
        id: "sessions.end-all",
        purpose: "End all sessions of an erased customer",
        request: BatchWriteItem,
        key: "PK = SESSION#<id>, SK = SESSION, for each id",
        requires: "no condition",
        callers: "owner",
    }
}

/// Creates a session of a customer who has a profile and is not being erased. So no session begins
/// after an erasure has begun.
pub fn create(session: &Stored<Session>) -> Result<Transaction<SessionAction>, EncodeError> {
    Ok(Transaction::new(&CREATE)
        .action(SessionAction::Session, Guarded::put(session, Condition::NotExists)?)
        .action(SessionAction::Customer, customer::check(&session.customer_id)?)
        .action(SessionAction::Quota, quota::count(&session.customer_id, Quota::Sessions, session.meta.created_at)?))
}

/// Reads a session, expired or not.
pub fn get(id: &SessionId) -> Result<Get<Stored<Session>>, KeyError> {
    Ok(Get::new(&GET, key(id)?))
}

/// Extends or renames the session that was read, and returns it. The condition is that no other
/// request has changed the session and that it has not expired.
pub fn extend(
    session: &Stored<Session>,
    expires_at: Instant,
    device: &String,
    now: Instant,
) -> Result<Single<Stored<Session>>, EncodeError> {
    let index_key = SessionIndexKey { customer_id: &session.customer_id, expires_at, id: &session.id };
    let change = Change::<Session>::visible(now).device(device)?.enter(&index_key)?;
    let unchanged = Condition::version(session.meta.version)
        .and(Condition::Is("customer_id", value(&session.customer_id)?))
        .and(Condition::AtLeast("expires_at", first_alive(now)));
    Ok(Single::new(&EXTEND, Guarded::update(key(&session.id)?, change, unchanged)))
}

/// Returns the sign-ins to revoke when a session ends. The session's id identifies one of them. The
/// token that began the session belongs to the other sign-in.
#[must_use]
pub fn sign_ins(session: &Session) -> Vec<SignIn> {
    let own = SignIn::of(&session.customer_id, session.id.as_str());
    std::iter::once(own).chain(session.sign_in.clone()).collect()
}

/// Ends a session, expired or not, and revokes its sign-ins. The transaction revokes them even if
/// DynamoDB has removed the session meanwhile.
pub fn end(session: &Stored<Session>, now: Instant) -> Result<Transaction<SessionAction>, EncodeError> {
    let mine = Condition::NotExists.or(Condition::Is("customer_id", value(&session.customer_id)?));
    let mut transaction =
        Transaction::new(&END).action(SessionAction::Session, Guarded::delete(key(&session.id)?, mine));
    for sign_in in sign_ins(session) {
        let revocation = Revocation::new(sign_in, &session.meta.born, now);
        transaction = transaction.action(SessionAction::Revocation, Guarded::overwrite(&revocation)?);
    }
    Ok(transaction)
}

/// Lists a customer's sessions that expire after `now`.
pub fn active(customer: &CustomerId, now: Instant) -> Result<Query<SessionSummary>, KeyError> {
    // The range starts one millisecond after `now`, because a session that expires at `now` has
    // expired.
    let range = Range::Between(now.plus_millis(1).to_string(), format!("{}$", Instant::MAX));
    Ok(Query::new(&ACTIVE, partition(customer)?, range))
}

/// Lists all sessions of a customer that are in the table, expired or not.
pub fn of_customer(customer: &CustomerId) -> Result<Query<SessionSummary>, KeyError> {
    Ok(Query::new(&OF_CUSTOMER, partition(customer)?, Range::All))
}

/// Reads sessions, expired or not, in the given order. The caller needs their sign-ins, which the
/// index does not project.
pub fn read_all<'a>(ids: impl IntoIterator<Item = &'a SessionId>) -> Result<BatchGet<Stored<Session>>, KeyError> {
    Ok(BatchGet::new(&READ_ALL, ids.into_iter().map(key).collect::<Result<_, _>>()?))
}

/// Revokes the sign-ins of sessions. Callers send [`end_all`] afterwards, so that no session is
/// removed before its sign-ins are revoked.
pub fn revoke_all<'a>(
    sessions: impl IntoIterator<Item = &'a Stored<Session>>,
    now: Instant,
) -> Result<BatchWrite, EncodeError> {
    // A batch must not have a key twice, and sessions may share a sign-in.
    let mut seen = BTreeSet::new();
    let mut puts = Vec::new();
    for session in sessions {
        for sign_in in sign_ins(session) {
            if seen.insert(sign_in.clone()) {
                puts.push(BatchWriteAction::Put(Revocation::new(sign_in, &session.meta.born, now).to_item()?));
            }
        }
    }
    Ok(BatchWrite::new(&REVOKE_ALL, puts))
}

/// Ends sessions, expired or not, after [`revoke_all`].
pub fn end_all<'a>(ids: impl IntoIterator<Item = &'a SessionId>) -> Result<BatchWrite, KeyError> {
    let deletes = ids.into_iter().map(|id| key(id).map(BatchWriteAction::Delete)).collect::<Result<_, _>>()?;
    Ok(BatchWrite::new(&END_ALL, deletes))
}
