//! The caller of a request. A handler gets a [`SignedIn`], a [`Staff`] or an [`Owner`] only after a
//! check of the request's token. So code that takes one of these types cannot be called without the
//! check.
//!
//! The gateway verifies the token. Its JWT authorizer checks signature, issuer, audience and expiry
//! before the function runs, and passes the claims on. Routes without the authorizer have no
//! claims, so their callers are anonymous. A function can verify the token itself with the feature
//! `issuer`.

use key_schema::id::{CustomerId, IdError};
use key_schema::revocation::SignIn;
use key_schema::text::Email;

use crate::json::{Members, Value};
use crate::problem::{Code, Problem};

/// The group of staff in a token.
pub const STAFF_GROUP: &str = "staff";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// The request has no verified token, or its token has no `sub`.
    Anonymous,
    /// The request has a verified token.
    SignedIn(SignedIn),
    /// The request has a verified token, but its `sub` is not a valid id. Routes that need a token
    /// refuse this caller.
    Unnamed(IdError),
}

/// A caller with a verified token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    id: CustomerId,
    staff: bool,
    sign_in: Option<SignIn>,
    email: Option<Email>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staff {
    id: CustomerId,
}

/// A caller who may act for one customer: that customer, or staff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    customer: CustomerId,
    caller: SignedIn,
}

impl Caller {
    /// Reads a token's claims. `sub` is the caller's id. Without it the caller is anonymous.
    /// Cognito's tokens have the groups in `cognito:groups` and the sign-in in `origin_jti`. The
    /// tokens of other issuers have them in `groups` and `sid` (OpenID Connect).
    pub(crate) fn from_claims(claims: &Members<'_>) -> Self {
        let Some(Value::Text(subject)) = claims.get("sub") else {
            return Self::Anonymous;
        };
        let id = match CustomerId::new(subject.as_ref()) {
            Ok(id) if id.is_guest() => return Self::Unnamed(IdError::Guest),
            Ok(id) => id,
            Err(error) => return Self::Unnamed(error),
        };
        let groups = claims.get("cognito:groups").or_else(|| claims.get("groups"));
        let sign_in = match claims.get("sid").or_else(|| claims.get("origin_jti")) {
            Some(Value::Text(claim)) if !claim.is_empty() => Some(SignIn::of(&id, claim)),
            _ => None,
        };
        let staff = groups.is_some_and(names_staff);
        Self::SignedIn(SignedIn { id, staff, sign_in, email: verified_email(claims) })
    }

    /// Returns the caller's id, or an empty text for a caller without an id. Cursors and
    /// idempotency keys are bound to this text.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            Self::Anonymous | Self::Unnamed(_) => "",
            Self::SignedIn(caller) => caller.id.as_str(),
        }
    }

    #[must_use]
    pub fn is_staff(&self) -> bool {
        matches!(self, Self::SignedIn(SignedIn { staff: true, .. }))
    }

    /// Returns the caller, if signed in.
    ///
    /// # Errors
    /// 401 `unauthenticated` without a token. 403 `forbidden` when the token's `sub` is not a valid
    /// id.
    pub fn signed_in(&self) -> Result<SignedIn, Problem> {
        match self {
            Self::Anonymous => Err(Problem::unauthenticated()),
            Self::SignedIn(caller) => Ok(caller.clone()),
            Self::Unnamed(error) => {
                let detail = format!("The token's `sub` is not a valid customer id: it {error}.");
                Err(Problem::new(Code::Forbidden, detail))
            }
        }
    }

    /// Returns the caller as staff.
    ///
    /// # Errors
    /// 401 `unauthenticated` without a token. 403 `forbidden` for a customer.
    pub fn staff(&self) -> Result<Staff, Problem> {
        let SignedIn { id, staff, .. } = self.signed_in()?;
        if staff { Ok(Staff { id }) } else { Err(Problem::forbidden()) }
    }

    /// Returns the caller as an [`Owner`], if the caller may act for this customer.
    ///
    /// # Errors
    /// As [`Caller::signed_in`]. 404 `not_found` for another customer.
    pub fn owner(&self, customer: &CustomerId) -> Result<Owner, Problem> {
        let caller = self.signed_in()?;
        if caller.staff || caller.id == *customer {
            Ok(Owner { customer: customer.clone(), caller })
        } else {
            Err(Problem::new(Code::NotFound, "The resource does not exist, or it belongs to another customer."))
        }
    }
}

impl SignedIn {
    #[must_use]
    pub const fn id(&self) -> &CustomerId {
        &self.id
    }

    #[must_use]
    pub const fn is_staff(&self) -> bool {
        self.staff
    }

    /// Returns the sign-in of the token, if the token names one.
    #[must_use]
    pub const fn sign_in(&self) -> Option<&SignIn> {
        self.sign_in.as_ref()
    }

    /// Returns whether the token contains this address as a verified address: its claim `email` is
    /// the address, and `email_verified` is true. Only the case of ASCII letters may differ. The
    /// addresses are not compared in folded form, because `straße.example` and `strasse.example`
    /// are different domains with the same folded form.
    #[must_use]
    pub fn proves(&self, address: &Email) -> bool {
        self.email.as_ref().is_some_and(|email| email.as_str().eq_ignore_ascii_case(address.as_str()))
    }

    /// Returns the caller as staff.
    ///
    /// # Errors
    /// 403 `forbidden` for a customer.
    pub fn staff(&self) -> Result<Staff, Problem> {
        if self.staff { Ok(Staff { id: self.id.clone() }) } else { Err(Problem::forbidden()) }
    }
}

impl Staff {
    #[must_use]
    pub const fn id(&self) -> &CustomerId {
        &self.id
    }
}

impl Owner {
    /// Returns the customer that the caller acts for.
    #[must_use]
    pub const fn customer(&self) -> &CustomerId {
        &self.customer
    }

    /// Returns the caller: the customer, or staff.
    #[must_use]
    pub const fn caller(&self) -> &SignedIn {
        &self.caller
    }

    #[must_use]
    pub const fn is_staff(&self) -> bool {
        self.caller.staff
    }
}

/// Returns the claim `email` if `email_verified` is true. `email_verified` may be text: the HTTP
/// API's authorizer passes every claim on as text, and Cognito has this claim as text.
fn verified_email(claims: &Members<'_>) -> Option<Email> {
    let verified = match claims.get("email_verified") {
        Some(Value::Boolean(verified)) => *verified,
        Some(Value::Text(text)) => text == "true",
        _ => false,
    };
    match claims.get("email") {
        Some(Value::Text(email)) if verified => email.parse().ok(),
        _ => None,
    }
}

/// Returns whether a group claim contains exactly the name [`STAFF_GROUP`].
///
/// - The HTTP API's authorizer passes an array claim on as text, in brackets and separated by
///   spaces: `[staff other]`. Group names have no white space but may contain punctuation. So
///   inside brackets only white space is a separator, and `[staff,x]` is one group with the name
///   `staff,x`.
/// - Without brackets the text is one group or, as the REST API writes it, a list with commas.
/// - Other gateways keep a JSON array.
fn names_staff(claim: &Value<'_>) -> bool {
    match claim {
        Value::Array(groups) => groups.iter().any(|group| matches!(group, Value::Text(name) if name == STAFF_GROUP)),
        Value::Text(text) => match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(inside) => inside.split_whitespace().any(|name| name == STAFF_GROUP),
            None => text.split(',').any(|name| name.trim() == STAFF_GROUP),
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests;
