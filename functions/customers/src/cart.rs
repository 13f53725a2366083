//! The cart. A request sets or removes a whole line, so it needs no If-Match and can be repeated.
//! An expired cart is empty, even if DynamoDB has not removed it yet.

use std::collections::BTreeMap;

use http_api::contract::route;
use http_api::{Code, Problem, Request, Response, Services};
use key_schema::cart::{self, Cart, CartLine, LIFETIME_SECONDS, MAX_LINES};
use key_schema::customer::Customer;
use key_schema::id::{CustomerId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Stored, take};
use key_schema::product::{Product, Stock};
use table::TableError;
use workflows::{WorkflowError, old_stock, stock};

use crate::owner;
use crate::profile::no_customer;
use crate::view::{CartLineChange, CartLineView, CartView};

/// The maximum number of attempts to set a line. An attempt updates the cart. If there is no cart,
/// it then creates one. The attempt fails only if another request creates the cart between these
/// two writes, which happens rarely.
const ATTEMPTS: usize = 3;

/// Read the cart
///
/// Returns the cart, with its lines in the sequence in which they were added. A quote has the same
/// sequence. A cart expires seven days after a line was last set. An expired or missing cart is
/// returned as an empty cart.
#[route(GET "/v1/customers/{id}/cart", id = "readCart", who = owner, task = "cart", path(id: CustomerId),
    answers(200 = CartView<'_> "The cart" [LeftOut]))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let cart = current(services, owner.customer()).await?;
    respond(services, cart.as_ref()).await
}

/// Returns the response with a cart, or with an empty cart.
pub async fn respond(services: &Services, cart: Option<&Cart>) -> Result<Response, Problem> {
    let lines = cart.map(|cart| cart::in_sequence(&cart.lines)).unwrap_or_default();
    let (products, left_out) = products(services, &lines).await?;
    Ok(Response::ok(&CartView::new(cart, &lines, &products)).leaving_out(left_out))
}

/// Read one line of the cart
#[route(GET "/v1/customers/{id}/cart/items/{product}", id = "readCartLine", who = owner, task = "cart",
    path(id: CustomerId, product: ProductId), answers(200 = CartLineView<'_> "The line" [LeftOut]))]
pub async fn read_line(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let product: ProductId = request.path("product")?;
    let cart = current(services, owner.customer()).await?;
    let line = cart.as_ref().and_then(|cart| cart.lines.get_key_value(&product));
    let line = line.ok_or_else(|| Problem::not_found("line in the cart"))?;
    let (mut products, left_out) = products(services, &[line]).await?;
    let product = products.pop().flatten();
    Ok(Response::ok(&CartLineView::new(line, product.as_ref())).leaving_out(left_out))
}

/// Empty the cart
///
/// Removes all lines. If the cart is empty, the request also succeeds.
#[route(DELETE "/v1/customers/{id}/cart", id = "emptyCart", who = owner, task = "cart", path(id: CustomerId),
    answers(204 = () "Done"))]
pub async fn empty(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let _ = services.table.write(&cart::discard(owner.customer())?).await?;
    Ok(Response::no_content())
}

/// Set one line of the cart
///
/// Sets the quantity of the line, or adds the line at the end. A line in the cart keeps its place
/// and its `added_at`. So the request can be repeated, needs no If-Match, and leaves an open quote
/// valid if the quantity is the same. A cart has at most 100 lines.
#[route(PUT "/v1/customers/{id}/cart/items/{product}", id = "putCartLine", who = owner, task = "cart",
    path(id: CustomerId, product: ProductId), body = CartLineChange, answers(200 = CartLineView<'_> "The line"),
    refuses(has_variants = "the product is sold only as variants", unknown_product, too_many_lines))]
pub async fn put_line(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let product: ProductId = request.path("product")?;
    let CartLineChange { quantity } = request.body()?;
    let now = Instant::now();
    let (stored, cart) = check(services, owner.customer(), &product, quantity).await?;
    let lines = cart.as_ref().filter(|cart| !cart.is_expired(now)).map(|cart| &cart.lines);
    let line = CartLine { quantity, added_at: added_at(lines, &product, now) };
    set_line(services, owner.customer(), &product, &line, now).await?;
    Ok(Response::ok(&CartLineView::new((&product, &line), Some(&stored))))
}

/// Remove one line of the cart
///
/// Removes the line. If the line is missing, the request also succeeds.
#[route(DELETE "/v1/customers/{id}/cart/items/{product}", id = "deleteCartLine", who = owner, task = "cart",
    path(id: CustomerId, product: ProductId), answers(204 = () "Done"))]
pub async fn remove_line(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let product: ProductId = request.path("product")?;
    let _ = services.table.update(&cart::remove_line(owner.customer(), &product, Instant::now())?).await?;
    Ok(Response::no_content())
}

/// Returns the customer's cart, unless it has expired.
async fn current(services: &Services, customer: &CustomerId) -> Result<Option<Cart>, Problem> {
    let now = Instant::now();
    let cart = services.table.get(&cart::get(customer)?).await?;
    Ok(cart.map(|cart| cart.data).filter(|cart| !cart.is_expired(now)))
}

/// A product of the catalogue, with its stock.
#[derive(Debug)]
pub struct Offered {
    pub product: Stored<Product>,
    /// The stock. It is [`None`] if it must be repaired, and then the product cannot be sold.
    pub stock: Option<Stored<Stock>>,
}

impl Offered {
    pub fn of((product, stock): (Option<Stored<Product>>, Option<Stored<Stock>>)) -> Option<Self> {
        Some(Self { product: product.filter(|product| !product.retired)?, stock })
    }

    /// Adds the pieces of the stock's further shards, if its first shard has too few for the line. Looks
    /// again for a missing stock, because it may not be moved yet.
    pub async fn with_pieces(&mut self, services: &Services, quantity: u64) -> Result<(), Problem> {
        if self.stock.is_none() {
            let seen = stock::seen(&services.table, &self.product.id).await;
            self.stock = old_stock::readable(seen).map_err(stock_failed)?;
        }
        if let Some(stock) = self.stock.take() {
            let whole = stock::wanted(&services.table, &self.product, stock, quantity).await;
            self.stock = Some(whole.map_err(stock_failed)?);
        }
        Ok(())
    }

    pub fn is_in_stock(&self) -> bool {
        self.stock.as_ref().is_some_and(|stock| stock.in_stock())
    }

    pub fn is_available(&self, quantity: u64) -> bool {
        self.stock.as_ref().is_some_and(|stock| stock.can_supply(quantity, &self.product.meta.born))
    }
}

fn stock_failed(error: WorkflowError<()>) -> Problem {
    match error {
        WorkflowError::Table(error) => error.into(),
        WorkflowError::Contended => TableError::Contended.into(),
        error => Problem::internal(error),
    }
}

/// Returns the products of these lines, in the same order, and [`None`] for each product that is
/// not in the catalogue or cannot be decoded. Also returns the number of unreadable items.
pub async fn products(
    services: &Services,
    lines: &[(&ProductId, &CartLine)],
) -> Result<(Vec<Option<Offered>>, usize), Problem> {
    let read = cart::products(lines.iter().map(|(product, _)| *product))?;
    let found = services.table.batch_get_readable(&read).await?;
    let left_out = found.unreadable.len();
    let mut offered: Vec<_> = cart::with_stocks(found.items).map(Offered::of).collect();
    for (offered, (_, line)) in offered.iter_mut().zip(lines) {
        if let Some(offered) = offered {
            offered.with_pieces(services, line.quantity).await?;
        }
    }
    Ok((offered, left_out))
}

/// Returns when a line was added: now, unless the cart has the line. So a repeated request changes
/// nothing, and a line with another quantity keeps its place.
pub fn added_at(lines: Option<&BTreeMap<ProductId, CartLine>>, product: &ProductId, now: Instant) -> Instant {
    lines.and_then(|lines| lines.get(product)).map_or(now, |line| line.added_at)
}

/// Returns the product of a line, if the customer exists and the catalogue has the product, and the
/// customer's cart.
async fn check(
    services: &Services,
    customer: &CustomerId,
    product: &ProductId,
    quantity: u64,
) -> Result<(Offered, Option<Stored<Cart>>), Problem> {
    let mut found = services.table.batch_get(&cart::prepare(customer, product)?).await?;
    take::<Customer, _>(&mut found).ok_or_else(no_customer)?;
    let mut product = in_catalogue(Offered::of((take(&mut found), take(&mut found))))?;
    product.with_pieces(services, quantity).await?;
    Ok((product, take(&mut found)))
}

/// Returns the product of a new line, 422 if the catalogue does not have it, or 409 if it is sold
/// only as variants.
pub fn in_catalogue(offered: Option<Offered>) -> Result<Offered, Problem> {
    let offered =
        offered.ok_or_else(|| Problem::new(Code::UnknownProduct, "The catalogue has no product with this id."))?;
    if offered.product.variants.is_some() {
        let detail = "The product is sold only as variants. Add a variant from the product's page to the cart.";
        return Err(Problem::new(Code::HasVariants, detail));
    }
    Ok(offered)
}

pub fn too_many_lines(most: usize) -> Problem {
    Problem::new(Code::TooManyLines, format!("The cart can have at most {most} lines."))
}

async fn set_line(
    services: &Services,
    customer: &CustomerId,
    product: &ProductId,
    line: &CartLine,
    now: Instant,
) -> Result<(), Problem> {
    for _ in 0..ATTEMPTS {
        let put = cart::put_line(customer, product, line, now)?;
        let Err(refusal) = services.table.update(&put).await? else { return Ok(()) };
        if refusal.stored::<Stored<Cart>>()?.is_some_and(|cart| !cart.is_expired(now)) {
            return Err(too_many_lines(MAX_LINES));
        }
        // Without a cart, or with an expired one, the line starts a new cart.
        let lines = BTreeMap::from([(product.clone(), line.clone())]);
        let begun = Cart { customer_id: customer.clone(), expires_at: now.plus_seconds(LIFETIME_SECONDS), lines };
        let begun = Stored::new(begun, services.born(now)?, now);
        if services.table.write(&cart::create(&begun, now)?).await?.is_ok() {
            return Ok(());
        }
    }
    Err(TableError::Contended.into())
}
