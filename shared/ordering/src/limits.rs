//! The limits of open orders and the time of capture, from the settings or by default.

use http_api::Problem;
use key_schema::order::open::{Limits, PENDING_MINUTES};
use key_schema::order::{ShippingTax, TaxRounding};
use key_schema::payment::CaptureMode;
use key_schema::settings::Known;
use serde::Deserialize;

use crate::Shop;

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
pub fn defaults(minutes: Option<&str>) -> Result<Limits, LimitsError> {
    let Some(text) = minutes.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(Limits::default());
    };
    let minutes = text.parse().ok().filter(|minutes| PENDING_MINUTES.contains(minutes));
    minutes.map(|pending_minutes| Limits { pending_minutes, ..Limits::default() }).ok_or(LimitsError)
}

impl Shop {
    /// Returns the current limits. A changed setting takes effect after at most
    /// [`SETTINGS_MAX_AGE`](http_api::SETTINGS_MAX_AGE).
    pub async fn limits(&self) -> Result<Limits, Problem> {
        let (known, _) = self.services.settings.current(&self.services.table).await?;
        Ok(of(&known, self.defaults))
    }

    /// Returns when card payments are captured.
    pub async fn capture(&self) -> Result<CaptureMode, Problem> {
        let (known, _) = self.services.settings.current(&self.services.table).await?;
        Ok(capture(&known))
    }
}

/// Reads the public setting `orders`, which `PUT /v1/settings` has checked.
fn of(known: &Known, defaults: Limits) -> Limits {
    let Values { orders, .. } = serde_json::from_str(&known.values).unwrap_or_default();
    let orders = orders.unwrap_or_default();
    Limits {
        pending_minutes: orders.pending_minutes.unwrap_or(defaults.pending_minutes),
        max_pending_orders: orders.max_pending_orders.unwrap_or(defaults.max_pending_orders),
        max_pending_quantity: orders.max_pending_quantity.unwrap_or(defaults.max_pending_quantity),
        max_pending_lines: orders.max_pending_lines.unwrap_or(defaults.max_pending_lines),
        max_orders_per_day: orders.max_orders_per_day.unwrap_or(defaults.max_orders_per_day),
        shipping_address_required: orders.shipping_address_required.unwrap_or(defaults.shipping_address_required),
        tax_rounding: orders.tax_rounding.unwrap_or(defaults.tax_rounding),
        shipping_tax: orders.shipping_tax.unwrap_or(defaults.shipping_tax),
        quote_optional: orders.quote_optional.unwrap_or(defaults.quote_optional),
        guest_orders: orders.guest_orders.unwrap_or(defaults.guest_orders),
    }
}

/// Reads the public setting `payments`, which `PUT /v1/settings` has checked.
fn capture(known: &Known) -> CaptureMode {
    let Values { payments, .. } = serde_json::from_str(&known.values).unwrap_or_default();
    payments.unwrap_or_default().capture.unwrap_or_default()
}

#[derive(Default, Deserialize)]
struct Values {
    orders: Option<Orders>,
    payments: Option<Payments>,
}

#[derive(Default, Deserialize)]
struct Payments {
    capture: Option<CaptureMode>,
}

#[derive(Default, Deserialize)]
struct Orders {
    pending_minutes: Option<u64>,
    max_pending_orders: Option<u64>,
    max_pending_quantity: Option<u64>,
    max_pending_lines: Option<u64>,
    max_orders_per_day: Option<u64>,
    shipping_address_required: Option<bool>,
    tax_rounding: Option<TaxRounding>,
    shipping_tax: Option<ShippingTax>,
    quote_optional: Option<bool>,
    guest_orders: Option<bool>,
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
    fn a_missing_setting_leaves_the_default() {
        let defaults = Limits { pending_minutes: 90, ..Limits::default() };
        let set = |values: &str| of(&Known { values: values.to_owned(), ..Known::default() }, defaults);
        assert_eq!(
            set(r#"{"orders":{"pending_minutes":5,"max_pending_orders":2,"max_pending_quantity":7,
                    "max_pending_lines":800,"max_orders_per_day":9,"shipping_address_required":true,
                    "tax_rounding":"order","shipping_tax":"apportioned","quote_optional":true,"guest_orders":false}}"#),
            Limits {
                pending_minutes: 5,
                max_pending_orders: 2,
                max_pending_quantity: 7,
                max_pending_lines: 800,
                max_orders_per_day: 9,
                shipping_address_required: true,
                tax_rounding: TaxRounding::Order,
                shipping_tax: ShippingTax::Apportioned,
                quote_optional: true,
                guest_orders: false,
            }
        );
        assert_eq!(set(r#"{"orders":{"max_pending_orders":2}}"#), Limits { max_pending_orders: 2, ..defaults });
        for none in ["{}", r#"{"orders":null}"#, r#"{"orders":{"pending_minutes":null}}"#] {
            assert_eq!(set(none), defaults, "{none}");
        }
    }
}
