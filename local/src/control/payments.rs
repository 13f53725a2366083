//! `GET /_local/payments` and `POST /_local/payments/{id}/{action}`: the payments at the local
//! provider, and what a customer, a bank or the provider does with them.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use emulators::Page;
use emulators::payments::{Account, SteeringError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Control;
use super::answer::{PAGE, Parameters, Problem, paged};

/// The optional body of `confirm`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Confirm {
    /// A test payment method of Stripe, such as `pm_card_visa`.
    payment_method: Option<String>,
}

/// Lists the payments, the oldest first.
pub(super) async fn list(
    State(control): State<Arc<Control>>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<Value>, Problem> {
    let (accounts, after) = (control.backends.payments.accounts(), parameters.after()?);
    let next = after.saturating_add(u64::try_from(PAGE).unwrap_or(u64::MAX));
    let more = u64::try_from(accounts.len()).is_ok_and(|count| count > next);
    let items = accounts.into_iter().skip(usize::try_from(after).unwrap_or(usize::MAX)).take(PAGE).collect();
    Ok(Json(paged(Page { items, next, more }, shown)))
}

fn shown(account: Account) -> Value {
    let Account { intent, currency, metadata, status, amount, capturable, captured, refunded } = account;
    json!({
        "id": intent, "status": status.name(), "currency": currency, "amount": amount, "capturable": capturable,
        "captured": captured, "refunded": refunded, "metadata": metadata,
    })
}

/// Steers a payment: `confirm` with an optional payment method, `decline`, `expire`, or `webhook`,
/// which sends its events again. Returns the payment afterwards.
pub(super) async fn steer(
    State(control): State<Arc<Control>>,
    Path((id, action)): Path<(String, String)>,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let payments = &control.backends.payments;
    let steered = match action.as_str() {
        "confirm" => {
            let given = if body.is_empty() { Ok(Confirm::default()) } else { serde_json::from_slice(&body) };
            let Confirm { payment_method } = given.map_err(|error| Problem::bad_request(error.to_string()))?;
            payments.confirm(&id, payment_method.as_deref())
        }
        "decline" => payments.decline(&id),
        "expire" => payments.expire(&id),
        "webhook" if payments.redeliver(&id).await == 0 => {
            return Err(Problem::not_here("no endpoint has accepted an event of this payment"));
        }
        "webhook" => Ok(()),
        _ => return Err(Problem::not_found("the actions are confirm, decline, expire and webhook")),
    };
    steered.map_err(|error| match error {
        SteeringError::Unknown(_) => Problem::not_found(error.to_string()),
        SteeringError::Status(_) | SteeringError::NoRefund => Problem::not_here(error.to_string()),
    })?;
    let account = payments.account(&id).ok_or_else(|| Problem::not_found(format!("there is no payment {id}")))?;
    Ok(Json(shown(account)))
}
