use http_api::contract::rules::{Named, QUANTITY, Text, component, described, list, named, text};
use http_api::contract::{Body, Schema};
use http_api::url;
use http_api::view::{CustomerView, OrderSummaryView, QuestionView};
use key_schema::cart::{Cart, CartLine, MAX_LINES};
use key_schema::customer::{OVERVIEW_ORDERS, OVERVIEW_QUESTIONS};
use key_schema::guest_cart::{self, CartToken, GuestCart};
use key_schema::id::{CustomerId, GuestCartId, ProductId, SessionId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::Money;
use key_schema::order;
use key_schema::session::{Session, SessionSummary};
use serde::Serialize;

use crate::cart::Offered;

pub const DEVICE: Named<Text> = named("Device", "The customer's name for the device, 1 to 200 bytes.", text(1..=200));

// The orders and the questions come newest first.
#[derive(Serialize, Schema)]
pub struct OverviewView<'a> {
    pub customer: CustomerView<'a>,
    #[field(rule = list::<OrderSummaryView<'_>>(0..=OVERVIEW_ORDERS))]
    pub orders: Vec<OrderSummaryView<'a>>,
    #[field(rule = list::<QuestionView<'_>>(0..=OVERVIEW_QUESTIONS))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions: Option<Vec<QuestionView<'a>>>,
}

#[derive(Serialize, Schema)]
pub struct SessionView<'a> {
    id: &'a SessionId,
    customer_id: &'a CustomerId,
    #[field(rule = DEVICE, example = "Ann's phone")]
    device: &'a str,
    created_at: Instant,
    #[field(example = "2026-11-21T12:00:00.000Z")]
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

#[derive(Body)]
pub struct CartLineChange {
    #[field(rule = QUANTITY, example = 2)]
    pub quantity: u64,
}

#[derive(Serialize, Schema)]
pub struct CartView<'a> {
    #[field(rule = list::<CartLineView<'_>>(0..=MAX_LINES))]
    items: Vec<CartLineView<'a>>,
    /// The sum of the lines at current prices. It is null for an empty cart, if a line has no price,
    /// and if prices have different currencies.
    #[field(example = {"amount": 258, "currency": "USD"})]
    subtotal: Option<Money>,
    /// The cart's expiry, null for an empty cart.
    #[field(example = "2026-11-27T12:00:00.000Z")]
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

#[derive(Serialize, Schema)]
pub struct GuestCartView<'a> {
    #[field(example = "019a9d2c-3b00-7a41-9c55-6f0e2d1c4b3a")]
    id: &'a GuestCartId,
    #[field(rule = list::<CartLineView<'_>>(0..=guest_cart::MAX_LINES))]
    items: Vec<CartLineView<'a>>,
    /// The sum of the lines at current prices. It is null for an empty cart, if a line has no price,
    /// and if prices have different currencies.
    #[field(example = {"amount": 258, "currency": "USD"})]
    subtotal: Option<Money>,
    #[field(example = "2026-12-04T12:00:00.000Z")]
    expires_at: Instant,
}

impl<'a> GuestCartView<'a> {
    pub fn new(cart: &'a GuestCart, lines: &[(&'a ProductId, &'a CartLine)], products: &'a [Option<Offered>]) -> Self {
        let (items, subtotal) = priced(lines, products);
        Self { id: &cart.id, items, subtotal, expires_at: cart.expires_at }
    }
}

/// A guest cart without lines, in the response that creates it.
#[derive(Serialize, Schema)]
pub struct NewGuestCartView<'a> {
    #[field(example = "019a9d2c-3b00-7a41-9c55-6f0e2d1c4b3a")]
    id: &'a GuestCartId,
    /// The secret that gives access to the cart.
    #[field(example = "5f2b9c0e7d1a4386b2c4d6e8f00112233445566778899aabbccddeeff0011223")]
    token: &'a str,
    #[field(rule = list::<CartLineView<'_>>(0..=0), example = [])]
    items: [(); 0],
    #[field(rule = described(r#"{"type": "null"}"#), example = null)]
    subtotal: (),
    #[field(example = "2026-12-04T12:00:00.000Z")]
    expires_at: Instant,
}

impl<'a> NewGuestCartView<'a> {
    pub fn new(cart: &'a GuestCart, token: &'a CartToken) -> Self {
        Self { id: &cart.id, token: token.as_str(), items: [], subtotal: (), expires_at: cart.expires_at }
    }
}

/// A line of the cart. `name` and the prices are null if the product is no longer in the catalogue.
#[derive(Serialize, Schema)]
pub struct CartLineView<'a> {
    product_id: &'a ProductId,
    #[field(rule = QUANTITY, example = 2)]
    quantity: u64,
    /// The product's name.
    #[field(example = "ICE - CRUSHED/CUBED 22 LB")]
    name: Option<&'a str>,
    /// The current price of one piece.
    unit_price: Option<Money>,
    /// The current price of the line.
    #[field(example = {"amount": 258, "currency": "USD"})]
    total: Option<Money>,
    #[field(rule = component("Thumbnail", "null"), not_null)]
    thumbnail: Option<String>,
    /// Whether at least one piece is in stock.
    in_stock: bool,
    #[field(rule = component("Available", "true"))]
    available: bool,
    /// When the line was added. The lines are sorted by it.
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
