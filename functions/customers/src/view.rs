//! The JSON bodies of responses.

use http_api::view::CustomerView;
use key_schema::cart::{Cart, CartLine};
use key_schema::id::{CustomerId, ProductId, SessionId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::Summary;
use key_schema::session::{Listed, Session};
use serde::Serialize;

/// A customer with the newest orders, newest first.
#[derive(Debug, Serialize)]
pub struct OverviewView<'a> {
    /// The customer.
    pub customer: CustomerView<'a>,
    /// The orders.
    pub orders: &'a [Summary],
}

/// A session.
#[derive(Debug, Serialize)]
pub struct SessionView<'a> {
    id: &'a SessionId,
    customer_id: &'a CustomerId,
    device: &'a str,
    created_at: Instant,
    expires_at: Instant,
}

impl<'a> From<&'a Stored<Session>> for SessionView<'a> {
    fn from(session: &'a Stored<Session>) -> Self {
        Self {
            id: &session.id,
            customer_id: &session.customer_id,
            device: &session.device,
            created_at: session.meta.created_at,
            expires_at: session.expires_at,
        }
    }
}

impl<'a> From<&'a Listed> for SessionView<'a> {
    fn from(session: &'a Listed) -> Self {
        let Listed { id, customer_id, device, created_at, expires_at } = session;
        Self { id, customer_id, device, created_at: *created_at, expires_at: *expires_at }
    }
}

/// A cart. An empty one has no `expires_at`, whether it was emptied, has expired or never existed.
#[derive(Debug, Serialize)]
pub struct CartView<'a> {
    items: Vec<CartLineView<'a>>,
    expires_at: Option<Instant>,
}

impl<'a> From<Option<&'a Cart>> for CartView<'a> {
    fn from(cart: Option<&'a Cart>) -> Self {
        let filled = cart.filter(|cart| !cart.lines.is_empty());
        let lines = filled.into_iter().flat_map(|cart| &cart.lines);
        Self { items: lines.map(CartLineView::from).collect(), expires_at: filled.map(|cart| cart.expires_at) }
    }
}

/// One line of a cart.
#[derive(Debug, Serialize)]
pub struct CartLineView<'a> {
    product_id: &'a ProductId,
    quantity: u64,
    added_at: Instant,
}

impl<'a> From<(&'a ProductId, &'a CartLine)> for CartLineView<'a> {
    fn from((product_id, line): (&'a ProductId, &'a CartLine)) -> Self {
        Self { product_id, quantity: line.quantity, added_at: line.added_at }
    }
}
