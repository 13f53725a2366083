//! Who asks for an order: a signed-in caller, or the holder of a guest's order token.

use http_api::{Problem, Request, SignedIn};
use key_schema::order::Order;
use key_schema::order::guest::OrderToken;
use ordering::no_such_order;

/// The header with the token of a guest's order.
const ORDER_TOKEN: &str = "order-token";

#[derive(Debug)]
pub enum Asker {
    Caller(SignedIn),
    Holder(OrderToken),
}

impl Asker {
    /// # Errors
    /// As [`Request::signed_in`].
    pub fn signed_in(request: &Request<'_>) -> Result<Self, Problem> {
        request.signed_in().map(Self::Caller)
    }

    /// # Errors
    /// 404 without a token.
    pub fn with_token(request: &Request<'_>) -> Result<Self, Problem> {
        let token = request.secret(ORDER_TOKEN).ok_or_else(no_such_order)?;
        Ok(Self::Holder(OrderToken::given(token)))
    }

    /// # Errors
    /// 404 for the order of somebody else.
    pub fn check(&self, order: &Order) -> Result<(), Problem> {
        let is_allowed = match self {
            Self::Caller(caller) => caller.is_staff() || *caller.id() == order.customer_id,
            Self::Holder(token) => token.opens(order),
        };
        if is_allowed { Ok(()) } else { Err(no_such_order()) }
    }

    pub const fn is_staff(&self) -> bool {
        match self {
            Self::Caller(caller) => caller.is_staff(),
            Self::Holder(_) => false,
        }
    }

    /// Returns the id of the caller, or `None` for the holder of a token.
    pub fn caller_id(&self) -> Option<&str> {
        match self {
            Self::Caller(caller) => Some(caller.id().as_str()),
            Self::Holder(_) => None,
        }
    }

    /// Returns the id that the order's history and its payments name.
    pub fn id<'a>(&'a self, order: &'a Order) -> &'a str {
        self.caller_id().unwrap_or_else(|| order.customer_id.as_str())
    }
}
