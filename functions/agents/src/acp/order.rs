//! Orders as the protocol shows them
//! (<https://github.com/agentic-commerce-protocol/agentic-commerce-protocol/blob/main/rfcs/rfc.orders.md>).

use key_schema::checkout_session::Wish;
use key_schema::id::CheckoutId;
use key_schema::item::Stored;
use key_schema::order::{OrderLine, OrderNumber, OrderStatus, PlacedOrder};
use serde_json::{Value, json};

use super::view::{total, totals};
use crate::orders::{Adjustment, Pieces, add_tracking, adjustments, amount, is_shipped, quantities, steps};
use crate::pages::Pages;
use crate::session::{Totals, line_id};

/// Returns the present state of an order. `link` is the page of the order.
pub fn snapshot(order: &PlacedOrder, checkout: &CheckoutId, wish: &Wish, pages: &Pages, link: &str) -> Value {
    let head = &order.head;
    let adjustments = adjustments(order);
    let currency = head.total.currency.to_string().to_lowercase();
    let mut sums = totals(&Totals::new(&head.charges(), head.total.amount));
    let is_done = |adjustment: &&Adjustment<'_>| adjustment.status == "completed";
    let refunded: i64 = adjustments.iter().filter(is_done).filter_map(|adjustment| adjustment.amount).sum();
    if refunded > 0 {
        sums.push(total("amount_refunded", "Refunded", refunded));
    }
    json!({
        "type": "order",
        "id": head.id,
        "checkout_session_id": checkout,
        "order_number": OrderNumber::of(&head.id).to_string(),
        "permalink_url": link,
        "status": status(head.status),
        "line_items": order.lines.iter().map(|line| line_item(line, head.status, wish, pages)).collect::<Vec<_>>(),
        "fulfillments": [fulfillment(order, wish)],
        "adjustments": adjustments.iter().map(|known| adjusted(known, &currency, wish)).collect::<Vec<_>>(),
        "totals": sums,
    })
}

/// Returns the status of an order that was paid, as section 7.1 of the proposal derives it.
const fn status(status: OrderStatus) -> &'static str {
    match status {
        OrderStatus::Placing | OrderStatus::Pending => "created",
        OrderStatus::Paid => "confirmed",
        OrderStatus::Picking => "processing",
        OrderStatus::Shipped => "shipped",
        OrderStatus::Delivered => "completed",
        OrderStatus::Cancelled | OrderStatus::Returned => "canceled",
    }
}

fn line_item(line: &Stored<OrderLine>, status: OrderStatus, wish: &Wish, pages: &Pages) -> Value {
    let Pieces { left, sent, status } = Pieces::of(line, status);
    let mut shown = json!({
        "id": line_id(wish, &line.product_id),
        "title": line.name,
        "product_id": line.product_id,
        "quantity": { "ordered": line.quantity, "current": left, "fulfilled": sent },
        "unit_price": line.unit_price.amount,
        "subtotal": amount(line),
        "status": status,
    });
    if let (Some(picture), Some(fields)) = (&line.thumbnail, shown.as_object_mut()) {
        fields.insert("image_url".to_owned(), pages.picture(line.product_id.as_str(), picture.as_str()).into());
    }
    shown
}

/// Returns the only shipment.
fn fulfillment(order: &PlacedOrder, wish: &Wish) -> Value {
    let status = match order.head.status {
        OrderStatus::Placing | OrderStatus::Pending | OrderStatus::Paid => "pending",
        OrderStatus::Picking => "processing",
        OrderStatus::Shipped => "shipped",
        OrderStatus::Delivered | OrderStatus::Returned => "delivered",
        OrderStatus::Cancelled => "canceled",
    };
    let events = steps(order).map(|(step, name)| json!({ "id": name, "type": name, "occurred_at": step.at }));
    let mut shown = json!({
        "id": "shipment",
        "type": if is_shipped(order) { "shipping" } else { "digital" },
        "status": status,
        "line_items": quantities(order, wish),
        "events": events.collect::<Vec<_>>(),
    });
    steps(order).for_each(|(step, _)| add_tracking(step, &mut shown));
    shown
}

fn adjusted(adjustment: &Adjustment<'_>, currency: &str, wish: &Wish) -> Value {
    let Adjustment { id, kind, at, status, amount, .. } = adjustment;
    let lines = adjustment.lines(false, wish);
    let mut shown = json!({ "id": id, "type": kind, "occurred_at": at, "status": status, "line_items": lines });
    if let (Some(amount), Some(fields)) = (amount, shown.as_object_mut()) {
        fields.insert("amount".to_owned(), json!(amount));
        fields.insert("currency".to_owned(), json!(currency));
    }
    shown
}
