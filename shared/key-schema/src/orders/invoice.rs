//! Invoices, numbered from 1 without a gap.
//!
//! One transaction takes the next number from the counter, writes the invoice and stores the number
//! in the order. So no number lacks an invoice, and no two invoices have the same number or order.
//! All these transactions conflict on the counter. This limits the rate to some tens of invoices a
//! second. The law requires numbers without gaps, so this limit is accepted.

use item_model::prelude::*;

use crate::change::Change;
use crate::expression::{Condition, number};
use crate::id::{Born, CustomerId, OrderId};
use crate::index::GSI3;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::money::Money;
use crate::order::OrderChanges as _;
use crate::order::{self, Order, OrderStatus};
use crate::pattern::Consistency;
use crate::request::{Get, Guarded, Transaction};

entity! {
    /// An invoice. It changes only if a customer claims the order of a guest.
    Invoice = "Invoice" {
        fixed {
            /// The number, from 1 without a gap.
            number: u64,
            /// The order. An order has at most one invoice.
            order_id: OrderId,
            customer_id: CustomerId,
            total: Money,
            issued_at: Instant,
        }
        mutable {}
    }
}

impl Entity for Invoice {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(self.number)
    }
}

pub(crate) fn key(number: u64) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("INVOICE", &[&number])?, sk: SortKey::new("INVOICE")? })
}

entity! {
    /// The counter with the number of the last invoice.
    InvoiceCounter = "InvoiceCounter" {
        fixed {}
        mutable by InvoiceCounterChanges {
            last: u64,
        }
    }
}

impl Entity for InvoiceCounter {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        counter_key()
    }
}

/// The name in the counter's key. No other counter can have this name
/// ([`crate::counter::is_reserved`]).
pub(crate) const COUNTER_NAME: &str = "invoices";

fn counter_key() -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("COUNTER", &[&COUNTER_NAME])?, sk: SortKey::new("COUNTER")? })
}

patterns! {
    GET {
        id: "invoices.get",
        purpose: "Read an invoice by its number",
        request: GetItem,
        key: "PK = INVOICE#<number>, SK = INVOICE",
        returns: "the invoice",
        consistency: Consistency::Strong("a concurrent request to issue the invoice reads it right \
            after it was written"),
        callers: "owner",
    }
    COUNTER {
        id: "invoices.counter",
        purpose: "Find the next invoice number",
        request: GetItem,
        key: "PK = COUNTER#invoices, SK = COUNTER",
        returns: "the last number",
        consistency: Consistency::Strong("the transaction that issues the next invoice is \
            conditional on the last number"),
        callers: "staff",
    }
    ISSUE {
        id: "invoices.issue",
        purpose: "Issue an order's invoice",
        request: TransactWriteItems,
        key: "PK = COUNTER#invoices, SK = COUNTER; PK = INVOICE#<number>, SK = INVOICE; PK = \
            ORDER#<id>, SK = ORDER",
        requires: "the last number and the order are unchanged; the order has no invoice",
        callers: "staff",
    }
}

pub fn get(number: u64) -> Result<Get<Stored<Invoice>>, KeyError> {
    Ok(Get::new(&GET, key(number)?))
}

/// Reads the counter, which does not exist before the first invoice.
pub fn counter() -> Result<Get<Stored<InvoiceCounter>>, KeyError> {
    Ok(Get::new(&COUNTER, counter_key()?))
}

/// An action of the transaction that issues an invoice. A refusal names the action whose condition
/// failed. The variant says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvoiceAction {
    /// Another request has taken the number.
    Counter,
    /// An invoice with this number exists, although the counter has not reached the number.
    Invoice,
    /// The order has changed since it was read.
    Order,
}

/// Issues the invoice for the order that was read, which has no invoice yet. The invoice number is
/// the counter's number plus one.
pub fn issue(
    invoice: &Stored<Invoice>,
    order: &Stored<Order>,
    seen: Option<&Stored<InvoiceCounter>>,
) -> Result<Transaction<InvoiceAction>, EncodeError> {
    let at = invoice.issued_at;
    let unmoved = seen.map_or(Condition::NotExists, |seen| Condition::Is("last", number(seen.last)));
    let counter = Change::<InvoiceCounter>::visible(at).or_create(&Born::counter(), at).last(&invoice.number)?;
    let mut head = Change::<Order>::visible(at).invoice_number(&Some(invoice.number))?;
    if order.lapses_at.is_some() && order.status == OrderStatus::Pending {
        // The customer must not cancel an invoiced order, so the order no longer lapses.
        head = head.set("lapses_at", None::<Instant>)?.leave(GSI3);
    }
    let unchanged = Condition::version(order.meta.version).and(Condition::Lacks("invoice_number"));
    Ok(Transaction::new(&ISSUE)
        .action(InvoiceAction::Counter, Guarded::update(counter_key()?, counter, unmoved))
        .action(InvoiceAction::Invoice, Guarded::put(invoice, Condition::NotExists)?)
        .action(InvoiceAction::Order, Guarded::update(order::key(&order.id)?, head, unchanged)))
}
