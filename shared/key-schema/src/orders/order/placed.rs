use item_model::prelude::*;

use super::addresses::{self, OrderAddresses};
use super::staged::{self, Unfinished, Work};
use super::{CustomerOrder, Order, OrderAction, OrderItem, OrderLine, OrderStatus, OrderStatusEvent, PLACE, number};
use crate::customer;
use crate::expression::Condition;
use crate::idempotency::Scope;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::payment::{Ledger, Payment, PaymentOperation};
use crate::promotion::{self, Use};
use crate::request::{Guarded, Transaction};

/// An order with those of its items that were read or will be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedOrder {
    pub head: Stored<Order>,
    /// The lines, by number.
    pub lines: Vec<Stored<OrderLine>>,
    /// The steps, by time.
    pub history: Vec<Stored<OrderStatusEvent>>,
    /// The payments, by time.
    pub payments: Vec<Stored<Payment>>,
    /// The operations of the payments.
    pub operations: Vec<Stored<PaymentOperation>>,
    /// The addresses, which are in the customer's partition. An erasure removes them.
    pub addresses: Option<Stored<OrderAddresses>>,
    /// The uses of promotions that an order counts when it is placed. They are not read.
    pub uses: Vec<Use>,
}

impl PlacedOrder {
    /// Creates an order with its first step. `by` is the id of the caller who places it.
    #[must_use]
    pub fn new(head: Stored<Order>, lines: Vec<Stored<OrderLine>>, by: &str) -> Self {
        let first = stored(&head, history(&head, OrderStatus::Pending, head.placed_at, by, None));
        let (payments, operations) = (Vec::new(), Vec::new());
        Self { head, lines, history: vec![first], payments, operations, addresses: None, uses: Vec::new() }
    }

    /// Puts an order together from items of its partition. Returns `None` without the head.
    #[must_use]
    pub fn of(items: impl IntoIterator<Item = OrderItem>) -> Option<Self> {
        let (mut head, mut lines, mut history) = (None, Vec::new(), Vec::new());
        let (mut payments, mut operations) = (Vec::new(), Vec::new());
        for item in items {
            match item {
                OrderItem::Order(order) => head = Some(order),
                OrderItem::OrderLine(line) => lines.push(line),
                OrderItem::OrderStatusEvent(event) => history.push(event),
                OrderItem::Payment(payment) => payments.push(payment),
                OrderItem::PaymentOperation(operation) => operations.push(operation),
            }
        }
        Some(Self { head: head?, lines, history, payments, operations, addresses: None, uses: Vec::new() })
    }

    /// Returns whether all lines were read. A Query is not isolated from transactions, so it may
    /// return only some of the lines.
    #[must_use]
    pub fn has_all_lines(&self) -> bool {
        u64::try_from(self.lines.len()) == Ok(self.head.line_count)
    }

    /// Returns whether the first step was read.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.history.iter().any(|step| step.status == OrderStatus::Pending)
    }

    /// Returns whether the head shows an order that callers may see at `now`. An order in status
    /// `placing` is invisible. A retired order is invisible from its expiry, even while its items
    /// still exist.
    #[must_use]
    pub fn is_visible(&self, now: Instant) -> bool {
        self.head.status != OrderStatus::Placing && !self.head.is_expired(now)
    }

    /// Returns whether the order was paid, but its payment was not read. A Query is not isolated
    /// from the transaction that pays the order. A caller that decides about money must read again.
    #[must_use]
    pub fn lacks_payment(&self) -> bool {
        let is_paid = self.head.status.is_sale() && self.head.status != OrderStatus::Pending;
        is_paid && self.head.total.amount > 0 && self.payments.is_empty()
    }

    /// Returns the payments for changes at `at`.
    #[must_use]
    pub fn ledger(&self, at: Instant) -> Ledger<'_> {
        Ledger::new(&self.head, &self.payments, &self.operations, at)
    }

    /// Returns `now`, or the next instant after the last step. The instants of a history increase,
    /// but the clocks of two functions may differ.
    #[must_use]
    pub fn next_step_at(&self, now: Instant) -> Instant {
        let last = self.history.iter().map(|step| step.at).max();
        last.map_or(now, |last| now.max(last.plus_millis(1)))
    }

    /// Returns the order as the first response showed it. Lines, total and the first step never
    /// change.
    #[must_use]
    pub fn as_placed(mut self) -> Self {
        self.head.meta.version = 1;
        self.head.data.status = OrderStatus::Pending;
        self.head.data.invoice_number = None;
        self.head.data.refunded = 0;
        self.head.data.lapsed = false;
        self.payments.clear();
        self.operations.clear();
        self.history.retain(|step| step.status == OrderStatus::Pending);
        self
    }

    /// Returns the order as it is before its first line is reserved ([`staged`]). `key` is the
    /// request's idempotency key.
    #[must_use]
    pub fn staged(&self, key: Option<Scope>, since: Instant) -> Self {
        let mut order = self.clone();
        order.head.data.status = OrderStatus::Placing;
        order.head.data.unfinished = Some(Unfinished { since, work: Work::Placing { key, lines: 0 } });
        order
    }
}

/// Places an order in one transaction. `with` are the writes that must happen together with it:
///
/// - the claim of the idempotency key ([`crate::idempotency::claim`])
/// - the entry in the customer's open orders ([`super::open::enter`])
/// - the deletion of the cart ([`crate::cart::check_out`])
///
/// The transaction also counts the uses of promotions ([`promotion::take`]).
///
/// An order of many lines has more actions than a transaction may have. Then it is [`staged`].
pub fn place(order: &PlacedOrder, with: &[(OrderAction, Guarded)]) -> Result<Transaction<OrderAction>, EncodeError> {
    let PlacedOrder { head, lines, history, addresses, uses, .. } = order;
    let mut transaction = Transaction::new(&PLACE)
        .action(OrderAction::Order, Guarded::put(head, Condition::NotExists)?)
        .action(OrderAction::Copy, Guarded::put(&stored(head, CustomerOrder::of(head)), Condition::NotExists)?)
        .optional(OrderAction::Customer, customer::check_profile(&head.customer_id)?)
        .action(OrderAction::Number, number::claim(head)?)
        .optional(OrderAction::Reference, staged::claim_of_reference(head)?)
        .optional(OrderAction::Addresses, addresses.as_ref().map(addresses::add).transpose()?);
    for step in history {
        transaction = transaction.action(OrderAction::History, Guarded::put(step, Condition::NotExists)?);
    }
    for (action, guarded) in with {
        transaction = transaction.action(*action, guarded.clone());
    }
    for (action, guarded) in promotion::take(uses, &head.customer_id, head.meta.created_at)? {
        transaction = transaction.action(action, guarded);
    }
    for line in lines {
        transaction = transaction.action(OrderAction::Line(line.line), Guarded::put(line, Condition::NotExists)?);
        transaction =
            line.take(head.meta.created_at)?.fold(transaction, |all, (action, take)| all.action(action, take));
    }
    Ok(transaction)
}

/// Makes an item that is created together with the order.
pub(super) fn stored<T: Entity>(order: &Stored<Order>, data: T) -> Stored<T> {
    Stored::new(data, order.meta.born.clone(), order.meta.created_at)
}

#[must_use]
pub fn history(order: &Order, status: OrderStatus, at: Instant, by: &str, note: Option<String>) -> OrderStatusEvent {
    OrderStatusEvent {
        order_id: order.id.clone(),
        status,
        at,
        by: by.to_owned(),
        note,
        message: None,
        carrier: None,
        tracking: None,
        expires_at: None,
    }
}
