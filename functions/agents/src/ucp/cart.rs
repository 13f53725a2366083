//! Carts (<https://ucp.dev/2026-08-25/specification/shopping/cart/rest>). A cart is a session that needs no buyer.

use http_api::contract::route;
use http_api::{Problem, Request, Response};
use key_schema::checkout_session::SessionKind;
use key_schema::id::CheckoutId;

use super::wire::Purchase;
use super::{error, flow};
use crate::App;
use crate::wire::body;

/// Create a cart
#[route(POST "/ucp/carts", id = "ucpCreateCart", who = any, task = "agents",
    spec = "https://ucp.dev/2026-08-25/specification/shopping/cart/rest", errors = error)]
pub async fn create(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let flow = flow(app, request, SessionKind::Cart).await?;
    let purchase: Purchase = body(request)?;
    let flow = flow.once()?;
    if let Some(replayed) = flow.replay().await? {
        return Ok(replayed);
    }
    flow.begin(purchase.wanted(&[])?, None).await
}

/// Read a cart
#[route(GET "/ucp/carts/{id}", id = "ucpReadCart", who = any, task = "agents", path(id: CheckoutId),
    spec = "https://ucp.dev/2026-08-25/specification/shopping/cart/rest", errors = error)]
pub async fn read(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    flow(app, request, SessionKind::Cart).await?.show().await
}

/// Replace a cart
#[route(PUT "/ucp/carts/{id}", id = "ucpReplaceCart", who = any, task = "agents", path(id: CheckoutId),
    spec = "https://ucp.dev/2026-08-25/specification/shopping/cart/rest", errors = error)]
pub async fn update(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let flow = flow(app, request, SessionKind::Cart).await?;
    let purchase: Purchase = body(request)?;
    flow.once()?.replace(|before| purchase.clone().wanted(&before.destinations)).await
}

/// Cancel a cart
#[route(POST "/ucp/carts/{id}/cancel", id = "ucpCancelCart", who = any, task = "agents", path(id: CheckoutId),
    spec = "https://ucp.dev/2026-08-25/specification/shopping/cart/rest", errors = error)]
pub async fn cancel(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    flow(app, request, SessionKind::Cart).await?.once()?.end().await
}
