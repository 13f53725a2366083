//! The Universal Commerce Protocol over REST (<https://ucp.dev>), in the version of 8 April 2026.
//!
//! The protocol has its own words for errors. What a request says wrongly, or an agent may not do, is an
//! HTTP error with `code` and `content` ([`error`]). What the shop cannot sell is a result: HTTP 200 with
//! `messages`.

pub mod cart;
pub mod catalog;
pub mod checkout;
pub mod order;
pub mod profile;
mod view;
mod wire;

use http_api::{Code, Problem, Request, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::App;
use crate::session::{Kind, Message, Severity};

pub const VERSION: &str = "2026-04-08";

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
const ORDER: &str = "dev.ucp.shopping.order";
const FULFILLMENT: &str = "dev.ucp.shopping.fulfillment";
const DISCOUNT: &str = "dev.ucp.shopping.discount";
const STRIPE: &str = "com.stripe.payments";
/// The id of the shop's only payment handler.
pub const HANDLER: &str = "stripe";

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
    let code =
        if problem.spoken_code() == problem.code().name() && !code.is_empty() { code } else { problem.spoken_code() };
    let mut content = problem.detail().to_owned();
    for error in problem.field_errors().iter().take(3) {
        content.push_str(&format!(" {}: {}.", error.pointer, error.detail));
    }
    let message = json!({ "type": "error", "code": code, "content": content, "severity": "unrecoverable" });
    (status, json!({ "code": code, "content": content, "messages": [message] }).to_string())
}

/// Returns the protocol's part of a response.
async fn envelope(app: &App, root: Root, is_error: bool) -> Value {
    let version = json!([{ "version": VERSION }]);
    let capabilities: Map<String, Value> =
        root.names().iter().map(|name| ((*name).to_owned(), version.clone())).collect();
    let status = if is_error { "error" } else { "success" };
    let mut ucp = json!({ "version": VERSION, "status": status, "capabilities": capabilities });
    if let (Root::Checkout | Root::Shipment, Some(ucp)) = (root, ucp.as_object_mut()) {
        ucp.insert("payment_handlers".to_owned(), handlers(app).await);
    }
    ucp
}

/// Returns the payment handlers of the shop: Stripe, if it has an account there
/// (<https://docs.stripe.com/agentic-commerce/protocols/ucp/stripe-payments-handler>).
async fn handlers(app: &App) -> Value {
    match app.shop.account.keys().await {
        Ok(_) => json!({
            STRIPE: [{ "id": HANDLER, "version": VERSION, "available_instruments": [{ "type": "card" }] }]
        }),
        Err(_) => json!({}),
    }
}

/// Returns a result without a resource.
async fn nothing(app: &App, request: &Request<'_>, root: Root, messages: &[Message]) -> Result<Value, Problem> {
    let pages = Pages::read(app, request).await?;
    Ok(json!({
        "ucp": envelope(app, root, true).await,
        "messages": messages.iter().map(shown).collect::<Vec<_>>(),
        "continue_url": pages.shop,
    }))
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

/// The shop's pages for people, from the public setting `agents`.
#[derive(Debug)]
struct Pages {
    /// The address of the shop, without a slash at its end. The default is this API's own.
    shop: String,
    terms: Option<String>,
    privacy: Option<String>,
    /// The address of this API, as agents reach it.
    api: String,
}

impl Pages {
    async fn read(app: &App, request: &Request<'_>) -> Result<Self, Problem> {
        #[derive(Default, Deserialize)]
        struct Values {
            agents: Option<Urls>,
        }
        #[derive(Default, Deserialize)]
        struct Urls {
            shop_url: Option<String>,
            api_url: Option<String>,
            terms_url: Option<String>,
            privacy_url: Option<String>,
        }
        let services = &app.shop.services;
        let (known, _) = services.settings.current(&services.table).await?;
        let Values { agents } = serde_json::from_str(&known.values).unwrap_or_default();
        let Urls { shop_url, api_url, terms_url, privacy_url } = agents.unwrap_or_default();
        let no_host = || Problem::new(Code::MalformedRequest, "The request has no Host.");
        let whole = |url: String| url.trim_end_matches('/').to_owned();
        let api = api_url.map(whole).or_else(|| request.origin()).ok_or_else(no_host)?;
        let shop = shop_url.map_or_else(|| api.clone(), whole);
        Ok(Self { shop, terms: terms_url, privacy: privacy_url, api })
    }

    fn links(&self) -> Vec<Value> {
        let link = |kind: &str, url: &Option<String>| url.as_ref().map(|url| json!({ "type": kind, "url": url }));
        [link("terms_of_service", &self.terms), link("privacy_policy", &self.privacy)].into_iter().flatten().collect()
    }

    fn picture(&self, path: &str) -> String {
        format!("{}{path}", self.api)
    }
}
