//! Revocations: sign-ins whose tokens the Lambda functions refuse, because a session was ended.
//!
//! A token is valid until it expires. The functions therefore look up whether the token's sign-in
//! was ended. The token's claim `sid`, or Cognito's `origin_jti`, identifies the sign-in. All
//! tokens of one sign-in share this claim, including refreshed tokens
//! (<https://docs.aws.amazon.com/cognito/latest/developerguide/token-revocation.html>).
//!
//! # Why no customer can end another customer's sign-in
//! A revocation is stored under a hash of the customer and the claim ([`SignIn`]). A customer can
//! begin and end only their own sessions, so the hash is always made from their own `sub`. The hash
//! also keeps the customer's id and the claim out of the table, so a revocation may outlive an
//! erasure.
//!
//! # Lifetime
//! A refreshed token belongs to the same sign-in. So a revocation lasts as long as a sign-in can be
//! refreshed, and not only as long as one token ([`LIFETIME_SECONDS`]).

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::id::{Born, CustomerId};
use crate::instant::Instant;
use crate::item::{Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey, hash};
use crate::pattern::Consistency;
use crate::request::Get;

/// How long a revocation lasts: 31 days. The user pool of the stack refreshes a sign-in for 30
/// days, and the last token is valid for another hour. A test compares both periods with the
/// template.
pub const LIFETIME_SECONDS: i64 = 31 * 24 * 60 * 60;

/// A customer's sign-in: a hash of the customer's id and the claim that names the sign-in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SignIn(String);

impl SignIn {
    /// Returns the sign-in of this customer that a token's `claim` identifies.
    #[must_use]
    pub fn of(customer: &CustomerId, claim: &str) -> Self {
        Self(hash(customer.as_str(), claim))
    }
}

entity! {
    Revocation = "Revocation" {
        fixed {
            sign_in: SignIn,
            /// The instant from which no token of the sign-in can be valid. It is also the time to
            /// live.
            expires_at: Instant,
        }
        mutable {}
    }
}

impl Revocation {
    /// Returns the revocation of a sign-in that ends at `now`. `born` is the `born` of the session
    /// that is ended.
    #[must_use]
    pub fn new(sign_in: SignIn, born: &Born, now: Instant) -> Stored<Self> {
        let expires_at = now.plus_seconds(LIFETIME_SECONDS);
        Stored::new(Self { sign_in, expires_at }, born.clone(), now)
    }
}

impl Entity for Revocation {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.sign_in)
    }

    fn expires(&self) -> Option<Instant> {
        Some(self.expires_at)
    }
}

fn key(sign_in: &SignIn) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("REVOKED", &[&sign_in.0])?, sk: SortKey::new("REVOKED")? })
}

patterns! {
    GET {
        id: "revocations.get",
        purpose: "Check that the session of a token has not ended",
        request: GetItem,
        key: "PK = REVOKED#<hash of customer and sign-in>, SK = REVOKED",
        returns: "the revocation, if the sign-in has ended",
        consistency: Consistency::Strong("every function must refuse a token within 30 seconds \
            after the end of its session"),
        callers: "any",
    }
}

pub fn get(sign_in: &SignIn) -> Result<Get<Stored<Revocation>>, KeyError> {
    Ok(Get::new(&GET, key(sign_in)?))
}
