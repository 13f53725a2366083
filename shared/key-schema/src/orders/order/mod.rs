//! Orders: head, lines and history in one partition, a copy for the customer's list, and the lists
//! by status.
//!
//! The partition `ORDER#<id>` holds the lines `ITEM#<line>`, the head `ORDER`, the history
//! `STATUS#<instant>#<status>` and the payments ([`crate::payment`]). One Query reads them together,
//! or only the lines or only the history. The customer's partition holds a copy, `ORDER#<order id>`, with the
//! attributes that appear in lists. The transaction that changes the head also changes the copy.

pub mod addresses;
mod charges;
pub mod daily_log;
pub mod guest;
mod index_keys;
mod log;
mod number;
pub mod open;
pub mod parts;
mod patterns;
mod placed;
mod reference;
mod requests;
mod retire;
pub mod staged;
mod status;
mod transition;
mod views;

use item_model::prelude::*;

use crate::customer;
use crate::id::{Born, CustomerId, MediaId, OrderId, OrderReference, ProductId, StoreId, is_guest};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::lists;
use crate::money::{Money, MoneyError};
use crate::product::{self, Picks};
use crate::request::Guarded;
use crate::shard::Shards;
use addresses::Destination;
use open::LapseIndexKey;
use staged::{Unfinished, UnfinishedIndexKey};

pub use crate::checkout_session::Origin;
pub use charges::{Charges, ChosenMethod, LineDiscount, ShippingTax, TaxLine, TaxRate, TaxRounding};
pub use index_keys::{ShipmentIndexKey, StatusIndexKey};
pub use log::{OrderLog, OrderLogChanges, add_log, log};
pub use number::{NumberClaim, OrderNumber, OrderNumberError};
pub use patterns::*;
pub use placed::{PlacedOrder, history, place};
pub use reference::ReferenceClaim;
pub use requests::*;
pub use retire::retire;
pub use status::{OrderStatus, UnknownStatus};
pub use transition::{LAPSED, RETURNED_AT_ONCE, SYSTEM, Step, change_payments, lapse, revive, transition};
pub use views::{ListedOrder, LogLine, OrderSummary, Shipment};

pub const MAX_LINES: usize = 500;
pub const MAX_LINE_DISCOUNTS: usize = 5;
/// The maximum number of pieces in one line.
pub const MAX_QUANTITY: u64 = 1_000_000;
/// The largest total of an order, in minor units. A write adds an order's total to its shop's daily
/// total without reading that total. With this bound, a daily total of 900,000 orders still fits 64
/// bits.
pub const MAX_TOTAL: i64 = 10_000_000_000_000;

entity! {
    /// The head of an order: its main item, without the lines and the history.
    Order = "Order" {
        fixed {
            /// The id of the order. The id contains the time of `placed_at`, and the order's number
            /// follows from it ([`OrderNumber`]).
            id: OrderId,
            customer_id: CustomerId,
            /// The status. It is part of the order's key in the list by status.
            status: OrderStatus,
            placed_at: Instant,
            /// The client's own number for the order. It is unique among the orders that one
            /// customer placed, or among the orders that staff placed ([`ReferenceClaim`]).
            #[serde(skip_serializing_if = "Option::is_none", default)]
            reference: Option<OrderReference>,
            /// Whether the customer, and not staff, placed the order.
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            by_customer: bool,
            /// The instant at which the order lapses if it is still pending. An order without it
            /// never lapses.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            lapses_at: Option<Instant>,
            /// The hash of the token with which a guest opens the order ([`guest::OrderToken`]).
            #[serde(skip_serializing_if = "Option::is_none", default)]
            token_hash: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none", default)]
            store_id: Option<StoreId>,
            /// The agent that placed the order, with its checkout.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            origin: Option<Origin>,
            /// The country and city to which the order is sent, if it has an address. The address
            /// itself is in [`addresses::OrderAddresses`].
            #[serde(skip_serializing_if = "Option::is_none", default)]
            destination: Option<Destination>,
            /// The amount that is charged: the sum of the lines, and the price of shipping.
            total: Money,
            /// The parts of the total, if the order was placed from a quote or its lines have
            /// discounts.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            charges: Option<Charges>,
            line_count: u64,
            /// The instant at which a retired order expires ([`retire`]), which is also its time to
            /// live.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            expires_at: Option<Instant>,
            /// The unfinished work that takes several transactions, if there is any.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            unfinished: Option<Unfinished>,
            /// The number of shards with which the order's index key in the list by status is
            /// computed ([`crate::lists`]).
            #[serde(skip_serializing_if = "lists::is_first", default = "lists::first")]
            list_shards: Shards,
        }
        mutable by OrderChanges {
            #[serde(skip_serializing_if = "Option::is_none", default)]
            invoice_number: Option<u64>,
            /// The refunded amount, in minor units: the sum of the payments' refunds.
            #[serde(skip_serializing_if = "is_zero", default)]
            refunded: i64,
            /// Whether the order was cancelled because it had lapsed.
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            lapsed: bool,
        }
    }
}

impl Order {
    /// Creates a pending order that staff place. It has no reference, does not lapse, and is not
    /// paid.
    #[must_use]
    pub const fn new(id: OrderId, customer_id: CustomerId, placed_at: Instant, total: Money, line_count: u64) -> Self {
        Self {
            id,
            customer_id,
            status: OrderStatus::Pending,
            placed_at,
            reference: None,
            by_customer: false,
            lapses_at: None,
            token_hash: None,
            store_id: None,
            origin: None,
            destination: None,
            total,
            charges: None,
            line_count,
            expires_at: None,
            unfinished: None,
            list_shards: lists::FIRST,
            invoice_number: None,
            refunded: 0,
            lapsed: false,
        }
    }
}

impl Order {
    /// Returns whether a late payment may make the order `paid` again ([`revive`]). A person who
    /// cancelled the order wants the money back, so it must have lapsed. All its stock must be back, and
    /// one transaction must be able to take it again. The limits of promotions are not in the order, so
    /// their uses cannot be counted again.
    #[must_use]
    pub fn may_revive(&self) -> bool {
        let has_lapsed = self.status == OrderStatus::Cancelled && self.lapsed;
        let is_small = usize::try_from(self.line_count).is_ok_and(|lines| lines <= RETURNED_AT_ONCE);
        let is_counted = self.promotions().iter().any(|used| used.counted || used.counted_per_customer);
        has_lapsed && self.expires_at.is_none() && self.unfinished.is_none() && is_small && !is_counted
    }

    /// Returns whether the order was placed with addresses or by a guest, so that there is an item of
    /// its [`addresses`] unless an erasure has removed it.
    #[must_use]
    pub fn has_addresses(&self) -> bool {
        self.destination.is_some() || self.customer_id.is_guest()
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(amount: &i64) -> bool {
    *amount == 0
}

impl Entity for Order {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id)
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        let unfinished =
            self.unfinished.as_ref().map(|unfinished| UnfinishedIndexKey { unfinished, id: &self.id }.key());
        // The list by status contains no order that is being placed, and no retired order.
        let listed = self.status != OrderStatus::Placing && self.expires_at.is_none();
        let listed = listed.then(|| StatusIndexKey::of(self, self.status).key());
        let lapses_at = self.lapses_at.filter(|_| self.status == OrderStatus::Pending && self.expires_at.is_none());
        let lapsing = lapses_at.map(|lapses_at| LapseIndexKey { lapses_at, id: &self.id }.key());
        unfinished.into_iter().chain(listed).chain(lapsing).collect()
    }

    fn expires(&self) -> Option<Instant> {
        self.expires_at
    }
}

entity! {
    /// One line of an order, as sold. Name, picture and price stay as they were at the sale, even if
    /// those of the product change.
    OrderLine = "OrderLine" {
        fixed {
            order_id: OrderId,
            /// The number of the line, from 1.
            line: u64,
            product_id: ProductId,
            /// The product's `born` at the sale. A revival of the product changes it.
            product_born: Born,
            /// The name of the product at the sale.
            name: String,
            /// The id of the product's first picture at the sale.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            thumbnail: Option<MediaId>,
            quantity: u64,
            /// The catalogue price of one piece at the sale.
            unit_price: Money,
            /// The price of the line: quantity times unit price, less the discount, plus the tax
            /// that the price does not include. Staff may instead enter the amount that was
            /// actually paid.
            total: Money,
            /// The discount, in minor units.
            #[serde(skip_serializing_if = "is_zero", default)]
            discount: i64,
            /// The discounts that staff entered. Their sum is the discount.
            #[serde(skip_serializing_if = "Vec::is_empty", default)]
            discounts: Vec<LineDiscount>,
            /// The tax, in minor units, whether the price includes it or not.
            #[serde(skip_serializing_if = "is_zero", default)]
            tax: i64,
            /// The rate of the tax, if there is a tax rule.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            tax_rate: Option<TaxRate>,
            /// The time to live of a retired order's line.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            expires_at: Option<Instant>,
            /// The number of the stock's shards when the order was placed, if there were several. The
            /// sales are counted in as many items ([`crate::sales`]).
            #[serde(skip_serializing_if = "Option::is_none", default)]
            stock_shards: Option<u32>,
            /// The shards of the stock that give the pieces. They are not stored.
            #[serde(skip)]
            picks: Picks,
        }
        mutable {}
    }
}

impl OrderLine {
    /// Returns the actions that take the line's pieces.
    fn take(&self, at: Instant) -> Result<impl Iterator<Item = (OrderAction, Guarded)>, EncodeError> {
        let action = OrderAction::Stock(self.line);
        Ok(product::take(self, at)?.into_iter().map(move |guarded| (action, guarded)))
    }
}

impl Entity for OrderLine {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        Ok(Key { pk: partition(&self.order_id)?, sk: SortKey::of("ITEM", &[&self.line])? })
    }

    fn expires(&self) -> Option<Instant> {
        self.expires_at
    }
}

entity! {
    OrderStatusEvent = "OrderStatusEvent" {
        fixed {
            order_id: OrderId,
            status: OrderStatus,
            at: Instant,
            /// The id of the caller who made the change, or [`SYSTEM`].
            by: String,
            /// The reason, in the caller's words. The customer does not see the notes of staff.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            note: Option<String>,
            /// The words of staff for the customer.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            message: Option<String>,
            /// The carrier, if the order was shipped.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            carrier: Option<String>,
            /// The carrier's tracking number.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            tracking: Option<String>,
            /// The time to live of a retired order's event.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            expires_at: Option<Instant>,
        }
        mutable {}
    }
}

impl OrderStatusEvent {
    /// Returns whether a member of staff made the change, and not the order's customer, a guest or the
    /// system.
    #[must_use]
    pub fn is_by_staff(&self, customer: &CustomerId) -> bool {
        self.by != customer.as_str() && self.by != SYSTEM && !is_guest(&self.by)
    }
}

impl Entity for OrderStatusEvent {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        Ok(Key { pk: partition(&self.order_id)?, sk: SortKey::of("STATUS", &[&self.at, &self.status.as_str()])? })
    }

    fn expires(&self) -> Option<Instant> {
        self.expires_at
    }
}

entity! {
    /// The customer's copy of an order: the shipment, and the attributes that appear in lists and
    /// in the overview.
    CustomerOrder = "CustomerOrder" {
        fixed {
            id: OrderId,
            customer_id: CustomerId,
            placed_at: Instant,
            /// The client's own number for the order.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            reference: Option<OrderReference>,
            /// The country and city to which the order is sent, if it has an address.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            destination: Option<Destination>,
            /// The amount to pay: the lines and the shipping.
            total: Money,
            line_count: u64,
            /// The instant of shipment. An order without it is not in the index of shipments.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            shipped_at: Option<Instant>,
            /// The instant at which a retired order expires, which is also its time to live.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            expires_at: Option<Instant>,
        }
        mutable by CustomerOrderChanges {
            status: OrderStatus,
            #[serde(skip_serializing_if = "Option::is_none", default)]
            carrier: Option<String>,
            /// The carrier's tracking number.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            tracking: Option<String>,
        }
    }
}

impl CustomerOrder {
    /// Returns the customer's copy of an order, without a shipment.
    #[must_use]
    pub fn of(order: &Order) -> Self {
        Self {
            id: order.id.clone(),
            customer_id: order.customer_id.clone(),
            placed_at: order.placed_at,
            reference: order.reference.clone(),
            destination: order.destination.clone(),
            total: order.total,
            line_count: order.line_count,
            shipped_at: None,
            expires_at: order.expires_at,
            status: order.status,
            carrier: None,
            tracking: None,
        }
    }
}

impl Entity for CustomerOrder {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        copy_key(&self.customer_id, &self.id)
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        // The index of shipments does not contain retired orders.
        self.shipped_at
            .filter(|_| self.expires_at.is_none())
            .map(|shipped_at| ShipmentIndexKey { customer_id: &self.customer_id, shipped_at, id: &self.id }.key())
            .into_iter()
            .collect()
    }

    fn expires(&self) -> Option<Instant> {
        self.expires_at
    }
}

pub(crate) fn partition(id: &OrderId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("ORDER", &[id])
}

pub(crate) fn key(id: &OrderId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new("ORDER")? })
}

pub(crate) fn copy_key(customer: &CustomerId, order: &OrderId) -> Result<Key, KeyError> {
    Ok(Key { pk: customer::partition(customer)?, sk: SortKey::of("ORDER", &[order])? })
}

/// Returns the sum of an order's lines, or [`None`] if there are no lines.
///
/// # Errors
/// [`MoneyError`] when currencies differ or the sum does not fit.
pub fn total<'a>(lines: impl IntoIterator<Item = &'a Money>) -> Result<Option<Money>, MoneyError> {
    lines.into_iter().try_fold(None, |sum: Option<Money>, line| sum.map_or(Ok(*line), |sum| sum.plus(*line)).map(Some))
}
