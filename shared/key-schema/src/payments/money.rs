//! Money: integer minor units with a currency. All arithmetic is checked, and uses no
//! floating point.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, de};

/// A code that ISO 4217 lists, such as `USD`. So the number of currencies is bounded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Currency([u8; 3]);

impl Currency {
    pub const USD: Self = Self(*b"USD");
    /// The main currency of the deployment.
    pub const SHOP: Self = Self::USD;

    #[must_use]
    pub fn as_str(&self) -> &str {
        // `Currency` always holds three ASCII letters, so the fallback is never used.
        std::str::from_utf8(&self.0).unwrap_or("XXX")
    }
}

/// The codes of ISO 4217 as of 2026, and three codes that the standard has withdrawn since 2024:
/// `ANG`, `BGN` and `ZWL`.
pub const LISTED: &str = "\
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BOV BRL BSD \
    BTN BWP BYN BZD CAD CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD \
    EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD \
    IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL \
    MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN \
    PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN \
    SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES \
    VND VUV WST XAD XAF XAG XAU XBA XBB XBC XBD XCD XCG XDR XOF XPD XPF XPT XSU XTS XUA XXX \
    YER ZAR ZMW ZWG ZWL \
    ";

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
            // Each code takes four bytes of the list, with its space.
            &[a, b, c] if LISTED.as_bytes().chunks(4).any(|code| code.starts_with(&[a, b, c])) => Ok(Self([a, b, c])),
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

/// An amount in minor units (cents for USD).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Money {
    pub amount: i64,
    pub currency: Currency,
}

/// An error for a failed calculation with money, or for a text that is not a currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// The result does not fit in 64 bits.
    #[error("the amount is too large")]
    Overflow,
    /// The two amounts have different currencies.
    #[error("amounts in different currencies cannot be added")]
    Mixed,
    /// The text is not a code in the list of ISO 4217.
    #[error("must be a code that ISO 4217 lists, such as USD")]
    Currency,
}

impl Money {
    #[must_use]
    pub const fn new(amount: i64, currency: Currency) -> Self {
        Self { amount, currency }
    }

    /// Returns the sum, if the currencies agree and the sum fits.
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

    /// Returns the price of `quantity` pieces.
    ///
    /// # Errors
    /// [`MoneyError::Overflow`].
    pub fn times(self, quantity: u64) -> Result<Self, MoneyError> {
        let quantity = i64::try_from(quantity).map_err(|_| MoneyError::Overflow)?;
        let amount = self.amount.checked_mul(quantity).ok_or(MoneyError::Overflow)?;
        Ok(Self { amount, ..self })
    }
}

/// Reads an amount that DynamoDB has summed with `ADD`, and which may exceed 64 bits. A larger
/// amount becomes `i64::MAX` or `i64::MIN`, so that one absurd total does not make its whole page
/// unreadable.
pub fn saturating<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    /// 2 to the power of 63, the first amount above `i64::MAX`.
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

        // The deserializer passes fractions and numbers beyond 64 bits as `f64`. This code only
        // compares the number, so rounding changes no amount.
        fn visit_f64<E: de::Error>(self, amount: f64) -> Result<i64, E> {
            match amount {
                _ if amount >= BEYOND => Ok(i64::MAX),
                _ if amount <= -BEYOND => Ok(i64::MIN),
                _ => Err(E::custom("an amount must be a whole number")),
            }
        }
    }

    from.deserialize_any(Amount)
}
