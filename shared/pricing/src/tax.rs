//! Tax: rates, rounding and tax lines.

use std::collections::BTreeMap;

use crate::PricingError;
use crate::arithmetic::{part, spread, sum};

const MILLION: u64 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaxRate {
    /// The rate in millionths: 190,000 is 19 %, and 88,750 is the 8.875 % of New York City.
    pub millionths: u32,
    /// Whether prices include the tax. If they do not, the tax is added to the prices.
    pub included: bool,
}

impl TaxRate {
    /// Returns the tax of an amount, rounded half up.
    ///
    /// # Errors
    /// [`PricingError`] when the amount is negative or the tax does not fit.
    pub fn of(self, amount: i64) -> Result<i64, PricingError> {
        let rate = u64::from(self.millionths);
        part(amount, rate, if self.included { MILLION + rate } else { MILLION })
    }

    /// Returns the part of a tax that is added to the price.
    pub(crate) const fn added(self, tax: i64) -> i64 {
        if self.included { 0 } else { tax }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// The tax of each line is rounded.
    Line,
    /// The amounts with the same rate are added, and their tax is rounded once. Then the tax is
    /// spread over the lines.
    Order,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taxes {
    /// The rate of each line. A line without a rate is not taxed.
    pub lines: Vec<Option<TaxRate>>,
    pub shipping: ShippingTax,
    pub rounding: Rounding,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaxLine {
    pub rate: TaxRate,
    /// The sum of the prices with this rate, after discounts. It includes the tax if the prices
    /// include it.
    pub amount: i64,
    pub tax: i64,
}

/// Returns the tax of each amount, and the tax lines by rate.
pub(crate) fn tax(
    amounts: &[(i64, Option<TaxRate>)],
    rounding: Rounding,
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
            Rounding::Line => weights.iter().map(|amount| rate.of(*amount)).collect::<Result<Vec<_>, _>>()?,
            Rounding::Order => spread(rate.of(amount)?, &weights)?,
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
