//! Checks a customer's limits: on unpaid orders, and on the orders that the customer places in a
//! day.

use std::cmp::Reverse;
use std::collections::HashMap;

use http_api::{Code, Problem, Reason, Services};
use key_schema::id::{OrderId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::open::{Limits, OpenOrder, OpenOrders};
use key_schema::order::{self, MAX_LINES};

use crate::lines::WantedLine;

/// Returns the entry that an order of these `lines` gets in its customer's list of open orders.
/// `known` is the stored list. Returns [`None`] if the function did not find all lines of another
/// open order. The caller then reads the open orders again.
///
/// # Errors
/// 409 `too_many_pending_orders`, 409 `quantity_limit` with the lines, or 429 `quota_exceeded`.
pub async fn entry(
    services: &Services,
    known: Option<&Stored<OpenOrders>>,
    lines: &[WantedLine],
    limits: Limits,
    now: Instant,
) -> Result<Option<OpenOrder>, Problem> {
    let mut open: Vec<(&OrderId, OpenOrder)> =
        known.iter().flat_map(|known| &known.entries).map(|(id, entry)| (id, *entry)).collect();
    if u64::try_from(open.len()).map_err(Problem::internal)? >= limits.max_pending_orders {
        let detail = format!(
            "The customer has {} unpaid orders, the largest number allowed. Pay or cancel one, or wait until one \
             is cancelled.",
            open.len()
        );
        return Err(Problem::new(Code::TooManyPendingOrders, detail));
    }
    let most = lines.iter().map(|line| line.quantity).max().unwrap_or_default();
    let entry = OpenOrder { most, lines: u64::try_from(lines.len()).map_err(Problem::internal)? };
    let unpaid = open.iter().fold(0_u64, |sum, (_, entry)| sum.saturating_add(entry.lines));
    let max = limits.max_pending_lines;
    if unpaid.saturating_add(entry.lines) > max {
        let detail = format!(
            "The customer's unpaid orders have {unpaid} lines, and this order has {}. Together they can have at \
             most {max}. Pay or cancel an order, or wait until one is cancelled.",
            entry.lines
        );
        return Err(Problem::new(Code::TooManyPendingOrders, detail));
    }
    let max = limits.max_orders_per_day;
    if known.is_some_and(|known| known.placed_on_day(now) >= max) {
        return Err(Problem::daily_limit(max, "orders", now));
    }

    // The sum of the open orders' largest lines is an upper bound for their pieces of each product.
    // If the bound exceeds the limit, the loop reads the lines of these orders. It begins with the
    // orders that have the largest lines.
    let max = limits.max_pending_quantity;
    let mut pieces: HashMap<&ProductId, u64> = lines.iter().map(|line| (&line.product_id, 0)).collect();
    let with = |pieces: &HashMap<&ProductId, u64>, line: &WantedLine, unread: u64| {
        let held = pieces.get(&line.product_id).copied().unwrap_or_default();
        held.saturating_add(unread).saturating_add(line.quantity)
    };
    let mut unread = open.iter().fold(0_u64, |sum, (_, entry)| sum.saturating_add(entry.most));
    open.sort_by_key(|(_, entry)| Reverse(entry.most));
    for (id, entry) in open {
        if lines.iter().all(|line| with(&pieces, line, unread) <= max) {
            break;
        }
        let read = services.table.query(&order::lines(id)?.limit(MAX_LINES)).await?.items;
        if u64::try_from(read.len()) != Ok(entry.lines) {
            return Ok(None);
        }
        for line in read {
            if let Some(held) = pieces.get_mut(&line.product_id) {
                *held = held.saturating_add(line.quantity);
            }
        }
        unread = unread.saturating_sub(entry.most);
    }
    let over: Vec<&WantedLine> = lines.iter().filter(|line| with(&pieces, line, unread) > max).collect();
    if over.is_empty() {
        return Ok(Some(entry));
    }
    let problem = Problem::new(
        Code::QuantityLimit,
        format!("Unpaid orders of a customer can have at most {max} pieces of a product."),
    );
    Err(problem.errors(over.into_iter().map(|line| {
        let held = pieces.get(&line.product_id).copied().unwrap_or_default();
        let left = max.saturating_sub(held);
        let detail = format!("must be at most {left}, because unpaid orders already have {held} pieces");
        line.error("quantity", detail).reason(Reason::QuantityLimit)
    })))
}
