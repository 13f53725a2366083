//! Tax: rates, rounding and tax lines.

use std::collections::BTreeMap;

use key_schema::order::{TaxLine, TaxRate, TaxRounding};

use crate::PricingError;
use crate::arithmetic::{part, spread, sum};

const MILLION: u64 = 1_000_000;

/// Returns the tax of an amount, rounded half up.
///
/// # Errors
/// [`PricingError`] when the amount is negative or the tax does not fit.
pub fn tax_of(rate: TaxRate, amount: i64) -> Result<i64, PricingError> {
    let millionths = u64::from(rate.rate_millionths);
    part(amount, millionths, if rate.included { MILLION + millionths } else { MILLION })
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taxes {
    /// The rate of each line. A line without a rate is not taxed.
    pub lines: Vec<Option<TaxRate>>,
    pub shipping: ShippingTax,
    pub rounding: TaxRounding,
}

/// How shipping is taxed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShippingTax {
    /// At one rate, or not at all.
    Rate(Option<TaxRate>),
    /// At the rates of these lines. The price of shipping is spread over the rates in proportion to
    /// the prices of their lines after discounts.
    Apportioned {
        /// The positions of the lines.
        lines: Vec<usize>,
        /// The rate if the lines cost nothing.
        otherwise: Option<TaxRate>,
    },
}

impl Taxes {
    /// Returns the parts of the price of shipping with their rates, each rate once. `left` is the
    /// price of each line after discounts. If two remainders are equal, the part with the lower
    /// rate gets the additional unit.
    pub(crate) fn shipping_parts(&self, price: i64, left: &[i64]) -> Result<Vec<(i64, Option<TaxRate>)>, PricingError> {
        let (lines, otherwise) = match &self.shipping {
            ShippingTax::Rate(rate) => return Ok(vec![(price, *rate)]),
            ShippingTax::Apportioned { lines, otherwise } => (lines, otherwise),
        };
        let mut by_rate: BTreeMap<Option<TaxRate>, i64> = BTreeMap::new();
        for at in lines {
            let amount = by_rate.entry(self.lines.get(*at).copied().flatten()).or_default();
            *amount = amount.checked_add(left.get(*at).copied().unwrap_or_default()).ok_or(PricingError::Overflow)?;
        }
        let weights: Vec<i64> = by_rate.values().copied().collect();
        if weights.iter().all(|weight| *weight == 0) {
            return Ok(vec![(price, *otherwise)]);
        }
        Ok(spread(price, &weights)?.into_iter().zip(by_rate.into_keys()).collect())
    }
}

/// Returns the tax of each amount, and the tax lines by rate.
pub(crate) fn tax(
    amounts: &[(i64, Option<TaxRate>)],
    rounding: TaxRounding,
) -> Result<(Vec<i64>, Vec<TaxLine>), PricingError> {
    let mut by_rate: BTreeMap<TaxRate, Vec<(usize, i64)>> = BTreeMap::new();
    for (at, (amount, rate)) in amounts.iter().enumerate() {
        if let Some(rate) = rate {
            by_rate.entry(*rate).or_default().push((at, *amount));
        }
    }
    let (mut taxes, mut lines) = (vec![0; amounts.len()], Vec::with_capacity(by_rate.len()));
    for (rate, taxed) in by_rate {
        let weights: Vec<i64> = taxed.iter().map(|(_, amount)| *amount).collect();
        let amount = sum(weights.iter().copied())?;
        let shares = match rounding {
            TaxRounding::Line => weights.iter().map(|amount| tax_of(rate, *amount)).collect::<Result<Vec<_>, _>>()?,
            TaxRounding::Order => spread(tax_of(rate, amount)?, &weights)?,
        };
        lines.push(TaxLine { rate, amount, tax: sum(shares.iter().copied())? });
        for ((at, _), share) in taxed.iter().zip(shares) {
            if let Some(tax) = taxes.get_mut(*at) {
                *tax = share;
            }
        }
    }
    Ok((taxes, lines))
}
