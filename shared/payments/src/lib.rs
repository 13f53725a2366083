//! The provider of card payments: the port [`Provider`], its implementation with the HTTP API of
//! Stripe, and the signatures of webhooks.
//!
//! No data of a card reaches Bodega. The customer's browser gives it to the provider, with the
//! secret of the payment ([`Intent::client_secret`]).
//!
//! # Why each call has a key
//!
//! A response may be lost after its effect. So each call that changes something has the id of the
//! operation as its key, the same in every attempt. The provider answers a repetition with its first
//! response, for 24 hours. After that the metadata of a payment and of a refund tell the key of the
//! call that created it ([`Provider::find`], [`Provider::refunds`]), and the state of the payment
//! tells whether it was captured or cancelled ([`Provider::read`]).
//!
//! An error says what is certain about this call. [`PaymentError::Refused`] and
//! [`PaymentError::NotSent`] changed nothing. After [`PaymentError::Unknown`] nobody knows, and the
//! caller repeats the call with the same key, or reads the payment. What was unknown about an earlier
//! call with the key stays unknown, whatever error a later call gets.

mod account;
pub mod amount;
mod stripe;
pub mod webhook;

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::money::Money;

pub use account::{Account, AccountError, Keys};
pub use amount::AmountError;
pub use stripe::{API_VERSION, Stripe};

/// When the money of an authorised payment is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    AtOnce,
    /// By [`Provider::capture`].
    Later,
}

/// A payment at the provider.
#[derive(Clone, PartialEq, Eq)]
pub struct Intent {
    pub id: String,
    pub status: IntentStatus,
    /// The amount that the payment is for.
    pub amount: Money,
    /// The authorised amount that can still be captured.
    pub capturable: Money,
    pub captured: Money,
    /// The instant after which the authorisation expires, of an authorised and uncaptured payment.
    pub capture_before: Option<Instant>,
    /// The code of the last refusal by the card's issuer, such as `insufficient_funds`.
    pub declined: Option<String>,
    /// The secret with which the customer's browser confirms this payment, and no other.
    pub client_secret: Option<String>,
    /// The order of the payment.
    pub order: Option<OrderId>,
    /// The key of the call that created the payment.
    pub key: Option<String>,
}

impl Intent {
    /// Creates a payment that the caller has stored, for a call that needs its id and its currency.
    #[must_use]
    pub fn stored(id: &str, amount: Money) -> Self {
        let nothing = Money::new(0, amount.currency);
        Self {
            id: id.to_owned(),
            status: IntentStatus::Open,
            amount,
            capturable: nothing,
            captured: nothing,
            capture_before: None,
            declined: None,
            client_secret: None,
            order: None,
            key: None,
        }
    }
}

impl fmt::Debug for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, status, amount, capturable, captured, .. } = self;
        write!(f, "Intent({id}, {status:?}, {amount:?}, capturable {capturable:?}, captured {captured:?})")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntentStatus {
    /// The customer has not given a card yet, or the issuer declined it. The customer may try again.
    Open,
    /// The customer has to do something, such as 3-D Secure.
    ActionRequired,
    /// The provider is waiting for the result.
    Processing,
    Authorised,
    Captured,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refund {
    pub id: String,
    pub status: RefundStatus,
    pub amount: Money,
    /// The key of the call that created the refund.
    pub key: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefundStatus {
    Pending,
    Done,
    /// The money stays at the shop.
    Failed,
}

/// Some payments in the sequence of their creation, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentPage {
    pub items: Vec<Intent>,
    /// The ids of payments with amounts that Bodega cannot express, which others have created.
    pub unreadable: Vec<String>,
    /// The id after which the next page begins, if there is one.
    pub next: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PaymentError {
    /// The provider refuses the call for good, and nothing changed. The text is the provider's code,
    /// or the issuer's if the card was declined.
    #[error("the payment provider refuses: {0}")]
    Refused(String),
    /// The provider takes no calls now, or none of this deployment. Nothing changed.
    #[error("the payment provider took no call: {0}")]
    NotSent(String),
    /// An earlier call had the same key and other parameters. That call may have had its effect, and
    /// a repetition gets this error again.
    #[error("the key was used for another call")]
    KeyReused,
    /// There was no usable response. The call may have had its effect.
    #[error("the outcome at the payment provider is unknown: {0}")]
    Unknown(String),
    /// The provider cannot express the amount, so nothing was sent.
    #[error(transparent)]
    Amount(#[from] AmountError),
}

/// The response of a provider, as it arrives.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, PaymentError>> + Send + 'a>>;

/// Calls of a provider. `key` is the generated id of the caller's operation.
pub trait Provider: Send + Sync + fmt::Debug {
    /// Creates a payment for an order. The customer's browser confirms it.
    fn create<'a>(&'a self, order: &'a OrderId, amount: Money, capture: Capture, key: &'a str) -> Answer<'a, Intent>;

    fn read<'a>(&'a self, intent: &'a str) -> Answer<'a, Intent>;

    /// Pays with the token of a card that somebody else has given to the provider, as the customer's
    /// browser does with a card. A payment can be made once, so a repeated call charges nothing. A
    /// declined card leaves the payment open.
    fn confirm<'a>(&'a self, intent: &'a str, token: &'a str, key: &'a str) -> Answer<'a, Intent>;

    /// Captures a part of the authorised amount, or all of it. The rest is released. The provider
    /// counts in the currency of the payment, so an amount in another currency is not sent.
    fn capture<'a>(&'a self, intent: &'a Intent, amount: Money, key: &'a str) -> Answer<'a, Intent>;

    /// Cancels a payment that is not captured, and releases its amount.
    fn cancel<'a>(&'a self, intent: &'a str, key: &'a str) -> Answer<'a, Intent>;

    fn refund<'a>(&'a self, intent: &'a Intent, amount: Money, key: &'a str) -> Answer<'a, Refund>;

    /// Returns the refunds of a payment, at most [`MAX_REFUNDS`]. The provider also lists amounts
    /// that were authorised and released. These have no key.
    fn refunds<'a>(&'a self, intent: &'a str) -> Answer<'a, Vec<Refund>>;

    /// Finds the payment that the call with this key created. A payment of the last minutes may not
    /// be found yet. If a key was used again after its 24 hours, the newest payment is found.
    fn find<'a>(&'a self, key: &'a str) -> Answer<'a, Option<Intent>>;

    /// Lists the payments that were created from one instant until another, both in whole seconds.
    /// `after` is the `next` of the previous page.
    fn created<'a>(&'a self, from: Instant, until: Instant, after: Option<&'a str>) -> Answer<'a, IntentPage>;
}

/// The maximum number of refunds of a payment that one call reads.
pub const MAX_REFUNDS: usize = 100;
