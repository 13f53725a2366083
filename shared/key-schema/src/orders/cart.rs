//! Carts: one item per customer, one map entry per line.
//!
//! A cart is small and always read as a whole, so its lines are entries of a map rather than items:
//!
//! - One GetItem reads the cart.
//! - A change of one line writes only its entry.
//! - A condition on the map's size limits the number of lines.
//! - The transaction that places an order from the cart also removes the cart, if its `rev` is
//!   unchanged since the read.

use std::collections::BTreeMap;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::customer::{self, Customer};
use crate::expression::{Condition, first_alive, number, value};
use crate::id::{CustomerId, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::product::{self, Product, Stock};
use crate::request::{BatchGet, Get, Guarded, Single};

pub const MAX_LINES: usize = 100;
/// How long a cart is kept after a line was last set.
pub const LIFETIME_SECONDS: i64 = 7 * 24 * 60 * 60;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CartLine {
    pub quantity: u64,
    /// When the line was added. A change of the quantity keeps it, and with it the line's place.
    pub added_at: Instant,
}

/// Returns the lines in the sequence in which they were added. Of two lines of the same instant,
/// the ids of the products decide.
#[must_use]
pub fn in_sequence(lines: &BTreeMap<ProductId, CartLine>) -> Vec<(&ProductId, &CartLine)> {
    let mut lines: Vec<_> = lines.iter().collect();
    lines.sort_by_key(|(_, line)| line.added_at);
    lines
}

entity! {
    Cart = "Cart" {
        fixed {
            customer_id: CustomerId,
            /// When the cart expires. It is also the time to live. Each [`put_line`] sets it anew.
            expires_at: Instant,
        }
        mutable by CartChanges {
            lines: BTreeMap<ProductId, CartLine>,
        }
    }
}

impl Entity for Cart {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.customer_id)
    }

    fn expires(&self) -> Option<Instant> {
        Some(self.expires_at)
    }
}

pub(crate) fn key(customer: &CustomerId) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("CART", &[customer])?, sk: SortKey::new("CART")? })
}

patterns! {
    GET {
        id: "carts.get",
        purpose: "Read a cart",
        request: GetItem,
        key: "PK = CART#<customer>, SK = CART",
        returns: "the cart with its lines",
        consistency: Consistency::Strong("a customer reads the cart right after changing it"),
        callers: "owner",
    }
    PREPARE {
        id: "carts.prepare",
        purpose: "Read the customer, the product, its stock and the cart before a cart line is set",
        request: BatchGetItem,
        key: "PK = CUSTOMER#<id>, SK = PROFILE; PK = PRODUCT#<id>, SK = PRODUCT; PK = \
            STOCK#<id>#<location>#<shard>, SK = STOCK; PK = CART#<customer>, SK = CART",
        returns: "the customer, the product, its stock, the cart",
        consistency: Consistency::Strong("a customer may fill the cart right after signing up"),
        callers: "owner",
    }
    PRODUCTS {
        id: "carts.products",
        purpose: "Read the prices and stocks of the lines of a cart",
        request: BatchGetItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT, for each line; PK = STOCK#<id>#<location>#<shard>, SK = STOCK, for \
            each line",
        returns: "the products with their prices, and their stocks",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    CREATE {
        id: "carts.create",
        purpose: "Create a cart with its first line",
        request: PutItem,
        key: "PK = CART#<customer>, SK = CART",
        requires: "the cart does not exist, or it has expired",
        callers: "owner",
    }
    PUT_LINE {
        id: "carts.put-line",
        purpose: "Set one line of a cart",
        request: UpdateItem,
        key: "PK = CART#<customer>, SK = CART",
        requires: "the cart has not expired and has this line or room for another line; SET \
            lines.<product>",
        callers: "owner",
    }
    REMOVE_LINE {
        id: "carts.remove-line",
        purpose: "Remove one line of a cart",
        request: UpdateItem,
        key: "PK = CART#<customer>, SK = CART",
        requires: "the cart has not expired and has this line; REMOVE lines.<product>",
        callers: "owner",
    }
    DISCARD {
        id: "carts.discard",
        purpose: "Remove a cart",
        request: DeleteItem,
        key: "PK = CART#<customer>, SK = CART",
        requires: "no condition, but an erasure removes only a cart older than any new profile of the \
            customer",
        callers: "owner",
    }
}

/// Reads a cart. The caller treats an expired cart as empty.
pub fn get(customer: &CustomerId) -> Result<Get<Stored<Cart>>, KeyError> {
    Ok(Get::new(&GET, key(customer)?))
}

one_of! {
    pub enum PreparedItem { Cart Customer Product Stock }
}

one_of! {
    pub enum LineItem { Product Stock }
}

/// Reads the customer who fills the cart, the product of a line, its stock and the cart, in this
/// order.
pub fn prepare(customer: &CustomerId, product: &ProductId) -> Result<BatchGet<PreparedItem>, KeyError> {
    let stock = product::stock_key(product)?;
    Ok(BatchGet::new(&PREPARE, vec![customer::key(customer)?, product::key(product)?, stock, key(customer)?]))
}

/// Reads the product and the stock of each of a cart's lines, in the given order. [`with_stocks`]
/// returns the items in pairs.
pub fn products<'a>(ids: impl IntoIterator<Item = &'a ProductId>) -> Result<BatchGet<LineItem>, KeyError> {
    let keys = ids.into_iter().flat_map(|id| [product::key(id), product::stock_key(id)]);
    Ok(BatchGet::new(&PRODUCTS, keys.collect::<Result<_, _>>()?))
}

/// Returns the product and the stock of each line, from the response of [`products`].
pub fn with_stocks(
    items: Vec<Option<LineItem>>,
) -> impl Iterator<Item = (Option<Stored<Product>>, Option<Stored<Stock>>)> {
    let mut items = items.into_iter();
    std::iter::from_fn(move || {
        let product = match items.next()? {
            Some(LineItem::Product(product)) => Some(product),
            _ => None,
        };
        let stock = match items.next()? {
            Some(LineItem::Stock(stock)) => Some(stock),
            _ => None,
        };
        Some((product, stock))
    })
}

fn alive(now: Instant) -> Condition {
    Condition::AtLeast("expires_at", first_alive(now))
}

/// Creates a cart, or replaces an expired cart.
pub fn create(cart: &Stored<Cart>, now: Instant) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(&CREATE, begin(cart, now)?))
}

fn begin(cart: &Stored<Cart>, now: Instant) -> Result<Guarded, EncodeError> {
    Guarded::put(cart, Condition::NotExists.or(Condition::Below("expires_at", first_alive(now))))
}

/// Writes a cart to which the lines of a claimed guest cart were added. DynamoDB refuses the write
/// if the customer's cart has changed since `previous` was read, or if an unexpired cart exists
/// although none was read. The written cart has a new creation time, so [`discard_earlier`] keeps
/// the cart even if `previous` is a cart that an erasure has left.
pub(crate) fn merge(
    merged: &Stored<Cart>,
    previous: Option<&Stored<Cart>>,
    now: Instant,
) -> Result<Guarded, EncodeError> {
    match previous {
        Some(previous) => Guarded::put(merged, unchanged(previous)?.and(alive(now))),
        None => begin(merged, now),
    }
}

/// Sets one line of a cart that has not expired, and returns the cart. DynamoDB refuses the write
/// if a new line would exceed [`MAX_LINES`].
pub fn put_line(
    customer: &CustomerId,
    product: &ProductId,
    line: &CartLine,
    now: Instant,
) -> Result<Single<Stored<Cart>>, EncodeError> {
    let expires = now.plus_seconds(LIFETIME_SECONDS);
    let change = Change::<Cart>::visible(now)
        .set_entry("lines", product.as_str(), line)?
        .set("expires_at", expires)?
        .expire_at(expires);
    let room = Condition::HasEntry("lines", product.to_string()).or(Condition::FewerEntries("lines", MAX_LINES));
    Ok(Single::new(&PUT_LINE, Guarded::update(key(customer)?, change, alive(now).and(room))))
}

/// Removes one line of a cart that has not expired, and returns the cart.
pub fn remove_line(customer: &CustomerId, product: &ProductId, now: Instant) -> Result<Single<Stored<Cart>>, KeyError> {
    let change = Change::<Cart>::visible(now).remove_entry("lines", product.as_str());
    let condition = alive(now).and(Condition::HasEntry("lines", product.to_string()));
    Ok(Single::new(&REMOVE_LINE, Guarded::update(key(customer)?, change, condition)))
}

/// Removes a cart with all its lines, unconditionally.
pub fn discard(customer: &CustomerId) -> Result<Single<()>, KeyError> {
    Ok(Single::new(&DISCARD, Guarded::remove(key(customer)?)))
}

/// Removes a cart that was created before `than`. DynamoDB refuses the write if the cart is newer
/// or missing.
pub fn discard_earlier(customer: &CustomerId, than: Instant) -> Result<Single<()>, EncodeError> {
    let earlier = Condition::Below("created_at", value(than)?);
    Ok(Single::new(&DISCARD, Guarded::delete(key(customer)?, earlier)))
}

/// Removes the cart that was read, as an action of the transaction that places an order from the
/// cart. DynamoDB refuses the write if the cart has changed since the read.
pub fn check_out(cart: &Stored<Cart>) -> Result<Guarded, EncodeError> {
    Ok(Guarded::delete(key(&cart.customer_id)?, unchanged(cart)?))
}

fn unchanged(cart: &Stored<Cart>) -> Result<Condition, EncodeError> {
    Ok(Condition::Is("born", value(&cart.meta.born)?).and(Condition::Is("rev", number(cart.meta.rev))))
}
