//! Invoices: numbered from 1 without a gap.
//!
//! A number is taken from the counter in the transaction that writes the invoice and marks its order: a number without an invoice cannot come to be, nor
//! two invoices of one number or of one order. Everybody who issues one meets at the counter, which bounds the rate to some tens of invoices a second: what
//! the law asks of the numbers costs that.

use crate::change::{Change, entity};
use crate::expression::{Condition, number};
use crate::id::{Born, CustomerId, OrderId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::money::Money;
use crate::order::{self, Order};
use crate::pattern::{Consistency, patterns};
use crate::request::{Get, Guarded, Transaction};

entity! {
    /// An invoice. Nothing ever changes it.
    Invoice = "Invoice" {
        keyed {
            /// From 1, without a gap.
            number: u64,
            /// For which order; an order has one invoice.
            order_id: OrderId,
            /// To whom.
            customer_id: CustomerId,
            /// What the order comes to.
            total: Money,
            /// When.
            issued_at: Instant,
        }
        free {}
    }
}

impl Entity for Invoice {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(self.number)
    }
}

fn key(number: u64) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("INVOICE", &[&number])?, sk: SortKey::new("INVOICE")? })
}

entity! {
    /// The last number that was given to an invoice.
    InvoiceCounter = "InvoiceCounter" {
        keyed {}
        free {
            /// The number.
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

fn counter_key() -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("COUNTER", &[&"invoices"])?, sk: SortKey::new("COUNTER")? })
}

patterns! {
    GET = "invoices.get": GetItem, "PK = INVOICE#<number>, SK = INVOICE" => "the invoice", Consistency::Strong("who issues one twice at once reads it right after it was written"), "owner", "Read an invoice by its number", ["GET /v1/invoices/{number}", "POST /v1/orders/{id}/invoice"];
    COUNTER = "invoices.counter": GetItem, "PK = COUNTER#invoices, SK = COUNTER" => "the last number", Consistency::Strong("the next number is conditional on it"), "staff", "Find the next number", ["POST /v1/orders/{id}/invoice"];
    ISSUE = "invoices.issue": TransactWriteItems, "PK = COUNTER#invoices, SK = COUNTER; PK = INVOICE#<number>, SK = INVOICE; PK = ORDER#<id>, SK = ORDER" => "the last number is the one that was read; the order is as it was read and has no invoice", Consistency::Write, "staff", "Issue an order's invoice", ["POST /v1/orders/{id}/invoice"];
}

/// Reads an invoice.
///
/// # Errors
/// [`KeyError`].
pub fn get(number: u64) -> Result<Get<Stored<Invoice>>, KeyError> {
    Ok(Get::new(&GET, key(number)?))
}

/// Reads the counter; there is none before the first invoice.
///
/// # Errors
/// [`KeyError`].
pub fn counter() -> Result<Get<Stored<InvoiceCounter>>, KeyError> {
    Ok(Get::new(&COUNTER, counter_key()?))
}

/// Which part of issuing was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Somebody else has taken the number.
    Counter,
    /// There is an invoice of the number; the counter was meddled with.
    Invoice,
    /// The order is not as it was read.
    Order,
}

/// Issues the invoice for the order that was read, which has none. The number is the one after the counter's.
///
/// # Errors
/// [`EncodeError`].
pub fn issue(
    invoice: &Stored<Invoice>,
    order: &Stored<Order>,
    seen: Option<&Stored<InvoiceCounter>>,
) -> Result<Transaction<Part>, EncodeError> {
    let at = invoice.issued_at;
    let unmoved = seen.map_or(Condition::NotExists, |seen| Condition::Is("last", number(seen.last)));
    let counter = Change::<InvoiceCounter>::visible(at).or_create(&Born::counter(), at).last(&invoice.number)?;
    let head = Change::<Order>::visible(at).invoice_number(&Some(invoice.number))?;
    let unchanged = Condition::version(order.meta.version).and(Condition::Lacks("invoice_number"));
    Ok(Transaction::new(&ISSUE)
        .action(Part::Counter, Guarded::update(counter_key()?, counter, unmoved))
        .action(Part::Invoice, Guarded::put(invoice, Condition::NotExists)?)
        .action(Part::Order, Guarded::update(order::key(&order.id)?, head, unchanged)))
}
