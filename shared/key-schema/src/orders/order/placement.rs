use item_model::prelude::*;

use super::addresses::{self, OrderAddresses};
use super::{CustomerOrder, Order, OrderAction, OrderLine, OrderStatus, OrderStatusEvent, PLACE, staged};
use crate::customer;
use crate::expression::Condition;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::product;
use crate::request::{Guarded, Transaction};

/// The items of an order that is placed in one transaction.
#[derive(Debug)]
pub struct Placement<'a> {
    /// The head, in status `pending`.
    pub order: &'a Stored<Order>,
    pub lines: &'a [Stored<OrderLine>],
    /// The id of the caller who places the order.
    pub by: &'a str,
    /// The write of the idempotency record ([`crate::idempotency::claim`]), if the request has a
    /// key.
    pub claim: Option<Guarded>,
    /// The write that adds the order to its customer's open orders ([`super::open::enter`]), if the
    /// customer places it.
    pub open: Option<Guarded>,
    /// The deletion of the cart from which the order is placed ([`crate::cart::check_out`]), if
    /// any.
    pub cart: Option<Guarded>,
    pub addresses: Option<&'a Stored<OrderAddresses>>,
    /// The writes that count the uses of the order's promotions ([`crate::promotion::take`]).
    pub uses: Vec<(OrderAction, Guarded)>,
}

impl Placement<'_> {
    #[must_use]
    pub fn actions(&self) -> usize {
        let optional = [
            self.order.reference.is_some(),
            self.claim.is_some(),
            self.open.is_some(),
            self.cart.is_some(),
            self.addresses.is_some(),
        ];
        // Head, history, copy and customer check are 4 actions. Each line takes 2.
        4 + 2 * self.lines.len() + self.uses.len() + optional.into_iter().filter(|has| *has).count()
    }
}

pub fn place(placement: Placement<'_>) -> Result<Transaction<OrderAction>, EncodeError> {
    let Placement { order, lines, by, claim, open, cart, addresses, uses } = placement;
    let at = order.meta.created_at;
    let event = history(order, order.status, order.placed_at, by, None);
    let mut transaction = Transaction::new(&PLACE)
        .action(OrderAction::Order, Guarded::put(order, Condition::NotExists)?)
        .action(OrderAction::Copy, Guarded::put(&stored(order, CustomerOrder::of(order)), Condition::NotExists)?)
        .action(OrderAction::History, Guarded::put(&stored(order, event), Condition::NotExists)?)
        .action(OrderAction::Customer, customer::check(&order.customer_id)?)
        .optional(OrderAction::Reference, staged::claim_of_reference(order)?)
        .optional(OrderAction::Idempotency, claim)
        .optional(OrderAction::Open, open)
        .optional(OrderAction::Cart, cart)
        .optional(OrderAction::Addresses, addresses.map(addresses::add).transpose()?);
    for (action, guarded) in uses {
        transaction = transaction.action(action, guarded);
    }
    for line in lines {
        transaction = transaction
            .action(OrderAction::Line(line.line), Guarded::put(line, Condition::NotExists)?)
            .action(OrderAction::Stock(line.line), product::take(line, at)?);
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
