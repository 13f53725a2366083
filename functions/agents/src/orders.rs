//! What an agent gets to know of an order it has placed. Each protocol has its own words for it.

use key_schema::agent::Agent;
use key_schema::checkout_session::{Origin, Wish};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::{OrderLine, OrderStatus, OrderStatusEvent, PlacedOrder};
use key_schema::payment::{OperationKind, OperationState};
use serde_json::{Value, json};

use crate::session::line_id;

/// Returns where an order comes from, if this agent has placed it, and not an earlier one with the same id.
pub fn own(order: &PlacedOrder, agent: &Stored<Agent>) -> Option<Origin> {
    let is_own = |origin: &&Origin| origin.agent == agent.id && order.head.placed_at >= agent.meta.created_at;
    order.head.origin.as_ref().filter(is_own).cloned()
}

/// The pieces of a line.
#[derive(Debug, Clone, Copy)]
pub struct Pieces {
    /// Those that the buyer has, or will get.
    pub left: u64,
    /// Those that have left the shop.
    pub sent: u64,
    pub status: &'static str,
}

impl Pieces {
    pub fn of(line: &OrderLine, status: OrderStatus) -> Self {
        let is_gone = matches!(status, OrderStatus::Cancelled | OrderStatus::Returned);
        let is_sent = matches!(status, OrderStatus::Shipped | OrderStatus::Delivered | OrderStatus::Returned);
        let left = if is_gone { 0 } else { line.quantity };
        let sent = if is_sent { line.quantity } else { 0 };
        let status = match (left, sent) {
            (0, _) => "removed",
            (_, 0) => "processing",
            (_, _) => "fulfilled",
        };
        Self { left, sent, status }
    }
}

/// Returns the price of a line's pieces.
pub fn amount(line: &OrderLine) -> i64 {
    line.unit_price.amount.saturating_mul(i64::try_from(line.quantity).unwrap_or(i64::MAX))
}

/// Returns the lines by the agent's names of them, with their quantities.
pub fn quantities(order: &PlacedOrder, wish: &Wish) -> Vec<Value> {
    order.lines.iter().map(|line| quantity(line, line.quantity, wish)).collect()
}

fn quantity(line: &OrderLine, pieces: impl Into<Value>, wish: &Wish) -> Value {
    json!({ "id": line_id(wish, &line.product_id), "quantity": pieces.into() })
}

/// Returns the steps of the shipment with their names.
pub fn steps(order: &PlacedOrder) -> impl Iterator<Item = (&Stored<OrderStatusEvent>, &'static str)> {
    let name = |status| match status {
        OrderStatus::Picking => Some("processing"),
        OrderStatus::Shipped => Some("shipped"),
        OrderStatus::Delivered => Some("delivered"),
        _ => None,
    };
    order.history.iter().filter_map(move |step| Some((step, name(step.status)?)))
}

/// Returns whether the goods are sent. A shop without shipping zones chooses no method, and may send them.
pub fn is_shipped(order: &PlacedOrder) -> bool {
    order.head.charges().method.is_some() || order.history.iter().any(|step| step.status == OrderStatus::Shipped)
}

/// Adds the carrier and the tracking number of a step, if it has them.
pub fn add_tracking(step: &OrderStatusEvent, shown: &mut Value) {
    for (field, value) in [("carrier", &step.carrier), ("tracking_number", &step.tracking)] {
        if let (Some(value), Some(shown)) = (value, shown.as_object_mut()) {
            shown.insert(field.to_owned(), value.as_str().into());
        }
    }
}

/// A change after the purchase: a cancellation, a return or a refund.
#[derive(Debug)]
pub struct Adjustment<'a> {
    pub id: &'a str,
    pub kind: &'static str,
    pub at: Instant,
    pub status: &'static str,
    lines: Vec<(&'a OrderLine, u64)>,
    /// The money that the buyer gets back.
    pub amount: Option<i64>,
}

impl Adjustment<'_> {
    /// Returns the pieces that the buyer does not have any more, as numbers below zero if `negative`.
    pub fn lines(&self, negative: bool, wish: &Wish) -> Vec<Value> {
        let pieces = |quantity: u64| match negative {
            true => json!(i64::try_from(quantity).unwrap_or(i64::MAX).saturating_neg()),
            false => json!(quantity),
        };
        self.lines.iter().map(|(line, quantity_of)| quantity(line, pieces(*quantity_of), wish)).collect()
    }
}

pub fn adjustments(order: &PlacedOrder) -> Vec<Adjustment<'_>> {
    // An order that was cancelled and then paid after all goes on.
    let end = order.history.iter().rfind(|step| step.status == order.head.status);
    let ends = end.into_iter().filter_map(|step| {
        let kind = match step.status {
            OrderStatus::Cancelled => "cancellation",
            OrderStatus::Returned => "return",
            _ => return None,
        };
        let lines = order.lines.iter().map(|line| (&line.data, line.quantity)).collect();
        Some(Adjustment { id: kind, kind, at: step.at, status: "completed", lines, amount: None })
    });
    let refunds = order.operations.iter().filter(|known| known.kind == OperationKind::Refund).map(|operation| {
        let status = match operation.state {
            OperationState::Done => "completed",
            OperationState::Refused => "failed",
            _ => "pending",
        };
        let sold = |number| order.lines.iter().find(|line| line.line == number);
        let lines = operation.refund_lines.iter().filter_map(|line| Some((&sold(line.line)?.data, line.quantity)));
        Adjustment {
            id: operation.id.as_str(),
            kind: "refund",
            at: operation.at,
            status,
            lines: lines.collect(),
            amount: Some(operation.amount),
        }
    });
    ends.chain(refunds).collect()
}
