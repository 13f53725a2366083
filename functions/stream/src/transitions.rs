//! The rules that derive the event of a change from its record alone.
//!
//! The rules read no table and no clock. So another delivery of a record, in any batch, gives the
//! same event with the same id. The sink adds the lines of a placed order. The rules compare the
//! two images of one record. They cannot compare two records, because there may be other changes
//! between them.

use bus::{
    CustomerTierChanged, Data, EmailVerificationRequested, Event, EventId, OrderPlaced, OrderStatusChanged, Origin,
    PaymentNotified, PaymentReversed, Reason, Reversal, ReviewPosted, StockLow,
};
use key_schema::customer::Customer;
use key_schema::entity::AnyEntity;
use key_schema::id::LocationId;
use key_schema::item::{Meta, Stored};
use key_schema::order::{Order, OrderStatus};
use key_schema::payment::{Payment, PaymentStatus};
use key_schema::product::Stock;
use key_schema::provider_event::ProviderEvent;
use key_schema::review::Review;
use key_schema::verification::EmailVerification;

use crate::batch::{Mutation, Record};

/// The inputs of the rules, besides the record.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The table's name, a part of every event id. Items with equal keys in two tables have events
    /// with different ids.
    pub table: String,
    /// A stock below this number of units is low.
    pub stock_low: u64,
}

/// The old image cannot be read, and an event depends on it. A guess would lose or invent an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the item's old image cannot be read, and an event depends on it")]
pub struct UnreadableOldImage;

impl Rules {
    /// Returns the event of a change, if the change causes one.
    ///
    /// # Errors
    /// [`UnreadableOldImage`] if an event depends on an old image that cannot be read.
    pub fn event(&self, record: &Record<'_>) -> Result<Option<Event>, UnreadableOldImage> {
        let change = &record.change;
        let Some(new) = change.after().filter(|_| !record.is_import()) else { return Ok(None) };
        let happened = match new {
            AnyEntity::Order(new) => {
                order(before(change, |old| if let AnyEntity::Order(old) = old { Some(old) } else { None }), new)?
            }
            AnyEntity::Stock(new) => {
                self.stock(before(change, |old| if let AnyEntity::Stock(old) = old { Some(old) } else { None }), new)?
            }
            AnyEntity::Customer(new) => {
                customer(before(change, |old| if let AnyEntity::Customer(old) = old { Some(old) } else { None }), new)?
            }
            AnyEntity::Review(new) => review(change, new),
            AnyEntity::ProviderEvent(new) => notified(change, new),
            AnyEntity::Payment(new) => {
                reversed(before(change, |old| if let AnyEntity::Payment(old) = old { Some(old) } else { None }), new)?
            }
            AnyEntity::EmailVerification(new) => verification(
                before(change, |old| if let AnyEntity::EmailVerification(old) = old { Some(old) } else { None }),
                new,
            )?,
            _ => None,
        };
        Ok(happened.map(|(meta, data)| self.published(record, meta, data)))
    }

    fn stock<'a>(&self, before: Before<'_, Stock>, new: &'a Stored<Stock>) -> Happened<'a> {
        // The first shard stands for all of them, because orders choose their shard by a hash.
        let shards = u64::from(new.shards());
        let threshold = self.stock_low.div_ceil(shards);
        let is_sold = new.sellable && new.location == LocationId::main();
        if !is_sold || new.available >= threshold || new.shard > 0 {
            return Ok(None);
        }
        let crossed = match before {
            // If a product starts with little stock, its stock did not fall below the threshold.
            Before::Absent => false,
            Before::Unreadable => return Err(UnreadableOldImage),
            Before::Known(old) => old.sellable && old.shards == new.shards && old.available >= threshold,
        };
        let low = || StockLow {
            product_id: new.product_id.clone(),
            available: new.available.saturating_mul(shards),
            threshold: self.stock_low,
        };
        Ok(crossed.then(|| (&new.meta, low().into())))
    }

    fn published(&self, record: &Record<'_>, meta: &Meta, data: Data) -> Event {
        let origin = Origin { table: &self.table, key: &record.key, born: &meta.born, rev: meta.rev };
        let (id, correlation_id) = (EventId::derive(origin, data.kind()), record.origin.cause.clone());
        Event { id, occurred_at: meta.updated_at, sequence: meta.rev, correlation_id, data }
    }
}

enum Before<'a, T> {
    Absent,
    /// The item existed, but its old image cannot be read.
    Unreadable,
    Known(&'a Stored<T>),
}

fn before<T>(change: &Mutation, of: impl Fn(&AnyEntity) -> Option<&Stored<T>>) -> Before<'_, T> {
    match change {
        Mutation::Changed { old, .. } => old.as_ref().and_then(of).map_or(Before::Unreadable, Before::Known),
        Mutation::Created { .. } | Mutation::Removed { .. } => Before::Absent,
    }
}

/// The data of an event, if there is one, with the item's metadata.
type Happened<'a> = Result<Option<(&'a Meta, Data)>, UnreadableOldImage>;

fn order<'a>(before: Before<'_, Order>, new: &'a Stored<Order>) -> Happened<'a> {
    if new.status == OrderStatus::Placing {
        // An order in status `placing` is invisible, even if it had another status before.
        return Ok(None);
    }
    let from = match before {
        // An order that is new and already closed was restored from the archive, not placed.
        Before::Absent if new.status.is_closed() => return Ok(None),
        Before::Absent => OrderStatus::Placing,
        Before::Unreadable => return Err(UnreadableOldImage),
        Before::Known(old) => old.status,
    };
    let data: Data = match from {
        OrderStatus::Placing => OrderPlaced::from(&new.data).into(),
        from if from == new.status => return Ok(None),
        from => OrderStatusChanged {
            order_id: new.id.clone(),
            customer_id: new.customer_id.clone(),
            agent: new.origin.as_ref().map(|origin| origin.agent.clone()),
            from,
            to: new.status,
            reason: (new.lapsed && new.status == OrderStatus::Cancelled).then_some(Reason::Lapsed),
            total: new.total,
            placed_at: new.placed_at,
        }
        .into(),
    };
    Ok(Some((&new.meta, data)))
}

fn customer<'a>(before: Before<'_, Customer>, new: &'a Stored<Customer>) -> Happened<'a> {
    let from = match before {
        Before::Absent => return Ok(None),
        Before::Unreadable => return Err(UnreadableOldImage),
        Before::Known(old) => old.tier,
    };
    let changed = || CustomerTierChanged { customer_id: new.id.clone(), from, to: new.tier };
    Ok((from != new.tier).then(|| (&new.meta, changed().into())))
}

fn review<'a>(change: &Mutation, new: &'a Stored<Review>) -> Option<(&'a Meta, Data)> {
    let Mutation::Created { .. } = change else { return None };
    let (product_id, customer_id) = (new.product_id.clone(), new.customer_id.clone());
    Some((&new.meta, ReviewPosted { product_id, customer_id, rating: new.rating }.into()))
}

fn notified<'a>(change: &Mutation, new: &'a Stored<ProviderEvent>) -> Option<(&'a Meta, Data)> {
    let Mutation::Created { .. } = change else { return None };
    Some((&new.meta, PaymentNotified { intent: new.intent.clone(), order_id: new.order_id.clone() }.into()))
}

/// Returns the event of a payment of which more is refunded than before, or whose authorisation has ended
/// without a capture.
fn reversed<'a>(before: Before<'_, Payment>, new: &'a Stored<Payment>) -> Happened<'a> {
    let is_cancelled = new.status == PaymentStatus::Cancelled && new.authorised > 0;
    if new.refunded == 0 && !is_cancelled {
        return Ok(None);
    }
    let (reversal, amount) = match before {
        // A payment that is new and already refunded was restored from the archive.
        Before::Absent => return Ok(None),
        Before::Unreadable => return Err(UnreadableOldImage),
        Before::Known(old) if new.refunded > old.refunded => {
            (Reversal::Refund, new.refunded.saturating_sub(old.refunded))
        }
        Before::Known(old) if is_cancelled && old.status == PaymentStatus::Authorised => {
            (Reversal::Release, old.authorised)
        }
        Before::Known(_) => return Ok(None),
    };
    let data = PaymentReversed {
        order_id: new.order_id.clone(),
        customer_id: new.customer_id.clone(),
        payment_id: new.id.clone(),
        method: new.method,
        reversal,
        amount: new.money(amount),
    };
    Ok(Some((&new.meta, data.into())))
}

/// Returns the event of a new request for a code. A request is new if its code expires at another
/// instant than the previous code. Tries and the use of a code do not change this instant.
fn verification<'a>(before: Before<'_, EmailVerification>, new: &'a Stored<EmailVerification>) -> Happened<'a> {
    let is_known = match before {
        Before::Absent => false,
        Before::Unreadable => return Err(UnreadableOldImage),
        Before::Known(old) => old.code_expires_at == new.code_expires_at,
    };
    let requested =
        || EmailVerificationRequested { customer_id: new.customer_id.clone(), expires_at: new.code_expires_at };
    Ok((!is_known && new.nonce.is_some()).then(|| (&new.meta, requested().into())))
}
