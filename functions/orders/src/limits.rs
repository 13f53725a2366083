//! The limits of open orders, from the settings or by default.

use http_api::Problem;
use key_schema::order::TaxRounding;
use key_schema::order::open::{
    Limits, MAX_ORDERS_PER_DAY, MAX_PENDING_LINES, MAX_PENDING_ORDERS, MAX_PENDING_QUANTITY, PENDING_MINUTES,
};
use key_schema::settings::Known;
use serde::Deserialize as _;
use serde_json::Value;

use crate::App;

/// `PENDING_ORDER_MINUTES` is not a valid number of minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the environment variable PENDING_ORDER_MINUTES must be a number from {} to {}",
    PENDING_MINUTES.start(),
    PENDING_MINUTES.end()
)]
pub struct LimitsError;

/// Returns the limits that apply if the settings contain none. `minutes` is the value of
/// `PENDING_ORDER_MINUTES`, if it is set.
///
/// # Errors
/// [`LimitsError`].
pub fn defaults(minutes: Option<&str>) -> Result<Limits, LimitsError> {
    let Some(text) = minutes.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(Limits::default());
    };
    let minutes = text.parse().ok().filter(|minutes| PENDING_MINUTES.contains(minutes));
    minutes.map(|pending_minutes| Limits { pending_minutes, ..Limits::default() }).ok_or(LimitsError)
}

impl App {
    /// Returns the current limits. A changed setting takes effect after at most
    /// [`SETTINGS_MAX_AGE`](http_api::SETTINGS_MAX_AGE).
    pub async fn limits(&self) -> Result<Limits, Problem> {
        let (known, _) = self.services.settings.current(&self.services.table).await?;
        Ok(of(&known, self.defaults))
    }
}

/// Reads the public setting `orders`. `PUT /v1/settings` of an earlier release did not check this
/// setting. So the function treats an invalid limit as missing.
fn of(known: &Known, defaults: Limits) -> Limits {
    let values: Value = serde_json::from_str(&known.values).unwrap_or_default();
    let orders = values.get("orders");
    let limit = |name: &str, range: std::ops::RangeInclusive<u64>| {
        orders?.get(name)?.as_u64().filter(|limit| range.contains(limit))
    };
    let flag = |name: &str| orders?.get(name)?.as_bool();
    Limits {
        pending_minutes: limit("pending_minutes", PENDING_MINUTES).unwrap_or(defaults.pending_minutes),
        max_pending_orders: limit("max_pending_orders", MAX_PENDING_ORDERS).unwrap_or(defaults.max_pending_orders),
        max_pending_quantity: limit("max_pending_quantity", MAX_PENDING_QUANTITY)
            .unwrap_or(defaults.max_pending_quantity),
        max_pending_lines: limit("max_pending_lines", MAX_PENDING_LINES).unwrap_or(defaults.max_pending_lines),
        max_orders_per_day: limit("max_orders_per_day", MAX_ORDERS_PER_DAY).unwrap_or(defaults.max_orders_per_day),
        shipping_address_required: flag("shipping_address_required").unwrap_or(defaults.shipping_address_required),
        tax_rounding: orders
            .and_then(|orders| TaxRounding::deserialize(orders.get("tax_rounding")?).ok())
            .unwrap_or(defaults.tax_rounding),
        quote_optional: flag("quote_optional").unwrap_or(defaults.quote_optional),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minutes_come_from_the_variable_and_default_to_an_hour() {
        for absent in [None, Some(""), Some(" ")] {
            assert_eq!(defaults(absent), Ok(Limits::default()));
        }
        assert_eq!(defaults(Some(" 90 ")).map(|limits| limits.pending_minutes), Ok(90));
        for bad in ["0", "43201", "-1", "an hour", "1.5"] {
            assert_eq!(defaults(Some(bad)), Err(LimitsError), "{bad}");
        }
    }

    #[test]
    fn a_missing_or_invalid_setting_leaves_the_default() {
        let defaults = Limits { pending_minutes: 90, ..Limits::default() };
        let set = |values: &str| of(&Known { values: values.to_owned(), ..Known::default() }, defaults);
        assert_eq!(
            set(r#"{"orders":{"pending_minutes":5,"max_pending_orders":2,"max_pending_quantity":7,
                    "max_pending_lines":800,"max_orders_per_day":9,"shipping_address_required":true,
                    "tax_rounding":"order","quote_optional":true}}"#),
            Limits {
                pending_minutes: 5,
                max_pending_orders: 2,
                max_pending_quantity: 7,
                max_pending_lines: 800,
                max_orders_per_day: 9,
                shipping_address_required: true,
                tax_rounding: TaxRounding::Order,
                quote_optional: true
            }
        );
        assert_eq!(set(r#"{"orders":{"max_pending_orders":2}}"#), Limits { max_pending_orders: 2, ..defaults });
        for odd in ["{}", "[]", "x", r#"{"orders":3}"#, r#"{"orders":{"pending_minutes":0,"max_pending_orders":1.5}}"#]
        {
            assert_eq!(set(odd), defaults, "{odd}");
        }
    }
}
