use http_api::contract::rules::component;
use http_api::contract::{Schema, route};
use http_api::url::location;
use http_api::{Code, Precondition, Problem, Request, Response, Services};
use key_schema::settings::{self, Known};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::body::{NewSettings, VALUES, Wanted};

/// Read the public settings
///
/// Returns the public settings, at most 30 seconds old. `Cache-Control` has the time for which
/// clients may still use them, so every client sees a change within 30 seconds. Before the first
/// change the settings are empty and have version 0.
#[route(GET "/v1/settings", id = "readSettings", who = any, task = "settings",
    answers(200 = PublicView<'_> "The settings" [ETag]))]
pub async fn public(services: &Services, _: &Request<'_>) -> Result<Response, Problem> {
    let (known, rest) = services.settings.current(&services.table).await?;
    let values = stored(&known.values)?;
    Ok(Response::ok(&PublicView { values, version: known.version }).etag(known.version).fresh_for(rest))
}

/// Read all current settings, public and private
#[route(GET "/v1/settings/private", id = "readAllSettings", who = staff, task = "settings",
    answers(200 = SettingsView<'_> "The settings" [ETag]))]
pub async fn whole(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    // The gateway verifies tokens only on routes with an authorizer. So private settings have a
    // separate route.
    request.staff()?;
    show(&*services.settings.latest(&services.table).await?)
}

/// Replace the settings
///
/// Replaces all settings, including the private ones. Values that the body leaves out are
/// removed. `If-Match` has the version to replace, `"0"` before the first change. The first
/// change may use `If-None-Match: *` instead.
///
/// The public value `orders` has the limits of customers' orders. `pending_minutes` is 1 to
/// 43200, `max_pending_orders` 1 to 1000, `max_pending_quantity` 1 to 1000000000,
/// `max_pending_lines` 500 to 500000 and `max_orders_per_day` 1 to 1000000. Each is optional.
/// The defaults are the template's parameter `PendingOrderMinutes`, 20, 1000, 1000 and 1000. A
/// change applies to new orders within 30 seconds. With `shipping_address_required: true` a
/// customer's order must have a `shipping_address`. `tax_rounding` is `line` or `order`.
/// `shipping_tax` is `rule` or `apportioned`. With `rule`, shipping has the tax rule of the
/// category `shipping`, or else of `standard`. With `apportioned`, the price of shipping is
/// spread over the rates of the shipped goods, in proportion to their prices after discounts.
/// With `quote_optional: true` customers may order without a quote, at the prices of the
/// products alone. With `guest_orders: false` only customers with an account may order.
///
/// The public value `agents` has https URLs of the shop's pages for people, to which agents send
/// them: `shop_url`, `terms_url` and `privacy_url`. Its `api_url` is the address of the API for
/// agents, if requests reach it under another one, such as that of CloudFront. Each is optional.
///
/// The public value `maintenance` is the maintenance mode, such as `{"on": true,
/// "retry_after_seconds": 300}`. While it is on, every write except `PUT /v1/settings` gets 503
/// `maintenance`, and reads are served. A change applies within 30 seconds.
/// `retry_after_seconds` is 1 to 86400, 60 by default. All other values have a meaning only for
/// clients.
#[route(PUT "/v1/settings", id = "putSettings", who = staff, task = "settings",
    parameters(IfMatchOrNone, IfNoneMatch), body = NewSettings, always,
    answers(
        200 = SettingsView<'_> "The settings" [ETag],
        201 = SettingsView<'_> "The new settings" [Location, ETag],
    ),
    refuses(already_exists = "with Location", not_found = "never, because settings always exist"))]
pub async fn put(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    // Staff end the maintenance with this route, so it works during maintenance, too.
    request.staff()?;
    let precondition = request.precondition()?;
    let Wanted { values, private } = Wanted::read(request)?;
    let at = services.settings.now();
    let (before, transaction) = match precondition {
        Precondition::Version(version) if version > 0 || !is_first(request) => {
            (version, settings::change(&values, &private, version, at)?)
        }
        Precondition::Absent | Precondition::Version(_) => {
            (0, settings::create(&values, &private, &services.born(at)?, at)?)
        }
    };
    let written = services.table.transact(&transaction).await;
    if !matches!(written, Ok(Ok(()))) {
        // Another request has changed the settings, or the outcome of this write is unknown. Either
        // way the cache may be outdated.
        services.settings.forget();
    }
    written?.map_err(|_| match precondition {
        Precondition::Absent => {
            Problem::new(Code::AlreadyExists, "The settings exist already. Change them with If-Match.").location(here())
        }
        Precondition::Version(_) => Problem::version_mismatch(),
    })?;
    // The cache also holds the layouts of the lists. The request does not have them, so the
    // function reads the settings again.
    if services.settings.latest(&services.table).await.is_err() {
        services.settings.forget();
    }
    let known = Known { version: before + 1, values, private, ..Known::default() };
    match precondition {
        Precondition::Absent => Ok(Response::created(here(), &view(&known)?).etag(known.version)),
        Precondition::Version(_) => show(&known),
    }
}

/// Returns whether the client sent exactly the tag of version 0. Unknown tags are also parsed as 0.
fn is_first(request: &Request<'_>) -> bool {
    request.header("if-match") == Some("\"0\"")
}

fn show(known: &Known) -> Result<Response, Problem> {
    Ok(Response::ok(&view(known)?).etag(known.version))
}

fn view(known: &Known) -> Result<SettingsView<'_>, Problem> {
    Ok(SettingsView { values: stored(&known.values)?, private: stored(&known.private)?, version: known.version })
}

/// Returns stored values as JSON: the text of an object.
fn stored(text: &str) -> Result<&RawValue, Problem> {
    serde_json::from_str(text).map_err(Problem::internal)
}

fn here() -> String {
    location(&["settings"])
}

#[derive(Serialize, Schema)]
#[schema(name = "Settings")]
struct PublicView<'a> {
    #[field(rule = VALUES, example = {"banner": "Ice is on sale"})]
    values: &'a RawValue,
    #[field(rule = component("SettingsVersion", "1"))]
    version: u64,
}

#[derive(Serialize, Schema)]
#[schema(name = "AllSettings")]
struct SettingsView<'a> {
    #[field(rule = VALUES, example = {"banner": "Ice is on sale"})]
    values: &'a RawValue,
    #[field(rule = VALUES, example = {"partner": "acme"})]
    private: &'a RawValue,
    #[field(rule = component("SettingsVersion", "1"))]
    version: u64,
}
