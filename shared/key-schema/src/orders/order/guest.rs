//! Orders of guests: visitors who order without an account.
//!
//! A guest has an id that follows from the email address ([`CustomerId::guest`]). The partition of
//! this id holds the copies, the addresses and the open orders of the address, as that of a customer
//! does, but no profile. So the limits of a customer's orders apply to an address.
//!
//! Nobody can sign in as a guest. The holder of an order's token ([`OrderToken`]) may read, pay and
//! cancel this order alone. A customer with the same verified address claims the orders: a
//! transaction for each order moves it to the customer, and its token opens it no more.

use item_model::prelude::*;

use super::addresses::{self, OrderAddresses};
use super::open::{self, OpenOrder, OpenOrders};
use super::{CustomerOrder, Order, OrderAction, PlacedOrder, copy_key, key};
use crate::change::Change;
use crate::customer::{self, Customer};
use crate::expression::{Condition, number, value};
use crate::guest_cart::{CartToken, hash, secret};
use crate::id::{CustomerId, OrderId};
use crate::instant::Instant;
use crate::invoice::{self, Invoice};
use crate::item::{EncodeError, Entity as _, Stored};
use crate::key::KeyError;
use crate::pattern::Consistency;
use crate::payment::Payment;
use crate::request::{BatchGet, Guarded, Transaction};

secret! {
    /// The secret that gives access to one order of a guest.
    OrderToken
}

impl OrderToken {
    /// Returns the token of an order that was placed from a guest cart. It follows from the cart's
    /// token, so a repeated checkout returns the same token although the table holds only its hash.
    #[must_use]
    pub fn of(cart: &CartToken, order: &OrderId) -> Self {
        Self(hash(&["bodega token of an order", cart.as_str(), order.as_str()]))
    }

    /// Returns the hash that the table holds.
    #[must_use]
    pub fn hash(&self) -> String {
        hash(&["bodega order", &self.0])
    }

    /// Returns whether the token opens the order.
    #[must_use]
    pub fn opens(&self, order: &Order) -> bool {
        order.token_hash.as_ref() == Some(&self.hash())
    }
}

patterns! {
    CLAIMABLE {
        id: "orders.claimable",
        purpose: "Read what moves with a guest's order to a customer",
        request: BatchGetItem,
        key: "PK = CUSTOMER#<guest>, SK = ORDER#<order>, SHIPTO#<order>, OPEN; PK = CUSTOMER#<id>, SK = OPEN",
        returns: "the guest's copy, addresses and open orders, the customer's open orders",
        consistency: Consistency::Strong("each write is conditional on the item that was read"),
        callers: "owner",
    }
    CLAIM {
        id: "orders.claim",
        purpose: "Move a guest's order to a customer",
        request: TransactWriteItems,
        key: "PK = ORDER#<order>, SK = ORDER and TENDER#<payment>; PK = CUSTOMER#<guest> and CUSTOMER#<id>, SK = \
            ORDER#<order>, SHIPTO#<order> and, for an open order, OPEN; PK = INVOICE#<number>, SK = INVOICE; \
            PK = CUSTOMER#<id>, SK = PROFILE (check)",
        requires: "version = the version that was read; the copy, the addresses, the payments and the open orders \
            are unchanged; the customer has the verified address",
        callers: "owner",
    }
}

one_of! {
    pub enum ClaimableItem { CustomerOrder OpenOrders OrderAddresses }
}

/// Reads what moves with a guest's order to a customer. The last item has the customer's open orders.
pub fn claimable(
    guest: &CustomerId,
    order: &OrderId,
    customer: &CustomerId,
) -> Result<BatchGet<ClaimableItem>, KeyError> {
    let keys =
        vec![copy_key(guest, order)?, addresses::addresses_key(guest, order)?, open::key(guest)?, open::key(customer)?];
    Ok(BatchGet::new(&CLAIMABLE, keys))
}

/// The items that move with a guest's order, as they were read.
#[derive(Debug)]
pub struct Claimable<'a> {
    /// The order with its payments.
    pub order: &'a PlacedOrder,
    pub copy: &'a Stored<CustomerOrder>,
    pub addresses: Option<&'a Stored<OrderAddresses>>,
    /// The order's entry in the guest's open orders.
    pub entry: Option<OpenOrder>,
    /// The open orders of the customer.
    pub open: Option<&'a Stored<OpenOrders>>,
}

/// Moves a guest's order to a customer who has verified the guest's address.
pub fn claim(from: &Claimable<'_>, customer: &Customer, at: Instant) -> Result<Transaction<OrderAction>, EncodeError> {
    let Claimable { order: PlacedOrder { head, payments, .. }, copy, addresses, entry, open } = from;
    let to = &customer.id;
    let moved = Change::<Order>::visible(at).set("customer_id", to)?.set("token_hash", None::<String>)?;
    let own = Condition::version(head.meta.version).and(Condition::Is("customer_id", value(&head.customer_id)?));
    let mut transaction = Transaction::new(&CLAIM)
        .action(OrderAction::Order, Guarded::update(key(&head.id)?, moved, own))
        .action(OrderAction::Customer, customer::check_email(customer)?)
        .action(OrderAction::Copy, Guarded::delete(copy.key()?, unchanged(copy.meta.rev)));
    let data = CustomerOrder { customer_id: to.clone(), ..copy.data.clone() };
    let copy = Stored { meta: copy.meta.clone(), data };
    transaction = transaction.action(OrderAction::Copy, Guarded::put(&copy, Condition::NotExists)?);
    if let Some(known) = addresses {
        transaction =
            transaction.action(OrderAction::Addresses, Guarded::delete(known.key()?, unchanged(known.meta.rev)));
        if known.shipping_address.is_some() {
            let data = OrderAddresses { customer_id: to.clone(), guest: None, ..known.data.clone() };
            let moved = Stored { meta: known.meta.clone(), data };
            transaction = transaction.action(OrderAction::Addresses, addresses::add(&moved)?);
        }
    }
    for payment in payments {
        let change = Change::<Payment>::visible(at).set("customer_id", to)?;
        let payment = Guarded::update(payment.key()?, change, unchanged(payment.meta.rev));
        transaction = transaction.action(OrderAction::Payment, payment);
    }
    if let Some(invoice) = head.invoice_number {
        let change = Change::<Invoice>::visible(at).set("customer_id", to)?;
        let invoice = Guarded::update(invoice::key(invoice)?, change, Condition::Exists);
        transaction = transaction.action(OrderAction::Invoice, invoice);
    }
    if let Some(entry) = entry {
        let mut moved = (*head).clone();
        moved.data.customer_id = to.clone();
        transaction = transaction
            .action(OrderAction::Open, open::leave(head)?)
            .action(OrderAction::Open, open::enter(&moved, *entry, *open)?);
    }
    Ok(transaction)
}

fn unchanged(rev: u64) -> Condition {
    Condition::Is("rev", number(rev))
}
