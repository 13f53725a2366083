//! Checkout: one transaction turns the cart into an order and removes the cart.

use http_api::{Code, Once, Problem, Request, Response, Store};
use key_schema::cart;
use key_schema::id::CustomerId;
use key_schema::idempotency;
use key_schema::instant::Instant;

use crate::place::{Wanted, WantedLine, place, replay};

/// POST customers/{id}/cart/checkout: places an order for the cart. The Idempotency-Key is
/// optional. Without one, a repeated request finds an empty cart, because the order's transaction
/// removes the cart.
pub async fn checkout(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let customer_id: CustomerId = request.path("id")?;
    let owner = request.owner(&customer_id)?;
    request.object()?.finish(())?;
    let caller = owner.caller();
    let once = Once::optional(request)?;
    let now = Instant::now();
    let cart = store.table.get(&cart::get(&customer_id)?).await?.filter(|cart| cart.expires_at > now);
    // The record is read after the cart. If a first attempt has removed the cart, this read finds
    // its record.
    if let Some(once) = &once
        && let Some(record) = store.table.get(&idempotency::get(once.scope())?).await?
        && let Some(first) = replay(store, once, Some(&record), now).await?
    {
        return Ok(first);
    }
    let Some(cart) = cart.filter(|cart| !cart.lines.is_empty()) else {
        return Err(Problem::new(Code::CartEmpty, "There is nothing in the cart."));
    };
    let mut lines: Vec<_> = cart.lines.iter().collect();
    // The order of the lines is the order in which the customer added them.
    lines.sort_by_key(|(_, line)| line.added_at);
    let lines = lines
        .into_iter()
        .map(|(product, line)| WantedLine { product_id: product.clone(), quantity: line.quantity, total: None })
        .collect();
    let wanted = Wanted { customer_id, lines, reference: None, placed_at: None, store_id: None };
    place(store, caller, wanted, once.as_ref(), None, Some(cart::check_out(&cart)?)).await
}
