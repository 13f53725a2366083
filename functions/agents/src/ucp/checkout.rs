//! Checkouts (<https://ucp.dev/2026-08-25/specification/shopping/checkout/rest>).

use http_api::contract::route;
use http_api::{Code, Problem, Request, Response};
use key_schema::checkout_session::SessionKind;
use key_schema::id::CheckoutId;
use key_schema::instant::Instant;

use super::wire::{Completion, Purchase};
use super::{Root, Version, error, flow, known, nothing};
use crate::App;
use crate::flow::Wanted;
use crate::purchase::{find, see};
use crate::session::{Message, Status};
use crate::wire::body;

/// Create a checkout
#[route(POST "/ucp/checkout-sessions", id = "ucpCreateCheckout", who = any, task = "agents",
    spec = "https://ucp.dev/2026-08-25/specification/shopping/checkout/rest", errors = error)]
pub async fn create(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let flow = flow(app, request, SessionKind::Checkout).await?;
    let purchase: Purchase = body(request)?;
    let flow = flow.once()?;
    let now = Instant::now();
    if let Some(replayed) = flow.replay().await? {
        return Ok(replayed);
    }
    let Some(cart_id) = purchase.cart_id.as_deref() else {
        return flow.begin(purchase.wanted(&[])?, None).await;
    };
    // The contents of a cart count, and not those of the request.
    let cart = match cart_id.parse() {
        Ok(id) => find(app, &flow.agent, &id, SessionKind::Cart, now).await,
        Err(_) => Err(Problem::not_found("cart")),
    };
    let cart = match cart {
        Ok(cart) if !cart.cancelled => cart,
        Err(problem) if problem.code() != Code::NotFound => return Err(problem),
        _ => {
            let message = Message::unrecoverable("not_found", "There is no such cart, or it has expired.");
            return flow.keep(Response::ok(&nothing(app, request, Root::Checkout, &[message]).await?)).await;
        }
    };
    if let Some(id) = &cart.checkout
        && let Ok(session) = find(app, &flow.agent, id, SessionKind::Checkout, now).await
        && let Ok(seen) = see(app, request, &flow.agent, session, now).await?
        && !matches!(seen.status, Status::Completed | Status::Canceled)
    {
        return flow.kept(Ok(seen)).await;
    }
    let wanted = Wanted { wish: cart.wish.clone(), messages: Vec::new(), refused: Vec::new() };
    flow.begin(wanted, Some(&cart)).await
}

/// Read a checkout
#[route(GET "/ucp/checkout-sessions/{id}", id = "ucpReadCheckout", who = any, task = "agents", path(id: CheckoutId),
    spec = "https://ucp.dev/2026-08-25/specification/shopping/checkout/rest", errors = error)]
pub async fn read(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    flow(app, request, SessionKind::Checkout).await?.show().await
}

/// Replace a checkout
#[route(PUT "/ucp/checkout-sessions/{id}", id = "ucpReplaceCheckout", who = any, task = "agents",
    path(id: CheckoutId), spec = "https://ucp.dev/2026-08-25/specification/shopping/checkout/rest", errors = error)]
pub async fn update(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let flow = flow(app, request, SessionKind::Checkout).await?;
    let purchase: Purchase = body(request)?;
    flow.once()?.replace(|before| purchase.clone().wanted(&before.destinations)).await
}

/// Place the order of a checkout
#[route(POST "/ucp/checkout-sessions/{id}/complete", id = "ucpCompleteCheckout", who = any, task = "agents",
    path(id: CheckoutId), spec = "https://ucp.dev/2026-08-25/specification/shopping/checkout/rest", errors = error)]
pub async fn complete(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let flow = flow(app, request, SessionKind::Checkout).await?;
    let (completion, buyer): (Completion, Purchase) = (body(request)?, body(request)?);
    let buyer = buyer.buyer()?;
    let version = Version::of(known(app, request).as_deref());
    flow.once()?.complete(completion.token(version), buyer).await
}

/// Cancel a checkout
#[route(POST "/ucp/checkout-sessions/{id}/cancel", id = "ucpCancelCheckout", who = any, task = "agents",
    path(id: CheckoutId), spec = "https://ucp.dev/2026-08-25/specification/shopping/checkout/rest", errors = error)]
pub async fn cancel(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    flow(app, request, SessionKind::Checkout).await?.once()?.end().await
}
