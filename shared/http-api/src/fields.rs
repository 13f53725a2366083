//! Readers for the values in request bodies. Each reader takes a JSON value and returns a typed
//! value or an error. Readers do not convert between types: `"1"` and `1.0` are not the integer 1.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use key_schema::instant::Instant;
use key_schema::money::{Currency, Money};
use key_schema::text::{is_blank, visible_name};

use crate::body::{Invalid, Object};
use crate::json::Value;

/// The maximum amount of money in a body, in minor units. Sums of millions of such amounts still
/// fit in 64 bits.
pub const MAX_AMOUNT: i64 = 1_000_000_000_000;

impl<'a> Value<'a> {
    /// Returns the fields of an object.
    ///
    /// # Errors
    /// [`Invalid`] for anything but an object.
    pub fn object(self) -> Result<Object<'a>, Invalid> {
        match self {
            Self::Object(members) => Ok(Object::new(members)),
            _ => Err(Invalid::new("must be an object")),
        }
    }
}

/// Reads a line of text that a person reads, without white space at its ends. It has no control
/// characters and at least one visible character. Its length is in bytes of UTF-8.
pub fn text(bytes: RangeInclusive<usize>) -> impl Fn(Value<'_>) -> Result<String, Invalid> + Clone {
    move |value| {
        let line = exact_text(bytes.clone())(value)?;
        must_be_visible(&line)?;
        Ok(line.trim().to_owned())
    }
}

/// Reads a name, or another line that identifies or groups, in its one spelling ([`visible_name`]).
/// The length is in bytes of UTF-8, before and after.
pub fn visible_text(bytes: RangeInclusive<usize>) -> impl Fn(Value<'_>) -> Result<String, Invalid> + Clone {
    move |value| {
        let name = exact_text(bytes.clone())(value)?;
        let name = visible_name(&name).map_err(|error| Invalid::new(error.to_string()))?;
        if bytes.contains(&name.len()) { Ok(name) } else { Err(wrong_length(&bytes)) }
    }
}

/// Reads text of several lines, as it is. Line feeds and tabs are allowed, other control characters
/// are not. A text that is not empty has a visible character. The length is in bytes of UTF-8.
pub fn long_text(bytes: RangeInclusive<usize>) -> impl Fn(Value<'_>) -> Result<String, Invalid> + Clone {
    move |value| {
        let text = checked_text(value, &bytes, |c| c.is_control() && c != '\n' && c != '\t')?;
        if !text.is_empty() {
            must_be_visible(&text)?;
        }
        Ok(text)
    }
}

/// Reads a line that only programs read, such as a token, as it is. It has no control characters.
/// Its length is in bytes of UTF-8.
pub fn exact_text(bytes: RangeInclusive<usize>) -> impl Fn(Value<'_>) -> Result<String, Invalid> + Clone {
    move |value| checked_text(value, &bytes, char::is_control)
}

/// The pattern of a URL that [`https_url`] reads.
pub const HTTPS_URL: &str = "^https://[!-~]+$";

/// Reads the `https` URL of a page, as it is. Its length is in bytes.
pub fn https_url(bytes: RangeInclusive<usize>) -> impl Fn(Value<'_>) -> Result<String, Invalid> + Clone {
    move |value| {
        let url = checked_text(value, &bytes, char::is_control)?;
        let is_url = url
            .strip_prefix("https://")
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic()));
        if is_url { Ok(url) } else { Err(Invalid::new("must be an https URL")) }
    }
}

fn must_be_visible(text: &str) -> Result<(), Invalid> {
    if text.chars().all(is_blank) { Err(Invalid::new("must contain a visible character")) } else { Ok(()) }
}

fn wrong_length(bytes: &RangeInclusive<usize>) -> Invalid {
    Invalid::new(format!("must have {} to {} bytes of UTF-8", bytes.start(), bytes.end()))
}

/// Reads an integer in a range, written without fraction and exponent.
pub fn integer<T>(range: RangeInclusive<T>) -> impl Fn(Value<'_>) -> Result<T, Invalid> + Clone
where
    T: TryFrom<i128> + Copy + PartialOrd + Display,
{
    move |value| {
        match value {
            Value::Integer(number) => T::try_from(number).ok().filter(|number| range.contains(number)),
            _ => None,
        }
        .ok_or_else(|| Invalid::new(format!("must be an integer from {} to {}", range.start(), range.end())))
    }
}

/// Reads `true` or `false`.
///
/// # Errors
/// [`Invalid`] for anything else.
pub fn boolean(value: Value<'_>) -> Result<bool, Invalid> {
    match value {
        Value::Boolean(value) => Ok(value),
        _ => Err(Invalid::new("must be true or false")),
    }
}

/// Reads a text with the rule of the type `T`, such as an id, an email address or the name of a
/// status. The client sees the error text of `T`.
///
/// # Errors
/// [`Invalid`] when the value is not a text, or does not match the rule.
pub fn parsed<T>(value: Value<'_>) -> Result<T, Invalid>
where
    T: FromStr<Err: Display>,
{
    match value {
        Value::Text(text) => text.parse().map_err(|error: T::Err| Invalid::new(error.to_string())),
        _ => Err(Invalid::new("must be a string")),
    }
}

/// Reads one of a few names. The error lists them.
pub fn one_of<T: FromStr>(names: &'static [&'static str]) -> impl Fn(Value<'_>) -> Result<T, Invalid> + Clone {
    move |value| {
        match value {
            Value::Text(text) if names.contains(&text.as_ref()) => text.parse().ok(),
            _ => None,
        }
        .ok_or_else(|| Invalid::new(format!("must be one of: {}", names.join(", "))))
    }
}

/// Reads an RFC 3339 instant.
///
/// # Errors
/// [`Invalid`] for anything else.
pub fn instant(value: Value<'_>) -> Result<Instant, Invalid> {
    match value {
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
    .ok_or_else(|| Invalid::new("must be an RFC 3339 instant such as 2017-01-01T11:53:26.000Z"))
}

/// Reads money: `{"amount": 129, "currency": "USD"}`. The amount is in minor units and must be in
/// the range.
pub fn money(amount: RangeInclusive<i64>) -> impl Fn(Value<'_>) -> Result<Money, Invalid> + Clone {
    move |value| {
        let mut fields = value.object()?;
        let amount = fields.required("amount", integer(amount.clone()));
        let currency = fields.required("currency", parsed::<Currency>);
        let (amount, currency) = fields.finish(amount.zip(currency))?;
        Ok(Money::new(amount, currency))
    }
}

/// Reads an array whose length is in a range. The pointer of an element's error contains the
/// element's index. If the length is out of range, no element is read.
pub fn array<'a, T>(
    length: RangeInclusive<usize>,
    read: impl Fn(Value<'a>) -> Result<T, Invalid>,
) -> impl Fn(Value<'a>) -> Result<Vec<T>, Invalid> {
    move |value| {
        let Value::Array(elements) = value else {
            return Err(Invalid::new("must be an array"));
        };
        if !length.contains(&elements.len()) {
            return Err(Invalid::new(format!("must have {} to {} elements", length.start(), length.end())));
        }
        let mut all = Vec::with_capacity(elements.len());
        let mut errors = Invalid::none();
        for (index, element) in elements.into_iter().enumerate() {
            match read(element) {
                Ok(element) => all.push(element),
                Err(invalid) => errors.add(invalid.under(&index.to_string())),
            }
        }
        errors.into_result(all)
    }
}

/// Reads an object as a map with at most `most` entries. The names must match the rule of the key
/// type.
pub fn map<'a, K, V>(
    most: usize,
    read: impl Fn(Value<'a>) -> Result<V, Invalid>,
) -> impl Fn(Value<'a>) -> Result<BTreeMap<K, V>, Invalid>
where
    K: FromStr<Err: Display> + Ord,
{
    move |value| {
        let Value::Object(members) = value else {
            return Err(Invalid::new("must be an object"));
        };
        if members.len() > most {
            return Err(Invalid::new(format!("must have at most {most} entries")));
        }
        let mut all = BTreeMap::new();
        let mut errors = Invalid::none();
        for (name, value) in members {
            let key = name.parse().map_err(|error: K::Err| Invalid::new(format!("the name {error}")));
            match key.and_then(|key| Ok((key, read(value)?))) {
                Ok((key, value)) => {
                    all.insert(key, value);
                }
                Err(invalid) => errors.add(invalid.under(&name)),
            }
        }
        errors.into_result(all)
    }
}

fn checked_text(
    value: Value<'_>,
    bytes: &RangeInclusive<usize>,
    refused: impl Fn(char) -> bool,
) -> Result<String, Invalid> {
    let Value::Text(text) = value else {
        return Err(Invalid::new("must be a string"));
    };
    if !bytes.contains(&text.len()) {
        Err(wrong_length(bytes))
    } else if text.chars().any(refused) {
        Err(Invalid::new("must not contain control characters"))
    } else {
        Ok(text.into_owned())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use key_schema::id::ProductId;

    use super::*;

    fn value(document: &str) -> Value<'_> {
        Value::parse(document).unwrap()
    }

    fn detail<T: std::fmt::Debug>(read: Result<T, Invalid>) -> String {
        let invalid = read.unwrap_err();
        invalid
            .errors()
            .iter()
            .map(|error| format!("{}: {}", error.pointer, error.detail))
            .collect::<Vec<_>>()
            .join("; ")
    }

    #[test]
    fn text_is_counted_in_bytes_and_has_one_line() {
        assert_eq!(text(1..=4)(value(r#""ää""#)), Ok("ää".to_owned()));
        assert_eq!(detail(text(1..=4)(value(r#""ääe""#))), ": must have 1 to 4 bytes of UTF-8");
        assert_eq!(detail(text(1..=4)(value(r#""""#))), ": must have 1 to 4 bytes of UTF-8");
        for bad in [r#""a\nb""#, r#""\u0000""#, r#""\u007f""#, r#""\u0085""#] {
            assert_eq!(detail(text(1..=4)(value(bad))), ": must not contain control characters");
        }
        assert_eq!(detail(text(1..=4)(value("1"))), ": must be a string");
    }

    #[test]
    fn a_line_has_a_visible_character_and_no_white_space_at_its_ends() {
        assert_eq!(text(1..=9)(value(r#"" a  b ""#)), Ok("a  b".to_owned()));
        for blank in [r#"" ""#, r#""\u00a0""#, r#""\u200b""#, r#""\u2800""#, r#""\u3164""#] {
            for read in [text(1..=9)(value(blank)), visible_text(1..=9)(value(blank)), long_text(1..=9)(value(blank))] {
                assert_eq!(detail(read), ": must contain a visible character", "{blank}");
            }
            assert!(long_text(0..=9)(value(blank)).is_err() && long_text(0..=9)(value(r#""""#)).is_ok());
            assert!(exact_text(1..=9)(value(blank)).is_ok());
        }
    }

    #[test]
    fn a_name_has_one_spelling() {
        for spelling in [r#""Été chaud""#, r#"" E\u0301t\u00e9\u00a0 chaud ""#, r#""\u200bÉté  chaud""#] {
            assert_eq!(visible_text(1..=20)(value(spelling)), Ok("Été chaud".to_owned()), "{spelling}");
        }
        // NFC writes this letter with more bytes.
        assert_eq!(detail(visible_text(1..=3)(value(r#""\ufb1d""#))), ": must have 1 to 3 bytes of UTF-8");
    }

    #[test]
    fn long_text_has_lines_and_tabs_and_no_other_control_characters() {
        assert_eq!(long_text(0..=9)(value(r#""a\n\tb""#)), Ok("a\n\tb".to_owned()));
        assert!(long_text(0..=9)(value(r#""a\rb""#)).is_err());
    }

    #[test]
    fn integers_are_whole_and_in_range() {
        let read = integer(-5..=1_000_000_i64);
        assert_eq!(read(value("-5")), Ok(-5));
        for bad in
            ["-6", "1000001", "1.0", "1e3", "\"1\"", "null", "true", "99999999999999999999", "18446744073709551615"]
        {
            assert_eq!(detail(read(value(bad))), ": must be an integer from -5 to 1000000", "{bad}");
        }
        assert_eq!(integer(0..=u64::MAX)(value("18446744073709551615")), Ok(u64::MAX));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_list_of_valid_names() {
        let read = one_of::<u8>(&["1", "2"]);
        assert_eq!(read(value(r#""2""#)), Ok(2));
        assert_eq!(detail(read(value(r#""3""#))), ": must be one of: 1, 2");
    }

    #[test]
    fn ids_instants_and_booleans_follow_their_own_rules() {
        assert_eq!(parsed::<ProductId>(value(r#""p#1""#)).unwrap().as_str(), "p#1");
        assert_eq!(detail(parsed::<ProductId>(value(r#""""#))), ": must not be empty");
        assert_eq!(detail(parsed::<ProductId>(value("7"))), ": must be a string");
        assert_eq!(instant(value(r#""2017-01-01T12:53:26+01:00""#)).unwrap().to_string(), "2017-01-01T11:53:26.000Z");
        for bad in [r#""2017-01-01""#, "1483271606", r#""2017-02-30T00:00:00Z""#] {
            assert!(instant(value(bad)).is_err(), "{bad}");
        }
        assert_eq!(boolean(value("true")), Ok(true));
        assert!(boolean(value("0")).is_err());
    }

    #[test]
    fn money_has_only_an_amount_in_minor_units_and_a_currency() {
        let read = money(0..=MAX_AMOUNT);
        assert_eq!(read(value(r#"{"amount":129,"currency":"USD"}"#)), Ok(Money::new(129, Currency::USD)));
        assert_eq!(
            detail(read(value(r#"{"amount":1.29,"currency":"usd","cents":true}"#))),
            "/amount: must be an integer from 0 to 1000000000000; /currency: must be a code that ISO 4217 \
             lists, such as USD; /cents: is not a field of this object"
        );
        assert_eq!(detail(read(value(r#""1.29 USD""#))), ": must be an object");
    }

    #[test]
    fn an_array_reports_its_invalid_elements_and_has_a_limited_length() {
        let read = array(1..=3, integer(1..=9_u8));
        assert_eq!(read(value("[1,2]")), Ok(vec![1, 2]));
        assert_eq!(
            detail(read(value(r#"[1,0,""]"#))),
            "/1: must be an integer from 1 to 9; /2: must be an integer from 1 to 9"
        );
        assert_eq!(detail(read(value("[]"))), ": must have 1 to 3 elements");
        assert_eq!(detail(read(value("[0,0,0,0]"))), ": must have 1 to 3 elements");
        assert_eq!(detail(read(value("{}"))), ": must be an array");
    }

    #[test]
    fn a_map_checks_its_names_and_its_values() {
        let read = map::<ProductId, u8>(2, integer(1..=9_u8));
        assert_eq!(read(value(r#"{"a":1}"#)).unwrap().len(), 1);
        assert_eq!(
            detail(read(value(r#"{"":1,"b":0}"#))),
            "/: the name must not be empty; /b: must be an integer from 1 to 9"
        );
        assert_eq!(detail(read(value(r#"{"a":1,"b":1,"c":1}"#))), ": must have at most 2 entries");
    }
}
