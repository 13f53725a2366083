//! The payments of an order.
//!
//! A request writes an operation before its call of the payment provider, and then runs the workflow
//! that sends it ([`workflows::payments`]). If the provider gives no usable response, or the function
//! ends, the cashier continues.

use ::payments::Intent;
use http_api::contract::rules::{integer, list as list_rule, money, one_of, visible_text};
use http_api::contract::{Body, Schema, route};
use http_api::{Code, Once, Problem, Request, Response};
use key_schema::id::{OperationId, OrderId, PaymentId};
use key_schema::idempotency::StoredResponse;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::Money;
use key_schema::order::{self, MAX_LINES, MAX_QUANTITY, MAX_TOTAL, OrderAction, OrderStatus, PlacedOrder};
use key_schema::payment::{
    Ledger, LedgerError, OperationKind, OperationState, Payment, PaymentMethod, PaymentOperation, PaymentStatus,
    RefundedLine,
};
use ordering::payments::{Begun, begin, refused, unavailable, write};
use ordering::{location, no_such_order, visible};
use serde::Serialize;
use table::retry_on_conflict;
use workflows::payments::Settled;

use crate::App;
use crate::asker::Asker;
use crate::list::NO_CURSOR;
use crate::view::{PaymentView, guest_location};

const METHODS: &[&str] = &["card", "wallet", "manual"];

#[derive(Body)]
pub struct NewPayment {
    /// `card`: by the payment provider. `wallet`: from the customer's wallet. `manual`: staff received
    /// the money and reports it, so only staff may send it.
    #[field(rule = one_of(METHODS), example = "card")]
    pub method: PaymentMethod,
    /// A part of the order's total. The default is the part that no payment has secured yet.
    #[field(rule = money(1..=MAX_TOTAL, "PaymentMoney", ""), left_out)]
    pub amount: Option<Money>,
}

#[derive(Body)]
struct PaymentCapture {
    /// A part of the authorised amount. The rest is released. The default is all of it.
    #[field(rule = money(1..=MAX_TOTAL, "PaymentMoney", ""), example = {"amount": 129, "currency": "USD"})]
    amount: Option<Money>,
}

#[derive(Body)]
struct NewPaymentRefund {
    #[field(rule = money(1..=MAX_TOTAL, "PaymentMoney", ""))]
    amount: Money,
    /// The reason, 1 to 1000 bytes. The customer does not see it.
    #[field(rule = visible_text(1..=1000), example = "damaged in transit")]
    reason: String,
    /// The lines that the refund is for.
    #[field(rule = list_rule::<NewRefundedLine>(0..=MAX_LINES), left_out)]
    lines: Option<Vec<NewRefundedLine>>,
}

#[derive(Debug, Body)]
struct NewRefundedLine {
    #[field(rule = integer(1..=MAX_LINES as u64), example = 1)]
    line: u64,
    #[field(rule = integer(1..=MAX_QUANTITY), example = 1)]
    quantity: u64,
}

/// A payment with the secret for the customer's browser.
#[derive(Serialize, Schema)]
#[schema(name = "CreatedPayment")]
pub struct NewPaymentView<'a> {
    #[serde(flatten)]
    payment: PaymentView<'a>,
    /// The secret with which the customer's browser gives a card to the provider, for this payment
    /// alone. Only for a card payment that the customer can still make.
    #[field(example = "pi_3MtwBwLkdIwHu7ix28a3tqPa_secret_YrKJUKribcBjcG8HVhfZluoGH")]
    #[serde(skip_serializing_if = "Option::is_none")]
    client_secret: Option<&'a str>,
}

/// A payment with its operations.
#[derive(Serialize, Schema)]
#[schema(name = "PaymentWithOperations")]
struct PaymentDetailView<'a> {
    #[serde(flatten)]
    payment: PaymentView<'a>,
    /// The calls of the provider, and the refunds, oldest first.
    #[field(rule = list_rule::<OperationView<'_>>(0..=usize::MAX), example = [])]
    operations: Vec<OperationView<'a>>,
}

#[derive(Serialize, Schema)]
#[schema(name = "PaymentOperation")]
struct OperationView<'a> {
    id: &'a OperationId,
    #[field(rule = one_of(OperationKind::NAMES), example = "refund")]
    kind: OperationKind,
    amount: Money,
    /// `sending` and `unknown`: the result is not known yet, and the call is repeated until it is.
    #[field(rule = one_of(OperationState::NAMES), example = "done")]
    status: OperationState,
    at: Instant,
    /// The provider's code of a refusal.
    #[field(example = "insufficient_funds")]
    #[serde(skip_serializing_if = "Option::is_none")]
    declined: Option<&'a str>,
    /// The reason of a refund. Only staff see it.
    #[field(example = "damaged in transit")]
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// The lines that a refund is for. Absent if there are none.
    #[field(rule = list_rule::<RefundedLineView>(0..=MAX_LINES), left_out)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lines: Vec<RefundedLineView>,
}

#[derive(Serialize, Schema)]
#[schema(name = "RefundedLine")]
struct RefundedLineView {
    #[field(rule = integer(1..=u64::MAX), example = 1)]
    line: u64,
    #[field(rule = integer(1..=u64::MAX), example = 1)]
    quantity: u64,
}

/// A refund of a payment.
#[derive(Serialize, Schema)]
struct PaymentRefundView<'a> {
    #[serde(flatten)]
    operation: OperationView<'a>,
    order_id: &'a OrderId,
    payment_id: &'a PaymentId,
}

#[derive(Serialize, Schema)]
#[schema(name = "PaymentList")]
pub struct PaymentListView<'a> {
    items: Vec<PaymentDetailView<'a>>,
    #[field(rule = NO_CURSOR, example = null)]
    next_cursor: (),
}

impl<'a> PaymentDetailView<'a> {
    fn new(order: &'a PlacedOrder, payment: &'a Payment, for_staff: bool) -> Self {
        let of_payment = order.operations.iter().filter(|operation| operation.payment_id == payment.id);
        let operations = of_payment.map(|operation| OperationView::new(operation, payment, for_staff)).collect();
        Self { payment: PaymentView::new(payment, for_staff), operations }
    }
}

impl<'a> OperationView<'a> {
    fn new(operation: &'a PaymentOperation, payment: &Payment, for_staff: bool) -> Self {
        let PaymentOperation { id, kind, amount, state, at, declined, reason, refund_lines, .. } = operation;
        let line =
            |RefundedLine { line, quantity }: &RefundedLine| RefundedLineView { line: *line, quantity: *quantity };
        Self {
            id,
            kind: *kind,
            amount: payment.money(*amount),
            status: *state,
            at: *at,
            declined: declined.as_deref(),
            reason: reason.as_deref().filter(|_| for_staff),
            lines: refund_lines.iter().map(line).collect(),
        }
    }
}

/// Pay an order, wholly or partly
///
/// A card payment is made in two steps. This request creates it at the payment provider and returns the
/// `client_secret`, with which the customer's browser gives the card to the provider. Bodega never sees
/// the card. When the provider has the money, the payment is `captured`, or `authorised` with the setting
/// `payments.capture` = `at_shipping`. A repeated request for the same amount returns the same payment,
/// with its present state, until it is paid. A payment from the wallet, and one that staff report, is
/// `captured` at once.
///
/// The order becomes `paid` when the authorised and captured amounts of its payments, less refunds, reach
/// its total. Open card payments are then cancelled. If the order lapses or is cancelled before, every
/// amount goes back. But if captured card payments of the whole total arrive after the order has lapsed,
/// and its stock is still there, the order becomes `paid`.
#[route(POST "/v1/orders/{id}/payments", id = "payOrder", who = owner, task = "payments", path(id: OrderId),
    parameters(OptionalIdempotencyKey), body = NewPayment,
    answers(
        201 = NewPaymentView<'_> "The new payment" [Location, IdempotencyReplayed],
        200 = NewPaymentView<'_> "A card payment of this amount that was not made yet",
    ),
    refuses(
        forbidden = "only staff may report money",
        illegal_transition = "the order takes no money, or has too many payments or a payment from the wallet",
        insufficient_funds = "the wallet has too little in the order's currency",
        payment_declined = "the payment provider refuses the amount",
        invalid_body = "also for more than the part of the total that is not secured yet",
    ))]
pub async fn create(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let (asker, once) = (Asker::signed_in(request)?, Once::optional(request)?);
    pay(app, request, &asker, request.body()?, once.as_ref()).await
}

pub async fn pay(
    app: &App,
    request: &Request<'_>,
    asker: &Asker,
    wanted: NewPayment,
    once: Option<&Once>,
) -> Result<Response, Problem> {
    let id: OrderId = request.path("id")?;
    let NewPayment { method, amount } = wanted;
    if method == PaymentMethod::Manual && !asker.is_staff() {
        return Err(Problem::new(Code::Forbidden, "Only staff can report money."));
    }
    // The first read finds an order that the caller may see. The keys are read before anything is
    // written.
    seen(app, asker, &id).await?;
    if method == PaymentMethod::Card {
        app.account.keys().await.map_err(unavailable)?;
    }
    let (known, is_new) =
        retry_on_conflict(async || begin(app, asker.caller_id(), &id, method, amount, once).await).await?;
    let payment = known.id;
    if method != PaymentMethod::Card {
        let order = app.order(&id).await?;
        let payment = of(&order, &payment)?;
        let view = NewPaymentView { payment: PaymentView::new(payment, asker.is_staff()), client_secret: None };
        return Ok(answer(&id, asker, &view, is_new));
    }
    let Settled { order, intents, error } = app.settled(&id, known.intent.as_deref()).await?;
    let payment = of(&order, &payment)?;
    if payment.status == PaymentStatus::Failed {
        return Err(declined(payment.declined.as_deref()));
    }
    let intent = intents.iter().rev().find(|intent| Some(&intent.id) == payment.intent.as_ref());
    let secret = intent.and_then(|intent: &Intent| intent.client_secret.as_deref());
    // Another request may have recorded the payment meanwhile.
    let again = match (secret, &payment.intent) {
        (None, Some(intent)) if payment.status.is_open() => {
            let keys = app.account.keys().await.map_err(unavailable)?;
            keys.provider.read(intent).await.ok()
        }
        _ => None,
    };
    let secret = secret.or(again.as_ref().and_then(|intent| intent.client_secret.as_deref()));
    let client_secret = secret.filter(|_| payment.status.is_open());
    if payment.status.is_open() && client_secret.is_none() {
        let cause = error.map_or_else(|| "no payment".to_owned(), |error| error.to_string());
        return Err(Problem::unavailable(cause));
    }
    let view = NewPaymentView { payment: PaymentView::new(payment, asker.is_staff()), client_secret };
    Ok(answer(&id, asker, &view, is_new))
}

fn answer(id: &OrderId, asker: &Asker, view: &NewPaymentView<'_>, begun: Begun) -> Response {
    let order = match asker {
        Asker::Caller(_) => location(id),
        Asker::Holder(_) => guest_location(id),
    };
    let created = || Response::created(format!("{order}/payments"), view);
    match begun {
        Begun::Now => created(),
        Begun::Before => Response::ok(view),
        Begun::Replayed => created().header("idempotency-replayed", "true"),
    }
}

/// List the payments of an order
///
/// Returns all payments with their operations, oldest first.
#[route(GET "/v1/orders/{id}/payments", id = "listPayments", who = owner, task = "payments", path(id: OrderId),
    answers(200 = PaymentListView<'_> "The payments" [ETag]))]
pub async fn list(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    show(app, request, &Asker::signed_in(request)?).await
}

pub async fn show(app: &App, request: &Request<'_>, asker: &Asker) -> Result<Response, Problem> {
    let id: OrderId = request.path("id")?;
    let order = seen(app, asker, &id).await?;
    let for_staff = asker.is_staff();
    let items = order.payments.iter().map(|payment| PaymentDetailView::new(&order, payment, for_staff)).collect();
    Ok(Response::ok(&PaymentListView { items, next_cursor: () }).etag(order.head.meta.version))
}

/// Capture an authorised payment, wholly or partly
///
/// Takes the money of an authorised card payment. A payment is captured once, and the rest of its amount
/// is released. A repeated request for the same amount returns the payment. If the provider does not
/// answer in time, the operation is `sending` or `unknown` in the response and continues.
#[route(POST "/v1/orders/{id}/payments/{payment}/capture", id = "capturePayment", who = staff, task = "payments",
    path(id: OrderId, payment: PaymentId), body = PaymentCapture,
    answers(200 = PaymentDetailView<'_> "The payment"),
    refuses(
        not_found,
        illegal_transition = "the payment is not authorised",
        amount_exceeds_authorised,
        payment_action_required = "the customer has not made the payment yet",
        payment_declined = "the payment provider refuses",
    ))]
pub async fn capture(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let staff = request.staff()?;
    let (id, payment): (OrderId, PaymentId) = (request.path("id")?, request.path("payment")?);
    let PaymentCapture { amount } = request.body()?;
    let by = staff.id().as_str();
    let operation = retry_on_conflict(async || {
        let order = app.order(&id).await?;
        let known = of(&order, &payment)?;
        let most = order.ledger(Instant::now()).capturable(known);
        let wanted = amount.map_or(most, |amount| amount.amount);
        in_currency(known, amount)?;
        let is_same = |other: &&Stored<PaymentOperation>| {
            other.payment_id == payment
                && other.kind == OperationKind::Capture
                && other.state != OperationState::Refused
                && amount.is_none_or(|amount| other.amount == amount.amount)
        };
        if let Some(same) = order.operations.iter().find(is_same) {
            return Ok(Some(Some(same.id.clone())));
        }
        if known.status == PaymentStatus::Captured && amount.is_none_or(|amount| amount.amount == known.captured) {
            return Ok(Some(None));
        }
        if known.status.is_open() {
            let detail = "The customer has not made the payment yet.";
            return Err(Problem::new(Code::PaymentActionRequired, detail));
        }
        operate(app, &order, by, |ledger| ledger.begin(&payment, OperationKind::Capture, wanted, by, None, Vec::new()))
            .await
            .map(|operation| operation.map(Some))
    })
    .await?;
    let settled = app.settled(&id, None).await?;
    operation.map_or(Ok(()), |operation| refuse_declined(&settled.order, &operation))?;
    Ok(Response::ok(&PaymentDetailView::new(&settled.order, of(&settled.order, &payment)?, true)))
}

/// Cancel a card payment
///
/// Cancels a card payment that is not captured, and releases its amount. The payments of a paid order
/// cannot be cancelled: cancel the order instead. A repeated request returns the payment.
#[route(POST "/v1/orders/{id}/payments/{payment}/cancel", id = "cancelPayment", who = staff, task = "payments",
    path(id: OrderId, payment: PaymentId),
    answers(200 = PaymentDetailView<'_> "The payment"),
    refuses(
        malformed_json, body_too_large, unsupported_content_encoding, invalid_body,
        not_found,
        illegal_transition = "the payment is captured, or the order needs it",
        payment_declined = "the payment provider refuses",
    ))]
pub async fn cancel(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let staff = request.staff()?;
    request.refuse_body()?;
    let (id, payment): (OrderId, PaymentId) = (request.path("id")?, request.path("payment")?);
    let by = staff.id().as_str();
    let operation = retry_on_conflict(async || {
        let order = app.order(&id).await?;
        let known = of(&order, &payment)?;
        let is_same = |other: &&Stored<PaymentOperation>| {
            other.payment_id == payment && other.kind == OperationKind::Cancel && other.state != OperationState::Refused
        };
        if let Some(same) = order.operations.iter().find(is_same) {
            return Ok(Some(same.id.clone()));
        }
        let left = order.ledger(order.head.placed_at).secured().saturating_sub(known.secured());
        let is_needed = order.head.status.is_sale() && order.head.status != OrderStatus::Pending;
        if is_needed && known.secured() > 0 && left < order.head.total.amount {
            let detail = "The order is paid with this payment. Cancel the order instead.";
            return Err(Problem::new(Code::IllegalTransition, detail));
        }
        operate(app, &order, by, |ledger| ledger.begin(&payment, OperationKind::Cancel, 0, by, None, Vec::new())).await
    })
    .await?;
    let settled = app.settled(&id, None).await?;
    refuse_declined(&settled.order, &operation)?;
    Ok(Response::ok(&PaymentDetailView::new(&settled.order, of(&settled.order, &payment)?, true)))
}

/// Refund a payment, wholly or partly
///
/// Returns money the way that it came: to the card, or to the customer's wallet. The refund of a payment
/// that staff reported is only recorded. The order's status does not change. If the provider does not
/// answer in time, the refund is `sending` or `unknown` in the response and continues. A repeated request
/// returns the refund with its present state.
///
/// While authorised payments exceed the total of a paid order, a refund gets 409 `illegal_transition`,
/// because the shipment would capture its amount from the other card. Capture the rest of the total
/// first.
#[route(POST "/v1/orders/{id}/payments/{payment}/refunds", id = "refundPayment", who = staff, task = "payments",
    path(id: OrderId, payment: PaymentId), parameters(IdempotencyKey), body = NewPaymentRefund,
    answers(201 = PaymentRefundView<'_> "The refund" [Location, IdempotencyReplayed]),
    refuses(
        not_found,
        illegal_transition = "the payment is not captured, has too many refunds, or the order is archived",
        amount_exceeds_captured,
        payment_declined = "the payment provider refuses",
        conflict = "the refund would exceed the wallet's maximum balance",
        invalid_body = "also for more pieces than the line has",
    ))]
pub async fn refund(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let staff = request.staff()?;
    let (id, payment): (OrderId, PaymentId) = (request.path("id")?, request.path("payment")?);
    let once = Once::required(request)?;
    let NewPaymentRefund { amount, reason, lines } = request.body()?;
    let by = staff.id().as_str();
    let (operation, is_replay) = retry_on_conflict(async || {
        let order = app.order(&id).await?;
        match app.first(&once).await? {
            Some(StoredResponse::Operation { operation_id, .. }) => return Ok(Some((operation_id, true))),
            Some(_) => return Err(Problem::internal("the idempotency record of a refund has another response")),
            None => {}
        }
        let known = of(&order, &payment)?;
        if order.head.expires_at.is_some() {
            return Err(Problem::new(Code::IllegalTransition, "The order is archived and cannot change."));
        }
        in_currency(known, Some(amount))?;
        let lines = refunded_lines(&order, lines.as_deref().unwrap_or_default())?;
        let at = order.next_step_at(Instant::now());
        let mut ledger = order.ledger(at);
        let operation = ledger
            .begin(&payment, OperationKind::Refund, amount.amount, by, Some(reason.clone()), lines)
            .map_err(|error| refused(error, &order))?;
        let answer = StoredResponse::Operation { order_id: id.clone(), operation_id: operation.clone() };
        let with = [(OrderAction::Idempotency, once.claim(answer, operation.born(), at)?)];
        let is_written = write(app, &order, &ledger, false, by, &with).await?;
        Ok(is_written.then_some((operation, false)))
    })
    .await?;
    let order = app.settled(&id, None).await?.order;
    refuse_declined(&order, &operation)?;
    let found = order.operations.iter().find(|known| known.id == operation);
    let operation = found.ok_or_else(|| Problem::internal("a refund is missing"))?;
    let view = PaymentRefundView {
        operation: OperationView::new(operation, of(&order, &payment)?, true),
        order_id: &id,
        payment_id: &payment,
    };
    let created = Response::created(format!("{}/payments", location(&id)), &view);
    Ok(if is_replay { created.header("idempotency-replayed", "true") } else { created })
}

/// Begins an operation of staff.
async fn operate(
    app: &App,
    order: &PlacedOrder,
    by: &str,
    begin: impl FnOnce(&mut Ledger<'_>) -> Result<OperationId, LedgerError>,
) -> Result<Option<OperationId>, Problem> {
    if order.head.expires_at.is_some() {
        return Err(Problem::new(Code::IllegalTransition, "The order is archived and cannot change."));
    }
    let mut ledger = order.ledger(order.next_step_at(Instant::now()));
    let operation = begin(&mut ledger).map_err(|error| refused(error, order))?;
    Ok(write(app, order, &ledger, false, by, &[]).await?.then_some(operation))
}

/// Returns the lines of a refund. A line has at most the pieces that were not refunded yet.
fn refunded_lines(order: &PlacedOrder, wanted: &[NewRefundedLine]) -> Result<Vec<RefundedLine>, Problem> {
    let earlier = |line: u64| -> u64 {
        let kept = order.operations.iter().filter(|known| known.state != OperationState::Refused);
        let lines = kept.flat_map(|known| &known.refund_lines).filter(|known| known.line == line);
        lines.map(|known| known.quantity).fold(0, u64::saturating_add)
    };
    let mut lines = Vec::<RefundedLine>::new();
    for (position, NewRefundedLine { line, quantity }) in wanted.iter().enumerate() {
        let sold = order.lines.iter().find(|sold| sold.line == *line).map_or(0, |sold| sold.quantity);
        let left = sold.saturating_sub(earlier(*line));
        let detail = match () {
            () if lines.iter().any(|known| known.line == *line) => "is in an earlier entry already".to_owned(),
            () if *quantity > left => format!("has at most {left} pieces that were not refunded"),
            () => {
                lines.push(RefundedLine { line: *line, quantity: *quantity });
                continue;
            }
        };
        return Err(
            Problem::new(Code::InvalidBody, "A line cannot be refunded.").error(format!("/lines/{position}"), detail)
        );
    }
    Ok(lines)
}

fn in_currency(payment: &Payment, amount: Option<Money>) -> Result<(), Problem> {
    let currency = payment.amount.currency;
    if amount.is_some_and(|amount| amount.currency != currency) {
        return Err(Problem::new(Code::InvalidBody, "The amount is in another currency.")
            .error("/amount/currency", format!("must be {currency}, the currency of the payment")));
    }
    Ok(())
}

/// Returns a payment of the order.
fn of<'a>(order: &'a PlacedOrder, id: &PaymentId) -> Result<&'a Payment, Problem> {
    let found = order.payments.iter().find(|payment| payment.id == *id);
    found.map(|payment| &payment.data).ok_or_else(|| Problem::not_found("payment"))
}

fn refuse_declined(order: &PlacedOrder, id: &OperationId) -> Result<(), Problem> {
    let is_refused = |known: &&Stored<PaymentOperation>| known.id == *id && known.state == OperationState::Refused;
    match order.operations.iter().find(is_refused) {
        Some(operation) => Err(declined(operation.declined.as_deref())),
        None => Ok(()),
    }
}

fn declined(code: Option<&str>) -> Problem {
    let detail = format!("The payment provider refuses: {}.", code.unwrap_or("no reason"));
    Problem::new(Code::PaymentDeclined, detail)
}

async fn seen(app: &App, asker: &Asker, id: &OrderId) -> Result<PlacedOrder, Problem> {
    let items = app.services.table.query(&order::get(id)?).await?.items;
    let order = visible(items, Instant::now()).ok_or_else(no_such_order)?;
    asker.check(&order.head)?;
    Ok(order)
}
