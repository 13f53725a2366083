//! The short number of an order, which people read out.
//!
//! The number follows from the id of the order. So no item and no index stores it, and every view
//! computes it. Two ids may give the same number. The claim [`NumberClaim`] belongs to one order, and
//! an order whose number is taken gets another id.

use std::fmt;
use std::str::FromStr;

use item_model::encoding::{Part, encode_into};
use item_model::prelude::*;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Order;
use super::placed::stored;
use crate::expression::Condition;
use crate::id::OrderId;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::request::Guarded;
use crate::shard::fnv1a;

/// The digits and letters without 0, 1, I, L, O, S and U. Their number is a prime, so the check
/// character shows each wrong character and each exchange of two characters.
const ALPHABET: &[u8; 29] = b"23456789ABCDEFGHJKMNPQRTVWXYZ";
const BASE: u64 = 29;
const LENGTH: usize = 8;

/// A number such as `B7K3-9QXD`. The last character is a check character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OrderNumber([u8; LENGTH]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OrderNumberError {
    #[error("must have 8 characters, as in `B7K3-9QXD`, without 0, 1, I, L, O, S and U")]
    Form,
    #[error("is not the number of an order: at least one character is wrong")]
    Check,
}

impl OrderNumber {
    /// Returns the number of the order with this id.
    #[must_use]
    pub fn of(id: &OrderId) -> Self {
        let mut rest = fnv1a(id.as_str().as_bytes());
        let mut digits = [0; LENGTH];
        for digit in digits.iter_mut().take(LENGTH - 1) {
            *digit = u8::try_from(rest % BASE).unwrap_or_default();
            rest /= BASE;
        }
        let check = (BASE - weighted(digits)) % BASE;
        if let Some(last) = digits.last_mut() {
            *last = u8::try_from(check).unwrap_or_default();
        }
        Self(digits)
    }
}

/// Returns the sum of the digits, each multiplied by its distance from the end, modulo the base. It
/// is 0 for a number.
fn weighted(digits: [u8; LENGTH]) -> u64 {
    (1_u64..).zip(digits.iter().rev()).map(|(weight, digit)| weight * u64::from(*digit)).sum::<u64>() % BASE
}

impl fmt::Display for OrderNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, digit) in self.0.iter().enumerate() {
            let character = ALPHABET.get(usize::from(*digit)).copied().unwrap_or(b'?');
            write!(f, "{}{}", if at == LENGTH / 2 { "-" } else { "" }, char::from(character))?;
        }
        Ok(())
    }
}

/// Reads a number in upper or lower case, with or without the hyphen and spaces.
impl FromStr for OrderNumber {
    type Err = OrderNumberError;

    fn from_str(text: &str) -> Result<Self, OrderNumberError> {
        let mut digits = [0; LENGTH];
        let mut free = digits.iter_mut();
        for character in text.bytes().filter(|byte| !matches!(byte, b'-' | b' ')) {
            let digit = ALPHABET.iter().position(|known| *known == character.to_ascii_uppercase());
            let digit = digit.and_then(|digit| u8::try_from(digit).ok()).ok_or(OrderNumberError::Form)?;
            *free.next().ok_or(OrderNumberError::Form)? = digit;
        }
        if free.next().is_some() {
            return Err(OrderNumberError::Form);
        }
        if weighted(digits) == 0 { Ok(Self(digits)) } else { Err(OrderNumberError::Check) }
    }
}

impl Part for OrderNumber {
    fn write(&self, out: &mut String) {
        encode_into(&self.to_string(), out);
    }
}

impl Serialize for OrderNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for OrderNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The claim of an order on its number. It never expires, so that a number in an old mail or on an
/// invoice names one order for ever.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberClaim {
    pub order_number: OrderNumber,
    pub order_id: OrderId,
}

impl NumberClaim {
    #[must_use]
    pub fn of(id: &OrderId) -> Self {
        Self { order_number: OrderNumber::of(id), order_id: id.clone() }
    }
}

impl Entity for NumberClaim {
    const NAME: &'static str = "NumberClaim";

    fn key(&self) -> Result<Key, KeyError> {
        claim_key(self.order_number)
    }
}

pub(super) fn claim_key(number: OrderNumber) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("NUMBER", &[&number])?, sk: SortKey::new("NUMBER")? })
}

/// Returns the write that claims the order's number.
pub(super) fn claim(order: &Stored<Order>) -> Result<Guarded, EncodeError> {
    Guarded::put(&stored(order, NumberClaim::of(&order.id)), Condition::NotExists)
}
