//! Emulates Stripe's PaymentIntents API, with refunds and webhooks.
//!
//! [`PaymentServer`] has real state. It accepts what Stripe documents, and refuses parameters and
//! calls that this emulator does not support. No card data is involved: a payment method is one of
//! [Stripe's test payment methods](https://docs.stripe.com/testing), such as `pm_card_visa`,
//! `pm_card_visa_chargeDeclined`, `pm_card_visa_chargeDeclinedInsufficientFunds`,
//! `pm_card_authenticationRequired`, `pm_card_pendingRefund` and `pm_usBankAccount_processing`.
//! The module follows the API from version 2022-11-15 on, in which a payment has a `latest_charge`.
//!
//! # Idempotency keys
//!
//! A POST with a key stores its response, also a 402 or a 500, for [24
//! hours](https://docs.stripe.com/api/idempotent_requests). Refusals before the execution are not
//! stored: a missing API key, a bad parameter, 429, and 409 for a key in use.
//! A payment that does not exist or has the wrong status is refused by the execution.
//!
//! # Differences
//!
//! - A payment keeps the name of its test payment method. Stripe creates a payment method for it.
//! - The search finds a payment when its latest change is older than [`Settings::search_lag`].
//!   Stripe's search [lags too](https://docs.stripe.com/search#data-freshness), but not by a fixed
//!   time.
//! - Events have [`API_VERSION`], whatever version the requests name.
//! - Only the latest charge of a payment is kept, and it has no route of its own.
//!
//! # Steering
//!
//! The clock moves with [`PaymentServer::advance`]. [`PaymentServer::confirm`],
//! [`PaymentServer::decline`], [`PaymentServer::expire`], [`PaymentServer::settle_refunds`] and
//! [`PaymentServer::redeliver`] do what the customer, the bank and Stripe do.
//! [`PaymentServer::hold`] keeps requests in progress. [`PaymentServer::set_mode`] determines when
//! events are delivered. Each delivery can be repeated, delayed and reordered.
//!
//! # Faults
//!
//! These faults prevent the processing:
//! - `throttle` returns 429.
//! - `conflict` returns 409 to a POST with a key, as if another request with the key ran.
//! - `reset` closes the connection.
//! - `timeout_before` never responds.
//! - `error` returns 500. An idempotency key stores this response.
//!
//! Despite these faults the request is processed:
//! - `slow` delays the response.
//! - `timeout` never responds.
//! - `truncate` closes the connection in the middle of the response.
//! - `error_after` returns 500 to a POST. An idempotency key stores this response.
//!
//! `wrong_signature` signs a delivery of an event with an unknown secret. `partial` has no effect.
//!
//! # Bounds
//!
//! At most 20,000 payments, 20,000 refunds and 20,000 live idempotency keys are kept. Further ones
//! are refused with 503. The newest 20,000 events are kept, and at most as many wait for their
//! delivery. A request has at most 64 KiB.

mod books;
mod calls;
mod cards;
mod idempotency;
mod intents;
mod refunds;
mod search;
mod server;
mod steering;
mod webhooks;
mod wire;

#[cfg(test)]
mod tests;

use hyper::StatusCode;

pub use books::Account;
pub use intents::Status;
pub use server::{Hold, PaymentServer, Settings};
pub use steering::SteeringError;
pub use webhooks::{Delivery, Event, Mode, SendDelivery, Webhook, sign};

/// The version of the API in which events are written.
pub const API_VERSION: &str = "2025-03-31.basil";

const MAX_INTENTS: usize = 20_000;
const MAX_REFUNDS: usize = 20_000;
const MAX_KEYS: usize = 20_000;
const MAX_EVENTS: usize = 20_000;
const MAX_REQUEST: usize = 64 << 10;

fn full(what: &str, most: usize) -> wire::Refusal {
    let message = format!("The local payment provider keeps at most {most} {what}. Restart it.");
    wire::Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "api_error", message)
}
