//! The profile of the shop (<https://ucp.dev/2026-04-08/specification/overview>).

use std::time::Duration;

use http_api::contract::route;
use http_api::{Problem, Request, Response};
use ordering::quote;
use serde_json::{Map, Value, json};

use super::{CART, CHECKOUT, DISCOUNT, FULFILLMENT, LOOKUP, ORDER, SEARCH, VERSION, error, handlers};
use crate::App;
use crate::pages::Pages;

/// How long a platform may use the profile. The protocol wants a minute at least.
const FRESH: Duration = Duration::from_secs(5 * 60);

/// Describe the shop
#[route(GET "/.well-known/ucp", id = "ucpDescribeShop", who = any, task = "agents",
    spec = "https://ucp.dev/2026-04-08/specification/overview", errors = error)]
pub async fn describe(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let pages = Pages::read(app, request).await?;
    let (rules, limits) = tokio::try_join!(quote::rules(&app.shop.services), app.shop.limits())?;
    let needs_addresses = !rules.zones.is_empty() || !rules.tax_rules.is_empty() || limits.shipping_address_required;
    let page = |path: &str| format!("https://ucp.dev/{VERSION}/{path}");
    let mut capabilities = Map::new();
    let mut add = |name: &str, spec: &str, schema: &str, extends: Value| {
        let schema = page(&format!("schemas/shopping/{schema}.json"));
        let mut entry = json!({ "version": VERSION, "spec": page(&format!("specification/{spec}")), "schema": schema });
        if let (false, Some(fields)) = (extends.is_null(), entry.as_object_mut()) {
            fields.insert("extends".to_owned(), extends);
        }
        capabilities.insert(name.to_owned(), json!([entry]));
    };
    add(CHECKOUT, "checkout", "checkout", Value::Null);
    add(CART, "cart", "cart", Value::Null);
    add(DISCOUNT, "discount", "discount", json!([CHECKOUT, CART]));
    if needs_addresses {
        add(FULFILLMENT, "fulfillment", "fulfillment", json!(CHECKOUT));
    }
    add(LOOKUP, "catalog/lookup", "catalog_lookup", Value::Null);
    if app.search.is_some() {
        add(SEARCH, "catalog/search", "catalog_search", Value::Null);
    }
    add(ORDER, "order", "order", Value::Null);
    let mut profile = json!({
        "ucp": {
            "version": VERSION,
            "services": {
                "dev.ucp.shopping": [{
                    "version": VERSION,
                    "spec": page("specification/overview"),
                    "transport": "rest",
                    "schema": page("services/shopping/rest.openapi.json"),
                    "endpoint": format!("{}/ucp", pages.api),
                }],
            },
            "capabilities": capabilities,
            "payment_handlers": handlers(app).await,
        },
    });
    if let (Some(keys), Some(profile)) = (&app.signing, profile.as_object_mut()) {
        profile.insert("signing_keys".to_owned(), json!(keys.get().await?.public()));
    }
    Ok(Response::ok(&profile).kept_for(FRESH))
}
