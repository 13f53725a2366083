//! `ops order show`: shows an order in every state, and what the janitor will do with it.
//!
//! The API hides an order in status `placing` from everybody. The command also shows an order with
//! unreadable items, because an operator looks for it at exactly that time.

use std::collections::BTreeSet;
use std::fmt;

use key_schema::entity::AnyEntity;
use key_schema::id::{CustomerId, OrderId, OrderReference};
use key_schema::instant::Instant;
use key_schema::invoice;
use key_schema::item::{Entity as _, FromItem as _, Item, Stored, key_of};
use key_schema::order::staged::{self, Unfinished, Work};
use key_schema::order::{
    self, CustomerOrder, Order, OrderLine, OrderNumber, OrderStatus, OrderStatusEvent, ReferenceClaim, open,
};
use key_schema::payment::{Payment, PaymentOperation};
use serde::Serialize;

use crate::error::OpsError;
use crate::items::Items;
use crate::pace::Pace;

const PAGE: usize = 100;
/// The maximum number of a customer's orders in one summary, without the open orders.
const NEWEST: usize = 20;

/// The orders that a text names.
#[derive(Debug, Default, Serialize)]
pub struct ShownOrders {
    pub orders: Vec<ShownOrder>,
}

#[derive(Debug, Serialize)]
pub struct ShownOrder {
    pub id: OrderId,
    /// The head. [`None`] if it is missing or unreadable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<Order>,
    pub janitor: JanitorStep,
    pub lines: Vec<OrderLine>,
    pub history: Vec<OrderStatusEvent>,
    pub payments: Vec<Payment>,
    pub operations: Vec<PaymentOperation>,
    /// The customer's copy, with the shipment. An order in status `placing` has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<CustomerOrder>,
    /// The sort key of each unreadable item, with the fault.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// What the janitor will do with an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum JanitorStep {
    /// The request that places the order has not finished. After the grace period the janitor
    /// removes the order and returns the stock of the reserved lines.
    Undo {
        since: Instant,
        reserved_lines: u64,
    },
    /// The janitor returns the rest of the stock of a cancelled or returned order.
    ReturnStock {
        since: Instant,
        returned_lines: u64,
    },
    /// The janitor cancels the order unless it is paid before.
    Cancel {
        at: Instant,
    },
    Nothing,
}

impl JanitorStep {
    fn of(head: &Order) -> Self {
        match (&head.unfinished, head.status, head.lapses_at) {
            (Some(Unfinished { since, work: Work::Placing { lines, .. } }), OrderStatus::Placing, _) => {
                Self::Undo { since: *since, reserved_lines: *lines }
            }
            (Some(Unfinished { since, work: Work::Returning(lines) }), ..) => {
                Self::ReturnStock { since: *since, returned_lines: *lines }
            }
            (None, OrderStatus::Pending, Some(at)) => Self::Cancel { at },
            _ => Self::Nothing,
        }
    }
}

impl fmt::Display for JanitorStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undo { since, reserved_lines } => write!(
                f,
                "undoes the order, which was begun at {since}, after the grace period (60 seconds by default): it \
                 returns the stock of {reserved_lines} lines, and frees reference and idempotency key"
            ),
            Self::ReturnStock { since, returned_lines } => write!(
                f,
                "returns the stock of the other lines after the grace period; since {since} the stock of \
                 {returned_lines} lines was returned"
            ),
            Self::Cancel { at } => write!(f, "cancels the order at {at} unless it is paid before"),
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

impl fmt::Display for ShownOrders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.orders.is_empty() {
            return f.write_str(
                "NOT FOUND: no order has this id or number, and no customer with this id has orders. A retired order \
                 may be in the archive: ops archive restore --order <ID>. An order that the janitor has undone is \
                 only in its log.",
            );
        }
        let with_lines = self.orders.len() == 1;
        self.orders.iter().try_for_each(|order| order.write(f, with_lines))
    }
}

impl ShownOrder {
    fn write(&self, f: &mut fmt::Formatter<'_>, with_lines: bool) -> fmt::Result {
        let Self { id, head, janitor, lines, history, payments, operations, copy, unreadable } = self;
        match head {
            Some(head) => writeln!(
                f,
                "{id}  {}  {}  customer {}, placed at {}, total {} {} in minor units, {} of {} lines",
                OrderNumber::of(id),
                head.status.as_str(),
                head.customer_id,
                head.placed_at,
                head.total.amount,
                head.total.currency,
                lines.len(),
                head.line_count
            )?,
            None => writeln!(f, "{id}  HEAD MISSING OR UNREADABLE, {} lines", lines.len())?,
        }
        if let Some(reference) = head.as_ref().and_then(|head| head.reference.as_ref()) {
            writeln!(f, "  reference {reference}")?;
        }
        if let Some(number) = head.as_ref().and_then(|head| head.invoice_number) {
            writeln!(f, "  invoice {number}")?;
        }
        writeln!(f, "  the janitor does: {janitor}")?;
        for event in history {
            writeln!(f, "  {}  {}  by {}", event.at, event.status.as_str(), event.by)?;
        }
        for Payment { id, method, status, amount, authorised, captured, refunded, intent, .. } in payments {
            let (method, amount, intent) = (method.as_str(), amount.amount, intent.as_deref().unwrap_or("-"));
            write!(f, "  payment {id} ({method}, {status:?}, {intent}): {amount}, authorised {authorised}, ")?;
            writeln!(f, "captured {captured}, refunded {refunded}")?;
        }
        for PaymentOperation { id, kind, amount, state, declined, at, .. } in operations {
            let declined = declined.as_deref().unwrap_or("");
            writeln!(f, "  {at}  {kind:?} {amount} ({id}): {state:?} {declined}")?;
        }
        if let Some(CustomerOrder { carrier, tracking, shipped_at: Some(at), .. }) = copy {
            let name = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
            writeln!(f, "  shipped at {at} with {}, tracking {}", name(carrier), name(tracking))?;
        }
        for line in lines.iter().filter(|_| with_lines) {
            let OrderLine { line, quantity, product_id, total, .. } = line;
            writeln!(f, "  line {line}: {quantity} of {product_id}, {}", total.amount)?;
        }
        unreadable.iter().try_for_each(|fault| writeln!(f, "  UNREADABLE: {fault}"))
    }
}

/// Finds the orders that `text` names: by the order's id, its number, its invoice's number, its
/// reference, or its customer's id. A reference that a customer gave needs the customer.
pub async fn show(items: &Items, text: &str, customer: Option<&CustomerId>) -> Result<ShownOrders, OpsError> {
    let mut ids = BTreeSet::new();
    ids.extend(text.parse::<OrderId>().ok());
    if let Ok(number) = text.parse::<OrderNumber>() {
        ids.extend(items.table().get(&order::numbered(number)?).await?.map(|claim| claim.order_id.clone()));
    }
    if let Ok(number) = text.parse::<u64>() {
        ids.extend(items.table().get(&invoice::get(number)?).await?.map(|invoice| invoice.order_id.clone()));
    }
    if let Ok(reference) = text.parse::<OrderReference>()
        && let Some(id) = with_reference(items, reference, customer).await?
    {
        ids.insert(id);
    }
    if let Ok(customer) = text.parse::<CustomerId>() {
        ids.extend(of_customer(items, &customer).await?);
    }
    let mut orders = Vec::new();
    for id in ids {
        orders.extend(read(items, id).await?);
    }
    Ok(ShownOrders { orders })
}

async fn with_reference(
    items: &Items,
    reference: OrderReference,
    customer: Option<&CustomerId>,
) -> Result<Option<OrderId>, OpsError> {
    // The other attributes are no part of the claim's key.
    let Ok(order_id) = OrderId::new("0") else { return Ok(None) };
    let claim = ReferenceClaim { reference, order_id, customer_id: customer.cloned() };
    Ok(items.table().get(&order::reference(&claim)?).await?.map(|claim| claim.order_id.clone()))
}

/// Returns the ids of the customer's newest orders and of all unfinished orders. An order in status
/// `placing` has no copy, so the janitor's list is read too.
async fn of_customer(items: &Items, customer: &CustomerId) -> Result<BTreeSet<OrderId>, OpsError> {
    let table = items.table();
    let newest = table.query(&order::of_customer(customer, None, None)?.limit(NEWEST)).await?;
    let mut ids: BTreeSet<OrderId> = newest.items.iter().map(|copy| copy.id.clone()).collect();
    if let Some(open) = table.get(&open::get(customer)?).await? {
        ids.extend(open.entries.keys().cloned());
    }
    let mut after = None;
    // The loop ends, because every page starts after the previous one.
    loop {
        let page = table.query(&staged::unfinished(Instant::MAX)?.limit(PAGE).after(after)).await?;
        for order in page.items {
            let head = items.get(&[order::head(&order.id)?.key().clone()]).await?.into_values().next();
            let owner = head.and_then(|head| Stored::<Order>::from_item(head).ok()).map(|head| head.data.customer_id);
            if owner.as_ref() == Some(customer) {
                ids.insert(order.id);
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(ids);
        }
    }
}

async fn read(items: &Items, id: OrderId) -> Result<Option<ShownOrder>, OpsError> {
    let mut found: Vec<Item> = Vec::new();
    items.partition(&order::head(&id)?.key().pk, &Pace::new(None), |item| found.push(item)).await?;
    if found.is_empty() {
        return Ok(None);
    }
    let (mut head, mut lines, mut history) = (None, Vec::new(), Vec::new());
    let (mut payments, mut operations, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
    for item in found {
        let place = key_of(&item).map_or_else(String::new, |key| key.sk.as_str().to_owned());
        match AnyEntity::from_item(item) {
            Ok(AnyEntity::Order(order)) => head = Some(order.data),
            Ok(AnyEntity::OrderLine(line)) => lines.push(line.data),
            Ok(AnyEntity::OrderStatusEvent(event)) => history.push(event.data),
            Ok(AnyEntity::Payment(payment)) => payments.push(payment.data),
            Ok(AnyEntity::PaymentOperation(operation)) => operations.push(operation.data),
            Ok(_) => {}
            Err(error) => unreadable.push(format!("{place}: {error}")),
        }
    }
    lines.sort_by_key(|line| line.line);
    let copy = match &head {
        Some(head) => {
            let key = CustomerOrder::of(head).key()?;
            let copy = items.get(&[key]).await?.into_values().next();
            copy.and_then(|copy| match Stored::<CustomerOrder>::from_item(copy) {
                Ok(copy) => Some(copy.data),
                Err(error) => {
                    unreadable.push(format!("the customer's copy: {error}"));
                    None
                }
            })
        }
        None => None,
    };
    let janitor = head.as_ref().map_or(JanitorStep::Nothing, JanitorStep::of);
    Ok(Some(ShownOrder { id, head, janitor, lines, history, payments, operations, copy, unreadable }))
}
