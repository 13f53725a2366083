use http_api::url;
use http_api::view::{CustomerView, QuestionView};
use key_schema::cart::{Cart, CartLine};
use key_schema::guest_cart::{CartToken, GuestCart};
use key_schema::id::{CustomerId, GuestCartId, ProductId, SessionId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::Money;
use key_schema::order::{self, OrderSummary};
use key_schema::session::{Session, SessionSummary};
use serde::Serialize;

use crate::cart::Offered;

/// A customer with the newest orders and questions, newest first.
#[derive(Debug, Serialize)]
pub struct OverviewView<'a> {
    pub customer: CustomerView<'a>,
    pub orders: &'a [OrderSummary],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions: Option<Vec<QuestionView<'a>>>,
}

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

impl<'a> From<&'a SessionSummary> for SessionView<'a> {
    fn from(session: &'a SessionSummary) -> Self {
        let SessionSummary { id, customer_id, device, created_at, expires_at } = session;
        Self { id, customer_id, device, created_at: *created_at, expires_at: *expires_at }
    }
}

/// A cart. A cart that is empty, expired or missing has no `expires_at`.
#[derive(Debug, Serialize)]
pub struct CartView<'a> {
    items: Vec<CartLineView<'a>>,
    subtotal: Option<Money>,
    expires_at: Option<Instant>,
}

impl<'a> CartView<'a> {
    /// Creates the view of a cart, with its lines and the product of each line. A line whose product
    /// is [`None`] cannot be ordered.
    pub fn new(
        cart: Option<&'a Cart>,
        lines: &[(&'a ProductId, &'a CartLine)],
        products: &'a [Option<Offered>],
    ) -> Self {
        let filled = cart.filter(|cart| !cart.lines.is_empty());
        let (items, subtotal) = priced(lines, products);
        Self { items, subtotal, expires_at: filled.map(|cart| cart.expires_at) }
    }
}

/// Returns the views of lines with their products, and the sum of the lines.
fn priced<'a>(
    lines: &[(&'a ProductId, &'a CartLine)],
    products: &'a [Option<Offered>],
) -> (Vec<CartLineView<'a>>, Option<Money>) {
    let lines = lines.iter().zip(products);
    let items: Vec<_> = lines.map(|(line, product)| CartLineView::new(*line, product.as_ref())).collect();
    let totals: Option<Vec<Money>> = items.iter().map(|line| line.total).collect();
    let subtotal = totals.and_then(|totals| order::total(&totals).ok()).flatten();
    (items, subtotal)
}

#[derive(Debug, Serialize)]
pub struct GuestCartView<'a> {
    id: &'a GuestCartId,
    /// The token, only in the response that creates the cart.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    items: Vec<CartLineView<'a>>,
    subtotal: Option<Money>,
    expires_at: Instant,
}

impl<'a> GuestCartView<'a> {
    pub fn new(
        cart: &'a GuestCart,
        token: Option<&'a CartToken>,
        lines: &[(&'a ProductId, &'a CartLine)],
        products: &'a [Option<Offered>],
    ) -> Self {
        let (items, subtotal) = priced(lines, products);
        Self { id: &cart.id, token: token.map(CartToken::as_str), items, subtotal, expires_at: cart.expires_at }
    }
}

#[derive(Debug, Serialize)]
pub struct CartLineView<'a> {
    product_id: &'a ProductId,
    quantity: u64,
    name: Option<&'a str>,
    unit_price: Option<Money>,
    total: Option<Money>,
    thumbnail: Option<String>,
    in_stock: bool,
    /// Whether the whole quantity is in stock.
    available: bool,
    added_at: Instant,
}

impl<'a> CartLineView<'a> {
    /// Creates the view of a line. A line without a product has no name and no price.
    pub fn new((product_id, line): (&'a ProductId, &'a CartLine), offered: Option<&'a Offered>) -> Self {
        let product = offered.map(|offered| &offered.product);
        let unit_price = product.map(|product| product.price);
        Self {
            product_id,
            quantity: line.quantity,
            name: product.map(|product| product.name.as_str()),
            unit_price,
            total: unit_price.and_then(|price| price.times(line.quantity).ok()),
            thumbnail: product
                .and_then(|product| product.thumbnail.as_ref())
                .map(|picture| url::picture(product_id.as_str(), picture.as_str())),
            in_stock: offered.is_some_and(Offered::is_in_stock),
            available: offered.is_some_and(|offered| offered.is_available(line.quantity)),
            added_at: line.added_at,
        }
    }
}
