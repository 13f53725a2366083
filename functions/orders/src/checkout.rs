//! Checkout: the cart becomes an order, and is gone, in the same transaction.

use http_api::{Code, Once, Problem, Request, Response, Store};
use key_schema::cart;
use key_schema::id::CustomerId;
use key_schema::idempotency;
use key_schema::instant::Instant;

use crate::place::{Wanted, WantedLine, place, replay};

/// POST customers/{id}/cart/checkout. An Idempotency-Key may be given; without one a repetition finds the cart empty, because the cart's removal is
/// part of the order's transaction.
pub async fn checkout(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let customer_id: CustomerId = request.path("id")?;
    let owner = request.owner(&customer_id)?;
    request.object()?.finish(())?;
    let caller = owner.caller();
    let once = Once::optional(request)?;
    let now = Instant::now();
    let cart = store.table.get(&cart::get(&customer_id)?).await?.filter(|cart| cart.expires_at > now);
    // The record after the cart: a first attempt that went through in between has taken the cart and left the record, never neither.
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
    // As the customer filled it.
    lines.sort_by_key(|(_, line)| line.added_at);
    let lines = lines
        .into_iter()
        .map(|(product, line)| WantedLine { product_id: product.clone(), quantity: line.quantity, total: None })
        .collect();
    let wanted = Wanted { customer_id, lines, reference: None, placed_at: None, store_id: None };
    place(store, caller, wanted, once.as_ref(), None, Some(cart::check_out(&cart)?)).await
}
