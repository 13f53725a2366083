//! Identifies the caller of a route that needs no token.
//!
//! On a route without an authorizer, API Gateway ignores tokens, and an HTTP API has no optional
//! authorizer. So if such a route responds differently to some callers, the function verifies the
//! token itself. It follows the rules of the gateway's authorizer
//! (<https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-jwt-authorizer.html>).
//! It verifies the signature with the key that `kid` names. It also checks the claims `iss`, `exp`,
//! `nbf`, `iat`, and `aud` (or `client_id` if there is no `aud`).
//!
//! # Outcomes
//! - A valid token: its owner is the caller, as if the gateway had passed the claims on.
//! - No token, or an invalid one (expired, altered, from another issuer): the caller is anonymous.
//!   The route is public, so an invalid token is no reason for an error.
//! - A token that may be valid, while the issuer's keys are unavailable: 503. A response for an
//!   anonymous caller could be wrong.
//!
//! # Why not a library
//! The existing libraries add a second cryptography library: AWS-LC, or the `rsa` crate with its
//! open advisory RUSTSEC-2023-0071. This module needs only a small part of JOSE: compact tokens of
//! three parts, and two algorithms. `ring` verifies the signatures.
//!
//! This module logs neither tokens nor parts of tokens.

mod keys;
mod source;
mod token;

use std::fmt;
use std::time::Duration;

use key_schema::instant::Instant;
use tracing::info;

use self::keys::Keys;
use self::source::{FetchError, Source};
use self::token::{Claims, Invalid, Token};
use crate::identity::Caller;
use crate::problem::Problem;
use crate::request::Request;

/// The maximum difference between the issuer's clock and the function's clock.
const LEEWAY: Duration = Duration::from_secs(10);

/// The issuer that signs the tokens. The gateway's authorizer trusts the same issuer.
///
/// The function fetches the issuer's keys when it receives the first token that may be valid, and
/// caches them for [`Issuer::MAX_AGE`].
pub struct Issuer {
    name: String,
    audiences: Vec<String>,
    clock: Box<dyn Fn() -> Instant + Send + Sync>,
    keys: Keys,
}

#[derive(Debug, thiserror::Error)]
pub enum IssuerError {
    /// The environment does not name the issuer or the audiences.
    #[error(transparent)]
    Environment(#[from] aws::SetupError),
    /// The issuer's URL is neither `https` nor `http` on this machine.
    #[error("the issuer must have an https URL: {0}")]
    Url(String),
}

impl Issuer {
    /// How long cached keys are used before they are fetched again. So a revoked key is refused
    /// after this time, if the issuer is reachable.
    pub const MAX_AGE: Duration = Duration::from_secs(60 * 60);
    /// How long cached keys are used while the issuer is unreachable. API Gateway caches keys for
    /// the same time.
    pub const MAX_STALE: Duration = Duration::from_secs(2 * 60 * 60);
    /// The minimum interval between two fetches that unknown key ids cause.
    pub const UNKNOWN_KEY_INTERVAL: Duration = Duration::from_secs(30);
    /// The pause after a failed fetch.
    pub const FAILURE_PAUSE: Duration = Duration::from_secs(5);

    /// Creates the issuer `name`, which is the `iss` of its tokens. `audiences` is a list separated
    /// by commas, and a token must be for one of them. `endpoint` is the base URL of the discovery
    /// document if it differs from `name`, as in the local system.
    ///
    /// # Errors
    /// [`IssuerError::Url`] for a URL that is neither `https` nor `http` on this machine.
    pub fn new(name: &str, audiences: &str, endpoint: Option<&str>) -> Result<Self, IssuerError> {
        let source = Source::new(name, endpoint.unwrap_or(name))?;
        let audiences = audiences.split(',').map(str::trim).filter(|audience| !audience.is_empty());
        let audiences = audiences.map(str::to_owned).collect();
        Ok(Self { name: name.to_owned(), audiences, clock: Box::new(Instant::now), keys: Keys::new(source) })
    }

    /// Creates the issuer from the environment: `JWT_ISSUER`, `JWT_AUDIENCE` (a list separated by
    /// commas), and in the local system `JWT_ISSUER_ENDPOINT`.
    pub fn from_env() -> Result<Self, IssuerError> {
        let endpoint = std::env::var("JWT_ISSUER_ENDPOINT").ok().filter(|endpoint| !endpoint.is_empty());
        Self::new(&aws::variable("JWT_ISSUER")?, &aws::variable("JWT_AUDIENCE")?, endpoint.as_deref())
    }

    /// Uses this clock instead of the system's clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Returns the caller that the gateway has verified. If the gateway has verified no caller,
    /// this method verifies the request's token itself.
    ///
    /// # Errors
    /// 503 `unavailable` when the token may be valid, but the issuer's keys are unavailable.
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
                info!(%reason, "a token is invalid, so its caller is anonymous");
                Ok(Caller::Anonymous)
            }
            Err(Refusal::Unknown(error)) => Err(Problem::unavailable(error)),
        }
    }

    /// Returns the caller if the caller is staff, and otherwise an anonymous caller.
    ///
    /// This method verifies a token only if the token names the group of staff. So a customer's
    /// request succeeds even while the issuer is unreachable.
    ///
    /// # Errors
    /// 503 `unavailable` when the token names the group of staff, but the issuer's keys are
    /// unavailable.
    pub async fn staff(&self, request: &Request<'_>) -> Result<Caller, Problem> {
        let only_staff = |caller: Caller| if caller.is_staff() { caller } else { Caller::Anonymous };
        if let known @ Caller::SignedIn(_) = request.caller() {
            return Ok(only_staff(known.clone()));
        }
        let claims_staff = |token: &str| {
            let token = Token::parse(token).ok()?;
            Some(Caller::from_token(Claims::parse(token.payload()).ok()?.members()).is_staff())
        };
        match request.header("authorization").and_then(bearer).and_then(claims_staff) {
            Some(true) => Ok(only_staff(self.caller(request).await?)),
            _ => Ok(Caller::Anonymous),
        }
    }

    /// Verifies a token. The checks of the claims come first, so that only a token that may be
    /// valid causes a fetch of the keys.
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

/// Returns the token of an `Authorization` header. The scheme may be missing, as in API Gateway.
fn bearer(header: &str) -> Option<&str> {
    let token = match header.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        Some(_) => return None,
        None => header,
    };
    Some(token).filter(|token| !token.is_empty())
}

/// A reason why a token does not identify a caller.
enum Refusal {
    Invalid(Invalid),
    /// The token cannot be verified, because the keys are unavailable.
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
