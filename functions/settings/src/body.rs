//! The request body that sets the settings.
//!
//! The body is read twice. First the strict reader of all bodies refuses ambiguous input. Then a
//! second reader takes the raw text of each value, because the function stores the client's exact
//! digits.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http_api::body::Invalid;
use http_api::contract::rules::{Text, https_url, integer, one_of};
use http_api::contract::{Body, Context, FromBody as _, Node, Rule, RuleSchema, Schemas};
use http_api::json::{Members, Value};
use http_api::{Code, Problem, Request, caching, maintenance};
use key_schema::id;
use key_schema::order::open::{
    MAX_ORDERS_PER_DAY, MAX_PENDING_LINES, MAX_PENDING_ORDERS, MAX_PENDING_QUANTITY, PENDING_MINUTES,
};
use key_schema::settings::MAX_BYTES;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The maximum nesting of objects and arrays.
const MAX_DEPTH: usize = 16;

/// The new public and private settings, each as the text of a JSON object.
#[derive(Debug)]
pub struct Wanted {
    pub values: String,
    pub private: String,
}

#[derive(Debug, Body)]
pub struct NewSettings {
    #[field(rule = VALUES, example = {"banner": "Ice is on sale"})]
    values: (),
    /// The settings that only staff may see. Without this field there are no private settings.
    #[field(rule = PRIVATE_VALUES, example = {"partner": "acme"})]
    private: Option<()>,
}

/// Settings, whose values the reader checks and does not keep.
#[derive(Debug)]
pub struct Values(fn(Value<'_>, &Context<'_>) -> Result<(), Invalid>);

pub const VALUES: Values = Values(public);
const PRIVATE_VALUES: Values = Values(private);

impl Rule<()> for Values {
    fn read(&self, value: Value<'_>, context: &Context<'_>) -> Result<(), Invalid> {
        (self.0)(value, context)
    }
}

impl RuleSchema for Values {
    fn schema(&self, schemas: &mut Schemas) -> Node {
        schemas.named("SettingValues", |_| {
            Node::map([("type", "object".into()), ("additionalProperties", true.into())])
                .about(
                    "Any JSON, at most 16 levels deep. Names have 1 to 128 bytes without control characters. Public \
                     and private settings together have at most 32 KB. Numbers keep all their digits.",
                )
                .with_examples(&[
                    r#"{"banner": "Ice is on sale", "orders": {"pending_minutes": 30}, "maintenance": {"on": false}}"#,
                ])
        })
    }
}

impl Wanted {
    /// Reads the settings from a request's body. A missing `private` is empty.
    pub fn read(request: &Request<'_>) -> Result<Self, Problem> {
        let NewSettings { values: (), private: Some(()) | None } = request.body()?;
        let texts: Texts<'_> = serde_json::from_str(request.json_text()?).map_err(Problem::internal)?;
        let values = serde_json::to_string(&texts.values).map_err(Problem::internal)?;
        let private = serde_json::to_string(&texts.private.unwrap_or_default()).map_err(Problem::internal)?;
        if values.len() + private.len() > MAX_BYTES {
            let detail = format!("has more than {MAX_BYTES} bytes together with the private values");
            return Err(Problem::new(Code::InvalidBody, "The settings are too large.").error("/values", detail));
        }
        Ok(Self { values, private })
    }
}

/// The fields of the body as raw text. The strict reader has already refused every other field.
#[derive(Deserialize)]
struct Texts<'a> {
    #[serde(borrow)]
    values: Named<'a>,
    #[serde(borrow, default)]
    private: Option<Named<'a>>,
}

type Named<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// The settings that Bodega itself reads ([`OwnSettings`]). Only clients read the other settings.
const OWN: [&str; 5] = ["agents", "orders", "payments", maintenance::NAME, caching::NAME];

/// The settings that Bodega itself reads, with their bounds. The function stores the client's text,
/// so it only checks these values.
#[derive(Body)]
#[allow(dead_code, reason = "the values are checked and dropped")]
struct OwnSettings {
    agents: Option<Pages>,
    orders: Option<OrderLimits>,
    payments: Option<Payments>,
    maintenance: Option<Maintenance>,
    caching: Option<Caching>,
}

const PAGE: Text = https_url(1..=500);

/// The shop's pages for people, to which agents send their users, and the address of the API.
#[derive(Body)]
#[allow(dead_code, reason = "the values are checked and dropped")]
struct Pages {
    #[field(rule = PAGE)]
    shop_url: Option<String>,
    #[field(rule = PAGE)]
    api_url: Option<String>,
    #[field(rule = PAGE)]
    terms_url: Option<String>,
    #[field(rule = PAGE)]
    privacy_url: Option<String>,
}

#[derive(Body)]
#[allow(dead_code, reason = "the values are checked and dropped")]
struct OrderLimits {
    #[field(rule = integer(PENDING_MINUTES))]
    pending_minutes: Option<u64>,
    #[field(rule = integer(MAX_PENDING_ORDERS))]
    max_pending_orders: Option<u64>,
    #[field(rule = integer(MAX_PENDING_QUANTITY))]
    max_pending_quantity: Option<u64>,
    #[field(rule = integer(MAX_PENDING_LINES))]
    max_pending_lines: Option<u64>,
    #[field(rule = integer(MAX_ORDERS_PER_DAY))]
    max_orders_per_day: Option<u64>,
    shipping_address_required: Option<bool>,
    #[field(rule = one_of(&["line", "order"]))]
    tax_rounding: Option<String>,
    #[field(rule = one_of(&["rule", "apportioned"]))]
    shipping_tax: Option<String>,
    quote_optional: Option<bool>,
    guest_orders: Option<bool>,
}

#[derive(Body)]
#[allow(dead_code, reason = "the values are checked and dropped")]
struct Payments {
    #[field(rule = one_of(&["at_once", "at_shipping"]))]
    capture: Option<String>,
}

#[derive(Body)]
#[allow(dead_code, reason = "the values are checked and dropped")]
struct Maintenance {
    on: bool,
    #[field(rule = integer(maintenance::RETRY_AFTER_SECONDS))]
    retry_after_seconds: Option<u64>,
}

#[derive(Body)]
#[allow(dead_code, reason = "the values are checked and dropped")]
struct Caching {
    #[field(rule = integer(caching::SECONDS))]
    max_age_seconds: Option<u64>,
    #[field(rule = integer(caching::SECONDS))]
    stale_while_revalidate_seconds: Option<u64>,
}

fn public(value: Value<'_>, context: &Context<'_>) -> Result<(), Invalid> {
    let mut members = checked(value)?;
    let own = OWN.into_iter().filter_map(|name| members.remove_entry(name)).collect();
    OwnSettings::read(Value::Object(own), context).map(|_| ())
}

fn private(value: Value<'_>, _: &Context<'_>) -> Result<(), Invalid> {
    let members = checked(value)?;
    match OWN.into_iter().find(|name| members.contains_key(*name)) {
        Some(name) => Err(Invalid::new(format!("has `{name}`, which belongs to the public values"))),
        None => Ok(()),
    }
}

fn checked(value: Value<'_>) -> Result<Members<'_>, Invalid> {
    let Value::Object(members) = value else {
        return Err(Invalid::new("must be an object"));
    };
    for (name, value) in &members {
        if let Err(error) = id::check(name) {
            return Err(Invalid::new(format!("has an invalid name: it {error}")));
        }
        if depth(value) > MAX_DEPTH {
            return Err(Invalid::new(format!("has a value of more than {MAX_DEPTH} levels")));
        }
    }
    Ok(members)
}

/// Returns the depth of nested objects and arrays. The recursion is bounded, because the JSON
/// reader limits the depth.
fn depth(value: &Value<'_>) -> usize {
    let deepest = match value {
        Value::Array(elements) => elements.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        _ => return 0,
    };
    deepest.unwrap_or(0) + 1
}
