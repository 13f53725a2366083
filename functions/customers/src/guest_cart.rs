//! Guest carts: carts of visitors without an account. A request with a cart's token may read and
//! change the cart. A request without the token gets 404.

use std::collections::BTreeMap;

use http_api::fields::{exact_text, integer, parsed};
use http_api::url::location;
use http_api::{Problem, Request, Response, Services, read_fields};
use key_schema::cart::{self, Cart, CartLine};
use key_schema::guest_cart::{self, CartToken, ClaimAction, GuestCart, LIFETIME_SECONDS, MAX_LINES};
use key_schema::id::{GuestCartId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Stored};
use key_schema::order::MAX_QUANTITY;
use table::{Backoff, Refusal, TableError};

use crate::cart::{Offered, added_at, in_catalogue, products, respond, too_many_lines};
use crate::owner;
use crate::profile::no_customer;
use crate::view::{CartLineView, GuestCartView};

/// The header with the token.
const TOKEN: &str = "cart-token";
/// The longest token that the function accepts. The tokens of [`create`] have 64 bytes.
const MAX_TOKEN_BYTES: usize = 200;

/// POST /v1/carts: creates an empty guest cart. Only this response contains the token.
pub async fn create(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.refuse_body()?;
    let now = Instant::now();
    let token = CartToken::new(services.random()?);
    let cart = GuestCart {
        id: GuestCartId::generate(now, services.random()?),
        token_hash: token.hash(),
        expires_at: now.plus_seconds(LIFETIME_SECONDS),
        lines: BTreeMap::new(),
        claim: None,
    };
    let cart = Stored::new(cart, services.born(now)?, now);
    // The table's client does not repeat a write whose response was lost. So if a cart with this id
    // exists, another visitor got the same random id. The token of this request does not open that
    // cart.
    services.table.write(&guest_cart::create(&cart)?).await?.map_err(|_| TableError::Contended)?;
    let location = location(&["carts", cart.id.as_str()]);
    Ok(Response::created(location, &GuestCartView::new(&cart, Some(&token), &[], &[])))
}

pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let (id, token) = named(request)?;
    let cart = services.table.get(&guest_cart::get(&id)?).await?;
    let cart = cart.filter(|cart| is_open(cart, &token, Instant::now())).ok_or_else(no_cart)?;
    let lines = cart::in_sequence(&cart.lines);
    let (products, left_out) = products(services, lines.iter().map(|(product, _)| *product)).await?;
    Ok(Response::ok(&GuestCartView::new(&cart, None, &lines, &products)).leaving_out(left_out))
}

/// DELETE /v1/carts/{id}: removes the cart. A client can repeat the request.
pub async fn remove(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let (id, token) = named(request)?;
    if let Err(refusal) = services.table.write(&guest_cart::discard(&id, &token)?).await?
        && refusal.stored::<Stored<GuestCart>>()?.is_some()
    {
        return Err(no_cart());
    }
    Ok(Response::no_content())
}

pub async fn put_line(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let (id, token) = named(request)?;
    let product: ProductId = request.path("product")?;
    read_fields!(request.object()? => {
        quantity: required(integer(1..=MAX_QUANTITY)),
    });
    let now = Instant::now();
    let get = guest_cart::get(&id)?;
    let cart = async { Ok(services.table.get(&get).await?) };
    let read = cart::products([&product])?;
    // An unreadable product gets its own refusal, so this read is not that of the cart's products.
    let products = async { Ok::<_, Problem>(services.table.batch_get(&read).await?) };
    let (products, cart) = tokio::try_join!(products, cart)?;
    let stored = in_catalogue(cart::with_stocks(products).next().and_then(Offered::of))?;
    let lines = cart.as_ref().filter(|cart| is_open(cart, &token, now)).map(|cart| &cart.lines);
    let line = CartLine { quantity, added_at: added_at(lines, &product, now) };
    let put = guest_cart::put_line(&id, &token, &product, &line, now)?;
    if let Err(refusal) = services.table.update(&put).await? {
        refused(&refusal, &token, now)?;
        return Err(too_many_lines(MAX_LINES));
    }
    Ok(Response::ok(&CartLineView::new((&product, &line), Some(&stored))))
}

pub async fn remove_line(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let (id, token) = named(request)?;
    let product: ProductId = request.path("product")?;
    let now = Instant::now();
    if let Err(refusal) = services.table.update(&guest_cart::remove_line(&id, &token, &product, now)?).await? {
        refused(&refusal, &token, now)?;
    }
    Ok(Response::no_content())
}

/// POST /v1/customers/{id}/cart/claim: adds the lines of a guest cart to the customer's cart.
///
/// A repeated request finds that its first attempt has claimed the guest cart. It adds nothing and
/// returns the customer's cart.
pub async fn claim(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    read_fields!(request.object()? => {
        cart_id: required(parsed::<GuestCartId>),
        cart_token: required(exact_text(1..=MAX_TOKEN_BYTES)),
    });
    let (customer, token) = (owner.customer(), CartToken::given(&cart_token));
    let mut backoff = Backoff::new();
    loop {
        let now = Instant::now();
        let guest = services.table.get(&guest_cart::get(&cart_id)?).await?;
        let guest = guest.filter(|guest| guest.token_hash == token.hash()).ok_or_else(no_cart)?;
        let previous = services.table.get(&cart::get(customer)?).await?.filter(|cart| !cart.is_expired(now));
        if guest.claim.as_ref() == Some(&token.claim_of(customer)) {
            return respond(services, previous.as_deref()).await;
        }
        if !is_open(&guest, &token, now) {
            return Err(no_cart());
        }
        let merged = Cart {
            customer_id: customer.clone(),
            expires_at: now.plus_seconds(cart::LIFETIME_SECONDS),
            lines: merged(previous.as_ref().map(|cart| &cart.lines), &guest.lines),
        };
        if merged.lines.len() > cart::MAX_LINES {
            return Err(too_many_lines(cart::MAX_LINES));
        }
        let merged = Stored::new(merged, services.born(now)?, now);
        let claim = guest_cart::claim(&guest, &token, &merged, previous.as_ref(), now)?;
        match services.table.transact(&claim).await? {
            Ok(()) => return respond(services, Some(&merged)).await,
            Err(refusals) if refusals.names(ClaimAction::Customer) => return Err(no_customer()),
            // One of the carts has changed.
            Err(_) => backoff.after_conflict().await?,
        }
    }
}

/// Returns the lines of both carts. Each line keeps its place, and that of the customer's cart
/// counts for a product in both carts. Such a product has the sum of the pieces, or
/// [`MAX_QUANTITY`] if the sum is larger.
fn merged(
    own: Option<&BTreeMap<ProductId, CartLine>>,
    guest: &BTreeMap<ProductId, CartLine>,
) -> BTreeMap<ProductId, CartLine> {
    let mut lines = own.cloned().unwrap_or_default();
    for (product, line) in guest {
        let add = |own: &mut CartLine| own.quantity = own.quantity.saturating_add(line.quantity).min(MAX_QUANTITY);
        lines.entry(product.clone()).and_modify(add).or_insert_with(|| line.clone());
    }
    lines
}

fn named(request: &Request<'_>) -> Result<(GuestCartId, CartToken), Problem> {
    let id = request.path("id")?;
    let token = request.header(TOKEN).filter(|token| token.len() <= MAX_TOKEN_BYTES).ok_or_else(no_cart)?;
    Ok((id, CartToken::given(token)))
}

/// Returns whether the token opens the cart and the cart has neither expired nor been claimed.
fn is_open(cart: &Stored<GuestCart>, token: &CartToken, now: Instant) -> bool {
    cart.token_hash == token.hash() && !cart.is_expired(now) && cart.claim.is_none()
}

/// Explains a refusal: fails with 404 if the stored cart is missing or not open to the caller.
fn refused(refusal: &Refusal, token: &CartToken, now: Instant) -> Result<(), Problem> {
    let cart = refusal.stored::<Stored<GuestCart>>()?;
    cart.filter(|cart| is_open(cart, token, now)).map(|_| ()).ok_or_else(no_cart)
}

fn no_cart() -> Problem {
    Problem::not_found("cart")
}
