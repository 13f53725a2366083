//! Refunds: money returned to the customer's wallet.

use http_api::contract::rules::money;
use http_api::contract::{Body, Schema, route};
use http_api::{Code, Once, Problem, Request, Response, Services};
use key_schema::id::{EntryId, OrderId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::Money;
use key_schema::order::{self, OrderAction, OrderStatus, PlacedOrder};
use key_schema::payment::{Payment, PaymentMethod};
use ordering::payments::{refused, wallet_refused};
use ordering::{location, no_such_order, visible};
use serde::Serialize;
use table::retry_on_conflict;

#[derive(Body)]
struct NewRefund {
    #[field(rule = money(1..=order::MAX_TOTAL, "RefundMoney", ""))]
    amount: Money,
}

#[derive(Debug, Serialize, Schema)]
struct RefundView<'a> {
    /// The id of the wallet's entry.
    id: &'a EntryId,
    order_id: &'a OrderId,
    amount: Money,
    /// The sum of all refunds of this order.
    refunded: Money,
    at: Instant,
}

/// Refund an order, wholly or partly
///
/// Pays the amount into the customer's wallet, even if staff reported the payment. The money of a card
/// goes back to the card instead: refund the payment. The amount is at most the part of the payment that
/// is not refunded yet. An order that was paid from the wallet is refunded automatically when it is
/// cancelled or returned.
#[route(POST "/v1/orders/{id}/refunds", id = "refundOrder", who = staff, task = "fulfilment", path(id: OrderId),
    parameters(IdempotencyKey), body = NewRefund,
    answers(201 = RefundView<'_> "The refund" [Location, ETag, IdempotencyReplayed]),
    refuses(
        not_found,
        illegal_transition = "the order was never paid, or is archived",
        conflict = "the refund would exceed the maximum balance",
        invalid_body = "also for more than the unrefunded amount",
    ))]
pub async fn create(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: OrderId = request.path("id")?;
    let once = Once::required(request)?;
    let NewRefund { amount } = request.body()?;
    retry_on_conflict(async || {
        let now = Instant::now();
        let items = services.table.query(&order::read_for_update(&id)?).await?.items;
        let order = visible(items, now).ok_or_else(no_such_order)?;
        if order.lacks_payment() {
            return Ok(None);
        }
        let payment = match refundable(&order, amount, "/amount") {
            Ok(payment) => payment,
            Err(problem) => return once.replay_or(services, problem).await.map(Some),
        };
        let mut ledger = order.ledger(order.next_step_at(now));
        let entry = ledger.refund_to_wallet(&payment.id, amount.amount).map_err(|error| refused(error, &order))?;
        let refunded = Money::new(order.head.refunded.saturating_add(amount.amount), amount.currency);
        let view = RefundView { id: &entry, order_id: &id, amount, refunded, at: now };
        // A refund never changes, so its version is always 1.
        let answer = Response::created(location(&id), &view).etag(1);
        let claim = once.claim_with(&answer, entry.born(), now)?;
        let refund = order::change_payments(&ledger, &[(OrderAction::Idempotency, claim)])?;
        let Err(refusals) = services.table.transact(&refund).await? else { return Ok(Some(answer)) };
        if refusals.names(OrderAction::Wallet) {
            let problem = wallet_refused(&refusals, &ledger);
            return once.replay_or(services, problem).await.map(Some);
        }
        // If the idempotency key was not refused, the order has changed. The next attempt reads it
        // again.
        if refusals.names(OrderAction::Idempotency) { once.replay(services).await } else { Ok(None) }
    })
    .await
}

/// Returns the payment that a refund of this amount changes. The amount must not exceed the part of
/// the payment that is not refunded yet.
///
/// # Errors
/// 409 `illegal_transition`, or 422 `invalid_body` below `pointer`.
pub fn refundable<'a>(order: &'a PlacedOrder, amount: Money, pointer: &str) -> Result<&'a Stored<Payment>, Problem> {
    if order.head.expires_at.is_some() {
        return Err(Problem::new(Code::IllegalTransition, "The order is archived and cannot change."));
    }
    if order.head.customer_id.is_guest() {
        return Err(Problem::new(Code::IllegalTransition, "A guest has no wallet. Refund the payment instead."));
    }
    if !order.history.iter().any(|step| step.status == OrderStatus::Paid) {
        return Err(Problem::new(Code::IllegalTransition, "The order was never paid."));
    }
    let refuse = |field: &str, detail: String| {
        Err(Problem::new(Code::InvalidBody, "The amount is more than can be refunded.")
            .error(format!("{pointer}/{field}"), detail))
    };
    if amount.currency != order.head.total.currency {
        return refuse("currency", format!("must be {}, the currency of the order", order.head.total.currency));
    }
    // The money of a card goes back to the card.
    let known = order.payments.iter().filter(|payment| payment.method != PaymentMethod::Card);
    let left = known.clone().map(|payment| payment.refundable()).max().unwrap_or_default();
    match known.into_iter().find(|payment| amount.amount <= payment.refundable()) {
        Some(payment) => Ok(payment),
        None => refuse("amount", format!("must be at most {left}, the part of the total that was not refunded")),
    }
}
