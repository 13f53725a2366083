//! Who sends a token to a route that needs none.
//!
//! API Gateway looks at no token on a route without an authorizer, and an HTTP API has no authorizer that is optional. So a function that answers
//! everybody, and some of them differently, verifies the token itself, by the rules of the gateway's own
//! (<https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-jwt-authorizer.html>): the key that `kid` names, `iss`, `aud` or without one
//! `client_id`, `exp`, `nbf`, `iat`.
//!
//! # What comes of a token
//! - One that holds: its owner, as if the gateway had handed the claims on.
//! - None, or one that does not hold, because it has expired, was altered, is another issuer's: nobody. The route is for everybody, and the gateway
//!   lets such a token pass as well.
//! - One that may hold while the issuer's keys cannot be had: 503. An answer as to nobody could be wrong.
//!
//! # Why not a library
//! What there is brings a second cryptography (AWS-LC, or the `rsa` crate and its open advisory RUSTSEC-2023-0071) or wants one registered for the process.
//! Of JOSE this takes one corner: three parts, two algorithms, and the key's own type decides which of them it is. The signatures are ring's.
//!
//! No token, and nothing of one, is logged.

mod keys;
mod source;
mod token;

use std::fmt;
use std::time::Duration;

use key_schema::instant::Instant;
use tracing::debug;

use self::keys::Keys;
use self::source::{FetchError, Source};
use self::token::{Claims, Invalid, Token};
use crate::identity::Caller;
use crate::problem::Problem;
use crate::request::Request;

/// By how much the issuer's clock and this one may differ.
const LEEWAY: Duration = Duration::from_secs(10);

/// Who signs the tokens: the issuer that the gateway's authorizer trusts.
///
/// Its keys are asked for when the first token comes, and kept: [`Issuer::MAX_AGE`].
pub struct Issuer {
    name: String,
    audiences: Vec<String>,
    clock: Box<dyn Fn() -> Instant + Send + Sync>,
    keys: Keys,
}

/// Why there is no issuer.
#[derive(Debug, thiserror::Error)]
pub enum IssuerError {
    /// The environment does not say which one.
    #[error(transparent)]
    Environment(#[from] aws::SetupError),
    /// Its keys cannot be asked for there.
    #[error("the issuer is at no https URL: {0}")]
    Url(String),
}

impl Issuer {
    /// For how long its keys are used without asking again. A key that it takes back is refused after that.
    pub const MAX_AGE: Duration = Duration::from_secs(60 * 60);
    /// For how long they are used while it cannot be asked: as long as API Gateway keeps them.
    pub const MAX_STALE: Duration = Duration::from_secs(2 * 60 * 60);
    /// How often it is asked, at most, for a key that is not among them.
    pub const UNKNOWN_KEY_INTERVAL: Duration = Duration::from_secs(30);
    /// How long it is left alone after it did not answer.
    pub const FAILURE_PAUSE: Duration = Duration::from_secs(5);

    /// The issuer `name`, the `iss` of its tokens. Tokens for one of `audiences`, a list separated by commas, are taken.
    /// `endpoint` is the URL of its discovery document if the name does not lead there, as on this machine.
    ///
    /// # Errors
    /// [`IssuerError::Url`] for anything but `https`, or `http` on this machine.
    pub fn new(name: &str, audiences: &str, endpoint: Option<&str>) -> Result<Self, IssuerError> {
        let source = Source::new(name, endpoint.unwrap_or(name))?;
        let audiences = audiences.split(',').map(str::trim).filter(|audience| !audience.is_empty());
        let audiences = audiences.map(str::to_owned).collect();
        Ok(Self { name: name.to_owned(), audiences, clock: Box::new(Instant::now), keys: Keys::new(source) })
    }

    /// From the environment: `JWT_ISSUER`, `JWT_AUDIENCE` (a list separated by commas), and in the local system `JWT_ISSUER_ENDPOINT`.
    ///
    /// # Errors
    /// [`IssuerError`].
    pub fn from_env() -> Result<Self, IssuerError> {
        let endpoint = std::env::var("JWT_ISSUER_ENDPOINT").ok().filter(|endpoint| !endpoint.is_empty());
        Self::new(&aws::variable("JWT_ISSUER")?, &aws::variable("JWT_AUDIENCE")?, endpoint.as_deref())
    }

    /// Tells the time by this clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Who sends the request: whom the gateway says, else whose token it carries.
    ///
    /// # Errors
    /// 503 `unavailable` for a token that may hold while the issuer's keys cannot be had.
    pub async fn caller(&self, request: &Request<'_>) -> Result<Caller, Problem> {
        if let known @ Caller::SignedIn(_) = request.caller() {
            return Ok(known.clone());
        }
        let Some(token) = request.header("authorization").and_then(bearer) else {
            return Ok(Caller::Anonymous);
        };
        match self.verify(token).await {
            Ok(caller) => Ok(caller),
            Err(Refusal::Invalid(reason)) => {
                debug!(%reason, "a token was taken for none");
                Ok(Caller::Anonymous)
            }
            Err(Refusal::Unknown(error)) => Err(Problem::unavailable(error)),
        }
    }

    /// What costs nothing is looked at first: only a token that the issuer may have signed is worth asking it.
    async fn verify(&self, text: &str) -> Result<Caller, Refusal> {
        let token = Token::parse(text)?;
        let claims = Claims::parse(token.payload())?;
        claims.check(&self.name, &self.audiences, (self.clock)(), LEEWAY)?;
        let key = self.keys.find(token.key_id(), &self.clock).await?.ok_or(Invalid::Key)?;
        if !key.has_signed(&token) {
            return Err(Invalid::Signature.into());
        }
        Ok(Caller::from_token(claims.members()))
    }
}

/// The token of an `Authorization` header. The scheme may be left out, as with API Gateway.
fn bearer(header: &str) -> Option<&str> {
    let token = match header.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        Some(_) => return None,
        None => header,
    };
    Some(token).filter(|token| !token.is_empty())
}

/// Why nobody is behind a token.
enum Refusal {
    /// It does not hold.
    Invalid(Invalid),
    /// Nobody can tell.
    Unknown(FetchError),
}

impl From<Invalid> for Refusal {
    fn from(reason: Invalid) -> Self {
        Self::Invalid(reason)
    }
}

impl From<FetchError> for Refusal {
    fn from(error: FetchError) -> Self {
        Self::Unknown(error)
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuer").field("name", &self.name).field("audiences", &self.audiences).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_other_than_bearer_carries_no_token() {
        for (header, token) in [
            ("Bearer a.b.c", Some("a.b.c")),
            ("bEARER  a.b.c ", Some("a.b.c")),
            ("a.b.c", Some("a.b.c")),
            ("Basic c3RhZmY6", None),
            ("Bearer ", None),
            ("", None),
        ] {
            assert_eq!(bearer(header), token, "{header:?}");
        }
    }
}
