//! The Agentic Commerce Protocol over REST (<https://www.agenticcommerce.dev>), in the version of 17 April
//! 2026.
//!
//! The agent sends its API key as a bearer token. Each POST needs an Idempotency-Key, which is compared by
//! the meaning of the body. An update changes only the members that it names. What a request says wrongly
//! is an HTTP error with `type`, `code` and `message` ([`error`]). What stands in the way of a purchase is
//! a message of the checkout.

pub mod order;
pub mod view;
mod wire;

use std::time::Duration;

use http_api::contract::route;
use http_api::{Code, Once, Problem, Request, Response, StatusCode};
use key_schema::agent::{self, Agent, AgentKey, AgentScope};
use key_schema::checkout_session::SessionKind;
use key_schema::id::CheckoutId;
use key_schema::item::Stored;
use serde_json::json;

use crate::App;
use crate::flow::{Flow, Protocol};
use crate::pages::Pages;
use crate::session::Message;

pub const VERSION: &str = "2026-04-17";

/// How long an agent may use the description, as the protocol recommends.
const FRESH: Duration = Duration::from_secs(60 * 60);

/// Describe the shop
#[route(GET "/.well-known/acp.json", id = "acpDescribeShop", who = any, task = "agents",
    spec = "https://github.com/agentic-commerce-protocol/agentic-commerce-protocol/blob/main/rfcs/rfc.discovery.md",
    errors = error)]
pub async fn describe(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let api = Pages::read(app, request).await?.api;
    let description = json!({
        "protocol": { "name": "acp", "version": VERSION, "supported_versions": [VERSION] },
        "api_base_url": format!("{api}/acp"),
        "transports": ["rest"],
        "capabilities": { "services": ["checkout"], "extensions": [{ "name": "discount" }] },
    });
    Ok(Response::ok(&description).kept_for(FRESH))
}

/// Create a checkout
#[route(POST "/acp/checkout_sessions", id = "acpCreateCheckout", who = any, task = "agents",
    spec = "https://github.com/agentic-commerce-protocol/agentic-commerce-protocol/tree/main/spec/2026-04-17",
    errors = error)]
pub async fn create(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let flow = post(app, request).await?;
    if let Some(replayed) = flow.replay().await? {
        return Ok(echo(request, replayed));
    }
    let wanted = wire::create(request)?;
    Ok(echo(request, flow.begin(wanted, None).await?))
}

/// Read a checkout
#[route(GET "/acp/checkout_sessions/{id}", id = "acpReadCheckout", who = any, task = "agents", path(id: CheckoutId),
    spec = "https://github.com/agentic-commerce-protocol/agentic-commerce-protocol/tree/main/spec/2026-04-17",
    errors = error)]
pub async fn read(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let flow = flow(app, request, agent(app, request).await?, None);
    Ok(echo(request, flow.show().await?))
}

/// Change a checkout
#[route(POST "/acp/checkout_sessions/{id}", id = "acpChangeCheckout", who = any, task = "agents",
    path(id: CheckoutId),
    spec = "https://github.com/agentic-commerce-protocol/agentic-commerce-protocol/tree/main/spec/2026-04-17",
    errors = error)]
pub async fn update(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let flow = post(app, request).await?;
    // A wrong request must not cancel an order that waits for its payment, as any change does.
    let change = wire::update(request)?;
    let changed = flow.replace(|before| change.clone().change(before.clone())).await?;
    Ok(echo(request, changed))
}

/// Place the order of a checkout
#[route(POST "/acp/checkout_sessions/{id}/complete", id = "acpCompleteCheckout", who = any, task = "agents",
    path(id: CheckoutId),
    spec = "https://github.com/agentic-commerce-protocol/agentic-commerce-protocol/tree/main/spec/2026-04-17",
    errors = error)]
pub async fn complete(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let flow = post(app, request).await?;
    let (token, buyer) = wire::complete(request)?;
    Ok(echo(request, flow.complete(token, buyer).await?))
}

/// Cancel a checkout
#[route(POST "/acp/checkout_sessions/{id}/cancel", id = "acpCancelCheckout", who = any, task = "agents",
    path(id: CheckoutId),
    spec = "https://github.com/agentic-commerce-protocol/agentic-commerce-protocol/tree/main/spec/2026-04-17",
    errors = error)]
pub async fn cancel(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let flow = post(app, request).await?;
    let ended = flow.end().await.map_err(|problem| match problem.code() {
        Code::IllegalTransition => problem.spoken("not_cancelable"),
        _ => problem,
    });
    Ok(echo(request, ended?))
}

fn flow<'a>(app: &'a App, request: &'a Request<'a>, agent: Stored<Agent>, once: Option<Once>) -> Flow<'a> {
    Flow { app, request, agent, protocol: Protocol::Acp, kind: SessionKind::Checkout, once }
}

async fn post<'a>(app: &'a App, request: &'a Request<'a>) -> Result<Flow<'a>, Problem> {
    let agent = agent(app, request).await?;
    let once = Once::of_agents_endpoint(request, &agent.id)?;
    Ok(flow(app, request, agent, Some(once)))
}

/// Returns the agent that sends a request in this version of the protocol.
async fn agent(app: &App, request: &Request<'_>) -> Result<Stored<Agent>, Problem> {
    let unknown = || Problem::new(Code::Unauthenticated, "This request needs the API key of a registered agent.");
    let key = request.secret("authorization").and_then(|header| header.strip_prefix("Bearer ")).ok_or_else(unknown)?;
    let key = AgentKey::given(key.trim());
    let found = app.shop.services.table.get(&agent::get(&key.agent().ok_or_else(unknown)?)?).await?;
    let agent = found.filter(|agent| agent.opens(&key)).ok_or_else(unknown)?;
    match request.header("api-version") {
        Some(VERSION) => {}
        None => {
            let detail = "The header API-Version is required.";
            return Err(Problem::new(Code::InvalidHeader, detail).spoken("missing_api_version"));
        }
        Some(_) => {
            let detail = format!("This shop speaks the version {VERSION}.");
            return Err(Problem::new(Code::InvalidHeader, detail).spoken("unsupported_api_version"));
        }
    }
    if !agent.scopes.contains(&AgentScope::Checkout) {
        return Err(Problem::new(Code::Forbidden, "This agent has no scope `checkout`."));
    }
    Ok(agent)
}

/// Repeats the headers that name a request.
fn echo(request: &Request<'_>, response: Response) -> Response {
    let mut response = response;
    for name in ["idempotency-key", "request-id"] {
        let is_safe = |value: &&str| value.len() <= 255 && value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if let Some(value) = request.header(name).filter(is_safe) {
            response = response.header(name, value);
        }
    }
    response
}

/// Writes an error of the protocol.
pub fn error(problem: &Problem) -> (StatusCode, String) {
    let (status, code) = match problem.code() {
        Code::IdempotencyKeyMissing => (StatusCode::BAD_REQUEST, "idempotency_key_required"),
        Code::IdempotencyKeyReused => (StatusCode::UNPROCESSABLE_ENTITY, "idempotency_conflict"),
        Code::IdempotencyInProgress => (StatusCode::CONFLICT, "idempotency_in_flight"),
        Code::InvalidBody | Code::InvalidId | Code::MalformedJson | Code::InvalidParameter | Code::InvalidHeader => {
            (StatusCode::BAD_REQUEST, "invalid")
        }
        _ => (problem.status(), problem.code().name()),
    };
    let is_spoken = problem.spoken_code() != problem.code().name();
    let code = if is_spoken { problem.spoken_code() } else { code };
    let status = if code == "not_cancelable" { StatusCode::METHOD_NOT_ALLOWED } else { status };
    let kind = match status {
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => "service_unavailable",
        status if status.is_server_error() => "processing_error",
        _ => "invalid_request",
    };
    let mut body = json!({ "type": kind, "code": code, "message": problem.detail() });
    if let Some(fields) = body.as_object_mut() {
        if let Some(error) = problem.field_errors().first() {
            fields.insert("param".to_owned(), error.pointer.as_str().into());
        }
        if code.ends_with("api_version") {
            fields.insert("supported_versions".to_owned(), json!([VERSION]));
        }
    }
    (status, body.to_string())
}

/// Returns the error for goods that the shop does not sell, or for a checkout that does not exist.
pub fn nothing(messages: &[Message]) -> Problem {
    let (code, content) = messages.first().map_or(("not_found", ""), |first| (first.code, first.content.as_str()));
    if code == "not_found" {
        return Problem::not_found("checkout");
    }
    Problem::new(Code::InvalidBody, content.to_owned()).spoken("out_of_stock").error("$.line_items", "cannot be sold")
}
