//! Tests of the price of a basket.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod promotions;
mod properties;
mod shipping;
mod taxes;

use pricing::{Discounted, Line, Priced, PricingError, Promotion, Reduction, Rounding, ShippingTax, TaxRate, Taxes};

/// Returns a basket line of `quantity` pieces at `unit_price` each.
pub fn line(quantity: u64, unit_price: i64) -> Line {
    Line { quantity, amount: unit_price * i64::try_from(quantity).unwrap(), grams: 0 }
}

/// Returns a promotion that applies to the lines at these positions.
pub fn promotion(reduction: Reduction, lines: &[usize]) -> Promotion {
    Promotion { reduction, lines: lines.to_vec(), min_amount: None, exclusive: false, priority: 0 }
}

/// Returns one rate for every line and for shipping.
pub fn one_rate(lines: usize, rate: TaxRate, rounding: Rounding) -> Taxes {
    Taxes { lines: vec![Some(rate); lines], shipping: ShippingTax::Rate(Some(rate)), rounding }
}

/// Applies promotions to lines whose shipping has one price.
pub fn discounted(lines: &[Line], promotions: &[Promotion], shipping: i64) -> Result<Discounted, PricingError> {
    Discounted::new(lines, promotions, |_, _| shipping)
}

/// Prices lines without shipping and without tax.
pub fn untaxed(lines: &[Line], promotions: &[Promotion]) -> Priced {
    let taxes = Taxes { lines: Vec::new(), shipping: ShippingTax::Rate(None), rounding: Rounding::Line };
    discounted(lines, promotions, 0).unwrap().price(0, &taxes).unwrap()
}

/// Returns the discount of each line.
pub fn discounts(priced: &Priced) -> Vec<i64> {
    priced.lines.iter().map(|line| line.discount).collect()
}
