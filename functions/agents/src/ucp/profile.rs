//! The profiles of the shop: one for each version of the protocol
//! (<https://ucp.dev/2026-08-25/specification/overview>).

use std::time::Duration;

use http_api::contract::route;
use http_api::{Problem, Request, Response};
use ordering::quote;
use serde_json::{Map, Value, json};

use super::{CART, CHECKOUT, DISCOUNT, FULFILLMENT, LOOKUP, ORDER, SEARCH, Version, error, handlers};
use crate::App;
use crate::pages::Pages;

/// How long a platform may use the profile. The protocol wants a minute at least.
const FRESH: Duration = Duration::from_secs(5 * 60);

/// Describe the shop
#[route(GET "/.well-known/ucp", id = "ucpDescribeShop", who = any, task = "agents",
    spec = "https://ucp.dev/2026-08-25/specification/overview", errors = error)]
pub async fn describe(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let pages = Pages::read(app, request).await?;
    let older = Version::ALL.into_iter().filter(|version| *version != Version::LATEST);
    let address = |version: Version| (version.name(), format!("{}/.well-known/ucp/{}", pages.api, version.name()));
    let older = older.map(address).collect();
    Ok(Response::ok(&profile(app, &pages, Version::LATEST, Some(older)).await?).kept_for(FRESH))
}

/// Describe the shop to agents of April 2026
#[route(GET "/.well-known/ucp/2026-04-08", id = "ucpDescribeShopOfApril", who = any, task = "agents",
    spec = "https://ucp.dev/2026-04-08/specification/overview", errors = error)]
pub async fn describe_of_april(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let pages = Pages::read(app, request).await?;
    Ok(Response::ok(&profile(app, &pages, Version::April, None).await?).kept_for(FRESH))
}

/// Returns the profile of a version. `older` has the addresses of the profiles of older versions.
async fn profile(app: &App, pages: &Pages, version: Version, older: Option<Value>) -> Result<Value, Problem> {
    let (rules, limits) = tokio::try_join!(quote::rules(&app.shop.services), app.shop.limits())?;
    let needs_addresses = !rules.zones.is_empty() || !rules.tax_rules.is_empty() || limits.shipping_address_required;
    let page = |path: &str| format!("https://ucp.dev/{}/{path}", version.name());
    let mut capabilities = Map::new();
    let mut add = |name: &str, path: &str, schema: &str, extends: Value| {
        let spec = page(&version.page(path, !extends.is_null()));
        let schema = page(&format!("schemas/shopping/{schema}.json"));
        let mut entry = json!({ "version": version.name(), "spec": spec, "schema": schema });
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
    let mut ucp = json!({
        "version": version.name(),
        "services": {
            "dev.ucp.shopping": [{
                "version": version.name(),
                "spec": page("specification/overview"),
                "transport": "rest",
                "schema": page("services/shopping/rest.openapi.json"),
                "endpoint": format!("{}/ucp", pages.api),
            }],
        },
        "capabilities": capabilities,
        "payment_handlers": handlers(app).await,
    });
    if let (Some(older), Some(fields)) = (older, ucp.as_object_mut()) {
        fields.insert("supported_versions".to_owned(), older);
    }
    let mut profile = Map::from_iter([("ucp".to_owned(), ucp)]);
    if let Some(keys) = &app.signing {
        let public = json!(keys.get().await?.public());
        profile.extend(version.keys().iter().map(|member| ((*member).to_owned(), public.clone())));
    }
    Ok(Value::Object(profile))
}
