//! Amounts as Stripe expresses them. Stripe's unit differs from the minor unit of ISO 4217 in some
//! currencies, and a number that is right in one is wrong by a factor of 100 in the other
//! (<https://docs.stripe.com/currencies>).

use key_schema::money::{Currency, Money};

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// Stripe's unit is larger, and the amount is between two multiples of it.
    #[error("the payment provider has no such amount of {0}")]
    NotWhole(Currency),
    #[error("the payment provider does not support {0}")]
    Unsupported(Currency),
    #[error("the amount is too large for the payment provider")]
    TooLarge,
    /// The payment has another currency, in which the provider would count the number.
    #[error("the payment is in {payment}, and not in {amount}")]
    OtherCurrency { payment: Currency, amount: Currency },
}

/// The relation of Stripe's unit to the minor unit.
enum Unit {
    Same,
    /// A minor unit is a hundred of Stripe's units.
    Hundredth,
    /// Stripe's unit is a hundred minor units.
    Hundred,
    /// The last digit of an amount must be 0.
    Tens,
}

fn unit(currency: Currency) -> Result<Unit, AmountError> {
    match currency.as_str() {
        // No decimals, but Stripe still counts in hundredths.
        "ISK" | "UGX" => Ok(Unit::Hundredth),
        // Two decimals in ISO 4217, none at Stripe.
        "MGA" => Ok(Unit::Hundred),
        "BHD" | "JOD" | "KWD" | "OMR" | "TND" => Ok(Unit::Tens),
        // Funds, units of account and metals, or four decimals.
        "CLF" | "UYW" | "UYI" | "IQD" | "LYD" | "XAD" | "XAG" | "XAU" | "XBA" | "XBB" | "XBC" | "XBD" | "XDR"
        | "XPD" | "XPT" | "XSU" | "XTS" | "XUA" | "XXX" => Err(AmountError::Unsupported(currency)),
        _ => Ok(Unit::Same),
    }
}

/// Returns the amount in Stripe's unit.
///
/// # Errors
/// [`AmountError`] if Stripe cannot express exactly this amount. It is never rounded.
pub fn to_stripe(money: Money) -> Result<i64, AmountError> {
    let Money { amount, currency } = money;
    match unit(currency)? {
        Unit::Same => Ok(amount),
        Unit::Hundredth => amount.checked_mul(100).ok_or(AmountError::TooLarge),
        Unit::Hundred if amount % 100 == 0 => Ok(amount / 100),
        Unit::Tens if amount % 10 == 0 => Ok(amount),
        Unit::Hundred | Unit::Tens => Err(AmountError::NotWhole(currency)),
    }
}

/// Returns the money of an amount in Stripe's unit.
pub fn from_stripe(amount: i64, currency: Currency) -> Result<Money, AmountError> {
    let amount = match unit(currency)? {
        Unit::Same | Unit::Tens => amount,
        Unit::Hundredth if amount % 100 == 0 => amount / 100,
        Unit::Hundredth => return Err(AmountError::NotWhole(currency)),
        Unit::Hundred => amount.checked_mul(100).ok_or(AmountError::TooLarge)?,
    };
    Ok(Money::new(amount, currency))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_amount_is_the_same_money_at_stripe_and_is_never_rounded() {
        for (amount, currency, at_stripe) in [
            (1299, "USD", Ok(1299)),
            (500, "JPY", Ok(500)),
            (5, "ISK", Ok(500)),
            (5, "UGX", Ok(500)),
            (1200, "MGA", Ok(12)),
            (1250, "MGA", Err("the payment provider has no such amount of MGA")),
            (5120, "KWD", Ok(5120)),
            (5124, "KWD", Err("the payment provider has no such amount of KWD")),
            (1, "XAU", Err("the payment provider does not support XAU")),
            (i64::MAX, "ISK", Err("the amount is too large for the payment provider")),
        ] {
            let money = Money::new(amount, currency.parse().unwrap());
            let found = to_stripe(money);
            assert_eq!(found.map_err(|error| error.to_string()), at_stripe.map_err(str::to_owned), "{currency}");
            if let Ok(at_stripe) = found {
                assert_eq!(from_stripe(at_stripe, money.currency), Ok(money));
            }
        }
        assert!(from_stripe(550, "ISK".parse().unwrap()).is_err());
    }
}
