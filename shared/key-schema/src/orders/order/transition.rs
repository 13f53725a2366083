//! Transactions that change the status of an order, or its payments.

use item_model::prelude::*;

use super::staged::Work;
use super::{
    CustomerOrder, CustomerOrderChanges as _, LAPSE, MOVE, Order, OrderAction, OrderChanges as _, OrderLine,
    OrderStatus, OrderStatusEvent, REVIVE, ShipmentIndexKey, StatusIndexKey, Unfinished, UnfinishedIndexKey, copy_key,
    history, key, open,
};
use crate::change::Change;
use crate::expression::{Condition, first_alive, value};
use crate::index::GSI3;
use crate::instant::Instant;
use crate::item::{EncodeError, Stored};
use crate::pattern::Pattern;
use crate::payment::{CHANGE, Ledger, MAX_PAYMENTS};
use crate::product;
use crate::promotion::{self, MAX_APPLIED};
use crate::request::{Guarded, MAX_TRANSACTION_ACTIONS, Transaction};

/// One status change of an order, for [`transition`].
#[derive(Debug)]
pub struct Step<'a> {
    /// The head as it was read.
    pub order: &'a Stored<Order>,
    /// The lines of the order. Their stock returns if [`OrderStatus::returns_stock`] is true for
    /// `to`.
    pub lines: &'a [Stored<OrderLine>],
    /// The new status. The caller has checked it with [`OrderStatus::may_become`].
    pub to: OrderStatus,
    pub at: Instant,
    /// The id of the caller who makes the change.
    pub by: &'a str,
    /// The reason, for staff if a member of staff makes the change.
    pub note: Option<String>,
    /// The words of staff for the customer.
    pub message: Option<String>,
    /// The carrier, for a change to shipped.
    pub carrier: Option<String>,
    /// The carrier's tracking number, for a change to shipped.
    pub tracking: Option<String>,
    /// The payments with their changes in the same transaction.
    pub money: Option<&'a Ledger<'a>>,
    /// The writes that must happen together with the change, such as an idempotency record.
    pub with: &'a [(OrderAction, Guarded)],
}

impl<'a> Step<'a> {
    /// Creates a change without texts that moves no money.
    #[must_use]
    pub const fn new(
        order: &'a Stored<Order>,
        lines: &'a [Stored<OrderLine>],
        to: OrderStatus,
        at: Instant,
        by: &'a str,
    ) -> Self {
        Self {
            order,
            lines,
            to,
            at,
            by,
            note: None,
            message: None,
            carrier: None,
            tracking: None,
            money: None,
            with: &[],
        }
    }
}

/// The maximum number of lines whose stock returns in the transaction that cancels or returns an
/// order. Later transactions return the rest ([`super::staged::give_back`]). The 6 other actions
/// are the head, the copy, the history, the open orders, the wallet, and the wallet's entry. Each
/// payment may have an operation, and each promotion may have two counts.
pub const RETURNED_AT_ONCE: usize = MAX_TRANSACTION_ACTIONS - 6 - 2 * MAX_PAYMENTS - 2 * MAX_APPLIED;

/// Changes the status of the order that was read. The transaction also writes the history, the copy
/// and the stock, and moves the money.
pub fn transition(step: Step<'_>) -> Result<Transaction<OrderAction>, EncodeError> {
    let (head, condition) = (Change::<Order>::visible(step.at), unmoved(step.order)?);
    status_change(&MOVE, step, head, condition)
}

/// The `by` of a change that the system makes without a caller.
pub const SYSTEM: &str = "system";
/// The note in the history of an order that lapsed.
pub const LAPSED: &str = "lapsed";

/// Cancels a pending order, on the condition that it has lapsed at `at`. `money` gives the payments
/// back.
pub fn lapse(
    order: &Stored<Order>,
    lines: &[Stored<OrderLine>],
    money: Option<&Ledger<'_>>,
    at: Instant,
) -> Result<Transaction<OrderAction>, EncodeError> {
    let head = Change::<Order>::visible(at).lapsed(&true)?;
    let due = unmoved(order)?.and(Condition::Below("lapses_at", first_alive(at)));
    let cancelled = Step::new(order, lines, OrderStatus::Cancelled, at, SYSTEM);
    let step = Step { note: Some(LAPSED.to_owned()), money, ..cancelled };
    status_change(&LAPSE, step, head, due)
}

/// The note in the history of a lapsed order that was paid late.
const PAID_LATE: &str = "paid late";

/// Makes a lapsed order `paid`, because `money` has payments that arrived late ([`Ledger::revive`]).
/// Takes the stock of all lines again.
pub fn revive(lines: &[Stored<OrderLine>], money: &Ledger<'_>) -> Result<Transaction<OrderAction>, EncodeError> {
    let (order, at) = (money.order(), money.at());
    let head = Change::<Order>::visible(at).lapsed(&false)?;
    let paid = Step::new(order, &[], OrderStatus::Paid, at, SYSTEM);
    let step = Step { note: Some(PAID_LATE.to_owned()), money: Some(money), ..paid };
    let mut transaction = status_change(&REVIVE, step, head, unmoved(order)?)?;
    for line in lines {
        transaction = line.take(at)?.fold(transaction, |all, (action, take)| all.action(action, take));
    }
    Ok(transaction)
}

/// Returns the condition that the order is unchanged since it was read.
fn unmoved(order: &Stored<Order>) -> Result<Condition, EncodeError> {
    Ok(Condition::version(order.meta.version).and(Condition::Is("status", value(order.status)?)))
}

fn status_change(
    pattern: &'static Pattern,
    step: Step<'_>,
    head: Change<Order>,
    condition: Condition,
) -> Result<Transaction<OrderAction>, EncodeError> {
    let Step { order, lines, to, at, by, note, message, carrier, tracking, money, with } = step;
    let mut head = head.enter(&StatusIndexKey::of(order, to))?;
    if order.status == OrderStatus::Pending {
        // An order that is no longer pending never lapses, so it leaves the list of orders that
        // lapse.
        head = head.leave(GSI3);
    }
    let going_back = if to.returns_stock() { lines } else { &[] };
    let (at_once, later) = going_back.split_at(going_back.len().min(RETURNED_AT_ONCE));
    if !later.is_empty() {
        let done = u64::try_from(at_once.len()).map_err(|_| EncodeError::Overflow)?;
        let unfinished = Unfinished { since: at, work: Work::Returning(done) };
        head = head.enter(&UnfinishedIndexKey { unfinished: &unfinished, id: &order.id })?;
    }
    let mut copied = Change::<CustomerOrder>::visible(at).status(&to)?;
    if to == OrderStatus::Shipped {
        let shipment = ShipmentIndexKey { customer_id: &order.customer_id, shipped_at: at, id: &order.id };
        copied = copied.carrier(&carrier)?.tracking(&tracking)?.enter(&shipment)?;
    }
    let mut money_moved = Vec::new();
    if let Some(ledger) = money {
        head = marked(order, head, ledger)?;
        money_moved = ledger.writes()?;
    }
    let event = OrderStatusEvent { message, carrier, tracking, ..history(order, to, at, by, note) };
    let event = Stored::new(event, order.meta.born.clone(), at);
    let mut transaction = Transaction::new(pattern)
        .action(OrderAction::Order, Guarded::update(key(&order.id)?, head, condition))
        .action(OrderAction::Copy, Guarded::update(copy_key(&order.customer_id, &order.id)?, copied, Condition::Exists))
        .action(OrderAction::History, Guarded::put(&event, Condition::NotExists)?);
    if order.is_open() {
        transaction = transaction.action(OrderAction::Open, open::leave(order)?);
    }
    let used = if to == OrderStatus::Cancelled { order.promotions() } else { &[] };
    let given_back = promotion::give_back(used, &order.customer_id)?;
    for (action, guarded) in money_moved.into_iter().chain(given_back).chain(with.iter().cloned()) {
        transaction = transaction.action(action, guarded);
    }
    for line in at_once {
        transaction = transaction.action(OrderAction::Stock(line.line), product::give_back(line, at)?);
    }
    Ok(transaction)
}

/// Adds the refunds to the change of the head.
fn marked(order: &Order, head: Change<Order>, ledger: &Ledger<'_>) -> Result<Change<Order>, EncodeError> {
    match ledger.refunded() {
        0 => Ok(head),
        more => head.refunded(&order.refunded.saturating_add(more)),
    }
}

/// Changes the payments of an order, and not its status. `with` are the writes that must happen
/// together with them, such as the idempotency record of a refund.
pub fn change_payments(
    ledger: &Ledger<'_>,
    with: &[(OrderAction, Guarded)],
) -> Result<Transaction<OrderAction>, EncodeError> {
    let order = ledger.order();
    let head = marked(order, Change::<Order>::visible(ledger.at()), ledger)?;
    let head = Guarded::update(key(&order.id)?, head, unmoved(order)?);
    let transaction = Transaction::new(&CHANGE).action(OrderAction::Order, head);
    let writes = ledger.writes()?.into_iter().chain(with.iter().cloned());
    Ok(writes.fold(transaction, |all, (action, guarded)| all.action(action, guarded)))
}
