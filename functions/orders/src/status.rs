use std::time::Duration;

use http_api::contract::rules::{money, one_of, visible_text};
use http_api::contract::{Body, route};
use http_api::{Code, Invalid, Problem, Request, Response};
use key_schema::id::{OrderId, PaymentId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::Money;
use key_schema::order::{
    self, MAX_TOTAL, OrderAction, OrderStatus, OrderStatusEvent, PlacedOrder, RETURNED_AT_ONCE, Step,
};
use key_schema::payment::{Ledger, OperationKind, Payment, PaymentMethod};
use ordering::payments::{refused, wallet_refused};
use ordering::place::workflow_failed;
use ordering::{no_such_order, visible, with_addresses};
use table::TableError;

use crate::App;
use crate::asker::Asker;
use crate::refund::refundable;
use crate::view::{OrderView, is_final};
use workflows::staging;

/// The longest time that a request spends to return the stock of a large order. The janitor returns
/// the rest.
const PATIENCE: Duration = Duration::from_secs(5);

const TARGETS: &[&str] = &["paid", "picking", "shipped", "delivered", "cancelled", "returned"];

#[derive(Body)]
#[body(
    check(to, carrier) = |to, carrier| only_if_shipped(to, "carrier", carrier),
    check(to, tracking) = |to, tracking| only_if_shipped(to, "tracking", tracking),
)]
pub struct StatusChange {
    #[field(rule = one_of(TARGETS), example = "shipped")]
    to: OrderStatus,
    /// The reason, 1 to 1000 bytes. The customer does not see the notes of staff.
    #[field(rule = visible_text(1..=1000), example = "shelf 7")]
    note: Option<String>,
    /// Only with `shipped`: the carrier, 1 to 128 bytes.
    #[field(rule = visible_text(1..=128), example = "DHL")]
    carrier: Option<String>,
    /// Only with `shipped`: the carrier's tracking number, 1 to 128 bytes.
    #[field(rule = visible_text(1..=128), example = "00340434161094042557")]
    tracking: Option<String>,
    /// Only with `paid`: pays the total from the customer's wallet. If the order's total is zero,
    /// only staff can set the status `paid`.
    #[field(default, example = false)]
    pay_from_wallet: bool,
    /// Staff only, and only with `cancelled` and `returned`: the refund. By default, everything that
    /// was paid by card or from the wallet goes back.
    #[field(rule = money(0..=MAX_TOTAL, "RefundOrNothing", ""), staff, left_out)]
    refund: Option<Money>,
    /// Staff only: words for the customer, 1 to 1000 bytes.
    #[field(rule = visible_text(1..=1000), staff)]
    message: Option<String>,
}

fn only_if_shipped(to: &OrderStatus, field: &str, given: &Option<String>) -> Result<(), Invalid> {
    if given.is_some() && *to != OrderStatus::Shipped {
        return Err(Invalid::new("is allowed only with the status shipped").under(field));
    }
    Ok(())
}

/// Change an order's status
///
/// The steps are pending → paid → picking → shipped → delivered → returned. A pending, paid or
/// picking order can also become cancelled. Cancelling or returning an order returns its pieces to
/// the stock, for a large order within two minutes. The owner may pay from the wallet, and may cancel
/// an order that is not yet in picking. Only staff may make other changes. Only staff may cancel an
/// order that has an invoice or was placed in a store.
#[route(POST "/v1/orders/{id}/status", id = "moveOrder", who = owner, task = "orders", path(id: OrderId),
    parameters(IfMatch), body = StatusChange, answers(200 = OrderView<'_> "The order" [ETag]),
    refuses(
        forbidden = "only staff may make this change",
        illegal_transition = "the order's status does not allow this change",
        insufficient_funds = "the wallet has too little in the order's currency",
        conflict = "a refund would exceed the maximum balance",
    ))]
pub async fn change(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let asker = Asker::signed_in(request)?;
    change_as(app, request, &asker, request.body()?).await
}

impl StatusChange {
    /// Returns the change that a guest wants.
    pub const fn of_guest(to: OrderStatus, note: Option<String>) -> Self {
        Self { to, note, carrier: None, tracking: None, pay_from_wallet: false, refund: None, message: None }
    }
}

pub async fn change_as(
    app: &App,
    request: &Request<'_>,
    asker: &Asker,
    change: StatusChange,
) -> Result<Response, Problem> {
    let services = &app.services;
    let id: OrderId = request.path("id")?;
    let StatusChange { to, note, carrier, tracking, pay_from_wallet, refund, message } = change;
    let misplaced = |field: &str, detail: &'static str| {
        Err(Problem::new(Code::InvalidBody, "A field does not belong to this transition.").error(field, detail))
    };
    if pay_from_wallet && to != OrderStatus::Paid {
        return misplaced("/pay_from_wallet", "is allowed only with the status paid");
    }
    if refund.is_some() && !to.returns_stock() {
        return misplaced("/refund", "is allowed only with the status cancelled or returned");
    }
    let items = services.table.query(&order::read_for_update(&id)?).await?.items;
    let mut order = visible(items, Instant::now()).ok_or_else(no_such_order)?;
    // Another customer's order gets a 404 response, so the ownership is checked before the version.
    asker.check(&order.head)?;
    let version = request.if_match()?;
    if version != order.head.meta.version {
        return Err(Problem::version_mismatch());
    }
    let from = order.head.status;
    let owners = to == OrderStatus::Cancelled || pay_from_wallet;
    if !asker.is_staff() && !owners {
        return Err(Problem::new(Code::Forbidden, "Only staff can make this change."));
    }
    if order.head.expires_at.is_some() {
        return Err(Problem::new(Code::IllegalTransition, "The order is archived and cannot change."));
    }
    if !from.may_become(to) {
        return Err(Problem::new(Code::IllegalTransition, format!("The status cannot change from {from} to {to}.")));
    }
    if !asker.is_staff() && !pay_from_wallet && !from.owner_may(to) {
        return Err(Problem::new(Code::Forbidden, format!("Only staff can change the status from {from} to {to}.")));
    }
    if !asker.is_staff() && to == OrderStatus::Cancelled && is_final(&order.head) {
        return Err(Problem::new(Code::Forbidden, "Only staff can cancel a sale in a store or an invoiced order."));
    }
    // A customer must not confirm an order with a total of 0. The order would hold stock without a
    // payment.
    if !asker.is_staff() && pay_from_wallet && order.head.total.amount == 0 {
        return Err(Problem::new(Code::Forbidden, "There is nothing to pay. Only staff can confirm this order."));
    }
    // This read comes before the write, so that its failure does not hide a change that was made.
    order = with_addresses(services, order).await?;
    let (at, by) = (order.next_step_at(Instant::now()), asker.id(&order.head).to_owned());
    let by = by.as_str();
    let event = OrderStatusEvent {
        message: message.clone(),
        carrier: carrier.clone(),
        tracking: tracking.clone(),
        ..order::history(&order.head, to, at, by, note.clone())
    };
    if to.returns_stock() && order.lacks_payment() {
        return Err(TableError::Contended.into());
    }
    let mut ledger = order.ledger(at);
    match to {
        // There is nothing to pay for a total of 0, so staff confirm the order without a payment.
        OrderStatus::Paid if ledger.due() > 0 => {
            let method = if pay_from_wallet { PaymentMethod::Wallet } else { PaymentMethod::Manual };
            let (id, amount) =
                (PaymentId::generate(at, services.random()?), Money::new(ledger.due(), order.head.total.currency));
            let payment = Payment::received(id, &order.head, method, amount, at, by);
            ledger.add(payment).map_err(|error| refused(error, &order))?;
            ledger.settle();
        }
        OrderStatus::Shipped => ledger.capture_all(),
        OrderStatus::Cancelled | OrderStatus::Returned => give_back(&mut ledger, &order, refund, by)?,
        _ => {}
    }
    let money = ledger.is_changed().then_some(&ledger);
    let (head, lines) = (&order.head, &order.lines);
    // One transaction changes the head, the order's position in the list by status, the history and
    // the customer's copy of the head. It also returns a cancelled or returned order's stock, but a
    // large order needs further transactions. The head's version must equal If-Match.
    let transition =
        order::transition(Step { order: head, lines, to, at, by, note, message, carrier, tracking, money, with: &[] })?;
    let moved = staging::transition(&services.table, lines, transition).await.map_err(workflow_failed)?;
    if let Err(refusals) = moved {
        return Err(match money {
            _ if refusals.names(OrderAction::Order) => Problem::version_mismatch(),
            // The read was not isolated from a refund, so it had the old payment.
            _ if refusals.names(OrderAction::Payment) || refusals.names(OrderAction::Operation) => {
                TableError::Contended.into()
            }
            Some(money) if refusals.names(OrderAction::Wallet) => wallet_refused(&refusals, money),
            _ => Problem::unexpected(&refusals),
        });
    }
    telemetry::crash_point("orders.moved");
    if to.returns_stock()
        && order.lines.len() > RETURNED_AT_ONCE
        && !matches!(tokio::time::timeout(PATIENCE, staging::give_back(&services.table, &id)).await, Ok(Ok(())))
    {
        // The status has changed. The janitor returns the rest of the stock.
        tracing::warn!(order = %id, "some of an order's stock is left to the janitor");
    }
    let (refunded, is_unsettled, after) = (ledger.refunded(), ledger.is_unsettled(), ledger.after());
    (order.payments, order.operations) = after;
    order.head.data.refunded = order.head.refunded.saturating_add(refunded);
    order.head.data.status = to;
    order.head.meta.version += 1;
    order.history.push(Stored::new(event, order.head.meta.born.clone(), at));
    if is_unsettled {
        // The change was made, so a failure here is no failure of the request. The cashier sends the
        // operations.
        match app.settled(&id, None).await {
            Ok(settled) => order = PlacedOrder { addresses: order.addresses, ..settled.order },
            Err(problem) => tracing::warn!(order = %id, ?problem, "the payments are left to the cashier"),
        }
    }
    Ok(Response::ok(&OrderView::new(&order, asker.is_staff())).etag(order.head.meta.version))
}

/// Gives the money of a cancelled or returned order back: all of it to the cards and to the wallet, or
/// the amount that staff gave. Money that staff received is refunded only if staff give an amount.
fn give_back(ledger: &mut Ledger<'_>, order: &PlacedOrder, refund: Option<Money>, by: &str) -> Result<(), Problem> {
    let Some(refund) = refund else {
        ledger.release_all();
        return Ok(());
    };
    if refund.amount > 0 {
        let is_card = |payment: &&Stored<Payment>| {
            payment.method == PaymentMethod::Card
                && payment.amount.currency == refund.currency
                && payment.refundable() >= refund.amount
        };
        match (refundable(order, refund, "/refund"), order.payments.iter().find(is_card)) {
            (Ok(payment), _) => ledger.refund_to_wallet(&payment.id, refund.amount).map(drop),
            (Err(_), Some(card)) => {
                ledger.begin(&card.id, OperationKind::Refund, refund.amount, by, None, Vec::new()).map(drop)
            }
            (Err(problem), None) => return Err(problem),
        }
        .map_err(|error| refused(error, order))?;
    }
    ledger.release_uncaptured();
    Ok(())
}
