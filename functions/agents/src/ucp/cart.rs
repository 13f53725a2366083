//! Carts (<https://ucp.dev/2026-04-08/specification/cart-rest>). A cart is a session that needs no buyer.

use http_api::contract::route;
use http_api::{Once, Problem, Request, Response};
use key_schema::agent::AgentScope;
use key_schema::checkout_session::SessionKind;
use key_schema::id::CheckoutId;

use super::checkout::{begin, end, replace, replay, show};
use super::error;
use super::wire::{Purchase, body};
use crate::App;
use crate::access::agent;

/// Create a cart
#[route(POST "/ucp/carts", id = "ucpCreateCart", who = any, task = "agents",
    spec = "https://ucp.dev/2026-04-08/specification/cart-rest", errors = error)]
pub async fn create(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let agent = agent(app, request, AgentScope::Checkout).await?;
    let purchase: Purchase = body(request)?;
    let once = Once::of_agent(request, &agent.id)?;
    if let Some(replayed) = replay(app, once.as_ref()).await? {
        return Ok(replayed);
    }
    begin(app, request, &agent, SessionKind::Cart, purchase.wanted()?, None, once.as_ref()).await
}

/// Read a cart
#[route(GET "/ucp/carts/{id}", id = "ucpReadCart", who = any, task = "agents", path(id: CheckoutId),
    spec = "https://ucp.dev/2026-04-08/specification/cart-rest", errors = error)]
pub async fn read(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    show(app, request, SessionKind::Cart).await
}

/// Replace a cart
#[route(PUT "/ucp/carts/{id}", id = "ucpReplaceCart", who = any, task = "agents", path(id: CheckoutId),
    spec = "https://ucp.dev/2026-04-08/specification/cart-rest", errors = error)]
pub async fn update(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    replace(app, request, SessionKind::Cart).await
}

/// Cancel a cart
#[route(POST "/ucp/carts/{id}/cancel", id = "ucpCancelCart", who = any, task = "agents", path(id: CheckoutId),
    spec = "https://ucp.dev/2026-04-08/specification/cart-rest", errors = error)]
pub async fn cancel(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    end(app, request, SessionKind::Cart).await
}
