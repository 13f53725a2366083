//! Checkout: one transaction turns the cart into an order and removes the cart.

use http_api::fields::{boolean, money};
use http_api::{Code, Once, Problem, Request, Response};
use key_schema::cart::{self, CartLine};
use key_schema::id::{CustomerId, ProductId};
use key_schema::idempotency;
use key_schema::instant::Instant;
use key_schema::order::MAX_TOTAL;

use crate::App;
use crate::place::{Wanted, WantedLine, place, replay};

/// POST customers/{id}/cart/checkout: places an order for the cart. The Idempotency-Key is
/// optional. Without one, a repeated request finds an empty cart, because the transaction that
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
    let (expected_total, lapses) = body.finish((expected_total, lapses))?;
    let lapses = lapses == Some(true);
    let once = Once::optional(request)?;
    let now = Instant::now();
    let cart = services.table.get(&cart::get(&customer_id)?).await?.filter(|cart| cart.expires_at > now);
    // The record is read after the cart. So if the cart is missing because the first attempt has
    // removed it, this read finds the record.
    if let Some(once) = &once
        && let Some(record) = services.table.get(&idempotency::get(once.scope())?).await?
        && let Some(first) = replay(services, once, Some(&record), now).await?
    {
        return Ok(first);
    }
    let Some(cart) = cart.filter(|cart| !cart.lines.is_empty()) else {
        return Err(Problem::new(Code::CartEmpty, "The cart is empty."));
    };
    let mut lines: Vec<_> = cart.lines.iter().enumerate().collect();
    // The order keeps the sequence in which the customer added the lines.
    lines.sort_by_key(|(_, (_, line))| line.added_at);
    let wanted_line = |(at, (product, line)): (usize, (&ProductId, &CartLine))| WantedLine {
        pointer: format!("/items/{at}"),
        product_id: product.clone(),
        quantity: line.quantity,
        total: None,
    };
    let lines = lines.into_iter().map(wanted_line).collect();
    let wanted = Wanted {
        customer_id,
        list: "/items",
        lines,
        reference: None,
        placed_at: None,
        store_id: None,
        lapses,
        expected_total,
    };
    place(app, caller, wanted, once.as_ref(), None, Some(cart::check_out(&cart)?)).await
}
