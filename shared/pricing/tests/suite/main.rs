//! Tests of the price of a basket.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod promotions;
mod properties;
mod shipping;
mod taxes;

use pricing::{Discounted, Line, Priced, Promotion, Reduction, Rounding, TaxRate, Taxes};

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
    Taxes { lines: vec![Some(rate); lines], shipping: Some(rate), rounding }
}

/// Prices lines without shipping and without tax.
pub fn untaxed(lines: &[Line], promotions: &[Promotion]) -> Priced {
    let taxes = Taxes { lines: Vec::new(), shipping: None, rounding: Rounding::Line };
    Discounted::new(lines, promotions).unwrap().price(0, &taxes).unwrap()
}

/// Returns the discount of each line.
pub fn discounts(priced: &Priced) -> Vec<i64> {
    priced.lines.iter().map(|line| line.discount).collect()
}
