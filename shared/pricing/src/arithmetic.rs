//! Integer arithmetic with amounts: fractions that are rounded half up, and amounts that are spread
//! over parts.

use std::cmp::Reverse;

use crate::PricingError;

/// Returns `amount · numerator / denominator`, rounded half up.
///
/// # Errors
/// [`PricingError`] when the amount is negative, the denominator is zero, or the result does not
/// fit.
pub fn part(amount: i64, numerator: u64, denominator: u64) -> Result<i64, PricingError> {
    let amount = u128::try_from(amount).map_err(|_| PricingError::Negative)?;
    let (numerator, denominator) = (u128::from(numerator), u128::from(denominator));
    // The largest possible `doubled` is 2 · (2^63 − 1) · (2^64 − 1) + 2^64 − 1. This is below
    // 2^128, so no operation overflows.
    let doubled = 2 * amount * numerator + denominator;
    let rounded = doubled.checked_div(2 * denominator).ok_or(PricingError::Overflow)?;
    i64::try_from(rounded).map_err(|_| PricingError::Overflow)
}

/// Spreads an amount over parts in proportion to their weights, by the method of the largest
/// remainder. The shares add up to the amount. If two remainders are equal, the earlier part gets
/// the additional unit.
///
/// If the amount is not larger than the sum of the weights, no share is larger than its weight.
///
/// # Errors
/// [`PricingError`] when the amount or a weight is negative, or when the amount is above zero and
/// all weights are zero.
pub fn spread(amount: i64, weights: &[i64]) -> Result<Vec<i64>, PricingError> {
    let amount = u128::try_from(amount).map_err(|_| PricingError::Negative)?;
    let weights = weights.iter().map(|weight| u128::try_from(*weight)).collect::<Result<Vec<_>, _>>();
    let weights = weights.map_err(|_| PricingError::Negative)?;
    let sum: u128 = weights.iter().sum();
    if sum == 0 {
        return if amount == 0 { Ok(vec![0; weights.len()]) } else { Err(PricingError::Unspreadable) };
    }
    let mut shares: Vec<_> = weights.iter().map(|weight| (amount * weight / sum, amount * weight % sum)).collect();
    let left = amount - shares.iter().map(|(share, _)| share).sum::<u128>();
    let mut by_remainder: Vec<_> = shares.iter_mut().collect();
    by_remainder.sort_by_key(|(_, remainder)| Reverse(*remainder));
    for ((share, _), _) in by_remainder.into_iter().zip(0..left) {
        *share += 1;
    }
    shares.into_iter().map(|(share, _)| i64::try_from(share).map_err(|_| PricingError::Overflow)).collect()
}

pub(crate) fn sum(amounts: impl IntoIterator<Item = i64>) -> Result<i64, PricingError> {
    amounts.into_iter().try_fold(0_i64, i64::checked_add).ok_or(PricingError::Overflow)
}
