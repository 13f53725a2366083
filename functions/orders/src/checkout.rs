//! Checkout: turns the cart into an order. The transaction that makes the order visible also
//! removes the cart.

use http_api::fields::{boolean, money};
use http_api::{Code, Once, Problem, Request, Response};
use key_schema::cart::{self, Cart, CartLine};
use key_schema::id::{CustomerId, ProductId};
use key_schema::idempotency;
use key_schema::instant::Instant;
use key_schema::order::MAX_TOTAL;

use crate::App;
use crate::addresses;
use crate::lines::WantedLine;
use crate::place::{Wanted, first_response_or, place, replay};
use crate::promotions;
use crate::quote::{self, Quote, Quoted};

/// POST customers/{id}/cart/checkout: places an order for the cart. The Idempotency-Key is
/// optional. Without a key, a repeated request finds an empty cart, because the transaction that
/// places the order removes the cart.
pub async fn checkout(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let services = &app.services;
    let customer_id: CustomerId = request.path("id")?;
    let owner = request.owner(&customer_id)?;
    let mut body = request.object()?;
    let expected_total = body.optional("expected_total", money(0..=MAX_TOTAL));
    let caller = owner.caller();
    // Only staff may send `lapses`. For any other caller it is an unknown field.
    let lapses = if caller.is_staff() { body.optional("lapses", boolean) } else { Some(None) };
    let addresses = addresses::read(&mut body);
    let mut sealed = quote::read(&mut body);
    if let (Some(Some(_)), Some(addresses)) = (&sealed, &addresses)
        && !addresses.is_empty()
    {
        sealed = body.refuse("quote_id", "already contains the addresses, so leave them out");
    }
    let (expected_total, lapses, addresses, sealed) = body.finish((expected_total, lapses, addresses, sealed))?;
    let lapses = lapses == Some(true);
    let once = Once::optional(request)?;
    let now = Instant::now();
    let cart = services.table.get(&cart::get(&customer_id)?).await?.filter(|cart| cart.expires_at > now);
    // The idempotency record is read after the cart. So if the cart is missing because the first
    // attempt has removed it, this read finds the record.
    if let Some(once) = &once
        && let Some(record) = services.table.get(&idempotency::get(once.scope())?).await?
        && let Some(first) = replay(services, once, Some(&record), now).await?
    {
        return Ok(first);
    }
    let Some(cart) = cart.filter(|cart| !cart.lines.is_empty()) else {
        return Err(Problem::new(Code::CartEmpty, "The cart is empty."));
    };
    let (addresses, quote) = match sealed {
        None => (addresses, None),
        Some(sealed) => {
            let quote = Quote::open(services, &customer_id, &sealed, now).await?;
            let (rules, limits) = tokio::try_join!(quote::rules(services), app.limits())?;
            let promotions = match promotions::usable(services, &customer_id, &rules, quote.codes(), None, now).await {
                Ok(promotions) => promotions,
                // The first attempt may have completed meanwhile, and used up a promotion.
                Err(problem) => return first_response_or(services, once.as_ref(), now, problem).await,
            };
            let (rounding, shipping_tax) = (limits.tax_rounding, limits.shipping_tax);
            (quote.addresses(), Some(Quoted { quote, rules, promotions, rounding, shipping_tax }))
        }
    };
    let lines = lines_of(&cart);
    let wanted = Wanted {
        customer_id,
        list: "/items",
        lines,
        reference: None,
        placed_at: None,
        store_id: None,
        lapses,
        expected_total,
        addresses,
        quote,
    };
    place(app, caller, wanted, once.as_ref(), None, Some(cart::check_out(&cart)?)).await
}

/// Returns the lines of a cart, in the sequence in which the customer added them.
pub fn lines_of(cart: &Cart) -> Vec<WantedLine> {
    let wanted_line = |(at, (product, line)): (usize, (&ProductId, &CartLine))| WantedLine {
        pointer: format!("/items/{at}"),
        product_id: product.clone(),
        quantity: line.quantity,
        total: None,
        discounts: Vec::new(),
    };
    cart::in_sequence(&cart.lines).into_iter().enumerate().map(wanted_line).collect()
}
