//! Amounts of money and prices, in whole numbers.
//!
//! An amount is a number of billionths of a dollar, and a price is a number of trillionths. So no
//! price is rounded when it is read. The amount of each line of a bill is rounded once, half up, to
//! a billionth. All sums are sums of lines, so they are exact. Only the display rounds again, half
//! up, to cents.

use std::fmt::{self, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub};

use serde::{Serialize, Serializer};

/// Trillionths in a dollar.
const PICO: u64 = 1_000_000_000_000;
/// Decimal places of a price.
const PLACES: usize = 12;
/// Billionths in a cent.
const CENT: i128 = 10_000_000;

/// An amount in billionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Nano(pub i128);

impl Display for Nano {
    /// Writes dollars with two decimal places, rounded half up.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cents = (self.0.abs() + CENT / 2) / CENT;
        let sign = if self.0 < 0 && cents > 0 { "-" } else { "" };
        f.pad(&format!("{sign}{}.{:02}", cents / 100, cents % 100))
    }
}

/// Writes the billionths as a whole number.
impl Serialize for Nano {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        i64::try_from(self.0).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl Add for Nano {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Nano {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Nano {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Neg for Nano {
    type Output = Self;

    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl Sum for Nano {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Add::add)
    }
}

/// A price: trillionths of a dollar for a number of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    pub(crate) pico: u64,
    pub(crate) per: u64,
}

impl Price {
    /// Reads a price of at most 1,000 dollars, such as `0.0000133334`.
    pub(crate) fn parse(dollars: &str, per: u64) -> Result<Self, String> {
        let wrong =
            || format!("{dollars:?} is not a price: write dollars such as \"0.125\", at most 12 decimal places");
        let (whole, decimals) = dollars.split_once('.').unwrap_or((dollars, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || whole.len() > 4 || decimals.len() > PLACES || !digits(whole) || !digits(decimals) {
            return Err(wrong());
        }
        let whole: u64 = whole.parse().map_err(|_| wrong())?;
        let decimals: u64 = format!("{decimals:0<PLACES$}").parse().map_err(|_| wrong())?;
        if whole > 1_000 || per == 0 {
            return Err(wrong());
        }
        Ok(Self { pico: whole * PICO + decimals, per })
    }

    /// Returns the cost of `quantity` parts of a unit, where one unit has `parts` parts.
    pub(crate) fn of(self, quantity: u128, parts: u64) -> Nano {
        let divisor = u128::from(self.per) * u128::from(parts.max(1)) * 1_000;
        let pico = quantity.saturating_mul(u128::from(self.pico));
        // Rounds half up. Adding half of the divisor before the division could overflow.
        let (nano, rest) = (pico / divisor, pico % divisor);
        Nano(i128::try_from(nano).unwrap_or(i128::MAX) + i128::from(rest * 2 >= divisor))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_amount_is_shown_in_cents_rounded_half_up() {
        let shown = |nano| Nano(nano).to_string();
        assert_eq!(shown(4_999_999), "0.00");
        assert_eq!(shown(5_000_000), "0.01");
        assert_eq!(shown(-5_000_000), "-0.01");
        assert_eq!(shown(-4_999_999), "0.00");
        assert_eq!(shown(13_500_000_000), "13.50");
        assert_eq!(format!("{:>8}", Nano(9_000_000_000)), "    9.00");
    }

    #[test]
    fn a_price_is_exact_and_an_amount_is_rounded_once() {
        let price = Price::parse("0.0000133334", 1).unwrap();
        assert_eq!((price.pico, price.of(1, 1), price.of(3, 1)), (13_333_400, Nano(13_333), Nano(40_000)));
        let writes = Price::parse("0.625", 1_000_000).unwrap();
        assert_eq!((writes.of(1, 1), writes.of(1_000_000, 1)), (Nano(625), Nano(625_000_000)));
        let reads = Price::parse("0.125", 1_000_000).unwrap();
        assert_eq!(reads.of(1, 2), Nano(63), "half a read unit is 62.5 billionths");
    }

    #[test]
    fn a_text_that_is_no_price_is_refused() {
        for text in ["", ".", "-1", "1e3", "0,5", "1.0000000000001", "99999", "1001", " 1", "1 ", "١"] {
            assert!(Price::parse(text, 1).is_err(), "{text:?}");
        }
        assert!(Price::parse("1", 0).is_err());
        assert!(Price::parse("3", 1).is_ok());
    }
}
