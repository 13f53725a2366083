//! Money: integer minor units with their currency. No floating point, no unchecked arithmetic.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, de};

/// An ISO 4217 alphabetic code, such as `USD`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Currency([u8; 3]);

impl Currency {
    /// The United States dollar.
    pub const USD: Self = Self(*b"USD");

    /// The three letters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Three ASCII letters by construction.
        std::str::from_utf8(&self.0).unwrap_or("XXX")
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Currency> for String {
    fn from(currency: Currency) -> Self {
        currency.as_str().to_owned()
    }
}

impl FromStr for Currency {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Self, MoneyError> {
        match text.as_bytes() {
            &[a, b, c] if [a, b, c].iter().all(u8::is_ascii_uppercase) => Ok(Self([a, b, c])),
            _ => Err(MoneyError::Currency),
        }
    }
}

impl TryFrom<String> for Currency {
    type Error = MoneyError;

    fn try_from(text: String) -> Result<Self, MoneyError> {
        text.parse()
    }
}

/// An amount in minor units (cents for USD), negative for what flows the other way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Money {
    /// Minor units.
    pub amount: i64,
    /// What they are units of.
    pub currency: Currency,
}

/// Why a calculation or a text gives no money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// The result does not fit 64 bits.
    #[error("the amount is too large")]
    Overflow,
    /// Two currencies met.
    #[error("amounts of different currencies do not go together")]
    Mixed,
    /// Not three upper-case letters; whether ISO 4217 lists them is not checked.
    #[error("must be an ISO 4217 code of three upper-case letters")]
    Currency,
}

impl Money {
    /// An amount of minor units.
    #[must_use]
    pub const fn new(amount: i64, currency: Currency) -> Self {
        Self { amount, currency }
    }

    /// The sum, if the currencies agree and it fits.
    ///
    /// # Errors
    /// [`MoneyError::Mixed`] or [`MoneyError::Overflow`].
    pub fn plus(self, other: Self) -> Result<Self, MoneyError> {
        if self.currency != other.currency {
            return Err(MoneyError::Mixed);
        }
        let amount = self.amount.checked_add(other.amount).ok_or(MoneyError::Overflow)?;
        Ok(Self { amount, ..self })
    }

    /// The price of `quantity` pieces.
    ///
    /// # Errors
    /// [`MoneyError::Overflow`].
    pub fn times(self, quantity: u64) -> Result<Self, MoneyError> {
        let quantity = i64::try_from(quantity).map_err(|_| MoneyError::Overflow)?;
        let amount = self.amount.checked_mul(quantity).ok_or(MoneyError::Overflow)?;
        Ok(Self { amount, ..self })
    }
}

/// Reads an amount that the table added up, which may have left 64 bits: then it is the largest, or smallest, that there is. One absurd total
/// must not make the page unreadable that it stands on.
///
/// # Errors
/// What is no number.
pub fn saturating<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    /// 2 to the power of 63.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;

    struct Amount;

    impl de::Visitor<'_> for Amount {
        type Value = i64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an amount")
        }

        fn visit_i64<E>(self, amount: i64) -> Result<i64, E> {
            Ok(amount)
        }

        fn visit_u64<E>(self, amount: u64) -> Result<i64, E> {
            Ok(i64::try_from(amount).unwrap_or(i64::MAX))
        }

        // What is no whole number of 64 bits comes as one of these: its size says whether it is beyond them, and nothing is computed with it.
        fn visit_f64<E: de::Error>(self, amount: f64) -> Result<i64, E> {
            match amount {
                _ if amount >= BEYOND => Ok(i64::MAX),
                _ if amount <= -BEYOND => Ok(i64::MIN),
                _ => Err(E::custom("an amount is whole")),
            }
        }
    }

    from.deserialize_any(Amount)
}
