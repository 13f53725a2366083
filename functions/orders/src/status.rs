use std::time::Duration;

use http_api::fields::{boolean, money, one_of, visible_text};
use http_api::{Code, Problem, Request, Response, Services};
use key_schema::id::{EntryId, OrderId, PaymentId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::Money;
use key_schema::order::{
    self, MAX_TOTAL, Movement, OrderAction, OrderStatus, OrderStatusEvent, PlacedOrder, RETURNED_AT_ONCE, Step,
};
use key_schema::payment::{Payment, PaymentMethod};
use table::TableError;

use crate::refund::{refundable, wallet_refused};
use crate::view::{View, no_such_order, visible, with_addresses};
use workflows::staging;

/// The longest time that a request spends to return the stock of a large order. The janitor returns
/// the rest.
const PATIENCE: Duration = Duration::from_secs(5);

const TARGETS: &[&str] = &["paid", "picking", "shipped", "delivered", "cancelled", "returned"];

/// POST orders/{id}/status: changes an order's status. One transaction changes the head, the
/// order's position in the list by status, the history and the customer's copy of the head. It also
/// returns a cancelled or returned order's stock, but a large order needs further transactions. The
/// head's version must equal If-Match.
pub async fn change(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let id: OrderId = request.path("id")?;
    let mut body = request.object()?;
    let to = body.required("to", one_of::<OrderStatus>(TARGETS));
    let note = body.optional("note", visible_text(1..=1000));
    let mut carrier = body.optional("carrier", visible_text(1..=128));
    let mut tracking = body.optional("tracking", visible_text(1..=128));
    if to.is_some_and(|to| to != OrderStatus::Shipped) {
        if matches!(carrier, Some(Some(_))) {
            carrier = body.refuse("carrier", "is allowed only with the status shipped");
        }
        if matches!(tracking, Some(Some(_))) {
            tracking = body.refuse("tracking", "is allowed only with the status shipped");
        }
    }
    let pay_from_wallet = body.optional("pay_from_wallet", boolean);
    // Only staff may send `refund` and `message`. For any other caller they are unknown fields.
    let (refund, message) = if caller.is_staff() {
        (body.optional("refund", money(0..=MAX_TOTAL)), body.optional("message", visible_text(1..=1000)))
    } else {
        (Some(None), Some(None))
    };
    let (to, note, message, carrier, tracking, pay_from_wallet, refund) =
        body.finish((to, note, message, carrier, tracking, pay_from_wallet, refund))?;
    let pay_from_wallet = pay_from_wallet == Some(true);
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
    request.owner(&order.head.customer_id).map_err(|_| no_such_order())?;
    let version = request.if_match()?;
    if version != order.head.meta.version {
        return Err(Problem::version_mismatch());
    }
    let from = order.head.status;
    let owners = to == OrderStatus::Cancelled || pay_from_wallet;
    if !caller.is_staff() && !owners {
        return Err(Problem::new(Code::Forbidden, "Only staff can make this change."));
    }
    if order.head.expires_at.is_some() {
        return Err(Problem::new(Code::IllegalTransition, "The order is archived and cannot change."));
    }
    if !from.may_become(to) {
        return Err(Problem::new(Code::IllegalTransition, format!("The status cannot change from {from} to {to}.")));
    }
    if !caller.is_staff() && !pay_from_wallet && !from.owner_may(to) {
        return Err(Problem::new(Code::Forbidden, format!("Only staff can change the status from {from} to {to}.")));
    }
    // The customer has taken the goods of a sale in a store, and an invoice may be in the
    // customer's books.
    let is_final = order.head.store_id.is_some() || order.head.invoice_number.is_some();
    if !caller.is_staff() && to == OrderStatus::Cancelled && is_final {
        return Err(Problem::new(Code::Forbidden, "Only staff can cancel a sale in a store or an invoiced order."));
    }
    // A customer must not confirm an order with a total of 0. The order would hold stock without a
    // payment.
    if !caller.is_staff() && pay_from_wallet && order.head.total.amount == 0 {
        return Err(Problem::new(Code::Forbidden, "There is nothing to pay. Only staff can confirm this order."));
    }
    // This read comes before the write, so that its failure does not hide a change that was made.
    order = with_addresses(services, order).await?;
    let (at, by) = (order.next_step_at(Instant::now()), caller.id().as_str());
    let event = OrderStatusEvent {
        message: message.clone(),
        carrier: carrier.clone(),
        tracking: tracking.clone(),
        ..order::history(&order.head, to, at, by, note.clone())
    };
    if to.returns_stock() && order.lacks_payment() {
        return Err(TableError::Contended.into());
    }
    let random = services.random()?;
    let entry = EntryId::generate(at, random);
    let total = order.head.total;
    // There is nothing to pay for a total of 0, so staff confirm the order without a payment.
    let payment = (to == OrderStatus::Paid && total.amount > 0).then(|| Payment {
        id: PaymentId::generate(at, random),
        order_id: id.clone(),
        customer_id: order.head.customer_id.clone(),
        method: if pay_from_wallet { PaymentMethod::Wallet } else { PaymentMethod::Manual },
        amount: total,
        at,
        by: by.to_owned(),
        expires_at: None,
        refunded: 0,
    });
    let refund = refunded(&order, to, refund)?;
    let refunded = refund.as_ref().map(|(payment, amount)| Movement::Refund(&entry, payment, *amount));
    let money = payment.as_ref().map(Movement::Payment).or(refunded);
    let (head, lines) = (&order.head, &order.lines);
    let transition =
        order::transition(Step { order: head, lines, to, at, by, note, message, carrier, tracking, money })?;
    if let Err(refusals) = staging::transition(&services.table, transition).await? {
        return Err(match money {
            _ if refusals.names(OrderAction::Order) => Problem::version_mismatch(),
            // The read was not isolated from a refund, so it had the old payment.
            _ if refusals.names(OrderAction::Payment) => TableError::Contended.into(),
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
    if let Some((payment, amount)) = refund {
        order.head.data.refunded = order.head.refunded.saturating_add(amount);
        for refunded in order.payments.iter_mut().filter(|known| known.id == payment.id) {
            refunded.data.refunded = payment.refunded.saturating_add(amount);
        }
    }
    if let Some(payment) = payment {
        let born = payment.id.born();
        order.payments.push(Stored::new(payment, born, at));
    }
    order.head.data.status = to;
    order.head.meta.version += 1;
    order.history.push(Stored::new(event, order.head.meta.born.clone(), at));
    Ok(Response::ok(&View::new(&order, caller.is_staff())).etag(order.head.meta.version))
}

/// Returns the payment that a step refunds, and the amount. If the order was paid from the wallet,
/// its cancellation or return refunds the part that was not refunded yet. Staff may give another
/// amount. Other payments are refunded only if staff give an amount.
fn refunded(
    order: &PlacedOrder,
    to: OrderStatus,
    refund: Option<Money>,
) -> Result<Option<(Stored<Payment>, i64)>, Problem> {
    if !to.returns_stock() {
        return Ok(None);
    }
    if let Some(refund) = refund {
        let payment = if refund.amount > 0 { Some(refundable(order, refund, "/refund")?) } else { None };
        return Ok(payment.map(|payment| (payment.clone(), refund.amount)));
    }
    let due = |payment: &&Stored<Payment>| payment.method == PaymentMethod::Wallet && payment.refundable() > 0;
    Ok(order.payments.iter().find(due).map(|payment| (payment.clone(), payment.refundable())))
}
