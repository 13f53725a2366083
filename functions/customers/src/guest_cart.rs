//! Guest carts: carts of visitors without an account. A request with a cart's token may read and
//! change the cart. A request without the token gets 404.

use std::collections::BTreeMap;

use http_api::contract::rules::exact_text;
use http_api::contract::{Body, route};
use http_api::url::location;
use http_api::{Problem, Request, Response, Services};
use key_schema::cart::{self, Cart, CartLine};
use key_schema::guest_cart::{self, CartToken, ClaimAction, GuestCart, LIFETIME_SECONDS, MAX_LINES};
use key_schema::id::{CustomerId, GuestCartId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Stored};
use key_schema::order::MAX_QUANTITY;
use table::{Backoff, Refusal, TableError};

use crate::cart::{Offered, added_at, in_catalogue, products, respond, too_many_lines};
use crate::owner;
use crate::profile::no_customer;
use crate::view::{CartLineChange, CartLineView, CartView, GuestCartView, NewGuestCartView};

/// The header with the token.
const TOKEN: &str = "cart-token";
/// The longest token in a body.
const MAX_TOKEN_BYTES: usize = 200;

#[derive(Body)]
struct CartClaim {
    #[field(example = "019a9d2c-3b00-7a41-9c55-6f0e2d1c4b3a")]
    cart_id: GuestCartId,
    /// The token of the guest cart.
    #[field(
        rule = exact_text(1..=MAX_TOKEN_BYTES),
        example = "5f2b9c0e7d1a4386b2c4d6e8f00112233445566778899aabbccddeeff0011223",
    )]
    cart_token: String,
}

/// Create a guest cart
///
/// Creates an empty cart for a visitor without an account. Each request creates another cart. The
/// request has no body. Only this response contains the `token` of the cart. Send the token in the
/// header `Cart-Token` of every later request to `/v1/carts/{id}` and to the paths below it. A guest
/// cart expires 14 days after a line was last set. When the visitor signs in, claim the cart with
/// `POST /v1/customers/{id}/cart/claim`.
#[route(POST "/v1/carts", id = "createGuestCart", who = any, task = "cart",
    answers(201 = NewGuestCartView<'_> "The cart with its token" [Location]),
    refuses(malformed_json, body_too_large, unsupported_content_encoding, invalid_body))]
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
    Ok(Response::created(location, &NewGuestCartView::new(&cart, &token)))
}

/// Read a guest cart
#[route(GET "/v1/carts/{id}", id = "readGuestCart", who = any, task = "cart", path(id: GuestCartId),
    parameters(CartToken), answers(200 = GuestCartView<'_> "The cart" [LeftOut]), refuses(not_found))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let (id, token) = named(request)?;
    let cart = services.table.get(&guest_cart::get(&id)?).await?;
    let cart = cart.filter(|cart| cart.is_open(&token, Instant::now())).ok_or_else(no_cart)?;
    let lines = cart::in_sequence(&cart.lines);
    let (products, left_out) = products(services, &lines).await?;
    Ok(Response::ok(&GuestCartView::new(&cart, &lines, &products)).leaving_out(left_out))
}

/// Remove a guest cart
///
/// Removes the cart. If the cart is missing, the request also succeeds.
#[route(DELETE "/v1/carts/{id}", id = "deleteGuestCart", who = any, task = "cart", path(id: GuestCartId),
    parameters(CartToken), answers(204 = () "Done"),
    refuses(not_found = "the token is wrong, or a customer has claimed the cart"))]
pub async fn remove(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let (id, token) = named(request)?;
    if let Err(refusal) = services.table.write(&guest_cart::discard(&id, &token)?).await?
        && refusal.stored::<Stored<GuestCart>>()?.is_some()
    {
        return Err(no_cart());
    }
    Ok(Response::no_content())
}

/// Set one line of a guest cart
///
/// Sets the quantity of the line, or adds the line at the end. A line in the cart keeps its place
/// and its `added_at`, so the request can be repeated. A guest cart has at most 30 lines.
#[route(PUT "/v1/carts/{id}/items/{product}", id = "putGuestCartLine", who = any, task = "cart",
    path(id: GuestCartId, product: ProductId), parameters(CartToken), body = CartLineChange,
    answers(200 = CartLineView<'_> "The line"),
    refuses(
        not_found,
        has_variants = "the product is sold only as variants",
        unknown_product,
        too_many_lines,
    ))]
pub async fn put_line(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let (id, token) = named(request)?;
    let product: ProductId = request.path("product")?;
    let CartLineChange { quantity } = request.body()?;
    let now = Instant::now();
    let get = guest_cart::get(&id)?;
    let cart = async { Ok(services.table.get(&get).await?) };
    let read = cart::products([&product])?;
    // An unreadable product gets its own refusal, so this read is not that of the cart's products.
    let products = async { Ok::<_, Problem>(services.table.batch_get(&read).await?) };
    let (products, cart) = tokio::try_join!(products, cart)?;
    let mut stored = in_catalogue(cart::with_stocks(products).next().and_then(Offered::of))?;
    stored.with_pieces(services, quantity).await?;
    let lines = cart.as_ref().filter(|cart| cart.is_open(&token, now)).map(|cart| &cart.lines);
    let line = CartLine { quantity, added_at: added_at(lines, &product, now) };
    let put = guest_cart::put_line(&id, &token, &product, &line, now)?;
    if let Err(refusal) = services.table.update(&put).await? {
        refused(&refusal, &token, now)?;
        return Err(too_many_lines(MAX_LINES));
    }
    Ok(Response::ok(&CartLineView::new((&product, &line), Some(&stored))))
}

/// Remove one line of a guest cart
///
/// Removes the line. If the line is missing, the request also succeeds.
#[route(DELETE "/v1/carts/{id}/items/{product}", id = "deleteGuestCartLine", who = any, task = "cart",
    path(id: GuestCartId, product: ProductId), parameters(CartToken), answers(204 = () "Done"), refuses(not_found))]
pub async fn remove_line(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let (id, token) = named(request)?;
    let product: ProductId = request.path("product")?;
    let now = Instant::now();
    if let Err(refusal) = services.table.update(&guest_cart::remove_line(&id, &token, &product, now)?).await? {
        refused(&refusal, &token, now)?;
    }
    Ok(Response::no_content())
}

/// Add a guest cart to the customer's cart
///
/// Adds the lines of a guest cart to the cart, and returns the cart. A product that is in both carts
/// gets the sum of its pieces, at most 1,000,000, and keeps the place that it has in the customer's
/// cart. The other lines have their places by `added_at`. A guest cart can be claimed only once.
/// Until the guest cart expires or is removed, a repeated request of the same customer adds nothing.
/// It returns the customer's cart.
#[route(POST "/v1/customers/{id}/cart/claim", id = "claimCart", who = owner, task = "cart", path(id: CustomerId),
    body = CartClaim, answers(200 = CartView<'_> "The cart" [LeftOut]),
    refuses(
        not_found = "also if the guest cart has expired, if the token is wrong, or if another customer has claimed \
            the cart",
        too_many_lines,
    ))]
pub async fn claim(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let CartClaim { cart_id, cart_token } = request.body()?;
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
        if !guest.is_open(&token, now) {
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
    let token = request.secret(TOKEN).ok_or_else(no_cart)?;
    Ok((id, CartToken::given(token)))
}

/// Explains a refusal: fails with 404 if the stored cart is missing or not open to the caller.
fn refused(refusal: &Refusal, token: &CartToken, now: Instant) -> Result<(), Problem> {
    let cart = refusal.stored::<Stored<GuestCart>>()?;
    cart.filter(|cart| cart.is_open(token, now)).map(|_| ()).ok_or_else(no_cart)
}

fn no_cart() -> Problem {
    Problem::not_found("cart")
}
