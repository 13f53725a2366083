//! Orders and the items that belong to them: the customer's copy, the claims of number and
//! reference, the invoice and the list of open orders. The sales that the stream's consumer derives belong to
//! them, too.

use key_schema::customer::{self, Customer};
use key_schema::entity::AnyEntity;
use key_schema::invoice::{self, Invoice};
use key_schema::item::{Entity as _, Stored};
use key_schema::key::{Key, KeyError};
use key_schema::order::addresses::Destination;
use key_schema::order::open::{self, OpenOrders};
use key_schema::order::{self, CustomerOrder, NumberClaim, Order, OrderLine, OrderStatus, ReferenceClaim};
use key_schema::region::{SaleRegion, store_of};
use key_schema::sales::{self, Sale};

use super::{Problem, Seen, Skip};
use crate::error::OpsError;
use crate::verify::report::Kind;

/// The time between the last due date of a customer's open orders and the expiry of the item that
/// lists them.
const KEPT_SECONDS: i64 = 7 * 24 * 60 * 60;
/// The attributes of the customer's copy that are copied from the order.
const COPIED: [&str; 6] = ["destination", "line_count", "placed_at", "reference", "status", "total"];

pub(super) fn needs(entity: &AnyEntity, keys: &mut Vec<Key>) -> Result<(), OpsError> {
    match entity {
        AnyEntity::Order(item) => {
            keys.extend([CustomerOrder::of(item).key()?, customer::get(&item.customer_id)?.key().clone()]);
            keys.extend([region_of(item).key()?, open::get(&item.customer_id)?.key().clone()]);
            keys.push(NumberClaim::of(&item.id).key()?);
            keys.extend(ReferenceClaim::of(item).map(|claim| claim.key()).transpose()?);
            keys.extend(item.invoice_number.map(invoice_key).transpose()?);
        }
        AnyEntity::CustomerOrder(item) => keys.push(order::head(&item.id)?.key().clone()),
        AnyEntity::OrderAddresses(item) => keys.push(order::head(&item.order_id)?.key().clone()),
        AnyEntity::OrderLine(item) => keys.extend([order::head(&item.order_id)?.key().clone(), sale_of(item).key()?]),
        AnyEntity::ReferenceClaim(item) => keys.push(order::head(&item.order_id)?.key().clone()),
        AnyEntity::Invoice(item) => keys.push(order::head(&item.order_id)?.key().clone()),
        AnyEntity::OpenOrders(item) => {
            for id in item.entries.keys() {
                keys.push(order::head(id)?.key().clone());
            }
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn check(entity: &AnyEntity, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    match entity {
        AnyEntity::Order(item) if !item.is_expired(seen.now) => {
            let mut problems = pending(item, seen)?;
            if item.status != OrderStatus::Placing {
                problems.extend(copy(item, seen)?);
                problems.extend(claim(item, seen)?);
                problems.extend(counted(item, seen)?);
            }
            Ok(problems)
        }
        AnyEntity::CustomerOrder(item) if !item.is_expired(seen.now) => {
            let head = seen.find::<Order>(order::head(&item.id)?.key())?;
            Ok(match head {
                Some(head) if head.customer_id == item.customer_id => Vec::new(),
                _ => vec![Problem::new(Kind::Orphan, "the order of the copy is missing")],
            })
        }
        AnyEntity::OrderAddresses(item) if !item.is_expired(seen.now) => {
            let destination = item.shipping_address.as_ref().map(Destination::from);
            let head = seen.find::<Order>(order::head(&item.order_id)?.key())?;
            Ok(match head {
                Some(head) if head.customer_id == item.customer_id && head.destination == destination => Vec::new(),
                Some(_) => vec![Problem::new(Kind::Copy, "the order has another country or city than its addresses")],
                None => vec![Problem::new(Kind::Orphan, "the order of the addresses is missing")],
            })
        }
        AnyEntity::OrderLine(item) if !item.is_expired(seen.now) => sold(item, seen),
        // The claim outlives its order, because a reference is unique for ever.
        AnyEntity::ReferenceClaim(item) => {
            let head = seen.find::<Order>(order::head(&item.order_id)?.key())?;
            let is_wrong = head.is_some_and(|head| head.reference.as_ref() != Some(&item.reference));
            Ok(is_wrong.then(|| Problem::new(Kind::Claim, "the order has another reference")).into_iter().collect())
        }
        AnyEntity::Invoice(item) => {
            let head = seen.find::<Order>(order::head(&item.order_id)?.key())?;
            let is_wrong = head.is_some_and(|head| {
                head.invoice_number != Some(item.number)
                    || head.customer_id != item.customer_id
                    || head.total != item.total
            });
            let problem = || Problem::new(Kind::Link, "the order has another invoice, customer or total");
            Ok(is_wrong.then(problem).into_iter().collect())
        }
        AnyEntity::OpenOrders(item) if !item.is_expired(seen.now) => entries(item, seen),
        _ => Ok(Vec::new()),
    }
}

fn invoice_key(number: u64) -> Result<Key, KeyError> {
    Ok(invoice::get(number)?.key().clone())
}

/// Returns a row with the key of the row that the stream's consumer derives from a line. The
/// attributes that come from the order have placeholders.
fn sale_of(line: &OrderLine) -> Sale {
    Sale {
        order_id: line.order_id.clone(),
        line: line.line,
        product_id: line.product_id.clone(),
        placed_at: key_schema::instant::Instant::MAX,
        quantity: line.quantity,
        total: line.total,
        store_id: None,
        customer_id: key_schema::id::CustomerId::generate(key_schema::instant::Instant::MAX, [0; 10]),
        reversed: false,
        ranked_at: None,
    }
}

fn region_of(order: &Order) -> SaleRegion {
    SaleRegion::of(order, None, store_of(order))
}

fn copy(item: &Stored<Order>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let right = CustomerOrder::of(item);
    let key = right.key()?;
    let Some(copy) = seen.find::<CustomerOrder>(&key)? else {
        let was_sent = matches!(item.status, OrderStatus::Shipped | OrderStatus::Delivered | OrderStatus::Returned);
        let has_profile = seen.find::<Customer>(customer::get(&item.customer_id)?.key())?.is_some();
        // A customer without a profile needs no copy. DynamoDB may remove an expired copy before
        // the order.
        if !(has_profile || item.customer_id.is_guest()) || item.expires_at.is_some() {
            return Ok(Vec::new());
        }
        let right = Stored { meta: item.meta.clone(), data: right };
        let problem = Problem::of(&right, Kind::Copy, "the customer's copy of the order is missing");
        // The copy of a shipped order also has the carrier and the instant, which the head lacks. The
        // step in the history has both, but this check does not read it.
        return Ok(vec![if was_sent { problem } else { problem.repaired_by(seen.put(&right)?) }]);
    };
    let right = CustomerOrder {
        shipped_at: copy.shipped_at,
        carrier: copy.carrier.clone(),
        tracking: copy.tracking.clone(),
        expires_at: copy.expires_at,
        ..right
    };
    if right == copy.data {
        return Ok(Vec::new());
    }
    let problem = Problem::of(&copy, Kind::Copy, "the customer's copy differs from the order");
    let right = Stored { meta: copy.meta.clone(), data: right };
    Ok(vec![problem.repaired_by(seen.correct(&right, COPIED, true)?)])
}

/// Checks that the order has the claims of its number and its reference, and its invoice.
fn claim(item: &Stored<Order>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let mut problems = Vec::new();
    problems.extend(seen.claimed(&item.meta, NumberClaim::of(&item.id), "order", "number")?);
    if let Some(claim) = ReferenceClaim::of(item) {
        problems.extend(seen.claimed(&item.meta, claim, "order", "reference")?);
    }
    if let Some(number) = item.invoice_number
        && seen.find::<Invoice>(&invoice_key(number)?)?.is_none_or(|invoice| invoice.order_id != item.id)
    {
        problems.push(Problem::new(Kind::Link, "the invoice is missing or belongs to another order"));
    }
    Ok(problems)
}

/// Checks that the stream's consumer has counted the order in the sales of its place.
fn counted(item: &Stored<Order>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let place = seen.find::<SaleRegion>(&region_of(item).key()?)?;
    let is_right = |place: &SaleRegion| place.total == item.total && place.reversed != item.status.is_sale();
    if place.is_some_and(|place| is_right(&place)) {
        return Ok(Vec::new());
    }
    Ok(vec![Problem::new(Kind::Behind, "the sales of the order are not derived").lagging().derived(&item.id)])
}

/// Checks that the stream's consumer has derived the row of a line.
fn sold(item: &Stored<OrderLine>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let Some(head) = seen.find::<Order>(order::head(&item.order_id)?.key())? else { return Ok(Vec::new()) };
    if head.status == OrderStatus::Placing {
        return Ok(Vec::new());
    }
    let right = sales::derive(&head, item);
    let key = right.key()?;
    let problem = || Problem::at(&key, Kind::Behind, "the sale of a line differs from the line").lagging();
    let Some(row) = seen.find::<Sale>(&key)? else { return Ok(vec![problem().derived(&item.order_id)]) };
    let values = |sale: &Sale| (sale.product_id.clone(), sale.quantity, sale.total, sale.customer_id.clone());
    if values(&row) == values(&right) {
        // `counted` checks whether the sales of the order are reversed.
        return Ok(Vec::new());
    }
    let right = Stored {
        meta: row.meta.clone(),
        data: Sale { reversed: row.reversed, ranked_at: row.ranked_at, ..right.data },
    };
    let names = ["product_id", "quantity", "total", "customer_id", "GSI1PK", "GSI1SK", "GSI3PK", "GSI3SK"];
    Ok(vec![problem().repaired_by(seen.correct(&right, names, false)?)])
}

/// Checks that an order that reserves stock is among its customer's open orders.
fn pending(item: &Stored<Order>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let is_open = matches!(item.status, OrderStatus::Placing | OrderStatus::Pending);
    let is_kept = item.lapses_at.is_some_and(|at| at.plus_seconds(KEPT_SECONDS) > seen.now);
    if !is_open || !item.by_customer || !is_kept {
        return Ok(Vec::new());
    }
    let open = seen.find::<OpenOrders>(open::get(&item.customer_id)?.key())?;
    if open.is_some_and(|open| open.entries.contains_key(&item.id)) {
        return Ok(Vec::new());
    }
    Ok(vec![Problem::new(Kind::Link, "the customer's open orders do not name this order")])
}

/// Checks that each entry in a customer's list of open orders has an open order. The repair removes
/// entries without an open order.
fn entries(item: &Stored<OpenOrders>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let mut stale = Vec::new();
    for id in item.entries.keys() {
        let key = order::head(id)?.key().clone();
        let is_open = |head: &Order| matches!(head.status, OrderStatus::Placing | OrderStatus::Pending);
        if seen.find::<Order>(&key)?.is_none_or(|head| !is_open(&head)) {
            stale.push((id, key));
        }
    }
    if stale.is_empty() {
        return Ok(Vec::new());
    }
    let problem = Problem::new(Kind::Link, format!("{} entries lead to no open order", stale.len()));
    let repairs = seen.without(item, "entries", &stale, |open, id| _ = open.entries.remove(*id))?;
    Ok(vec![problem.repaired_in_steps(repairs)])
}
