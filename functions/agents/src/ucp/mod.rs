//! The Universal Commerce Protocol over REST (<https://ucp.dev>).
//!
//! The shop speaks several versions, and answers an agent in the version of its profile ([`Version`]).
//! The protocol has its own words for errors. What a request says wrongly, or an agent may not do, is an
//! HTTP error with `code` and `content` ([`error`]). What the shop cannot sell is a result: HTTP 200 with
//! `messages`.

pub mod cart;
pub mod catalog;
pub mod checkout;
pub mod order;
pub mod profile;
mod version;
pub mod view;
mod wire;

pub use version::Version;

use std::sync::Arc;

use http_api::{Code, Problem, Request, Response, StatusCode};
use key_schema::agent::AgentScope;
use key_schema::checkout_session::SessionKind;
use serde_json::{Map, Value, json};

use crate::App;
use crate::access::{agent, profile_of};
use crate::flow::{Flow, Protocol};
use crate::pages::Pages;
use crate::profiles::Profile;
use crate::session::{Kind, Message, Severity};

/// The root of a response's capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    Checkout,
    /// A checkout of goods that are sent.
    Shipment,
    Cart,
    Search,
    Lookup,
    Order,
}

const CHECKOUT: &str = "dev.ucp.shopping.checkout";
const CART: &str = "dev.ucp.shopping.cart";
const SEARCH: &str = "dev.ucp.shopping.catalog.search";
const LOOKUP: &str = "dev.ucp.shopping.catalog.lookup";
pub const ORDER: &str = "dev.ucp.shopping.order";
const FULFILLMENT: &str = "dev.ucp.shopping.fulfillment";
const DISCOUNT: &str = "dev.ucp.shopping.discount";
const STRIPE: &str = "com.stripe.payments";
/// The id of the shop's only payment handler.
pub const HANDLER: &str = "stripe";
/// The handler has its own versions, because the protocol does not define it.
const HANDLER_VERSION: &str = "2026-04-08";

/// The parts of paths that need a capability. The first one that fits counts.
const CAPABILITIES: [(&str, &str); 5] = [
    ("/ucp/checkout-sessions", CHECKOUT),
    ("/ucp/carts", CART),
    ("/ucp/catalog/search", SEARCH),
    ("/ucp/catalog/", LOOKUP),
    ("/ucp/orders/", ORDER),
];
const INCOMPATIBLE: &str = "capabilities_incompatible";

impl Root {
    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Checkout => &[CHECKOUT, DISCOUNT],
            Self::Shipment => &[CHECKOUT, DISCOUNT, FULFILLMENT],
            Self::Cart => &[CART, DISCOUNT],
            Self::Search => &[SEARCH],
            Self::Lookup => &[LOOKUP],
            Self::Order => &[ORDER],
        }
    }
}

/// Writes an error of the protocol.
pub fn error(problem: &Problem) -> (StatusCode, String) {
    let (status, code) = match problem.code() {
        Code::IdempotencyKeyReused => (StatusCode::CONFLICT, "idempotency_conflict"),
        Code::InvalidBody | Code::InvalidId | Code::MalformedJson | Code::InvalidParameter | Code::InvalidHeader => {
            (StatusCode::BAD_REQUEST, "invalid_request")
        }
        _ => (problem.status(), ""),
    };
    let status = match problem.spoken_code() {
        INCOMPATIBLE => return (StatusCode::OK, incompatible(problem).to_string()),
        "profile_unreachable" => StatusCode::FAILED_DEPENDENCY,
        "profile_malformed" | "version_unsupported" => StatusCode::UNPROCESSABLE_ENTITY,
        _ => status,
    };
    let code =
        if problem.spoken_code() == problem.code().name() && !code.is_empty() { code } else { problem.spoken_code() };
    let mut content = problem.detail().to_owned();
    for error in problem.field_errors().iter().take(3) {
        content.push_str(&format!(" {}: {}.", error.pointer, error.detail));
    }
    let message = json!({ "type": "error", "code": code, "content": content, "severity": "unrecoverable" });
    (status, json!({ "code": code, "content": content, "messages": [message] }).to_string())
}

/// Returns the result for an agent that does not have the capability of a request.
fn incompatible(problem: &Problem) -> Value {
    let content = problem.detail();
    let message = json!({ "type": "error", "code": INCOMPATIBLE, "content": content, "severity": "unrecoverable" });
    let version = problem.field_errors().first().map(|version| version.detail.as_ref());
    json!({ "ucp": { "version": version, "status": "error" }, "messages": [message] })
}

/// Checks that an agent speaks a version of the shop, and has the capability of a request.
///
/// # Errors
/// 422 `version_unsupported`, and the result `capabilities_incompatible`.
pub fn negotiate(profile: &Profile, request: &Request<'_>) -> Result<(), Problem> {
    let Some(version) = Version::named(&profile.version) else {
        let known = Version::ALL.map(Version::name).join(" and ");
        let detail = format!("The agent speaks the version {:.20}, and this shop {known}.", profile.version);
        return Err(Problem::new(Code::InvalidHeader, detail).spoken("version_unsupported"));
    };
    let (_, path) = request.target();
    let named = |(part, _): &&(&str, &str)| path.contains(part);
    match CAPABILITIES.iter().find(named) {
        Some((_, capability)) if !profile.has(capability) => {
            let version = version.name();
            let detail = format!("The profile of the agent does not have the capability {capability} {version}.");
            Err(Problem::new(Code::Forbidden, detail).error("/ucp/version", version).spoken(INCOMPATIBLE))
        }
        _ => Ok(()),
    }
}

/// Returns the profile of the agent that sends a request, if the shop could read it.
fn known(app: &App, request: &Request<'_>) -> Option<Arc<Profile>> {
    profile_of(app, request).and_then(|url| app.profiles.known(&url))
}

/// Returns the protocol's part of a response: the capabilities that belong to it, and that the agent has.
async fn envelope(app: &App, request: &Request<'_>, root: Root, is_error: bool) -> Value {
    let mut ucp = part(root, is_error, known(app, request).as_deref());
    if let (Root::Checkout | Root::Shipment, Some(ucp)) = (root, ucp.as_object_mut()) {
        ucp.insert("payment_handlers".to_owned(), handlers(app).await);
    }
    ucp
}

/// Returns the protocol's part of a message without payment handlers.
pub fn part(root: Root, is_error: bool, profile: Option<&Profile>) -> Value {
    let spoken = Version::of(profile).name();
    let version = json!([{ "version": spoken }]);
    let is_shared = |name: &&&str| profile.is_none_or(|profile| profile.has(name));
    let names = root.names().iter().filter(is_shared);
    let capabilities: Map<String, Value> = names.map(|name| ((*name).to_owned(), version.clone())).collect();
    let status = if is_error { "error" } else { "success" };
    json!({ "version": spoken, "status": status, "capabilities": capabilities })
}

/// Returns the payment handlers of the shop: Stripe, if it has an account there
/// (<https://docs.stripe.com/agentic-commerce/protocols/ucp/stripe-payments-handler>).
async fn handlers(app: &App) -> Value {
    match app.shop.account.keys().await {
        Ok(_) => json!({
            STRIPE: [{ "id": HANDLER, "version": HANDLER_VERSION, "available_instruments": [{ "type": "card" }] }]
        }),
        Err(_) => json!({}),
    }
}

/// Returns a result without a resource.
async fn nothing(app: &App, request: &Request<'_>, root: Root, messages: &[Message]) -> Result<Value, Problem> {
    let pages = Pages::read(app, request).await?;
    Ok(json!({
        "ucp": envelope(app, request, root, true).await,
        "messages": messages.iter().map(shown).collect::<Vec<_>>(),
        "continue_url": pages.shop,
    }))
}

/// Returns the response for goods that the shop does not sell, or for a session that does not exist.
pub async fn nothing_of(
    app: &App,
    request: &Request<'_>,
    kind: SessionKind,
    messages: &[Message],
) -> Result<Response, Problem> {
    let root = if kind == SessionKind::Cart { Root::Cart } else { Root::Checkout };
    Ok(Response::ok(&nothing(app, request, root, messages).await?))
}

/// Returns what an agent can do with its sessions of a kind.
async fn flow<'a>(app: &'a App, request: &'a Request<'a>, kind: SessionKind) -> Result<Flow<'a>, Problem> {
    let agent = agent(app, request, AgentScope::Checkout).await?;
    Ok(Flow { app, request, agent, protocol: Protocol::Ucp, kind, once: None })
}

fn shown(message: &Message) -> Value {
    let mut shown = json!({ "code": message.code, "content": message.content });
    let Some(fields) = shown.as_object_mut() else { return shown };
    match message.kind {
        Kind::Error(severity) => {
            fields.insert("type".to_owned(), "error".into());
            let severity = match severity {
                Severity::Recoverable => "recoverable",
                Severity::BuyerInput => "requires_buyer_input",
                Severity::Unrecoverable => "unrecoverable",
            };
            fields.insert("severity".to_owned(), severity.into());
        }
        Kind::Warning => {
            fields.insert("type".to_owned(), "warning".into());
        }
    }
    if let Some(path) = &message.path {
        fields.insert("path".to_owned(), path.as_str().into());
    }
    shown
}
